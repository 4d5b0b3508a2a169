//! Shortens an XML document that has more entries or nodes than are read, before its tree is built.
//!
//! The tree of a document takes many times the memory of its text, so entries that are not read must not
//! get into it, and a tree that ends at its limit would lack the newest entries of a document that lists
//! the oldest first. A scan for tags finds where each entry begins and ends, and its date; the entries
//! that are not chosen are cut out of the text.

use chrono::{DateTime, Utc};
use memchr::{memchr, memchr_iter, memmem};

use super::memory_bound::max_nodes;
use super::selection::{Choice, Room, Selection};
use super::{MAX_ENTRIES, dates};
use crate::repair::Repair;

/// The text of a shortened document.
#[derive(Debug)]
pub(super) struct Cropped {
    pub(super) text: String,
    /// The number of entries before those that were cut out, if these were in the middle.
    pub(super) gap: Option<usize>,
    /// What was cut out.
    pub(super) repair: Repair,
    /// Where each piece of the text begins, here and in the whole document.
    pieces: Vec<(usize, usize)>,
}

impl Cropped {
    /// Returns the offset in the whole document.
    pub(super) fn original(&self, offset: usize) -> usize {
        let next = self.pieces.partition_point(|(here, _)| *here <= offset);
        let (here, there) = next.checked_sub(1).map_or((0, 0), |at| self.pieces[at]);
        offset - here + there
    }
}

/// Shortens `text` if it has too many entries or nodes; `None` if it has not.
pub(super) fn crop(text: &str, now: Option<DateTime<Utc>>) -> Option<Cropped> {
    // Each entry has a tag, and an entry with many nodes several.
    if memchr_iter(b'<', text.as_bytes()).count() <= MAX_ENTRIES || !may_have_too_many(text) {
        return None;
    }
    let Scan { items, lists, others, .. } = Scan::new(text).run();
    let nodes = others + items.iter().map(|item| item.nodes as usize).sum::<usize>();
    let entries: usize = items.iter().map(|item| item.entries as usize).sum();
    let max_nodes = max_nodes(text.len());
    if entries <= MAX_ENTRIES && nodes <= max_nodes {
        return None;
    }
    let choices: Vec<Choice> = items.iter().map(|item| item.choice(text)).collect();
    let room = Room { entries: MAX_ENTRIES, nodes: max_nodes.saturating_sub(others) };
    let selection = Selection::choose(&choices, room, now);
    if selection.kept.is_empty() || selection.kept.len() == items.len() {
        return None;
    }
    let mut kept = selection.kept.iter().copied().peekable();
    let left_out = items.iter().enumerate().filter(|(at, _)| kept.next_if_eq(at).is_none());
    let mut cuts: Vec<(u32, u32)> = left_out.map(|(_, item)| (item.start, item.end)).collect();
    cuts.extend(lists);
    cuts.sort_unstable();
    let (mut cropped, mut pieces, mut from) = (String::new(), Vec::new(), 0);
    for (start, end) in cuts {
        pieces.push((cropped.len(), from));
        cropped.push_str(text.get(from..start as usize).unwrap_or_default());
        from = from.max(end as usize);
    }
    pieces.push((cropped.len(), from));
    cropped.push_str(text.get(from..).unwrap_or_default());
    let entries = |kept: &[usize]| kept.iter().map(|at| items[*at].entries as usize).sum::<usize>();
    let repair = selection.report(entries(&selection.kept));
    let gap = selection.gap.map(|gap| entries(&selection.kept[..gap]));
    Some(Cropped { text: cropped, gap, repair, pieces })
}

/// Returns whether a document may have too many entries or nodes. It counts as [`Scan`] does, without
/// noting where they are and which texts are blank.
fn may_have_too_many(text: &str) -> bool {
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
struct Item {
    start: u32,
    end: u32,
    entries: u32,
    nodes: u32,
    /// Where the texts of its dates begin; 0 if it has none.
    published: u32,
    updated: u32,
}

impl Item {
    fn choice(&self, text: &str) -> Choice {
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
struct Scan<'t> {
    text: &'t str,
    items: Vec<Item>,
    /// The lists of all items in a channel of RSS 1.0, which are not read.
    lists: Vec<(u32, u32)>,
    /// Where the open list begins, and the nodes outside of entries before it.
    list: Option<(u32, usize)>,
    /// The nodes outside of entries and lists.
    others: usize,
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
    fn new(text: &'t str) -> Scan<'t> {
        let (items, lists) = (Vec::new(), Vec::new());
        let (others, list, name, open, is_in_source) = (0, None, "", 0, false);
        let (item_names, sections) = (item_names(text), Sections::default());
        Scan { text, items, lists, list, others, name, open, is_in_source, item_names, sections }
    }

    /// Reads the document.
    fn run(mut self) -> Scan<'t> {
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
            self.items.push(Item { start: offset(start), ..Item::default() });
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repair::RepairCode;

    fn items(text: &str) -> Vec<(&str, Option<String>)> {
        let date = |item: &Item| {
            let date = DateTime::from_timestamp(item.choice(text).date_s?, 0)?;
            Some(date.date_naive().to_string())
        };
        let found = Scan::new(text).run().items.into_iter();
        found.map(|item| (&text[item.start as usize..item.end as usize], date(&item))).collect()
    }

    #[test]
    fn the_scan_finds_entries_and_their_dates() {
        type Case<'c> = (&'c str, &'c str, &'c [(&'c str, Option<&'c str>)]);
        #[rustfmt::skip]
        let cases: [Case<'_>; 8] = [
            ("rss",           "<rss><channel><pubDate>2001-01-01</pubDate><item><pubDate>2002-09-07</pubDate></item> <item><title>1 &lt; 2</title></item></channel></rss>",
                              &[("<item><pubDate>2002-09-07</pubDate></item>", Some("2002-09-07")), ("<item><title>1 &lt; 2</title></item>", None)]),
            ("atom",          "<feed><a:entry><source><updated>2001-01-01</updated></source><updated>2002-09-07</updated></a:entry></feed>",
                              &[("<a:entry><source><updated>2001-01-01</updated></source><updated>2002-09-07</updated></a:entry>", Some("2002-09-07"))]),
            ("sections",      "<item><![CDATA[<item>]]><dc:date><![CDATA[2002-09-07]]></dc:date><!-- <item> --></item>",
                              &[("<item><![CDATA[<item>]]><dc:date><![CDATA[2002-09-07]]></dc:date><!-- <item> --></item>", Some("2002-09-07"))]),
            ("empty ones",    "<item/><item rdf:about='x' />",      &[("<item/>", None), ("<item rdf:about='x' />", None)]),
            ("cdf",           "<Channel><Item HREF='x' LASTMOD='2002-09-07'><Title>x</Title></Item></Channel>",
                              &[("<Item HREF='x' LASTMOD='2002-09-07'><Title>x</Title></Item>", Some("2002-09-07"))]),
            ("no end tags",   "<item>a<item>b</channel>",           &[("<item>a", None), ("<item>b</channel>", None)]),
            ("nested",        "<item>a<x:item>b</x:item></item>c",  &[("<item>a<x:item>b</x:item></item>", None)]),
            ("broken off",    "<item>a</item><item><tit",           &[("<item>a</item>", None), ("<item><tit", None)]),
        ];
        for (why, text, want) in cases {
            let found = items(text);
            let found: Vec<_> = found.iter().map(|(item, date)| (*item, date.as_deref())).collect();
            assert_eq!(found, want, "{why}");
        }
    }

    #[test]
    fn h15_the_newest_entries_are_read_of_a_document_of_any_length_and_format() {
        const COUNT: usize = 30_000;
        let date = |n: usize| {
            let date = DateTime::from_timestamp(1_000_000_000 + n as i64 * 3_600, 0).unwrap();
            date.to_rfc3339()
        };
        let all = |entry: &dyn Fn(usize) -> String| (0..COUNT).map(entry).collect::<String>();
        // More elements and attributes than are read of any document.
        let rss = all(&|n| {
            let words: String =
                (0..5).map(|n| format!("<category domain='d'>{n}</category>")).collect();
            format!("<item><guid>urn:x:{n}</guid><pubDate>{}</pubDate>{words}</item>", date(n))
        });
        let undated = all(&|n| format!("<item><guid>urn:x:{n}</guid><title>{n}</title></item>"));
        let atom =
            all(&|n| format!("<entry><id>urn:x:{n}</id><updated>{}</updated></entry>", date(n)));
        let list = all(&|n| format!("<rdf:li rdf:resource='urn:x:{n}'/>"));
        let rdf = all(&|n| {
            format!(
                "<item rdf:about='urn:x:{n}'><title>{n}</title><dc:date>{}</dc:date></item>",
                date(n)
            )
        });
        let cdf = all(&|n| format!("<Item HREF='urn:x:{n}' LASTMOD='{}'/>", date(n)));
        #[rustfmt::skip]
        let cases = [
            ("rss",     format!("<rss><channel><title>t</title>{rss}</channel></rss>")),
            ("undated", format!("<rss><channel><title>t</title>{undated}</channel></rss>")),
            ("atom",    format!("<feed xmlns='http://www.w3.org/2005/Atom'>{atom}</feed>")),
            ("rdf",     format!(
                "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' \
                 xmlns='http://purl.org/rss/1.0/' xmlns:dc='http://purl.org/dc/elements/1.1/'><channel>\
                 <title>t</title><items><rdf:Seq>{list}</rdf:Seq></items></channel>{rdf}</rdf:RDF>"
            )),
            ("cdf",     format!("<CHANNEL HREF='http://a.test/'><TITLE>t</TITLE>{cdf}</CHANNEL>")),
        ];
        let context = crate::Context::new(url::Url::parse("https://a.test/").unwrap());
        for (why, text) in cases {
            let normalized = crate::normalize(text.as_bytes(), &context).unwrap();
            let (feed, repairs) = (normalized.feed(), normalized.repairs());
            assert_eq!(feed.entries.len(), MAX_ENTRIES, "{why}");
            let last = format!("urn:x:{}", COUNT - 1);
            assert_eq!(feed.entries[MAX_ENTRIES - 1].id, last, "{why}");
            let first = if why == "undated" { 0 } else { COUNT - MAX_ENTRIES };
            assert_eq!(feed.entries[0].id, format!("urn:x:{first}"), "{why}");
            assert_eq!(feed.gap.is_some(), why == "undated");
            let codes: Vec<_> = repairs.iter().map(|repair| repair.code).collect();
            assert!(codes.contains(&RepairCode::TooManyEntries), "{why}");
            assert!(!codes.contains(&RepairCode::TooManyNodes), "{why}");
        }
    }

    #[test]
    fn offsets_are_those_of_the_whole_document() {
        let items: String = (0..MAX_ENTRIES + 2)
            .map(|n| {
                format!("<item><title>{n}</title><pubDate>{}</pubDate></item>\n", 1990 + n / 300)
            })
            .collect();
        let text = format!("<rss><channel>{items}</channel></rss>");
        let cropped = crop(&text, None).unwrap();
        let last = format!("<title>{}<", MAX_ENTRIES + 1);
        let (here, there) = (cropped.text.find(&last).unwrap(), text.find(&last).unwrap());
        assert!(here < there && cropped.original(here) == there, "{here} {there}");
        assert!(!cropped.text.contains("<title>0<") && !cropped.text.contains("<title>1<"));
        assert_eq!((cropped.original(3), cropped.gap), (3, None));
        assert!(crop(&text[..text.len() / 2], None).is_none(), "that is few enough");
    }
}
