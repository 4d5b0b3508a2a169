//! Identity: every entry gets a permanent id (rules N1, N2).
//!
//! | source | id |
//! | --- | --- |
//! | an id that is an IRI | that id, byte for byte |
//! | an id that is not an IRI | `urn:guid:` and the id, percent-encoded; a bare UUID as `urn:uuid:` |
//! | no id, but a link that no other entry has | the link |
//! | neither, but a parent in an outline | the parent's id and a hash of the content |
//! | neither | `tag:feedgate,2026:` and a hash of title, content and enclosure; flagged as generated |
//! | an id that several entries share | the oldest keeps it, the others get a hash appended |
//!
//! A feed whose ids are repeated or partly missing is identified by its links from then on
//! ([`KnownBy`]), because an id that several entries shared once identifies none of them later.
//!
//! An id depends only on the entry and the other entries of the document: not on the time, the
//! gateway, the address of the feed or the order of the document. Dates are never part of an id,
//! because they change.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use hmac_sha256::Hash as Sha256;

use crate::context::Context;
use crate::hex;
use crate::iri;
use crate::model::{Content, Entry, Feed, KnownBy, Link, Text};
use crate::repair::{Repair, RepairCode};

use super::outline;

/// The prefix of generated ids (RFC 4151). It names the program, not the gateway, so that entries
/// stay known when a gateway moves.
const GENERATED: &str = "tag:feedgate,2026:";

/// Assigns an id to the feed and to each entry.
pub(super) fn assign_ids(mut feed: Feed, context: &Context) -> Feed {
    feed.id = feed_id(&feed, context);
    for entry in &mut feed.entries {
        if let Some(source) = &mut entry.source {
            source.id = as_iri(&source.id).unwrap_or_default();
        }
    }
    feed.known_by = context.known_by.max(known_by(&feed.entries));
    if context.known_by == KnownBy::Link {
        feed.entries.iter_mut().for_each(|entry| entry.id.clear());
    }
    let without_id = feed.entries.iter().any(|entry| entry.id.trim().is_empty());
    let links = if without_id { link_counts(&feed.entries) } else { HashMap::new() };
    let mut repairs = assign_independent(&mut feed.entries, &links);
    make_distinct(&mut feed.entries, &mut repairs);
    outline::add_references(&mut feed.entries);
    feed.repairs.append(&mut repairs);
    feed
}

/// Returns the ids that the entries of a normalized feed would have if they were identified by
/// another property, in their order.
pub(super) fn entry_ids(feed: &Feed, by: KnownBy) -> Vec<String> {
    let mut entries = feed.entries.clone();
    if by == KnownBy::Link {
        entries.iter_mut().for_each(|entry| entry.id.clear());
    }
    let links = link_counts(&entries);
    assign_independent(&mut entries, &links);
    entries.into_iter().map(|entry| entry.id).collect()
}

/// Assigns each entry an id without regard to duplicates. Returns the repairs.
fn assign_independent(entries: &mut [Entry], links: &HashMap<String, usize>) -> Vec<Repair> {
    let mut repairs = Vec::new();
    for at in 0..entries.len() {
        let above = entries[at].under.filter(|above| *above < at);
        let above = above.map(|above| entries[above].id.as_str());
        let (id, repair) = entry_id(&entries[at], above, links);
        let is_generated =
            repair.as_ref().is_some_and(|repair| repair.code == RepairCode::IdGenerated);
        entries[at].id_generated |= is_generated || id.starts_with(GENERATED);
        entries[at].id = id;
        repairs.extend(repair);
    }
    repairs
}

/// The number and the share of missing or repeated ids above which ids are unreliable, as a minimum
/// and a divisor: "> 5 % (and ≥ 2) of a document's guids are empty or repeat" (rule N2).
const DOUBTFUL: (usize, usize) = (2, 20);

/// Returns the property that identifies the entries of a document best. A document without any ids
/// keeps `Id`, because ids may appear later at no loss. Entries in an outline rarely have ids, and
/// are not counted.
fn known_by(entries: &[Entry]) -> KnownBy {
    let mut ids: HashMap<&str, Vec<&Entry>> = HashMap::new();
    for entry in entries.iter().filter(|entry| entry.under.is_none()) {
        ids.entry(entry.id.trim()).or_default().push(entry);
    }
    let empty = ids.remove("").map_or(0, |without| without.len());
    if ids.is_empty() {
        return KnownBy::Id;
    }
    // An identical entry is a repetition, not another entry.
    let others = |same: &Vec<&Entry>| same[1..].iter().filter(|entry| **entry != same[0]).count();
    let doubtful = empty + ids.values().map(others).sum::<usize>();
    let (least, share) = DOUBTFUL;
    let is_doubtful = doubtful >= least && doubtful * share > entries.len();
    if is_doubtful { KnownBy::Link } else { KnownBy::Id }
}

/// Returns the id of the feed, or its address if it has none.
fn feed_id(feed: &Feed, context: &Context) -> String {
    let itself = feed.links.iter().find(|link| link.rel == "self").map(|link| link.href.as_str());
    let stated = as_iri(&feed.id).or_else(|| itself.and_then(as_iri));
    stated.unwrap_or_else(|| context.url.to_string())
}

/// Returns `id` as an IRI, wrapped if it is not one; `None` if it is empty.
fn as_iri(id: &str) -> Option<String> {
    let id = id.trim();
    if id.is_empty() {
        return None;
    }
    if iri::is_complete(id) {
        return Some(iri::encode(id).into_owned());
    }
    if is_uuid(id) {
        return Some(format!("urn:uuid:{id}"));
    }
    Some(iri::urn("guid", id))
}

fn is_uuid(text: &str) -> bool {
    let lengths = [8, 4, 4, 4, 12];
    text.len() == 36
        && text.split('-').map(str::len).eq(lengths)
        && text.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
}

/// Returns the id of an entry without regard to the other entries. `above` is the id of its parent
/// in an outline.
fn entry_id(
    entry: &Entry,
    above: Option<&str>,
    links: &HashMap<String, usize>,
) -> (String, Option<Repair>) {
    let repair = |code, id: &str| Some(Repair::new(code, id).within(entry.trace_id));
    if let Some(id) = as_iri(&entry.id) {
        let wrapped = id != entry.id;
        return (id, if wrapped { repair(RepairCode::IdNotAnIri, &entry.id) } else { None });
    }
    if let Some(link) = permalink(entry).filter(|link| links.get(*link) == Some(&1)) {
        return (link.to_owned(), repair(RepairCode::IdFromLink, link));
    }
    let key = content_key(entry);
    let id = above.map_or_else(|| format!("{GENERATED}{key}"), |above| marked(above, &key[..16]));
    let generated = repair(RepairCode::IdGenerated, &id);
    (id, generated)
}

/// Returns the number of entries that have each link.
fn link_counts(entries: &[Entry]) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for link in entries.iter().filter_map(permalink) {
        *counts.entry(link.to_owned()).or_insert(0) += 1;
    }
    counts
}

/// Makes ids unique within the document.
///
/// The oldest of the entries that share an id keeps it, because subscribers may already know it by
/// that id; a newer entry with that id would be dropped as known. Identical entries are dropped.
fn make_distinct(entries: &mut Vec<Entry>, repairs: &mut Vec<Repair>) {
    let mut seen = HashSet::with_capacity(entries.len());
    if entries.iter().all(|entry| seen.insert(entry.id.as_str())) {
        return;
    }
    let mut sharing: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, entry) in entries.iter().enumerate() {
        sharing.entry(&entry.id).or_default().push(at);
    }
    let mut taken =
        Taken { ids: sharing.keys().map(|id| (*id).to_owned()).collect(), ..Taken::default() };
    let mut groups: Vec<Vec<usize>> = sharing.into_values().filter(|at| at.len() > 1).collect();
    groups.sort_unstable();
    // Sorted by position, so that the same input gives the same repairs.
    let mut renamed: BTreeMap<usize, String> = BTreeMap::new();
    let mut repeated: BTreeSet<usize> = BTreeSet::new();
    for at in groups {
        // Feeds list the newest entry first, unless their dates say otherwise.
        let oldest = at.iter().rev().min_by_key(|at| date(&entries[**at]));
        let keeper = oldest.copied().unwrap_or(at[0]);
        let keys: HashMap<usize, String> =
            at.iter().map(|at| (*at, content_key(&entries[*at]))).collect();
        let mut kept: HashMap<&str, Vec<usize>> = HashMap::new();
        kept.entry(&keys[&keeper]).or_default().push(keeper);
        for at in at.iter().copied().filter(|at| *at != keeper) {
            let alike = kept.entry(&keys[&at]).or_default();
            if alike.iter().any(|kept| entries[*kept] == entries[at]) {
                repeated.insert(at);
                continue;
            }
            alike.push(at);
            let key = (keys[&at] != keys[&keeper]).then_some(keys[&at].as_str());
            let mark = mark(&entries[at], &entries[keeper], key);
            renamed.insert(at, taken.another(&entries[at].id, mark.as_deref()));
        }
    }
    let repair = |code, entry: &Entry| Repair::new(code, &*entry.id).within(entry.trace_id);
    repairs.extend(repeated.iter().map(|at| repair(RepairCode::EntryRepeated, &entries[*at])));
    repairs.extend(renamed.keys().map(|at| repair(RepairCode::IdRepeated, &entries[*at])));
    for (at, id) in renamed {
        entries[at].id = id;
    }
    outline::remove_repeated(entries, &repeated);
}

/// The ids in use.
#[derive(Default)]
struct Taken {
    ids: HashSet<String>,
    /// The number of attempts for each generated id.
    tried: HashMap<String, usize>,
}

impl Taken {
    /// Returns an unused id made of `id` and a mark. Entries with the same mark, or without one,
    /// are numbered.
    fn another(&mut self, id: &str, mark: Option<&str>) -> String {
        let made = mark.map_or_else(|| id.to_owned(), |mark| marked(id, mark));
        let tried = self.tried.entry(made.clone()).or_insert(1);
        let mut another = made.clone();
        while !self.ids.insert(another.clone()) {
            *tried += 1;
            another = match mark {
                Some(_) => format!("{made}.{tried}"),
                None => marked(id, &tried.to_string()),
            };
        }
        another
    }
}

/// Appends a mark to `id` such that the result is valid: before RFC 8141 a URN had no fragment, and
/// validators allow none; a UUID has a fixed length, so it is wrapped.
fn marked(id: &str, mark: &str) -> String {
    let scheme = id.get(..9).unwrap_or(id).to_ascii_lowercase();
    if id.contains('#') {
        format!("{id}.{mark}")
    } else if scheme == "urn:uuid:" {
        format!("{}:{mark}", iri::urn("guid", id))
    } else if scheme.starts_with("urn:") {
        format!("{id}:{mark}")
    } else {
        format!("{id}#{mark}")
    }
}

/// Returns what distinguishes an entry from `keeper`, which has the same id: its link, its content
/// if it differs, or its `key`.
fn mark(entry: &Entry, keeper: &Entry, key: Option<&str>) -> Option<String> {
    let link = permalink(entry).filter(|link| Some(*link) != permalink(keeper));
    let mark = link.map(|link| hash(&[link])).or_else(|| key.map(str::to_owned))?;
    Some(mark[..16].to_owned())
}

fn content_key(entry: &Entry) -> String {
    hash(&[&title(entry), &body(entry), enclosure(entry)])
}

fn date(entry: &Entry) -> Option<chrono::DateTime<chrono::FixedOffset>> {
    entry.published.or(entry.updated)
}

fn permalink(entry: &Entry) -> Option<&str> {
    first_link(&entry.links, "alternate")
}

fn enclosure(entry: &Entry) -> &str {
    first_link(&entry.links, "enclosure").unwrap_or_default()
}

fn first_link<'a>(links: &'a [Link], rel: &str) -> Option<&'a str> {
    links.iter().find(|link| link.rel == rel).map(|link| link.href.as_str())
}

fn title(entry: &Entry) -> String {
    entry.title.as_ref().map(Text::to_plain).unwrap_or_default()
}

/// Returns the text of the content, or of the summary if there is no content.
fn body(entry: &Entry) -> String {
    match &entry.content {
        Some(Content::Text(text)) => text.to_plain(),
        Some(Content::Media { value, .. } | Content::Xml { value, .. }) => value.clone(),
        Some(Content::Src { href, .. }) => href.clone(),
        None => entry.summary.as_ref().map(Text::to_plain).unwrap_or_default(),
    }
}

/// Returns 128 bits of the SHA-256 over the parts, in hex.
fn hash(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part.as_bytes());
        hasher.update([0x1f]);
    }
    hex::encode(&hasher.finalize()[..16])
}

#[cfg(test)]
mod tests {
    use super::*;
    use url::Url;

    fn entry(id: &str, link: &str, title: &str) -> Entry {
        let links = (!link.is_empty()).then(|| Link {
            rel: "alternate".to_owned(),
            href: link.to_owned(),
            ..Link::default()
        });
        Entry {
            id: id.to_owned(),
            title: Some(Text::plain(title)),
            links: links.into_iter().collect(),
            ..Entry::default()
        }
    }

    fn ids(entries: Vec<Entry>) -> Vec<String> {
        let feed = Feed { entries, ..Feed::default() };
        let context = Context::new(Url::parse("https://a.test/feed").unwrap());
        assign_ids(feed, &context).entries.into_iter().map(|entry| entry.id).collect()
    }

    #[test]
    fn an_id_of_the_source_is_kept_or_wrapped() {
        let cases = [
            ("http://A.test/%7Ex", "http://A.test/%7Ex"),
            ("tag:a.test,2002:1", "tag:a.test,2002:1"),
            ("abc", "urn:guid:abc"),
            ("/posts/1?a=b", "urn:guid:%2Fposts%2F1%3Fa%3Db"),
            ("é 1", "urn:guid:%C3%A9%201"),
            ("http://a.test/a b", "http://a.test/a%20b"),
            ("  urn:x:1\n", "urn:x:1"),
            (
                "0d7b9cf4-6f2a-4a7e-9b52-1d6f2f3a9c11",
                "urn:uuid:0d7b9cf4-6f2a-4a7e-9b52-1d6f2f3a9c11",
            ),
        ];
        for (id, want) in cases {
            assert_eq!(ids(vec![entry(id, "", "t")]), [want], "{id:?}");
        }
    }

    #[test]
    fn without_an_id_the_link_is_one_if_no_other_entry_has_it() {
        assert_eq!(ids(vec![entry("", "http://a.test/1", "t")]), ["http://a.test/1"]);
        let shared =
            ids(vec![entry("", "http://a.test/", "one"), entry("", "http://a.test/", "two")]);
        assert!(shared.iter().all(|id| id.starts_with(GENERATED)), "{shared:?}");
        assert_ne!(shared[0], shared[1]);
    }

    #[test]
    fn a_generated_id_never_changes() {
        let want = "tag:feedgate,2026:b8f23f0f9c008924e16dffad3f313e89";
        assert_eq!(ids(vec![entry("", "", "Spring tide")]), [want]);
    }

    #[test]
    fn n02_ids_that_cannot_be_relied_on_are_given_up_for_links() {
        let numbered = |ids: &[&str]| -> Vec<Entry> {
            let made = ids.iter().enumerate();
            made.map(|(n, id)| entry(id, &format!("http://a.test/{n}"), "t")).collect()
        };
        let long = |ids: [&'static str; 3]| -> Vec<String> {
            let rest = (0..60).map(|n| format!("urn:x:{n}"));
            ids.into_iter().map(str::to_owned).chain(rest).collect()
        };
        let good: Vec<&str> = vec!["urn:1", "urn:2", "urn:3", "urn:4"];
        #[rustfmt::skip]
        let cases: [(&str, Vec<String>, KnownBy); 7] = [
            ("all of them good",       good.iter().map(|id| (*id).to_owned()).collect(),        KnownBy::Id),
            ("one repeats",            ["urn:1", "urn:1", "urn:3"].map(str::to_owned).into(),   KnownBy::Id),
            ("two repeat",             ["urn:1", "urn:1", "urn:1"].map(str::to_owned).into(),   KnownBy::Link),
            ("two are empty",          ["urn:1", "", " "].map(str::to_owned).into(),            KnownBy::Link),
            ("all are",                ["", "", ""].map(str::to_owned).into(),                  KnownBy::Id),
            ("two of many",            long(["urn:a", "urn:a", "urn:a"]),                       KnownBy::Id),
            ("the empty one of many",  long(["", "", "urn:a"]),                                 KnownBy::Id),
        ];
        for (why, ids, want) in cases {
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            assert_eq!(known_by(&numbered(&ids)), want, "{why}");
        }
        let context = Context {
            known_by: KnownBy::Link,
            ..Context::new(Url::parse("https://a.test/feed").unwrap())
        };
        let feed = Feed { entries: numbered(&good), ..Feed::default() };
        let ids = ids_of(&assign_ids(feed, &context));
        assert_eq!(ids[..2], ["http://a.test/0", "http://a.test/1"], "and it stays so");
    }

    fn ids_of(feed: &Feed) -> Vec<String> {
        feed.entries.iter().map(|entry| entry.id.clone()).collect()
    }

    #[test]
    fn of_entries_that_share_an_id_the_oldest_keeps_it_wherever_it_stands() {
        let old = || entry("urn:x:1", "http://a.test/1", "old");
        let new = || entry("urn:x:1", "http://a.test/2", "new");
        let dated = |mut entry: Entry, day: u32| {
            entry.published = chrono::DateTime::from_timestamp(i64::from(day) * 86_400, 0)
                .map(|at| at.fixed_offset());
            entry
        };
        let newest_first = ids(vec![new(), old()]);
        assert_eq!(newest_first[1], "urn:x:1");
        assert!(newest_first[0].starts_with("urn:x:1:"), "{newest_first:?}");
        let oldest_first = ids(vec![dated(old(), 1), dated(new(), 2)]);
        assert_eq!(oldest_first, [newest_first[1].clone(), newest_first[0].clone()]);
        assert_eq!(ids(vec![old(), old()]), ["urn:x:1"], "the same twice is one");
    }

    #[test]
    fn what_is_told_of_shared_ids_is_in_the_order_of_the_document() {
        let shared = |n: usize| {
            [entry(&format!("urn:{n}"), "", "old"), entry(&format!("urn:{n}"), "", "new")]
        };
        let entries: Vec<Entry> = (0..40).flat_map(shared).collect();
        let context = Context::new(Url::parse("https://a.test/feed").unwrap());
        let settled = assign_ids(Feed { entries, ..Feed::default() }, &context);
        let told: Vec<&str> = settled.repairs.iter().map(|repair| repair.detail.as_str()).collect();
        let want: Vec<String> = (0..40).map(|n| format!("urn:{n}")).collect();
        assert_eq!(told, want);
    }

    #[test]
    fn entries_that_differ_in_dates_alone_are_told_apart_too() {
        let dated = |link: &str, day: i64| {
            let mut entry = entry("urn:x:1", link, "tide");
            entry.published =
                chrono::DateTime::from_timestamp(day * 86_400, 0).map(|at| at.fixed_offset());
            entry
        };
        for link in ["", "http://a.test/1"] {
            let other = entry("urn:x:1", "http://a.test/", "first");
            let found = ids(vec![other, dated(link, 1), dated(link, 2), dated(link, 3)]);
            let distinct: HashSet<&String> = found.iter().collect();
            assert_eq!(distinct.len(), found.len(), "{found:?}");
            assert_eq!(ids(found.iter().map(|id| entry(id, "", "t")).collect()), found);
        }
    }

    #[test]
    fn an_id_that_is_told_apart_stays_sound() {
        let uuid = "urn:uuid:0d7b9cf4-6f2a-4a7e-9b52-1d6f2f3a9c11";
        #[rustfmt::skip]
        let cases = [
            ("http://a.test/1",   "http://a.test/1#m"),
            ("http://a.test/1#x", "http://a.test/1#x.m"),
            ("tag:a.test,2002:1", "tag:a.test,2002:1#m"),
            ("urn:guid:abc",      "urn:guid:abc:m"),
            (uuid,                "urn:guid:urn:uuid:0d7b9cf4-6f2a-4a7e-9b52-1d6f2f3a9c11:m"),
        ];
        for (id, want) in cases {
            assert_eq!(marked(id, "m"), want);
        }
    }
}
