//! Byte ranges of the parts of an RSS document that editing changes.
//!
//! Documents are not parsed into a tree and serialized again, so that everything unchanged stays
//! the same to the byte.

use std::ops::Range;

use quick_xml::Reader;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesStart, Event};

/// The namespaces of the elements that editing adds.
pub(super) const ATOM: &str = "http://www.w3.org/2005/Atom";
pub(super) const SOURCE: &str = "http://source.scripting.com/";
pub(super) const RSSCLOUD: &str = "http://rsscloud.org/";

/// An item, at any depth.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ItemSpan {
    /// The range of the whole element.
    pub(super) range: Range<usize>,
    /// The offset of the end tag, where children are inserted.
    pub(super) end_tag: usize,
    /// The nesting depth: 0 is an item of the channel.
    pub(super) depth: usize,
    /// The guid.
    pub(super) guid: String,
    /// The link.
    pub(super) link: String,
    /// The title.
    pub(super) title: String,
    /// The start of the description, as written.
    pub(super) description: String,
    /// The date, as written.
    pub(super) date: String,
}

/// The parts of a document.
#[derive(Debug, Default)]
pub(super) struct ChannelParts {
    /// The offset at which attributes are inserted into the root element.
    pub(super) root_tag: usize,
    /// The offset of the channel's end tag; `None` if there is no channel to add to.
    pub(super) channel_end: Option<usize>,
    /// The title of the channel.
    pub(super) title: String,
    /// The prefixes declared by the root element and the channel, with their namespaces.
    pub(super) prefixes: Vec<(String, String)>,
    /// The attributes of `cloud` in the channel.
    pub(super) cloud: Option<Vec<(String, String)>>,
    /// The text of `source:cloud`.
    pub(super) source_cloud: Option<String>,
    /// The address of the `atom:link` with the relation `hub`.
    pub(super) hub: Option<String>,
    /// The address of the `atom:link` with the relation `self`.
    pub(super) itself: Option<String>,
    /// The range of `lastBuildDate`.
    pub(super) built: Option<Range<usize>>,
    /// All items, in document order.
    pub(super) items: Vec<ItemSpan>,
}

/// An open element.
struct Open {
    name: String,
    begins: usize,
    bindings: usize,
    /// The index of the item, if the element is one.
    item: Option<usize>,
    text: String,
}

/// Returns the parts of a document that passed [`super::check()`].
pub(super) fn parts(text: &str) -> ChannelParts {
    let mut scan = Scan::default();
    let mut reader = Reader::from_str(text);
    loop {
        let from = at(reader.buffer_position());
        // A checked document has no errors; any other is read up to its first error.
        let Ok(event) = reader.read_event() else { break };
        let to = at(reader.buffer_position());
        match event {
            Event::Start(start) => scan.start(&start, from..to),
            Event::Empty(start) => {
                scan.start(&start, from..to);
                scan.end(to..to);
            }
            Event::End(_) => scan.end(from..to),
            Event::Text(text) => scan.text(&text.xml10_content()),
            Event::CData(text) => scan.text(&text.xml10_content()),
            Event::GeneralRef(reference) => match reference.resolve_char_ref() {
                Ok(Some(c)) => scan.text(c.encode_utf8(&mut [0; 4])),
                _ => {
                    let name = reference.xml10_content();
                    scan.text(resolve_xml_entity(&name).unwrap_or_default());
                }
            },
            Event::Eof => break,
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
    }
    scan.parts
}

fn at(byte: u64) -> usize {
    usize::try_from(byte).unwrap_or(usize::MAX)
}

#[derive(Default)]
struct Scan {
    open: Vec<Open>,
    bindings: Vec<(String, String)>,
    parts: ChannelParts,
}

impl Scan {
    fn start(&mut self, start: &BytesStart<'_>, tag: Range<usize>) {
        let bindings = self.bindings.len();
        let attributes: Vec<(String, String)> = start
            .attributes()
            .flatten()
            .map(|held| {
                let value = quick_xml::escape::unescape(&held.value);
                (held.key.0.to_owned(), value.unwrap_or_default().into_owned())
            })
            .collect();
        for (key, value) in &attributes {
            if let Some(prefix) = key.strip_prefix("xmlns:") {
                self.bindings.push((prefix.to_owned(), value.clone()));
            }
        }
        let name = start.name().0.to_owned();
        if self.open.is_empty() {
            self.parts.root_tag = tag.start + 1 + name.len();
        }
        if self.open.len() < 2 {
            self.parts.prefixes.clone_from(&self.bindings);
        }
        if self.is_channels_own() {
            self.of_channel(&name, attributes);
        }
        let depth = self.open.iter().filter(|open| open.item.is_some()).count();
        let is_item = (name == "item" && depth == 0) || (depth > 0 && self.is_below(&name));
        let item = is_item.then(|| {
            let range = tag.start..tag.end;
            self.parts.items.push(ItemSpan { range, depth, ..ItemSpan::default() });
            self.parts.items.len() - 1
        });
        self.open.push(Open { name, begins: tag.start, bindings, item, text: String::new() });
    }

    fn end(&mut self, tag: Range<usize>) {
        let Some(ended) = self.open.pop() else { return };
        self.bindings.truncate(ended.bindings);
        if let Some(item) = ended.item {
            let item = &mut self.parts.items[item];
            (item.range.end, item.end_tag) = (tag.end, tag.start);
        }
        if let Some(item) = self.open.last().and_then(|around| around.item) {
            let item = &mut self.parts.items[item];
            let slot = match ended.name.as_str() {
                "guid" => &mut item.guid,
                "link" => &mut item.link,
                "title" => &mut item.title,
                "description" => &mut item.description,
                "pubDate" => &mut item.date,
                _ => return,
            };
            ended.text.trim().clone_into(slot);
        } else if self.is_channels_own() {
            match ended.name.as_str() {
                "title" => ended.text.trim().clone_into(&mut self.parts.title),
                "lastBuildDate" => self.parts.built = Some(ended.begins..tag.end),
                name if self.is_in(name, SOURCE, "cloud") => {
                    self.parts.source_cloud = Some(ended.text.trim().to_owned());
                }
                _ => {}
            }
        } else if self.is_in_rss() && ended.name == "channel" && tag.start < tag.end {
            self.parts.channel_end = Some(tag.start);
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(open) = self.open.last_mut() {
            open.text.push_str(text);
        }
    }

    /// Returns whether the innermost open element is the root element of RSS 2.0.
    fn is_in_rss(&self) -> bool {
        self.open.len() == 1 && self.open[0].name == "rss"
    }

    /// Returns whether the innermost open element is the channel.
    fn is_channels_own(&self) -> bool {
        self.open.len() == 2 && self.open[1].name == "channel"
    }

    fn of_channel(&mut self, name: &str, attributes: Vec<(String, String)>) {
        let value = |key: &str| {
            let held = attributes.iter().find(|(held, _)| held == key);
            held.map(|(_, value)| value.clone())
        };
        if name == "cloud" {
            self.parts.cloud = Some(attributes);
        } else if self.is_in(name, ATOM, "link") {
            match value("rel").as_deref() {
                Some("hub") => self.parts.hub = value("href"),
                Some("self") => self.parts.itself = value("href"),
                _ => {}
            }
        }
    }

    fn is_below(&self, name: &str) -> bool {
        let is_named =
            |space: &str| space.to_ascii_lowercase().trim_end_matches('/').ends_with("rsscloud");
        let Some((prefix, "item")) = name.split_once(':') else { return false };
        let bound = self.bindings.iter().rev().find(|(held, _)| held == prefix);
        bound.is_some_and(|(_, space)| space == RSSCLOUD || is_named(space))
    }

    fn is_in(&self, name: &str, namespace: &str, local: &str) -> bool {
        let Some((prefix, held)) = name.split_once(':') else { return false };
        let bound = self.bindings.iter().rev().find(|(bound, _)| bound == prefix);
        held == local && bound.is_some_and(|(_, space)| space == namespace)
    }
}
