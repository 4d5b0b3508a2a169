//! A scan of an XML document for the places and the dates of its entries.

use memchr::{memchr, memchr_iter, memmem};

use crate::parse::memory_bound::max_nodes;
use crate::parse::selection::Choice;
use crate::parse::{MAX_ENTRIES, dates};

/// Returns whether a document may have too many entries or nodes. It counts as [`Scan`] does, without
/// noting where they are and which texts are blank.
pub(super) fn may_have_too_many(text: &str) -> bool {
    let bytes = text.as_bytes();
    let names = item_names(text);
    let mut sections = Sections::default();
    let (mut at, mut entries, mut nodes) = (0, 0, 0);
    while let Some(found) = memchr(b'<', &bytes[at..]) {
        let start = at + found;
        nodes += 1; // the text before it
        if let Some(end) = sections.end(text, start) {
            nodes += 1;
            at = end;
            continue;
        }
        let length = memchr(b'>', &bytes[start..]).map_or(bytes.len() - start, |length| length + 1);
        at = start + length;
        let tag = &text[start + 1..at];
        if !tag.starts_with('/') {
            nodes += 1 + memchr_iter(b'=', tag.as_bytes()).count();
            entries += usize::from(is_item(local_name(name_of(tag)), names));
        }
    }
    entries > MAX_ENTRIES || nodes > max_nodes(text.len())
}

/// Returns the names of the entries of a document.
fn item_names(text: &str) -> &'static [&'static str] {
    if is_sitemap(text) { &["url"] } else { &["item", "entry"] }
}

fn is_item(local: &str, names: &[&str]) -> bool {
    names.iter().any(|item| local.eq_ignore_ascii_case(item))
}

/// The CDATA sections and comments of a document.
#[derive(Debug, Default)]
struct Sections {
    /// Whether no CDATA section and no comment ends any more: they are not searched for again.
    are_endless: [bool; 2],
}

impl Sections {
    /// Returns where the section or comment that begins at `start` ends; `None` if none does.
    fn end(&mut self, text: &str, start: usize) -> Option<usize> {
        let rest = &text[start..];
        if !rest.starts_with("<!") {
            return None;
        }
        for (at, (begin, end)) in [("<![CDATA[", "]]>"), ("<!--", "-->")].into_iter().enumerate() {
            let is_begun = rest.get(..begin.len()).is_some_and(|it| it.eq_ignore_ascii_case(begin));
            if !is_begun || self.are_endless[at] {
                continue;
            }
            if let Some(length) = memmem::find(rest.as_bytes(), end.as_bytes()) {
                return Some(start + length + end.len());
            }
            self.are_endless[at] = true;
        }
        None
    }
}

/// An entry as the scan finds it. It is small, because a document may have a million of them; no text is
/// as long as 4 GiB.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ScannedItem {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) entries: u32,
    pub(super) nodes: u32,
    /// Where the texts of its dates begin; 0 if it has none.
    published: u32,
    updated: u32,
}

impl ScannedItem {
    /// Returns what decides whether the entry is read.
    pub(super) fn choice(&self, text: &str) -> Choice {
        let date = |at: u32| {
            let text = text.get(at as usize..self.end as usize).filter(|_| at > 0)?;
            dates::parse(date_text(text)).map(|date| date.timestamp())
        };
        let date_s = date(self.published).or_else(|| date(self.updated));
        Choice { date_s, entries: self.entries, nodes: self.nodes }
    }
}

/// Returns the text that begins here, up to the end of its element, section or attribute value.
fn date_text(rest: &str) -> &str {
    let rest = rest.trim_start();
    let rest = rest.strip_prefix("<![CDATA[").unwrap_or(rest);
    rest.split(['<', ']', '"', '\'']).next().unwrap_or_default().trim()
}

/// A scan of a document for its entries.
#[derive(Debug)]
pub(super) struct Scan<'t> {
    text: &'t str,
    pub(super) items: Vec<ScannedItem>,
    /// The lists of all items in a channel of RSS 1.0, which are not read.
    pub(super) lists: Vec<(u32, u32)>,
    /// Where the open list begins, and the nodes outside of entries before it.
    list: Option<(u32, usize)>,
    /// The nodes outside of entries and lists.
    pub(super) others: usize,
    /// The name of the open entry.
    name: &'t str,
    /// The number of open entries that are nested in each other.
    open: usize,
    /// Whether the `source` of an entry is open, which has dates of its own.
    is_in_source: bool,
    /// The names of entries.
    item_names: &'static [&'static str],
    sections: Sections,
}

impl<'t> Scan<'t> {
    /// Returns a scan that has not begun.
    pub(super) fn new(text: &'t str) -> Scan<'t> {
        let (items, lists) = (Vec::new(), Vec::new());
        let (others, list, name, open, is_in_source) = (0, None, "", 0, false);
        let (item_names, sections) = (item_names(text), Sections::default());
        Scan { text, items, lists, list, others, name, open, is_in_source, item_names, sections }
    }

    /// Reads the document.
    pub(super) fn run(mut self) -> Scan<'t> {
        let bytes = self.text.as_bytes();
        let mut at = 0;
        while let Some(found) = memchr(b'<', &bytes[at..]) {
            let start = at + found;
            // White space between elements is no node.
            let is_text = !self.text[at..start].trim_ascii().is_empty();
            self.count(usize::from(is_text));
            at = self.markup(start);
        }
        let end = offset(self.text.len());
        if let Some(last) = self.items.last_mut().filter(|last| last.end == 0) {
            last.end = end;
        }
        self
    }

    /// Reads the markup that begins at `start`. Returns where the scan continues.
    fn markup(&mut self, start: usize) -> usize {
        if let Some(end) = self.sections.end(self.text, start) {
            self.count(1);
            return end;
        }
        let rest = &self.text[start..];
        let length = memchr(b'>', rest.as_bytes()).map_or(rest.len(), |length| length + 1);
        let (tag, next) = (&rest[..length], start + length);
        let (is_end, named) = tag.strip_prefix("</").map_or((false, &tag[1..]), |end| (true, end));
        let name = name_of(named);
        let local = local_name(name);
        let is_item = is_item(local, self.item_names);
        match (is_item, is_end) {
            (true, false) => self.begin((start, next), name, tag.ends_with("/>")),
            (true, true) => self.end(next),
            (false, true) => {
                self.is_in_source &= !local.eq_ignore_ascii_case("source");
                if let Some((begin, others)) = self.list.take_if(|_| local == "items") {
                    self.others = others;
                    self.lists.push((begin, offset(next)));
                }
            }
            (false, false) if local == "items" && self.open == 0 && !tag.ends_with("/>") => {
                self.list = Some((offset(start), self.others));
            }
            (false, false) => self.note_date(local, next),
        }
        if !is_end {
            self.count(1 + memchr_iter(b'=', tag.as_bytes()).count());
            self.note_attribute((start, tag), is_item);
        }
        next
    }

    fn count(&mut self, nodes: usize) {
        match self.items.last_mut().filter(|_| self.open > 0) {
            Some(item) => item.nodes = item.nodes.saturating_add(offset(nodes)),
            None => self.others += nodes,
        }
    }

    /// Begins an entry. An entry in one of the same name ends that one, whose end tag is missing.
    fn begin(&mut self, (start, next): (usize, usize), name: &'t str, is_empty: bool) {
        if self.open == 1 && self.name == name {
            self.open = 0;
        }
        // A list that holds the entries themselves, as in RSS 1.1.
        self.list = None;
        self.open += 1;
        if self.open == 1 {
            if let Some(last) = self.items.last_mut().filter(|last| last.end == 0) {
                last.end = offset(start);
            }
            self.items.push(ScannedItem { start: offset(start), ..ScannedItem::default() });
            (self.name, self.is_in_source) = (name, false);
        }
        if let Some(item) = self.items.last_mut() {
            item.entries += 1;
        }
        if is_empty {
            self.end(next);
        }
    }

    fn end(&mut self, next: usize) {
        self.open = self.open.saturating_sub(1);
        if let Some(last) = self.items.last_mut().filter(|last| self.open == 0 && last.end == 0) {
            last.end = offset(next);
        }
    }

    /// Notes where a date of the open entry begins.
    fn note_date(&mut self, local: &str, next: usize) {
        let is = |names: &[&str]| names.iter().any(|name| local.eq_ignore_ascii_case(name));
        if self.open != 1 {
            return;
        }
        self.is_in_source |= is(&["source"]) && !self.text[..next].ends_with("/>");
        let Some(item) = self.items.last_mut().filter(|_| !self.is_in_source) else { return };
        let slot = match () {
            () if is(&["pubdate", "published", "issued", "created", "publication_date"]) => {
                &mut item.published
            }
            () if is(&["date", "updated", "modified", "lastmod"]) => &mut item.updated,
            () => return,
        };
        if *slot == 0 {
            *slot = offset(next);
        }
    }

    /// Notes the date in the tag of an entry of CDF.
    fn note_attribute(&mut self, (start, tag): (usize, &str), is_item: bool) {
        const LASTMOD: &str = "lastmod=";
        if !is_item {
            return;
        }
        let found = tag.to_ascii_lowercase().find(LASTMOD);
        if let (Some(found), Some(item)) = (found, self.items.last_mut()) {
            item.updated = offset(start + found + LASTMOD.len() + 1);
        }
    }
}

/// Returns the name at the beginning of a tag.
fn name_of(tag: &str) -> &str {
    let length = tag.find(|c: char| c.is_whitespace() || "/>".contains(c));
    &tag[..length.unwrap_or(tag.len())]
}

fn local_name(name: &str) -> &str {
    name.rsplit(':').next().unwrap_or_default()
}

/// Returns whether a document begins as a sitemap, whose entries are its pages.
fn is_sitemap(text: &str) -> bool {
    const BEGINNING: usize = 4_096;
    let beginning = &text[..text.floor_char_boundary(BEGINNING)];
    let mut tags = beginning.split('<').skip(1);
    tags.any(|tag| local_name(name_of(tag)).eq_ignore_ascii_case("urlset"))
}

/// Converts an offset or a number of nodes into the type that the scan stores.
fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
