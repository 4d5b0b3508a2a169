//! Serialization of the elements of feeds and entries (RFC 4287).

use chrono::{DateTime, Datelike, FixedOffset, SecondsFormat, Timelike};

use crate::model::{Category, Content, Element, Entry, Feed, Link, Person, Text, TextKind};
use crate::own_elements::{ATTRIBUTES, NAMESPACE, is_own};
use crate::text_extraction::printable;

use super::super::element::{push_extension, push_foreign_attributes};
use super::super::fragment::is_well_formed;
use super::super::names::{Names, XHTML, as_name};
use super::super::xml::{push_attribute, push_element, push_end, push_tag, push_text};

/// Appends the metadata elements of a feed.
pub(super) fn push_feed(out: &mut String, feed: &Feed, names: &Names<'_>) {
    push_element(out, "id", &feed.id);
    push_title(out, feed.title.as_ref());
    push_optional_text(out, "subtitle", feed.subtitle.as_ref());
    push_element(out, "updated", &date(&feed.updated.unwrap_or_default()));
    push_source_parts(out, feed, names);
}

/// Appends `atom:source`, whose children are all optional.
pub(super) fn push_source(out: &mut String, source: &Feed, names: &Names<'_>) {
    out.push_str("<source");
    push_lang_and_base(out, source.lang.as_deref(), source.base.as_deref());
    out.push_str(">\n");
    if !source.id.is_empty() {
        push_element(out, "id", &source.id);
    }
    push_optional_text(out, "title", source.title.as_ref());
    push_optional_text(out, "subtitle", source.subtitle.as_ref());
    if let Some(updated) = &source.updated {
        push_element(out, "updated", &date(updated));
    }
    push_source_parts(out, source, names);
    push_end(out, "source");
}

/// Appends the elements that feeds and sources share.
fn push_source_parts(out: &mut String, feed: &Feed, names: &Names<'_>) {
    feed.authors.iter().for_each(|person| push_person(out, "author", person, names));
    feed.contributors.iter().for_each(|person| push_person(out, "contributor", person, names));
    feed.links.iter().for_each(|link| push_link(out, link, names));
    feed.categories.iter().for_each(|category| push_category(out, category));
    if let Some(generator) = &feed.generator {
        out.push_str("<generator");
        push_optional(out, "uri", generator.uri.as_deref());
        push_optional(out, "version", generator.version.as_deref());
        out.push('>');
        push_text(out, &generator.name);
        push_end(out, "generator");
    }
    if let Some(icon) = &feed.icon {
        push_element(out, "icon", icon);
    }
    if let Some(logo) = &feed.logo {
        push_element(out, "logo", logo);
    }
    push_optional_text(out, "rights", feed.rights.as_ref());
    feed.extensions.iter().for_each(|element| push_extension(out, element, names));
}

/// Appends the children of an entry.
pub(super) fn push_entry(out: &mut String, entry: &Entry, names: &Names<'_>) {
    push_element(out, "id", &entry.id);
    push_title(out, entry.title.as_ref());
    if let Some(published) = &entry.published {
        push_element(out, "published", &date(published));
    }
    let updated = entry.updated.or(entry.published).unwrap_or_default();
    push_element(out, "updated", &date(&updated));
    entry.authors.iter().for_each(|person| push_person(out, "author", person, names));
    entry.contributors.iter().for_each(|person| push_person(out, "contributor", person, names));
    entry.links.iter().for_each(|link| push_link(out, link, names));
    entry.categories.iter().for_each(|category| push_category(out, category));
    push_optional_text(out, "summary", entry.summary.as_ref());
    if let Some(content) = &entry.content {
        push_content(out, content);
    }
    push_optional_text(out, "rights", entry.rights.as_ref());
    if let Some(source) = &entry.source {
        push_source(out, source, names);
    }
    entry.extensions.iter().for_each(|element| push_extension(out, element, names));
}

/// Appends the title, which is required; empty if there is none.
fn push_title(out: &mut String, title: Option<&Text>) {
    match title {
        Some(title) => push_text_construct(out, "title", title),
        None => push_text_construct(out, "title", &Text::default()),
    }
}

fn push_optional_text(out: &mut String, name: &str, text: Option<&Text>) {
    if let Some(text) = text {
        push_text_construct(out, name, text);
    }
}

/// Appends a text construct. XHTML that is not well-formed is written as HTML, which readers
/// repair.
pub(super) fn push_text_construct(out: &mut String, name: &str, text: &Text) {
    // If the end tag of an item is missing, lenient readers end it at the next item, unless that is
    // quoted in content.
    let is_torn =
        |value: &str| name != "content" && (value.contains("<entry") || value.contains("<item"));
    let raw = (text.kind == TextKind::Xhtml)
        .then(|| printable(&text.value))
        .filter(|value| is_well_formed(value) && !is_torn(value));
    out.push('<');
    out.push_str(name);
    let kind = match text.kind {
        TextKind::Text => "text",
        TextKind::Xhtml if raw.is_some() => "xhtml",
        TextKind::Html | TextKind::Xhtml => "html",
    };
    push_attribute(out, "type", kind);
    push_lang_and_base(out, text.lang.as_deref(), text.base.as_deref());
    out.push('>');
    if let Some(markup) = raw {
        out.push_str("<div");
        push_attribute(out, "xmlns", XHTML);
        out.push('>');
        out.push_str(&markup);
        out.push_str("</div>");
    } else {
        push_text(out, &text.value);
    }
    push_end(out, name);
}

fn push_content(out: &mut String, content: &Content) {
    match content {
        Content::Text(text) => push_text_construct(out, "content", text),
        Content::Src { mime, href, .. } => {
            out.push_str("<content");
            push_optional(out, "type", mime.as_deref());
            push_attribute(out, "src", href);
            out.push_str("/>\n");
        }
        Content::Media { mime, value } => {
            out.push_str("<content");
            push_attribute(out, "type", mime);
            out.push('>');
            push_text(out, value);
            push_end(out, "content");
        }
        Content::Xml { mime, value, .. } => {
            let value = printable(value);
            let raw = is_well_formed(&value);
            out.push_str("<content");
            push_attribute(out, "type", if raw { mime } else { "text/plain" });
            out.push('>');
            if raw {
                out.push_str(&value);
            } else {
                push_text(out, &value);
            }
            push_end(out, "content");
        }
    }
}

fn push_person(out: &mut String, role: &str, person: &Person, names: &Names<'_>) {
    push_tag(out, role);
    push_element(out, "name", &person.name);
    if let Some(uri) = &person.uri {
        push_element(out, "uri", uri);
    }
    if let Some(email) = &person.email {
        push_element(out, "email", email);
    }
    for element in &person.extensions {
        if is_own(element) {
            push_own(out, element);
        } else {
            push_extension(out, element, names);
        }
    }
    push_end(out, role);
}

/// Appends an element that the normalizer adds to a person: without a prefix, because clients of
/// Superfeedr look for `id`. The namespace is declared with a prefix as well, because feedparser takes
/// an element of an unknown namespace without one for an element of the feed.
pub(super) fn push_own(out: &mut String, element: &Element) {
    let name = as_name(&element.name);
    out.push('<');
    out.push_str(&name);
    push_attribute(out, "xmlns", NAMESPACE);
    push_attribute(out, "xmlns:fg", NAMESPACE);
    // A document may have elements of this namespace too: only attributes of ours are written, each once.
    for name in ATTRIBUTES {
        let mut named = element.attributes.iter().filter(|attribute| attribute.name == name);
        if let Some(attribute) = named.find(|attribute| attribute.namespace.is_empty()) {
            push_attribute(out, name, &attribute.value);
        }
    }
    let text = element.text();
    if text.is_empty() {
        return out.push_str("/>\n");
    }
    out.push('>');
    push_text(out, &text);
    push_end(out, &name);
}

/// Appends a link.
pub(super) fn push_link(out: &mut String, link: &Link, names: &Names<'_>) {
    out.push_str("<link");
    let rel = if link.rel.is_empty() { "alternate" } else { &link.rel };
    push_attribute(out, "rel", rel);
    push_optional(out, "type", link.mime.as_deref());
    push_optional(out, "hreflang", link.hreflang.as_deref());
    push_optional(out, "title", link.title.as_deref());
    push_attribute(out, "href", &link.href);
    push_optional(out, "length", link.length.as_deref());
    push_foreign_attributes(out, &link.attributes, names);
    if link.extensions.is_empty() {
        out.push_str("/>\n");
        return;
    }
    out.push_str(">\n");
    link.extensions.iter().for_each(|element| push_extension(out, element, names));
    out.push_str("</link>\n");
}

fn push_category(out: &mut String, category: &Category) {
    out.push_str("<category");
    push_attribute(out, "term", &category.term);
    push_optional(out, "scheme", category.scheme.as_deref());
    push_optional(out, "label", category.label.as_deref());
    out.push_str("/>\n");
}

/// Appends `xml:lang` and `xml:base`.
pub(super) fn push_lang_and_base(out: &mut String, lang: Option<&str>, base: Option<&str>) {
    push_optional(out, "xml:lang", lang);
    push_optional(out, "xml:base", base);
}

fn push_optional(out: &mut String, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        push_attribute(out, name, value);
    }
}

/// Formats a date as RFC 3339 and XML Schema require. Years out of their range become 1970. Offsets
/// out of their range, beyond 14 hours or with seconds, become UTC.
pub(in crate::render) fn date(date: &DateTime<FixedOffset>) -> String {
    let zone_s = date.offset().local_minus_utc();
    let zoned = zone_s.abs() <= 14 * 3_600 && zone_s % 60 == 0;
    let date = if zoned { *date } else { date.to_utc().fixed_offset() };
    let sayable = (1..=9_999).contains(&date.year());
    let date = if sayable { date } else { DateTime::default() };
    if date.timestamp_subsec_nanos() > 0 {
        return date.to_rfc3339_opts(SecondsFormat::AutoSi, true);
    }
    let mut out = String::with_capacity("2002-09-07T02:00:01+02:00".len());
    let local = date.naive_local();
    let (day, time) = (local.date(), local.time());
    push_two_digits(&mut out, day.year().unsigned_abs() / 100);
    push_two_digits(&mut out, day.year().unsigned_abs() % 100);
    for (before, number) in [
        ('-', day.month()),
        ('-', day.day()),
        ('T', time.hour()),
        (':', time.minute()),
        (':', time.second()),
    ] {
        out.push(before);
        push_two_digits(&mut out, number);
    }
    let zone_s = date.offset().local_minus_utc();
    if zone_s == 0 {
        out.push('Z');
        return out;
    }
    out.push(if zone_s < 0 { '-' } else { '+' });
    push_two_digits(&mut out, zone_s.unsigned_abs() / 3_600);
    out.push(':');
    push_two_digits(&mut out, zone_s.unsigned_abs() / 60 % 60);
    out
}

fn push_two_digits(out: &mut String, number: u32) {
    for digit in [number / 10 % 10, number % 10] {
        out.push(char::from_digit(digit, 10).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_such_as_every_reader_knows() {
        let cases = [
            (1_031_356_801, 7_200, "2002-09-07T02:00:01+02:00"),
            (1_031_356_801, 0, "2002-09-07T00:00:01Z"),
            (1_031_356_801, 54_000, "2002-09-07T00:00:01Z"),
            (1_031_356_801, 61, "2002-09-07T00:00:01Z"),
            (999_999_999_999, 0, "1970-01-01T00:00:00Z"),
        ];
        for (seconds, zone_s, want) in cases {
            let zone = FixedOffset::east_opt(zone_s).unwrap();
            let at = DateTime::from_timestamp(seconds, 0).unwrap().with_timezone(&zone);
            assert_eq!(date(&at), want, "{seconds} {zone_s}");
        }
    }
}
