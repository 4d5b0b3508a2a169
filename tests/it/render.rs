//! Whatever is in a feed: once it is settled, what is written of it is valid Atom, RSS and JSON Feed.

use chrono::{DateTime, FixedOffset};
use feedgate_feed::Context;
use feedgate_feed::model::{
    Attribute, Category, Content, Element, Entry, Feed, Generator, Link, Node, Person, Text,
    TextKind,
};
use feedgate_feed::{passes, render};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use url::Url;

use crate::schemas;
use crate::support::rss_validator::rss_faults;

/// How many feeds are made; each holds a handful of everything.
const FEEDS: usize = 300;

#[test]
fn any_feed_that_is_settled_is_written_as_valid_atom() {
    let context = Context::new(Url::parse("https://a.test/dir/feed").unwrap());
    let mut made = TestRunner::deterministic();
    let mut unsettled = Vec::new();
    let documents = (0..FEEDS).map(|n| {
        let feed = feed().new_tree(&mut made).unwrap().current();
        let settled = passes::run(feed, &context);
        let written = render::atom::feed(&settled);
        let again = render::atom::feed(&passes::run(settled, &context));
        let differing = written.lines().zip(again.lines()).find(|(one, two)| one != two);
        unsettled.extend(differing.map(|(one, two)| format!("{one}\n  became {two}\n")));
        (format!("feed-{n}"), written)
    });
    schemas::assert_valid("atom.rng", &documents.collect::<Vec<_>>());
    assert!(unsettled.is_empty(), "not settled after one pass:\n{}", unsettled.join("\n"));
}

#[test]
fn a03_any_feed_that_is_settled_is_written_as_valid_rss_and_json_feed() {
    let context = Context::new(Url::parse("https://a.test/dir/feed").unwrap());
    let mut made = TestRunner::deterministic();
    for _ in 0..FEEDS {
        let feed = feed().new_tree(&mut made).unwrap().current();
        let settled = passes::run(feed, &context);
        let rss = render::rss::document(&settled);
        assert_eq!(rss_faults(&rss), [] as [String; 0], "{rss}");
        let json_feed = render::json_feed::document(&settled, None);
        schemas::assert_json_feed(&json_feed.to_string());
    }
}

/// What has a meaning somewhere: in XML, in HTML, in addresses.
#[rustfmt::skip]
const PARTS: &[&str] = &[
    "<", ">", "&", "\"", "'", "]]>", "<!--", "<b>", "</b>", "<br/>", "<a href=", "&amp;",
    "&nbsp;", "&#0;", "\u{0}", "\u{b}", "\u{fffe}", "\r", "\n", "\t", " ", "a", "é", "𝄞",
    "http://b.test/", "urn:x:", "javascript:", "../", "//", "?", "#", ":", "@", "%", "xmlns",
    "xml", "text/html", "en", "de_DE", "html", "=", "1", "-",
];

fn text() -> impl Strategy<Value = String> {
    vec(prop::sample::select(PARTS), 0..6).prop_map(|parts| parts.concat())
}

fn date() -> impl Strategy<Value = DateTime<FixedOffset>> {
    let seconds = prop_oneof![-99_999_999_999_i64..999_999_999_999, 0..2_000_000_000_i64];
    (seconds, -86_399..86_399_i32, 0..2_000_000_000_u32).prop_filter_map(
        "no date",
        |(s, zone, n)| {
            let zone = FixedOffset::east_opt(zone)?;
            Some(DateTime::from_timestamp(s, n % 1_000_000_000)?.with_timezone(&zone))
        },
    )
}

fn text_construct() -> impl Strategy<Value = Text> {
    let kinds = [TextKind::Text, TextKind::Html, TextKind::Xhtml];
    let base = prop::sample::select(&["https://a.test/", "https://b.test/x/"][..]);
    (prop::sample::select(kinds.to_vec()), text(), of(text()), of(base.prop_map(str::to_owned)))
        .prop_map(|(kind, value, lang, base)| Text { kind, value, lang, base })
}

fn attribute() -> impl Strategy<Value = Attribute> {
    (namespace(), text(), text(), text()).prop_map(|(namespace, prefix, name, value)| Attribute {
        namespace,
        prefix,
        name,
        value,
    })
}

const NAMESPACES: &[&str] = &[
    "",
    "http://www.w3.org/2005/Atom",
    "http://www.w3.org/XML/1998/namespace",
    "http://purl.org/dc/elements/1.1/",
    "urn:one",
    "urn:two",
];

fn namespace() -> impl Strategy<Value = String> {
    prop_oneof![prop::sample::select(NAMESPACES).prop_map(str::to_owned), text()]
}

fn element() -> impl Strategy<Value = Element> {
    let leaf = (namespace(), text(), text(), vec(attribute(), 0..3)).prop_map(
        |(namespace, prefix, name, attributes)| Element {
            namespace,
            prefix,
            name,
            attributes,
            ..Element::default()
        },
    );
    leaf.prop_recursive(3, 8, 3, |inner| {
        let node = prop_oneof![text().prop_map(Node::Text), inner.clone().prop_map(Node::Element)];
        (inner, vec(node, 0..3)).prop_map(|(element, children)| Element { children, ..element })
    })
}

fn person() -> impl Strategy<Value = Person> {
    (text(), of(text()), of(text()), vec(element(), 0..2)).prop_map(
        |(name, email, uri, extensions)| Person {
            name,
            email,
            uri,
            extensions,
            ..Person::default()
        },
    )
}

fn link() -> impl Strategy<Value = Link> {
    let rel = prop_oneof![Just("alternate".to_owned()), Just("enclosure".to_owned()), text()];
    let foreign = (vec(attribute(), 0..2), vec(element(), 0..2));
    (text(), rel, of(text()), of(text()), of(text()), of(text()), foreign).prop_map(
        |(href, rel, mime, hreflang, title, length, (attributes, extensions))| Link {
            href,
            rel,
            mime,
            hreflang,
            title,
            length,
            attributes,
            extensions,
            ..Link::default()
        },
    )
}

fn category() -> impl Strategy<Value = Category> {
    (text(), of(text()), of(text())).prop_map(|(term, scheme, label)| Category {
        term,
        scheme,
        label,
        ..Category::default()
    })
}

fn content() -> impl Strategy<Value = Content> {
    prop_oneof![
        text_construct().prop_map(Content::Text),
        (text(), text()).prop_map(|(mime, value)| Content::Media { mime, value }),
        (text(), text()).prop_map(|(mime, value)| Content::Xml { mime, value, base: None }),
        (of(text()), text()).prop_map(|(mime, href)| Content::Src { mime, href }),
    ]
}

/// A feed without entries, which may be the source of an entry too.
fn metadata() -> impl Strategy<Value = Feed> {
    let texts = (of(text_construct()), of(text_construct()), of(text_construct()));
    let people = (vec(person(), 0..3), vec(person(), 0..2));
    let rest = (vec(link(), 0..4), vec(category(), 0..3), vec(element(), 0..3));
    let made = of((text(), of(text()), of(text())));
    let marks = (text(), of(date()), of(text()), of(text()), of(text()));
    (texts, people, rest, made, marks).prop_map(
        |((title, subtitle, rights), (authors, contributors), rest, made, marks)| {
            let (links, categories, extensions) = rest;
            let (id, updated, icon, logo, lang) = marks;
            let generator = made.map(|(name, uri, version)| Generator { name, uri, version });
            Feed {
                id,
                title,
                subtitle,
                rights,
                updated,
                authors,
                contributors,
                links,
                categories,
                generator,
                icon,
                logo,
                lang,
                extensions,
                ..Feed::default()
            }
        },
    )
}

fn entry() -> impl Strategy<Value = Entry> {
    (metadata(), of(content()), of(date()), of(metadata())).prop_map(
        |(like, content, published, source)| Entry {
            id: like.id,
            title: like.title,
            summary: like.subtitle,
            content,
            rights: like.rights,
            published,
            updated: like.updated,
            authors: like.authors,
            contributors: like.contributors,
            links: like.links,
            categories: like.categories,
            source: source.map(Box::new),
            lang: like.lang,
            extensions: like.extensions,
            ..Entry::default()
        },
    )
}

fn feed() -> impl Strategy<Value = Feed> {
    (metadata(), vec(entry(), 0..4)).prop_map(|(feed, entries)| Feed { entries, ..feed })
}
