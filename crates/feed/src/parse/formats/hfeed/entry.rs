//! Reading of one `h-entry`.

use super::{OutputNamespace, PageReading, attribute, element, link, place, with_text};
use crate::model::{Category, Content, Element, Entry, Link, Text, TextKind};
use crate::parse::dates;
use crate::parse::microformats::{MicroformatItem, Property, ValueForm, absolute};
use crate::parse::texts::media_type_of;
use crate::repair::{Repair, RepairCode};

const THREADS: OutputNamespace =
    OutputNamespace { uri: "http://purl.org/syndication/thread/1.0", prefix: "thr" };
const ACTIVITY: OutputNamespace =
    OutputNamespace { uri: "http://activitystrea.ms/spec/1.0/", prefix: "as" };

/// Properties that make an entry an action on something else, with the ActivityStreams verb for
/// that action.
const DEEDS: [(&str, &str); 3] = [
    ("like-of", "http://activitystrea.ms/schema/1.0/like"),
    ("repost-of", "http://activitystrea.ms/schema/1.0/share"),
    ("bookmark-of", "http://activitystrea.ms/schema/1.0/save"),
];

impl PageReading<'_> {
    /// Reads an entry; `None` if it has no name, content or address.
    pub(super) fn entry(&mut self, item: MicroformatItem<'_>) -> Option<Entry> {
        let lang = item.tag.lang().map(str::to_owned);
        let mut entry = Entry { lang, base: self.told.clone(), ..Entry::default() };
        self.begin(&mut entry, item.tag);
        let held = item.properties();
        let mut verb = None;
        for property in &held {
            let before = self.trace.snapshot(&mut entry);
            if !self.describe_entry(&mut entry, *property, item) {
                entry.extensions.extend(self.kept(*property));
            }
            self.trace.record_changes(before, &mut entry, property.tag);
            let deed = DEEDS.iter().find(|(name, _)| *name == property.name);
            verb = verb.or(deed.map(|(_, verb)| *verb));
        }
        let before = self.trace.snapshot(&mut entry);
        self.imply(&mut entry, item, &held);
        entry.extensions.extend(verb.map(|verb| with_text(ACTIVITY, "verb", verb.to_owned())));
        self.trace.record_changes(before, &mut entry, item.tag);
        let url = entry.links.iter().any(|link| link.rel == "alternate");
        let says = entry.title.is_some() || entry.summary.is_some() || entry.content.is_some();
        (url || says).then_some(entry)
    }

    /// Sets the fields that the markup of an entry implies.
    fn imply(&self, entry: &mut Entry, item: MicroformatItem<'_>, held: &[Property<'_>]) {
        if entry.title.is_none() {
            entry.title = item.implied_name(held).map(Text::plain);
        }
        if entry.links.is_empty() {
            let url = item.implied_url(held).map(|href| absolute(self.base, href));
            entry.links.extend(url.map(|url| link(url, "alternate")));
        }
        entry.extensions.extend(coordinates(held));
        let content = held.iter().find(|property| property.name == "content");
        if let (Some(content), Some(title)) = (content, &entry.title)
            && content.tag.text() == title.value
        {
            // A note has no title: the same element marks up its content and its name.
            entry.title = None;
        }
    }

    /// Reads a property into the field of Atom or of an Atom extension for it. Returns `false` if
    /// there is no such field, or it is already set.
    fn describe_entry(
        &mut self,
        entry: &mut Entry,
        property: Property<'_>,
        item: MicroformatItem<'_>,
    ) -> bool {
        match property.name {
            "name" if entry.title.is_none() => {
                entry.title =
                    Some(property.text()).filter(|text| !text.is_empty()).map(Text::plain);
            }
            "summary" if entry.summary.is_none() => {
                entry.summary = self.text(property, item);
            }
            "content" if entry.content.is_none() => {
                entry.content = self.text(property, item).map(Content::Text);
            }
            "published" if entry.published.is_none() => {
                entry.published = self.date(property);
                return entry.published.is_some();
            }
            "updated" if entry.updated.is_none() => {
                entry.updated = self.date(property);
                return entry.updated.is_some();
            }
            "url" => entry.links.extend(self.address(property).map(|to| link(to, "alternate"))),
            "uid" if entry.id.is_empty() => {
                entry.id = self.address(property).unwrap_or_default();
            }
            "author" => entry.authors.extend(self.person(property)),
            "category" => entry.categories.extend(self.category(property)),
            "photo" | "video" | "audio" => entry.links.extend(self.enclosure(property)),
            "in-reply-to" => entry.extensions.extend(self.reply(property)),
            "location" | "geo" => entry.extensions.extend(self.place(property)),
            "latitude" | "longitude" => {}
            _ => return false,
        }
        true
    }

    /// Returns a text construct, with the language of its element if that differs from the entry's.
    fn text(&self, property: Property<'_>, item: MicroformatItem<'_>) -> Option<Text> {
        let (kind, value) = if property.form == ValueForm::Markup {
            (TextKind::Html, property.tag.markup())
        } else {
            (TextKind::Text, property.text())
        };
        let lang = property.tag.lang().filter(|lang| Some(*lang) != item.tag.lang());
        let base = self.told.clone();
        let text = Text { kind, value, lang: lang.map(str::to_owned), base };
        (!text.value.is_empty()).then_some(text)
    }

    fn date(&mut self, property: Property<'_>) -> Option<chrono::DateTime<chrono::FixedOffset>> {
        let text = property.date();
        let date = dates::parse(&text);
        if date.is_none() {
            let detail =
                format!("{}: {}", property.name, text.chars().take(80).collect::<String>());
            self.repairs.push(Repair::new(RepairCode::BadDate, detail));
        }
        date
    }

    /// Returns a category: a text, a tagged person, or the last path segment of a tag's address.
    fn category(&self, property: Property<'_>) -> Option<Category> {
        let named = property.item.and_then(|item| self.name_of(item));
        let term = named.unwrap_or_else(|| match property.form {
            ValueForm::Address => self.address(property).unwrap_or_default(),
            _ => property.text(),
        });
        (!term.is_empty()).then(|| Category { term, ..Category::default() })
    }

    fn enclosure(&self, property: Property<'_>) -> Option<Link> {
        let href = self.address(property)?;
        let mime = property.tag.attr("type").or_else(|| media_type_of(&href));
        let title = property.tag.attr("alt").filter(|alt| !alt.is_empty());
        Some(Link {
            mime: mime.map(str::to_owned),
            title: title.map(str::to_owned),
            ..link(href, "enclosure")
        })
    }

    /// Returns the `thr:in-reply-to` of an entry that is a reply (RFC 4685).
    fn reply(&self, property: Property<'_>) -> Option<Element> {
        let href = self.address(property)?;
        let attributes = vec![attribute("ref", href.clone()), attribute("href", href)];
        Some(element(THREADS, "in-reply-to", attributes))
    }
}

/// Returns the coordinates that are properties of the entry itself.
fn coordinates(held: &[Property<'_>]) -> Option<Element> {
    let named = |name: &str| held.iter().find(|property| property.name == name);
    place::point(&named("latitude")?.text(), &named("longitude")?.text())
}
