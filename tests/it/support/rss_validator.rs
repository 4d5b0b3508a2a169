//! What the W3C's feed validator finds wrong with RSS 2.0: its errors, and those of its warnings that are
//! about RSS itself.

use std::collections::HashSet;

use chrono::DateTime;

use super::validator::{Element, parse};

const ATOM: &str = "http://www.w3.org/2005/Atom";
const DC: &str = "http://purl.org/dc/elements/1.1/";

/// The elements of a channel and of an item that RSS 2.0 defines.
const OF_CHANNEL: [&str; 19] = [
    "title",
    "link",
    "description",
    "language",
    "copyright",
    "managingEditor",
    "webMaster",
    "pubDate",
    "lastBuildDate",
    "category",
    "generator",
    "docs",
    "cloud",
    "ttl",
    "image",
    "rating",
    "textInput",
    "skipHours",
    "skipDays",
];
const OF_ITEM: [&str; 10] = [
    "title",
    "link",
    "description",
    "author",
    "category",
    "comments",
    "enclosure",
    "guid",
    "pubDate",
    "source",
];

/// Fails with everything that is wrong with the document that was had from `url`.
pub(crate) fn assert_valid_rss(url: &str, text: &str) {
    let mut wrong = rss_faults(text);
    let own = format!("<atom:link rel=\"self\" type=\"application/rss+xml\" href=\"{url}\"/>");
    if !text.contains(&own.replace('&', "&amp;")) && !text.contains(&own) {
        wrong.push(format!("its self is not {url}"));
    }
    assert!(wrong.is_empty(), "{url} is not valid:\n  {}\n{text}", wrong.join("\n  "));
}

/// Returns everything that is wrong with a document.
pub(crate) fn rss_faults(text: &str) -> Vec<String> {
    let root = match parse(text) {
        Ok(root) => root,
        Err(err) => return vec![format!("it is not well-formed: {err}")],
    };
    let mut wrong = Vec::new();
    if !root.is("", "rss") || root.attribute("version") != "2.0" || root.children.len() != 1 {
        wrong.push("its root is no rss of version 2.0 with one channel".to_owned());
    }
    for channel in &root.children {
        check_channel(channel, &mut wrong);
    }
    wrong
}

fn check_channel(channel: &Element, wrong: &mut Vec<String>) {
    let own = |element: &&Element| element.namespace.is_empty();
    for child in channel.children.iter().filter(own).filter(|child| child.name != "item") {
        if !OF_CHANNEL.contains(&child.name.as_str()) {
            wrong.push(format!("a channel has no {}", child.name));
        }
    }
    for name in ["title", "link", "description"] {
        if texts(channel, name).len() != 1 || texts(channel, name)[0].trim().is_empty() {
            wrong.push(format!("the channel has {:?} as {name}", texts(channel, name)));
        }
    }
    check_texts(channel, "the channel", wrong);
    if !texts(channel, "managingEditor").is_empty() && has(channel, DC, "creator") {
        wrong.push("managingEditor and dc:creator mean the same".to_owned());
    }
    let mut ids = HashSet::new();
    for item in channel.children.iter().filter(own).filter(|child| child.name == "item") {
        let id = texts(item, "guid").first().map(|id| (*id).to_owned()).unwrap_or_default();
        let what = format!("item {id}");
        check_item(item, &what, wrong);
        if !ids.insert(id) {
            wrong.push(format!("{what} is there twice"));
        }
    }
}

fn check_item(item: &Element, what: &str, wrong: &mut Vec<String>) {
    for child in item.children.iter().filter(|child| child.namespace.is_empty()) {
        if !OF_ITEM.contains(&child.name.as_str()) {
            wrong.push(format!("an item has no {}", child.name));
        }
    }
    for name in ["guid", "enclosure", "author", "comments", "source"] {
        if texts(item, name).len() > 1 {
            wrong.push(format!("{what} has several {name}"));
        }
    }
    if texts(item, "title").is_empty() && texts(item, "description").is_empty() {
        wrong.push(format!("{what} has neither a title nor a description"));
    }
    check_texts(item, what, wrong);
    if !texts(item, "author").is_empty() && has(item, DC, "creator") {
        wrong.push(format!("author and dc:creator of {what} mean the same"));
    }
    if has(item, ATOM, "id") {
        wrong.push(format!("guid and atom:id of {what} mean the same"));
    }
    for guid in children(item, "guid") {
        match guid.attribute("isPermaLink") {
            "true" if is_url(&guid.text) => {}
            "false" if !guid.text.is_empty() => {}
            other => wrong.push(format!("the guid of {what} is a permalink: {other}")),
        }
    }
    for enclosure in children(item, "enclosure") {
        let is_sound = is_url(enclosure.attribute("url"))
            && enclosure.attribute("length").parse::<u64>().is_ok()
            && enclosure.attribute("type").contains('/');
        if !is_sound {
            wrong.push(format!("the enclosure of {what} is {:?}", enclosure.attributes));
        }
    }
    for source in children(item, "source").filter(|source| !is_url(source.attribute("url"))) {
        wrong.push(format!("the source of {what} is {:?}", source.attributes));
    }
}

/// What channels and items have alike.
fn check_texts(element: &Element, what: &str, wrong: &mut Vec<String>) {
    for name in ["title", "link", "description", "pubDate", "lastBuildDate"] {
        if texts(element, name).len() > 1 {
            wrong.push(format!("{what} has several {name}"));
        }
    }
    for name in ["link", "comments"] {
        for url in texts(element, name).into_iter().filter(|url| !is_url(url)) {
            wrong.push(format!("the {name} of {what} is {url:?}"));
        }
    }
    for name in ["pubDate", "lastBuildDate"] {
        for date in texts(element, name) {
            if DateTime::parse_from_rfc2822(date).is_err() {
                wrong.push(format!("{name} of {what} is no date of RFC 2822: {date:?}"));
            }
        }
    }
    for name in ["author", "managingEditor"] {
        for person in texts(element, name).into_iter().filter(|person| !person.contains('@')) {
            wrong.push(format!("{name} of {what} has no e-mail address: {person:?}"));
        }
    }
    for updated in element.all("updated") {
        if DateTime::parse_from_rfc3339(&updated.text).is_err() {
            wrong.push(format!("atom:updated of {what} is no date: {:?}", updated.text));
        }
    }
}

/// Returns the elements of RSS with this name.
fn children<'e>(element: &'e Element, name: &'e str) -> impl Iterator<Item = &'e Element> {
    element.children.iter().filter(move |child| child.is("", name))
}

fn texts<'e>(element: &'e Element, name: &'e str) -> Vec<&'e str> {
    children(element, name).map(|child| child.text.as_str()).collect()
}

fn has(element: &Element, namespace: &str, name: &str) -> bool {
    element.children.iter().any(|child| child.is(namespace, name))
}

/// Whether a text is an absolute URL by its characters, as the validator checks it.
fn is_url(text: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_graphic() && !"<>\"\\^`{|}".contains(c);
    let (scheme, rest) = text.split_once(':').unwrap_or_default();
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && !rest.is_empty()
        && text.chars().all(is_allowed)
}

#[test]
fn rss_that_is_not_valid_is_found_out() {
    let channel = |more: &str| {
        format!(
            "<rss version='2.0' xmlns:dc='{DC}'><channel><title>T</title><link>https://a.test/</link>\
             <description>D</description>{more}</channel></rss>"
        )
    };
    let item = |more: &str| channel(&format!("<item><title>1</title>{more}</item>"));
    #[rustfmt::skip]
    let cases = [
        (channel(""), ""),
        (item("<guid isPermaLink='false'>1</guid>"), ""),
        (channel("<title>U</title>"), "as title"),
        (channel("<colour>red</colour>"), "a channel has no colour"),
        (channel("<item/>"), "neither a title nor a description"),
        (item("<guid isPermaLink='true'>1</guid>"), "is a permalink"),
        (item("<guid>https://a.test/</guid>"), "is a permalink"),
        (item("<pubDate>2026-11-01</pubDate>"), "no date of RFC 2822"),
        (item("<enclosure url='https://a.test/1' type='audio/mpeg'/>"), "the enclosure of"),
        (item("<author>Ada</author>"), "no e-mail address"),
        (item("<author>a@b.test</author><dc:creator>A</dc:creator>"), "mean the same"),
        (item("<source>B</source>"), "the source of"),
        (item("<link>/1</link>"), "the link of"),
        (channel("<item>"), "well-formed"),
    ];
    for (text, want) in cases {
        let wrong = rss_faults(&text).join("; ");
        assert_eq!(wrong.is_empty(), want.is_empty(), "{wrong}\n{text}");
        assert!(wrong.contains(want), "{want}: {wrong}\n{text}");
    }
}
