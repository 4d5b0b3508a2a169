//! The model of a feed: metadata and entries, independent of any storage.
//!
//! The structure follows Atom (RFC 4287). Everything without a counterpart in Atom is kept as
//! [`Element`]s, so that nothing in the source is lost.
//!
//! The state after `parse`: ids as the source wrote them, trimmed, empty if missing; addresses
//! absolute if an `xml:base` applied, otherwise as written and relative to the URL of the document;
//! `base` is the absolute `xml:base` that applies to the addresses inside a value, `None` if only
//! the URL of the document applies. `normalize` makes every address absolute; a `base` that differs
//! from the surrounding one is kept for readers that need it.

use chrono::{DateTime, FixedOffset};

use crate::repair::Repair;

mod format;
mod tombstone;

pub use crate::trace_id::TraceId;
pub use format::{FeedFormat, UnknownFeedFormat};
pub(crate) use tombstone::deleted_entry_id_mut;
pub use tombstone::{TOMBSTONES, deleted_entry_id};

/// A feed, in the structure of Atom.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
pub struct Feed {
    /// The format of the source document.
    pub format: FeedFormat,
    /// `atom:id`; never empty after normalization.
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
    /// The elements without a counterpart in Atom.
    pub extensions: Vec<Element>,
    /// The entries in document order.
    pub entries: Vec<Entry>,
    /// The position of each `at:deleted-entry` among the extensions (RFC 6721), in their order: the
    /// number of entries before it.
    pub taken_back: Vec<usize>,
    /// The number of entries before those that were left out in the middle, because the document has
    /// too many and no dates that order them; `None` if none were left out there.
    pub gap: Option<usize>,
    /// The polling hints of the document.
    pub hints: Hints,
    /// How the entries are to be identified from now on (rule N2).
    pub known_by: KnownBy,
    /// The new address of the feed (`<redirect><newLocation>`, seed 002). An empty text means that
    /// the feed is gone.
    pub moved_to: Option<String>,
    /// The faults of the document that were repaired.
    pub repairs: Vec<Repair>,
    /// The location in the document; set only in an explanation.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub trace_id: TraceId,
}

/// The property that identifies the entries of a feed (rule N2). A feed may change from `Id` to `Link`,
/// never back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum KnownBy {
    /// The id; for an entry without one, its link, and so on.
    #[default]
    Id,
    /// The link, because ids are repeated or missing; entries that share a link are told apart by
    /// their content.
    Link,
}

/// An entry of a feed.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
pub struct Entry {
    /// `atom:id`; never empty after normalization.
    pub id: String,
    /// Whether the id was generated (rule N1).
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
    /// Whether the date was assumed because the source has none (rule N9).
    pub date_assumed: bool,
    /// `atom:author`.
    pub authors: Vec<Person>,
    /// `atom:contributor`.
    pub contributors: Vec<Person>,
    /// `atom:link`, enclosures included.
    pub links: Vec<Link>,
    /// `atom:category`.
    pub categories: Vec<Category>,
    /// `atom:source`: the feed that the entry was copied from, without entries.
    pub source: Option<Box<Feed>>,
    /// The index of the entry that this one is nested in, in an outline. A parent precedes its
    /// children (seed 000, `rssCloud:item`).
    pub under: Option<usize>,
    /// `xml:lang`.
    pub lang: Option<String>,
    /// The `xml:base` in force, absolute.
    pub base: Option<String>,
    /// The elements without a counterpart in Atom.
    pub extensions: Vec<Element>,
    /// Whether the entry is the only one of an HTML page, and at the address of that page: an article,
    /// whose changes are those of the page.
    pub describes_page: bool,
    /// The location in the document; set only in an explanation.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub trace_id: TraceId,
}

/// The type of a text construct (RFC 4287 `#rfc.section.3.1.1`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum TextKind {
    /// Plain text.
    #[default]
    Text,
    /// HTML, as a string of markup.
    Html,
    /// XHTML: the value is the serialized content of the `div`, well-formed.
    Xhtml,
}

/// A text construct (RFC 4287 `#rfc.section.3.1`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
pub struct Text {
    /// The type that the value is to be read as.
    pub kind: TextKind,
    /// The text or markup.
    pub value: String,
    /// `xml:lang`, if it differs from the surrounding language.
    pub lang: Option<String>,
    /// The absolute `xml:base` that applies to addresses in the value.
    pub base: Option<String>,
}

/// The content of an entry (RFC 4287 `#rfc.section.4.1.3`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Content {
    /// A text construct.
    Text(Text),
    /// Inline content of another media type: text as it is, anything else in base64.
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
        /// The absolute `xml:base` that applies to addresses in the value.
        base: Option<String>,
    },
    /// Content at another address.
    Src {
        /// The media type, if declared.
        mime: Option<String>,
        /// The address of the content.
        href: String,
    },
}

/// A person construct (RFC 4287 `#rfc.section.3.2`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
pub struct Person {
    /// `atom:name`.
    pub name: String,
    /// `atom:email`.
    pub email: Option<String>,
    /// `atom:uri`.
    pub uri: Option<String>,
    /// The elements without a counterpart in Atom.
    pub extensions: Vec<Element>,
    /// The location in the document; set only in an explanation.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub trace_id: TraceId,
}

/// A link (RFC 4287 `#rfc.section.4.2.7`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
pub struct Link {
    /// The target; absolute after normalization.
    pub href: String,
    /// The relation; `alternate` if the source declares none.
    pub rel: String,
    /// The media type of the target.
    pub mime: Option<String>,
    /// The language of the target.
    pub hreflang: Option<String>,
    /// The title of the link.
    pub title: Option<String>,
    /// The length of the target in bytes, as the source wrote it.
    pub length: Option<String>,
    /// Attributes of other namespaces, such as `thr:count`.
    pub attributes: Vec<Attribute>,
    /// The elements inside the link.
    pub extensions: Vec<Element>,
    /// The target in the way in which this program resolved addresses before it did so as feed readers do, if
    /// that differs from `href`. Ids, and the digests by which changes of stored entries are detected, depend
    /// on it.
    pub former_href: Option<String>,
    /// The location in the document; set only in an explanation.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub trace_id: TraceId,
}

/// A category (RFC 4287 `#rfc.section.4.2.2`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
pub struct Category {
    /// The keyword.
    pub term: String,
    /// The IRI of the vocabulary that the keyword belongs to.
    pub scheme: Option<String>,
    /// The label for people.
    pub label: Option<String>,
    /// The location in the document; set only in an explanation.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub trace_id: TraceId,
}

/// The software that generated the feed (RFC 4287 `#rfc.section.4.2.4`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
pub struct Generator {
    /// The name of the software.
    pub name: String,
    /// The address of the software.
    pub uri: Option<String>,
    /// The version of the software.
    pub version: Option<String>,
}

/// An element without a counterpart in Atom, kept with all its content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
pub struct Element {
    /// The URI of the namespace; empty if the element is in none.
    pub namespace: String,
    /// The prefix in the source; empty for a default namespace.
    pub prefix: String,
    /// The local name.
    pub name: String,
    /// The attributes.
    pub attributes: Vec<Attribute>,
    /// The children, in order.
    pub children: Vec<Node>,
    /// The location in the document; set only in an explanation.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub trace_id: TraceId,
}

/// A child of an [`Element`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Node {
    /// Character data.
    Text(String),
    /// A child element.
    Element(Element),
}

/// An attribute of an [`Element`], or an attribute of another namespace on a [`Link`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
pub struct Attribute {
    /// The URI of the namespace; empty if the attribute is in none.
    pub namespace: String,
    /// The prefix in the source.
    pub prefix: String,
    /// The local name.
    pub name: String,
    /// The value.
    pub value: String,
}

/// The polling hints of a document (seed 002, "Syndication Hints").
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
pub struct Hints {
    /// `ttl`, in minutes.
    pub ttl_min: Option<u32>,
    /// `skipHours`: hours of the day, GMT, 0 to 23.
    pub skip_hours: Vec<u8>,
    /// `skipDays`: days of the week, where 0 is Monday.
    pub skip_days: Vec<u8>,
    /// `sy:updatePeriod` divided by `sy:updateFrequency`, in seconds.
    pub update_period_s: Option<u32>,
    /// `sy:updateBase`.
    pub update_base: Option<DateTime<FixedOffset>>,
}

impl Text {
    /// Creates a text construct of plain text.
    pub fn plain(value: impl Into<String>) -> Text {
        Text { value: value.into(), ..Text::default() }
    }
}

impl Link {
    /// Returns the target by which the link is compared: ids and digests made of it stay the same
    /// when a new version of this program resolves an address in another way.
    pub fn compared_href(&self) -> &str {
        self.former_href.as_deref().unwrap_or(&self.href)
    }
}

impl Element {
    /// Returns the character data of the element and its descendants.
    pub fn text(&self) -> String {
        let texts = self.children.iter().filter_map(|node| match node {
            Node::Text(text) => Some(text.as_str()),
            Node::Element(_) => None,
        });
        texts.collect()
    }
}

impl Feed {
    /// Returns the address of the web site of the feed: its first `alternate` link to a page.
    pub fn site_url(&self) -> Option<String> {
        let mut pages = self.links.iter().filter(|link| {
            let is_html = link.mime.as_deref().is_none_or(|mime| mime.contains("html"));
            link.rel == "alternate" && is_html
        });
        pages.next().map(|link| link.href.clone())
    }

    /// Returns whether the date of an update is all that says that an entry has changed, as of a page in a
    /// sitemap. That of an article is no such date: many pages write the time of the request.
    pub fn is_changed_by_date(&self) -> bool {
        self.format == FeedFormat::Sitemap
    }

    /// Returns whether the id of any entry was generated.
    pub fn has_generated_ids(&self) -> bool {
        self.entries.iter().any(|entry| entry.id_generated)
    }
}
