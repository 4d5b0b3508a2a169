//! A parsed document: feed metadata and entries, before anything is stored.
//!
//! The shape is Atom's (RFC 4287), because that is the single schema; what has no
//! home in Atom is kept as [`Element`]s, so that nothing the source said is lost.
//!
//! What `parse` hands over: ids as the source wrote them, trimmed, empty where there is
//! none; addresses made absolute wherever an `xml:base` was in force, else as written,
//! to be resolved against the document's own URL; in `base`, the absolute `xml:base` in
//! force for what has addresses inside its value, `None` where that is the document's
//! own URL. `normalize` makes every address absolute; a `base` that differs from what
//! surrounds it stays, because readers may ask for it.

use chrono::{DateTime, FixedOffset};

use crate::repair::Repair;

mod format;
mod tombstone;

pub use crate::trace_id::TraceId;
pub use format::{FeedFormat, UnknownFeedFormat};
pub use tombstone::{TOMBSTONES, deleted_entry_id};

/// A feed.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
pub struct Feed {
    /// The format of the document.
    pub format: FeedFormat,
    /// `atom:id`, once settled.
    pub id: String,
    /// `atom:title`.
    pub title: Option<Text>,
    /// `atom:subtitle`.
    pub subtitle: Option<Text>,
    /// `atom:rights`.
    pub rights: Option<Text>,
    /// `atom:updated`.
    pub updated: Option<DateTime<FixedOffset>>,
    /// `atom:author`.
    pub authors: Vec<Person>,
    /// `atom:contributor`.
    pub contributors: Vec<Person>,
    /// `atom:link`.
    pub links: Vec<Link>,
    /// `atom:category`.
    pub categories: Vec<Category>,
    /// `atom:generator`.
    pub generator: Option<Generator>,
    /// `atom:icon`.
    pub icon: Option<String>,
    /// `atom:logo`.
    pub logo: Option<String>,
    /// `xml:lang`.
    pub lang: Option<String>,
    /// The `xml:base` in force, absolute.
    pub base: Option<String>,
    /// Everything without a home in Atom.
    pub extensions: Vec<Element>,
    /// The entries in document order.
    pub entries: Vec<Entry>,
    /// For each `at:deleted-entry` among the extensions (RFC 6721), in their order: how many
    /// entries stand before it.
    pub taken_back: Vec<usize>,
    /// What the document says about when to come back.
    pub hints: Hints,
    /// What its entries are to be known by from now on (rule N2).
    pub known_by: KnownBy,
    /// Where the document says it has moved (`<redirect><newLocation>`, seed 002);
    /// an empty text says that it is gone.
    pub moved_to: Option<String>,
    /// What was wrong with the document and had to be mended, as stable codes.
    pub repairs: Vec<Repair>,
    /// Where it stood in the document; set only in an explanation.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub trace_id: TraceId,
}

/// What the entries of a feed are known by (rule N2). A feed only climbs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum KnownBy {
    /// Their ids; where one has none, its link, and so on.
    #[default]
    Id,
    /// Their links, because ids repeat or are missing; where several have one link, what
    /// they say.
    Link,
}

/// An entry.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
pub struct Entry {
    /// `atom:id`, once settled.
    pub id: String,
    /// Whether the id had to be made up (rule N1).
    pub id_generated: bool,
    /// `atom:title`.
    pub title: Option<Text>,
    /// `atom:summary`.
    pub summary: Option<Text>,
    /// `atom:content`.
    pub content: Option<Content>,
    /// `atom:rights`.
    pub rights: Option<Text>,
    /// `atom:published`.
    pub published: Option<DateTime<FixedOffset>>,
    /// `atom:updated`.
    pub updated: Option<DateTime<FixedOffset>>,
    /// Whether its dates had to be made up (rule N9).
    pub date_assumed: bool,
    /// `atom:author`.
    pub authors: Vec<Person>,
    /// `atom:contributor`.
    pub contributors: Vec<Person>,
    /// `atom:link`, enclosures included.
    pub links: Vec<Link>,
    /// `atom:category`.
    pub categories: Vec<Category>,
    /// `atom:source`: a feed without entries.
    pub source: Option<Box<Feed>>,
    /// Which of the feed's entries it stands under in an outline, by its place among them;
    /// that one comes first (seed 000, `rssCloud:item`).
    pub under: Option<usize>,
    /// `xml:lang`.
    pub lang: Option<String>,
    /// The `xml:base` in force, absolute.
    pub base: Option<String>,
    /// Everything without a home in Atom.
    pub extensions: Vec<Element>,
    /// Where it stood in the document; set only in an explanation.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub trace_id: TraceId,
}

/// How a text construct is to be read (RFC 4287 `#rfc.section.3.1.1`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum TextKind {
    /// Plain text.
    #[default]
    Text,
    /// HTML, as a string.
    Html,
    /// XHTML: the value is the serialized inside of the `div`, well-formed.
    Xhtml,
}

/// A text construct.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
pub struct Text {
    /// How to read the value.
    pub kind: TextKind,
    /// The text itself.
    pub value: String,
    /// `xml:lang`, where it differs from what surrounds it.
    pub lang: Option<String>,
    /// The `xml:base` in force for addresses inside the value, absolute.
    pub base: Option<String>,
}

/// The content of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Content {
    /// A text construct.
    Text(Text),
    /// Of another media type, inline: text as it is, anything else in base64.
    Media {
        /// The media type.
        mime: String,
        /// The text or base64.
        value: String,
    },
    /// Inline XML of another media type: the serialized children, well-formed.
    Xml {
        /// The media type.
        mime: String,
        /// The serialized children.
        value: String,
        /// The `xml:base` in force for addresses inside the value, absolute.
        base: Option<String>,
    },
    /// Somewhere else.
    Src {
        /// The media type, if told.
        mime: Option<String>,
        /// Its address.
        href: String,
    },
}

/// Somebody.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
pub struct Person {
    /// `atom:name`.
    pub name: String,
    /// `atom:email`.
    pub email: Option<String>,
    /// `atom:uri`.
    pub uri: Option<String>,
    /// Everything without a home in Atom.
    pub extensions: Vec<Element>,
    /// Where it stood in the document; set only in an explanation.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub trace_id: TraceId,
}

/// A link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
pub struct Link {
    /// Where it leads; absolute, once settled.
    pub href: String,
    /// The relation; `alternate` where the source names none.
    pub rel: String,
    /// The media type of what is there.
    pub mime: Option<String>,
    /// Its language.
    pub hreflang: Option<String>,
    /// A title.
    pub title: Option<String>,
    /// The length in bytes, as the source wrote it.
    pub length: Option<String>,
    /// Foreign attributes, such as `thr:count`.
    pub attributes: Vec<Attribute>,
    /// What stands inside it.
    pub extensions: Vec<Element>,
    /// Where it stood in the document; set only in an explanation.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub trace_id: TraceId,
}

/// A category.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
pub struct Category {
    /// The keyword.
    pub term: String,
    /// Whose vocabulary it is from.
    pub scheme: Option<String>,
    /// What to show.
    pub label: Option<String>,
    /// Where it stood in the document; set only in an explanation.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub trace_id: TraceId,
}

/// What made the feed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
pub struct Generator {
    /// Its name.
    pub name: String,
    /// Its address.
    pub uri: Option<String>,
    /// Its version.
    pub version: Option<String>,
}

/// An element without a home in Atom, kept whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
pub struct Element {
    /// The namespace's URI; empty for none.
    pub namespace: String,
    /// The prefix it is written with; empty for a default namespace.
    pub prefix: String,
    /// The local name.
    pub name: String,
    /// Its attributes.
    pub attributes: Vec<Attribute>,
    /// What it holds, in order.
    pub children: Vec<Node>,
    /// Where it stood in the document; set only in an explanation.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub trace_id: TraceId,
}

/// One thing inside an [`Element`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Node {
    /// Text.
    Text(String),
    /// An element.
    Element(Element),
}

/// An attribute of an [`Element`] or a foreign one of a [`Link`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
pub struct Attribute {
    /// The namespace's URI; empty for none.
    pub namespace: String,
    /// The prefix it is written with.
    pub prefix: String,
    /// The local name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// What a document says about when to come back (seed 002, "Syndication Hints").
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
pub struct Hints {
    /// `ttl`, in minutes.
    pub ttl_min: Option<u32>,
    /// `skipHours`: hours of the day, GMT, 0 to 23.
    pub skip_hours: Vec<u8>,
    /// `skipDays`: days of the week, Monday is 0.
    pub skip_days: Vec<u8>,
    /// `sy:updatePeriod` divided by `sy:updateFrequency`, in seconds.
    pub update_period_s: Option<u32>,
    /// `sy:updateBase`.
    pub update_base: Option<DateTime<FixedOffset>>,
}

impl Text {
    /// Plain text.
    pub fn plain(value: impl Into<String>) -> Text {
        Text { value: value.into(), ..Text::default() }
    }
}

impl Element {
    /// The text it holds, without the elements in it.
    pub fn text(&self) -> String {
        let texts = self.children.iter().filter_map(|node| match node {
            Node::Text(text) => Some(text.as_str()),
            Node::Element(_) => None,
        });
        texts.collect()
    }
}

impl Feed {
    /// The web site it belongs to: the first page it names.
    pub fn site_url(&self) -> Option<String> {
        let mut pages = self.links.iter().filter(|link| {
            let is_html = link.mime.as_deref().is_none_or(|mime| mime.contains("html"));
            link.rel == "alternate" && is_html
        });
        pages.next().map(|link| link.href.clone())
    }

    /// Whether ids of entries had to be made up.
    pub fn has_generated_ids(&self) -> bool {
        self.entries.iter().any(|entry| entry.id_generated)
    }
}
