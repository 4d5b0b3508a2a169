//! Microdata in a page, as the HTML standard defines it (`#microdata`).
//!
//! Two things are as search engines have it: a date may be in a `content` attribute of any element, and the
//! body of an article is its markup.

use std::collections::{HashMap, HashSet, VecDeque};

use url::Url;

use super::{Graph, LinkedItemId, PropertyValue};
use crate::parse::html::{Descend, HtmlElement, ParsedHtml};
use crate::parse::microformats::absolute;

/// How many elements are visited for each element of the page, because `itemref` can add the same ones to
/// many items.
const VISITS: usize = 4;
/// How many bytes the values of a page may have for each byte of its text, because properties may be nested.
const OFTEN: usize = 4;
/// The minimum total size of values that every page may have, in bytes.
const ROOM_BYTES: usize = 64 * 1024;
/// The minimum size for which a value counts, in bytes.
const VALUE_BYTES: usize = 16;
/// The maximum number of properties that one element is.
const NAMES: usize = 16;

/// Returns the items of a page whose addresses are relative to `base`.
pub(in crate::parse) fn read<'p>(page: &'p ParsedHtml, base: &Url) -> Graph<'p> {
    let Some(root) = page.root() else { return Graph::default() };
    let mut elements = 0;
    let mut by_id = HashMap::new();
    root.walk(|tag| {
        elements += 1;
        if let Some(id) = tag.attr("id") {
            by_id.entry(id).or_insert(tag);
        }
        Descend::Enter
    });
    let mut items = Items {
        graph: Graph::default(),
        base,
        by_id,
        known: HashMap::new(),
        pending: VecDeque::new(),
        visits: VISITS * elements,
        room: OFTEN * page.length + ROOM_BYTES,
    };
    root.walk(|tag| {
        if is_item(tag) && tag.attr("itemprop").is_none() {
            let id = items.item(tag);
            items.graph.top.extend(id);
        }
        Descend::Enter
    });
    while let Some((id, tag)) = items.pending.pop_front() {
        items.read_properties(id, tag);
    }
    items.graph.index();
    items.graph
}

fn is_item(tag: HtmlElement<'_>) -> bool {
    tag.attr("itemscope").is_some()
}

/// The items read so far.
struct Items<'p, 'b> {
    graph: Graph<'p>,
    base: &'b Url,
    by_id: HashMap<&'p str, HtmlElement<'p>>,
    /// The items by the numbers of their elements.
    known: HashMap<usize, LinkedItemId>,
    /// The items whose properties are not read yet.
    pending: VecDeque<(LinkedItemId, HtmlElement<'p>)>,
    /// How many elements may still be visited.
    visits: usize,
    /// How many bytes of values may still be read.
    room: usize,
}

impl<'p> Items<'p, '_> {
    /// Returns the item that an element is; `None` if there are too many.
    fn item(&mut self, tag: HtmlElement<'p>) -> Option<LinkedItemId> {
        if let Some(known) = self.known.get(&tag.number()) {
            return Some(*known);
        }
        let id = self.graph.add(tag)?;
        for name in tag.words("itemtype") {
            self.graph.add_type(id, name);
        }
        let own = tag.attr("itemid").filter(|own| !own.is_empty());
        let own = own.map(|own| absolute(self.base, own));
        self.graph.nodes[id.0].id = own.filter(|own| self.takes(own.len()));
        self.known.insert(tag.number(), id);
        self.pending.push_back((id, tag));
        Some(id)
    }

    /// Reads the properties of an item: those among its descendants, and in the elements to which it refers.
    fn read_properties(&mut self, id: LinkedItemId, item: HtmlElement<'p>) {
        let referred = item.words("itemref").filter_map(|name| self.by_id.get(name).copied());
        let referred: Vec<HtmlElement<'p>> = referred.collect();
        let mut seen: HashSet<usize> = HashSet::from([item.number()]);
        let mut open: Vec<HtmlElement<'p>> = referred.into_iter().rev().collect();
        open.extend(reversed(item.elements()));
        while let Some(tag) = open.pop() {
            if self.visits == 0 {
                return;
            }
            self.visits -= 1;
            if !seen.insert(tag.number()) {
                continue;
            }
            self.read_property(id, tag);
            if !is_item(tag) {
                open.extend(reversed(tag.elements()));
            }
        }
    }

    /// Reads the value of the properties that an element is.
    fn read_property(&mut self, id: LinkedItemId, tag: HtmlElement<'p>) {
        for name in tag.words("itemprop").take(NAMES) {
            if self.room == 0 {
                return;
            }
            let value = if is_item(tag) {
                self.item(tag).map(PropertyValue::Node)
            } else {
                self.value(super::own_name(name), tag)
            };
            if let Some(value) = value {
                self.graph.add_value(id, name, value);
            }
        }
    }

    /// Returns the value of an element that is not an item (`#values`).
    fn value(&mut self, name: &str, tag: HtmlElement<'p>) -> Option<PropertyValue> {
        let size = tag.size(self.room);
        if !self.takes(size) {
            return None;
        }
        let value = self.written_value(name, tag)?;
        let length = value.text().unwrap_or_default().len();
        self.takes(length.max(VALUE_BYTES).saturating_sub(size)).then_some(value)
    }

    /// Takes this many bytes of the room for values; if it is too small, nothing more is read.
    fn takes(&mut self, bytes: usize) -> bool {
        let is_enough = bytes < self.room;
        self.room = if is_enough { self.room - bytes } else { 0 };
        is_enough
    }

    fn written_value(&self, name: &str, tag: HtmlElement<'p>) -> Option<PropertyValue> {
        let content = tag.attr("content").filter(|content| !content.is_empty());
        if name == "articleBody" && content.is_none() {
            return Some(PropertyValue::Markup(tag.markup()))
                .filter(|value| value.text() != Some(""));
        }
        let text = match tag.name() {
            "meta" => content.map(str::to_owned),
            "audio" | "embed" | "iframe" | "img" | "source" | "track" | "video" => {
                self.address(tag, "src")
            }
            "a" | "area" | "link" => self.address(tag, "href"),
            "object" => self.address(tag, "data"),
            "data" | "meter" => tag.attr("value").map(str::to_owned),
            "time" if tag.attr("datetime").is_some() => tag.attr("datetime").map(str::to_owned),
            _ if is_moment(name) && content.is_some() => content.map(str::to_owned),
            _ => Some(tag.text()).filter(|text| !text.is_empty()).or(content.map(str::to_owned)),
        };
        text.filter(|text| !text.is_empty()).map(PropertyValue::Text)
    }

    fn address(&self, tag: HtmlElement<'p>, name: &str) -> Option<String> {
        let address = tag.attr(name).filter(|address| !address.is_empty())?;
        Some(absolute(self.base, address))
    }
}

/// Returns whether a property is a date or a duration.
fn is_moment(name: &str) -> bool {
    name.starts_with("date") || matches!(name, "uploadDate" | "duration")
}

fn reversed<'p>(elements: impl Iterator<Item = HtmlElement<'p>>) -> Vec<HtmlElement<'p>> {
    let mut elements: Vec<_> = elements.collect();
    elements.reverse();
    elements
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The properties of the first item of a page, as `name=value`.
    fn properties(html: &str) -> String {
        let page = ParsedHtml::read(html);
        let base = Url::parse("https://tides.test/a/").unwrap();
        let graph = read(&page, &base);
        let node = graph.node(graph.top()[0]);
        let properties = node.properties.iter().map(|(name, value)| match value {
            PropertyValue::Text(text) | PropertyValue::Markup(text) => format!("{name}={text}"),
            PropertyValue::Node(id) => format!("{name}:{}", graph.node(*id).types.join("+")),
        });
        properties.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn values_are_those_of_their_elements() {
        #[rustfmt::skip]
        let cases = [
            ("a text",                    "<b itemprop=name>High <i>water</i></b>",                 "name=High water"),
            ("several properties",        "<b itemprop='name headline'>x</b>",                      "name=x headline=x"),
            ("a property twice",          "<b itemprop=a>x</b><b itemprop=a>y</b>",                 "a=x a=y"),
            ("an address",                "<a itemprop=url href=b>x</a>",                           "url=https://tides.test/a/b"),
            ("a picture",                 "<img itemprop=image src=/i.png alt=x>",                  "image=https://tides.test/i.png"),
            ("a recording",               "<audio itemprop=audio src=//b.test/a.mp3></audio>",      "audio=https://b.test/a.mp3"),
            ("an object",                 "<object itemprop=o data=o.svg>x</object>",               "o=https://tides.test/a/o.svg"),
            ("a meta element",            "<meta itemprop=keywords content='a, b'>",                "keywords=a, b"),
            ("a date",                    "<time itemprop=datePublished datetime=2026-11-27>Fri</time>", "datePublished=2026-11-27"),
            ("a time without attribute",  "<time itemprop=datePublished>2026-11-27</time>",         "datePublished=2026-11-27"),
            ("a number for programs",     "<data itemprop=productID value=7>Seven</data>",          "productID=7"),
            ("a meter",                   "<meter itemprop=level value=0.5>half</meter>",           "level=0.5"),
            ("a date in an attribute",    "<b itemprop=dateModified content=2026-11-27>today</b>",  "dateModified=2026-11-27"),
            ("no text but an attribute",  "<b itemprop=name content=x></b>",                        "name=x"),
            ("a text and an attribute",   "<b itemprop=name content=y>x</b>",                       "name=x"),
            ("a body",                    "<div itemprop=articleBody><p>x</div>",                   "articleBody=<p>x</p>"),
            ("an item",                   "<p itemprop=author itemscope itemtype=http://schema.org/Person><b itemprop=name>x</b>", "author:Person"),
            ("the name of a vocabulary",  "<b itemprop=https://schema.org/name>x</b>",              "name=x"),
            ("nothing",                   "<b itemprop=name></b><a itemprop=url>x</a>",             ""),
        ];
        for (why, html, want) in cases {
            assert_eq!(properties(&format!("<div itemscope>{html}</div>")), want, "{why}");
        }
    }

    #[test]
    fn properties_may_be_elsewhere_in_the_page() {
        #[rustfmt::skip]
        let cases = [
            ("in another element",   "<p itemscope itemref='a b'><b itemprop=x>1</b></p><p id=a><b itemprop=y>2</b></p><b id=b itemprop=z>3</b>", "x=1 y=2 z=3"),
            ("in the item itself",   "<p id=a itemscope itemref=a><b itemprop=x>1</b></p>",               "x=1"),
            ("twice in one element", "<p itemscope itemref='a a'><b itemprop=x id=a>1</b></p>",            "x=1"),
            ("in a circle",          "<p itemscope itemref=a></p><div id=a itemprop=x itemscope itemref=a></div>", "x:"),
            ("nowhere",              "<p itemscope itemref=none><b itemprop=x>1</b></p>",                  "x=1"),
        ];
        for (why, html, want) in cases {
            assert_eq!(properties(html), want, "{why}");
        }
    }

    #[test]
    fn values_in_attributes_take_room() {
        let content = "x".repeat(20_000);
        let names: String = (0..4_000).map(|n| format!("p{n} ")).collect();
        let text = format!(
            "<p itemscope><meta itemprop='{names}' content='{content}'></p>{}<meta id=a itemprop=p content='{content}'>",
            "<p itemscope itemref=a></p>".repeat(2_000)
        );
        let page = ParsedHtml::read(&text);
        let graph = read(&page, &Url::parse("https://tides.test/").unwrap());
        let values = graph.nodes.iter().flat_map(|node| &node.properties);
        let bytes: usize = values.map(|(_, value)| value.text().map_or(0, str::len)).sum();
        assert!(bytes <= OFTEN * text.len() + ROOM_BYTES, "{bytes}");
        assert_eq!(graph.nodes[0].properties.len(), NAMES);
    }

    #[test]
    fn many_references_to_many_elements_take_little_time() {
        let items = "<p itemscope itemref=a></p>".repeat(20_000);
        let text = format!("{items}<div id=a>{}</div>", "<b itemprop=x>1</b>".repeat(20_000));
        let page = ParsedHtml::read(&text);
        let graph = read(&page, &Url::parse("https://tides.test/").unwrap());
        assert!(graph.values <= VISITS * 40_010, "{}", graph.values);
    }
}
