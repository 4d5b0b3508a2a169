//! Shortens an XML document that has more entries or nodes than are read, before its tree is built.
//!
//! The tree of a document takes many times the memory of its text, so entries that are not read must not
//! get into it, and a tree that ends at its limit would lack the newest entries of a document that lists
//! the oldest first. A scan for tags finds where each entry begins and ends, and its date; the entries
//! that are not chosen are cut out of the text.

mod scan;

use chrono::{DateTime, Utc};
use memchr::memchr_iter;

use super::MAX_ENTRIES;
use super::memory_bound::max_nodes;
use super::selection::{Choice, Room, Selection};
use crate::repair::Repair;
use scan::{Scan, may_have_too_many};

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

#[cfg(test)]
mod tests {
    use super::scan::ScannedItem;
    use super::*;
    use crate::repair::RepairCode;

    fn items(text: &str) -> Vec<(&str, Option<String>)> {
        let date = |item: &ScannedItem| {
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
