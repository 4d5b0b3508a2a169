//! The ids of entries, case by case.

use std::collections::HashSet;

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
        ("0d7b9cf4-6f2a-4a7e-9b52-1d6f2f3a9c11", "urn:uuid:0d7b9cf4-6f2a-4a7e-9b52-1d6f2f3a9c11"),
    ];
    for (id, want) in cases {
        assert_eq!(ids(vec![entry(id, "", "t")]), [want], "{id:?}");
    }
}

#[test]
fn without_an_id_the_link_is_one_if_no_other_entry_has_it() {
    assert_eq!(ids(vec![entry("", "http://a.test/1", "t")]), ["http://a.test/1"]);
    let shared = ids(vec![entry("", "http://a.test/", "one"), entry("", "http://a.test/", "two")]);
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
    let shared =
        |n: usize| [entry(&format!("urn:{n}"), "", "old"), entry(&format!("urn:{n}"), "", "new")];
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
