//! Tests of the classification, case by case.

mod articles;
mod dates;
mod real_entries;

use super::*;
use crate::record::{Digest, Seq};
use feedgate_feed::model::{Attribute, Content, Element, Entry, Feed, FeedFormat, Link, Text};

const HOUR: TimeDelta = TimeDelta::hours(1);

fn at(hours: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(20_000) + HOUR * i32::try_from(hours).unwrap()
}

/// Returns an entry with this id, link, text and hour of publication.
fn entry(id: &str, link: &str, text: &str, published: Option<i64>) -> Entry {
    let link = Link { rel: "alternate".into(), href: link.into(), ..Link::default() };
    Entry {
        id: id.to_owned(),
        title: Some(Text::plain(format!("On {text}"))),
        content: Some(Content::Text(Text::plain(text))),
        links: if link.href.is_empty() { Vec::new() } else { vec![link] },
        published: published.map(|hours| at(hours).fixed_offset()),
        date_assumed: published.is_none(),
        ..Entry::default()
    }
}

/// Returns an entry that differs from all others.
fn nth(n: usize, published: Option<i64>) -> Entry {
    entry(&format!("urn:x:{n}"), &format!("https://a.test/{n}"), &format!("the {n}th"), published)
}

/// Returns a document that lists these entries oldest first.
fn document(entries: Vec<Entry>) -> FeedDocument {
    let title = Some(Text::plain("Tides"));
    FeedDocument::from_feed(&Feed { title, entries, ..Feed::default() }, true, None, at(0))
}

/// Returns the known entries after a document has been stored.
fn known(document: &FeedDocument) -> Known {
    let entries = document.candidates.iter().zip(1..);
    let named = entries.flat_map(|(candidate, first)| {
        let entry = known_entry(candidate, first);
        candidate.keys().map(move |key| (key, entry.clone()))
    });
    named.collect()
}

/// Returns what the store knows of an entry after it was appended.
fn known_entry(candidate: &Candidate, first: i64) -> KnownEntry {
    KnownEntry {
        first: Seq(first),
        newest: Seq(first),
        digest: Some(candidate.digest),
        title: candidate.title,
        published: candidate.published,
        updated: candidate.updated,
        revised: 0,
        revised_at: None,
        seen_at: at(0),
        is_deleted: false,
        is_alias: false,
    }
}

/// Returns the entry whose id is that of the first [`nth`].
fn first_of(known: &Known) -> KnownEntry {
    known.get(EntryKey::from_id("urn:x:1")).unwrap().clone()
}

/// Returns the state of a feed that was fetched successfully an hour ago and publishes once a day.
fn standing() -> Baseline {
    Baseline {
        is_known: true,
        document_changed_at: None,
        title: "Tides".to_owned(),
        last_good: Some(at(-1)),
        is_failing: false,
        per_hour: 1.0 / 24.0,
        id_changes: 0,
        is_announced: false,
    }
}

/// Returns a letter for each entry of `after`: New, Old, Renamed, Updated, Waiting, Known.
fn classified(before: Vec<Entry>, after: Vec<Entry>) -> String {
    letters(&classify(&document(after), &known(&document(before)), &standing(), at(0)))
}

fn letters(changes: &ChangeSet) -> String {
    let letter = |verdict: &EntryChange| match verdict {
        EntryChange::New(Audience::Nobody) => 'O',
        EntryChange::New(_) => 'N',
        EntryChange::Updated(..) => 'U',
        EntryChange::PutOff(_) => 'W',
        EntryChange::Learnt(_) => 'R',
        EntryChange::Known(_) => 'K',
        EntryChange::Repeated => '2',
    };
    changes.verdicts.iter().map(letter).collect()
}

/// Row N-14.
#[test]
fn n01_what_bears_a_known_id_is_known_whatever_else_changed() {
    let one = || entry("http://a.test/1", "http://a.test/1", "tides", Some(-9));
    #[rustfmt::skip]
    let cases = [
        ("the same",                      one(),                                                       "K"),
        ("f: its date is edited",         Entry { published: Some(at(-2).fixed_offset()), ..one() },   "K"),
        ("https now",                     Entry { id: "https://a.test/1".into(), ..one() },            "K"),
        ("www now",                       Entry { id: "http://www.a.test/1".into(), ..one() },         "K"),
        ("its text is edited",            entry("http://a.test/1", "http://a.test/1", "ebb", Some(-9)), "U"),
        ("another id, and all else",      entry("http://a.test/2", "http://a.test/2", "ebb", Some(-1)), "N"),
    ];
    for (why, after, want) in cases {
        assert_eq!(classified(vec![one()], vec![after]), want, "{why}");
    }
}

#[test]
fn n03_an_entry_under_another_id_is_known_by_what_else_it_has() {
    let link = "https://a.test/1";
    let dated = || entry("urn:1", link, "tides", Some(-9));
    let undated = || entry("urn:1", link, "tides", None);
    let longer = "tides and what they bring";
    let retitled = |mut entry: Entry, text: &str| {
        entry.content = Some(Content::Text(Text::plain(text)));
        entry
    };
    #[rustfmt::skip]
    let cases = [
        ("c: a random id",                    dated(),   entry("urn:2", link, "tides", Some(-9)),                        "R"),
        ("b: its link is followed",           dated(),   entry("urn:2", "http://www.a.test/1/?utm_source=x", "tides", Some(-9)), "R"),
        ("its text has grown",                dated(),   retitled(entry("urn:2", link, "tides", Some(-9)), longer),      "R"),
        ("its address has changed",           dated(),   entry("urn:2", "https://a.test/one", "tides", Some(-9)),        "R"),
        ("but not on another day",            dated(),   entry("urn:2", link, "tides", Some(-8)),                        "N"),
        ("nor with another title",            dated(),   entry("urn:2", link, "ebb", Some(-9)),                          "N"),
        ("an id that is the link",            undated(), entry("https://a.test/1?utm_source=x", link, "tides", None),    "R"),
        ("and not the one without the other", undated(), entry("urn:2", link, "ebb", None),                              "N"),
        ("the other way round",               undated(), entry("urn:2", "https://a.test/2", "tides", None),              "N"),
        ("a date is another day than none",   undated(), entry("urn:2", link, "tides", Some(-9)),                        "N"),
    ];
    for (why, before, after, want) in cases {
        assert_eq!(classified(vec![before], vec![after]), want, "{why}");
    }
}

#[test]
fn n03_what_several_share_says_nothing() {
    let home = "https://a.test/";
    let same = |id| entry(id, home, "tides", Some(-9));
    assert_eq!(classified(vec![same("1")], vec![same("1"), same("2")]), "KN", "both are there");
    assert_eq!(classified(vec![same("1")], vec![same("2"), same("3")]), "NN", "which of the two?");
    assert_eq!(classified(vec![same("1")], vec![same("2"), same("2")]), "N2", "d: one id, twice");
}

#[test]
fn n04_where_nearly_all_have_other_ids_the_ids_have_changed() {
    let before = || (0..10).map(|n| nth(n, Some(-200))).collect::<Vec<_>>();
    let moved = |n: usize, id: &str| {
        let mut entry = nth(n, Some(-100)); // the dates of the move
        entry.id = format!("urn:{id}:{n}");
        entry
    };
    let after = |all: std::ops::Range<usize>| all.map(|n| moved(n, "y")).collect::<Vec<_>>();
    assert_eq!(classified(before(), after(0..10)), "RRRRRRRRRR", "all of them");
    assert_eq!(classified(before(), after(1..11)), "RRRRRRRRRN", "and a new one");
    let half = (0..5).map(|n| nth(n, Some(-200))).chain(after(5..10)).collect();
    assert_eq!(classified(before(), half), "KKKKKNNNNN", "half of them: who knows");
    assert_eq!(classified(before(), after(0..4)), "NNNN", "too few to tell");
}

#[test]
fn n05_out_of_a_flood_only_what_is_recent_is_sent() {
    let some = |count: usize, published: Option<i64>| {
        (0..count).map(|n| nth(1_000 + n, published)).collect::<Vec<_>>()
    };
    let known_ones = |count: usize| (0..count).map(|n| nth(n, Some(-500))).collect::<Vec<_>>();
    let flood = |old: usize, recent: usize, undated: usize| {
        let mut all = known_ones(10);
        all.extend(some(old, Some(-400)));
        all.extend((0..recent).map(|n| nth(50_000 + n, Some(-40))));
        all.extend((0..undated).map(|n| nth(90_000 + n, None)));
        all
    };
    let failing = Baseline { is_failing: true, ..standing() };
    let lively = Baseline { per_hour: 40.0, ..standing() };
    let unknown = Baseline { is_known: false, ..standing() };
    #[rustfmt::skip]
    let cases = [
        ("as many as that are nothing",      flood(25, 0, 0),    standing(),    (25, 0)),
        ("one more is a flood",              flood(26, 0, 0),    standing(),    (0, 26)),
        ("h: five thousand",                 flood(4_900, 3, 97), standing(),   (100, 4_900)),
        ("of a feed that was away too",      flood(26, 3, 0),    failing.clone(), (3, 26)),
        ("which may not date its entries",   flood(0, 0, 60),    failing,       (60, 0)),
        ("a feed that is always like that",  flood(0, 0, 60),    lively,        (60, 0)),
        ("recent ones are sent, all",        flood(0, 60, 0),    standing(),    (60, 0)),
        ("what has no date is not old",      flood(0, 0, 60),    standing(),    (60, 0)),
        ("the first poll is silent anyway",  flood(60, 0, 0),    unknown,       (70, 0)),
    ];
    for (why, entries, standing, want) in cases {
        let before = if standing.is_known { known_ones(10) } else { Vec::new() };
        let before = known(&document(before));
        let changes = classify(&document(entries), &before, &standing, at(0));
        assert_eq!((changes.new_records(), changes.old()), want, "{why}");
    }
}

#[test]
fn n05_of_half_a_long_document_nothing_is_thought() {
    let before: Vec<_> = (0..40).map(|n| nth(n, Some(-500))).collect();
    let mut after = before.clone();
    after.extend((100..140).map(|n| nth(n, Some(-400))));
    assert_eq!(classified(before, after).matches('N').count(), 40);
}

#[test]
fn n05_another_feed_at_the_same_place_is_no_news() {
    let before: Vec<_> = (0..6).map(|n| nth(n, Some(-500))).collect();
    let mut after: Vec<_> = (100..105).map(|n| nth(n, Some(-400))).collect();
    after.push(nth(105, Some(-1)));
    let (mut document, known) = (document(after), known(&document(before)));
    let changes = classify(&document, &known, &standing(), at(0));
    assert_eq!(letters(&changes), "NNNNNN", "the same title: a quick feed");
    document.title = "Casino".to_owned();
    let changes = classify(&document, &known, &standing(), at(0));
    assert_eq!(letters(&changes), "OOOOON", "case j");
    let remark = "feed identity changed; 5 old entries were not sent";
    assert_eq!(changes.remark().as_deref(), Some(remark));
    let undated = FeedDocument {
        title: "Casino".to_owned(),
        ..self::document((200..240).map(|n| nth(n, None)).collect())
    };
    let changes = classify(&undated, &known, &standing(), at(0));
    assert_eq!((changes.new_records(), changes.old()), (10, 30), "ten without dates");
}

#[test]
fn n06_what_slides_in_at_the_far_end_is_old() {
    let before = || (1..4).map(|n| nth(n, Some(-100))).collect::<Vec<_>>();
    let with = |n: usize, published, at: usize| {
        let mut all = before();
        all.insert(at, nth(n, published));
        all
    };
    #[rustfmt::skip]
    let cases = [
        ("g: the newest was taken out",     with(0, Some(-200), 0), "OKKK"),
        ("but it is recent",                with(0, Some(-2), 0),   "NKKK"),
        ("or it does not say",              with(0, None, 0),       "NKKK"),
        ("or it is at the near end",        with(9, Some(-200), 3), "KKKN"),
        ("or in between",                   with(9, Some(-200), 1), "KNKK"),
    ];
    for (why, after, want) in cases {
        assert_eq!(classified(before(), after), want, "{why}");
    }
}

/// Row N-14.
#[test]
fn n07_an_update_reaches_whom_it_concerns() {
    let edited = |updated: Option<TimeDelta>| {
        let mut entry = nth(1, Some(-9));
        entry.content = Some(Content::Text(Text::plain("edited")));
        entry.updated = updated.map(|ago| (at(0) - ago).fixed_offset());
        entry
    };
    let mut before = first_of(&known(&document(vec![nth(1, Some(-9))])));
    before.updated = Some(at(-5));
    let minutes = |minutes| Some(TimeDelta::minutes(minutes));
    let (updated, fresh) = (Some(Audience::Askers), Some(Audience::Fresh));
    let since = |seconds| Some(at(0) - TimeDelta::seconds(seconds));
    #[rustfmt::skip]
    let cases = [
        ("it says nothing of it",              edited(None),          0,  None,          updated),
        ("it says so, now",                    edited(minutes(2)),    0,  None,          fresh),
        ("it said so a while ago",             edited(minutes(4)),    0,  None,          updated),
        ("it says what it always said",        edited(minutes(300)),  0,  None,          updated),
        ("a minute after the last one",        edited(minutes(2)),    3,  since(60),     fresh),
        ("sooner than that it waits",          edited(minutes(2)),    3,  since(59),     None),
        ("the 24th",                           edited(minutes(2)),    23, since(60),     fresh),
        ("the 25th is kept",                   edited(minutes(2)),    24, since(86_400), Some(Audience::Nobody)),
        ("once a day",                         edited(minutes(2)),    24, since(86_399), None),
        ("the same text under another date",   nth(1, Some(-1)),      0,  None,          None),
    ];
    for (why, entry, revised, revised_at, want) in cases {
        let known = KnownEntry { revised, revised_at, ..before.clone() };
        let document = document(vec![entry]);
        let known = Known::from_iter([(document.candidates[0].id, known)]);
        let changes = classify(&document, &known, &standing(), at(0));
        let audience = match &changes.verdicts[0] {
            EntryChange::Updated(_, audience) => Some(*audience),
            _ => None,
        };
        assert_eq!(audience, want, "{why}");
        assert_eq!(changes.is_put_off(), why.contains("waits"), "{why}");
    }
}

#[test]
fn n07_markup_and_tracking_are_no_update() {
    let with = |kind, text: &str, link: &str| {
        let mut entry = nth(1, Some(-9));
        entry.content = Some(Content::Text(Text { kind, ..Text::plain(text) }));
        entry.links[0].href = link.to_owned();
        document(vec![entry]).candidates[0].digest
    };
    use feedgate_feed::model::TextKind::Html;
    let before = with(Html, "<p>Spring tide</p>", "https://a.test/1");
    #[rustfmt::skip]
    let cases: [(&str, Digest, bool); 5] = [
        ("other markup",     with(Html, "<div><b>Spring</b>\n tide</div>", "https://a.test/1"),        true),
        ("a counting pixel", with(Html, "<p>Spring tide</p><img src='//x/7'>", "https://a.test/1"),    true),
        ("a tracked link",   with(Html, "<p>Spring tide</p>", "http://www.a.test/1?utm_medium=rss"),   true),
        ("another word",     with(Html, "<p>Neap tide</p>", "https://a.test/1"),                       false),
        ("another link",     with(Html, "<p>Spring tide</p>", "https://a.test/2"),                     false),
    ];
    for (why, after, is_same) in cases {
        assert_eq!(after == before, is_same, "{why}");
    }
}

#[test]
fn n08_what_is_taken_back_is_told_once() {
    let tombstone = |id: &str| Element {
        namespace: "http://purl.org/atompub/tombstones/1.0".to_owned(),
        name: "deleted-entry".to_owned(),
        attributes: vec![Attribute {
            name: "ref".to_owned(),
            value: id.to_owned(),
            ..Attribute::default()
        }],
        ..Element::default()
    };
    let before = known(&document(vec![nth(1, None), nth(2, None)]));
    let classified = |entries: Vec<Entry>, gone: &[&str], known: &Known| {
        let extensions = gone.iter().map(|id| tombstone(id)).collect();
        let feed = Feed { entries, extensions, ..Feed::default() };
        let document = FeedDocument::from_feed(&feed, true, None, at(0));
        let changes = classify(&document, known, &standing(), at(0));
        changes.deleted.iter().map(|(_, known)| known.first.0).collect::<Vec<_>>()
    };
    let both = ["urn:x:1", "urn:x:1", "urn:x:7"];
    assert_eq!(classified(vec![nth(2, None)], &both, &before), [1], "known, and once");
    assert_eq!(classified(vec![nth(1, None)], &both, &before), [0; 0], "it is still there");
    let gone = KnownEntry { is_deleted: true, ..first_of(&before) };
    let gone = Known::from_iter([(EntryKey::from_id("urn:x:1"), gone)]);
    assert_eq!(classified(vec![], &both, &gone), [0; 0], "it was told before");
    let back = classify(&document(vec![nth(1, None)]), &gone, &standing(), at(0));
    assert_eq!(letters(&back), "U", "it is back");
    assert_eq!(letters(&classify(&document(vec![]), &before, &standing(), at(0))), "", "absence");
}

/// Stored entries must not come again because an address is resolved in another way than it was, or a text is
/// no longer repaired.
#[test]
fn n1_n6_a_new_reading_of_the_same_source_is_no_change() {
    let former = document(vec![entry("urn:x:1", "https://feeds.test/1", "café", Some(1))]);
    let mut read_again = entry("urn:x:1", "https://a.test/1", "cafÃ©", Some(1));
    read_again.links[0].former_href = Some("https://feeds.test/1".to_owned());
    let again = document(vec![read_again]);
    assert_eq!(again.keys(), former.keys());
    let changes = classify(&again, &known(&former), &standing(), at(2));
    assert!(matches!(changes.verdicts[..], [EntryChange::Known(_)]), "{:?}", changes.verdicts);
}
