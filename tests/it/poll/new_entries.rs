//! What is news, from the publisher's document to the log: the troubles that feeds are
//! known for, as documents that follow each other, and the rules that answer them.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use feedgate::net::Patience;
use feedgate_core::poll::Trigger;
use feedgate_core::record::{RecordKind, Seq};
use feedgate_core::resource::Resource;
use feedgate_core::store::DueResource;
use feedgate_core::topic::Topic;

use super::Bench;
use crate::store::on_both_stores;
use crate::support::postgres::Database;

on_both_stores!(
    n02_a_feed_whose_ids_repeat_is_known_by_its_links,
    n03_n04_entries_whose_ids_change_are_not_news,
    n05_a_flood_is_kept_and_what_is_recent_is_sent,
    n05_a_feed_that_became_another_floods_nobody,
    h16_a_distinct_id_is_an_entry_unless_ids_change_all_the_time,
    n06_what_slides_back_into_a_document_is_not_news,
    n07_an_edit_takes_the_place_of_what_was_there,
    n08_a_tombstone_is_told_in_the_log,
    n09_dates_that_cannot_be_are_shown_as_what_they_are,
    n10_ascending_documents_are_numbered_alike,
);

/// When the first document is fetched; each further one an hour later.
fn at(hours: i64) -> DateTime<Utc> {
    let noon: DateTime<Utc> = "2026-11-20T12:00:00Z".parse().unwrap();
    noon + TimeDelta::hours(hours)
}

/// An item: id, link, text and the hour of its publication; what is empty is left out.
#[derive(Clone)]
struct Item(String, String, String, Option<i64>);

fn item(guid: &str, link: &str, text: &str, published: impl Into<Option<i64>>) -> Item {
    Item(guid.to_owned(), link.to_owned(), text.to_owned(), published.into())
}

/// Item `n`, with nothing unusual about it.
fn nth(n: usize, published: impl Into<Option<i64>>) -> Item {
    item(&format!("urn:x:{n}"), &format!("https://t.test/{n}"), &format!("The {n}th"), published)
}

/// A document called `title` that lists these, the newest first.
fn rss(title: &str, items: &[Item]) -> String {
    let element = |name: &str, text: &str| match text {
        "" => String::new(),
        text => format!("<{name}>{text}</{name}>"),
    };
    let items = items.iter().map(|Item(guid, link, text, published)| {
        let date = published.map(|hours| at(hours).to_rfc2822()).unwrap_or_default();
        let guid = element("guid", guid).replace("<guid>", "<guid isPermaLink='false'>");
        let (title, link) = (element("title", &format!("On {text}")), element("link", link));
        let (text, date) = (element("description", text), element("pubDate", &date));
        format!("<item>{guid}{title}{link}{text}{date}</item>\n")
    });
    let items: String = items.collect();
    format!("<rss version='2.0'><channel><title>{title}</title>{items}</channel></rss>")
}

impl Bench {
    /// Publishes each document in turn, and polls each an hour after the one before.
    async fn follow(&self, path: &str, documents: &[String]) -> Resource {
        let topic = Topic::parse(self.publisher.url(path)).unwrap();
        let id = self.store.ensure(&topic, at(0)).await.unwrap().id;
        for (document, hour) in documents.iter().zip(0..) {
            self.publisher.put(path, "application/xml", document.clone());
            let now = at(hour);
            let until = now + Duration::from_secs(60);
            let claimed = self.store.claim_resource(id, now, until).await.unwrap().unwrap();
            let due = DueResource { trigger: Trigger::Schedule, ..claimed };
            self.ingest.poll(&due, now, Patience::Background).await.unwrap();
        }
        self.store.get(id).await.unwrap().unwrap()
    }

    /// A letter for each record: New, Update, Old, Deleted.
    async fn letters(&self, resource: &Resource) -> String {
        let records = self.store.read_after(resource.id, Seq::NONE, 10_000).await.unwrap();
        let letter = |kind| match kind {
            RecordKind::New => 'N',
            RecordKind::Update => 'U',
            RecordKind::Old => 'O',
            RecordKind::Deleted => 'D',
        };
        records.into_iter().map(|record| letter(record.kind)).collect()
    }

    /// The newest record, serialized.
    async fn newest(&self, resource: &Resource) -> String {
        let before = Seq(resource.head.0 - 1);
        self.store.read_after(resource.id, before, 1).await.unwrap().remove(0).atom
    }
}

async fn n03_n04_entries_whose_ids_change_are_not_news(database: Database) {
    let bench = Bench::start(&database).await;
    let six = |make: &dyn Fn(usize) -> Item| (0..6).map(make).collect::<Vec<_>>();
    let by = |id: &'static str, link: &'static str| {
        let made = move |n: usize| {
            let (id, link) = (id.replace('#', &n.to_string()), link.replace('#', &n.to_string()));
            item(&id, &link, &format!("The {n}th"), -100 - n as i64)
        };
        rss("Tides", &six(&made))
    };
    let edited = |hours: i64| {
        let items: Vec<_> = (0..3).map(|n| nth(n, hours)).collect();
        rss("Tides", &items)
    };
    let link = "https://t.test/#";
    #[rustfmt::skip]
    let cases: [(&str, Vec<String>, &str); 9] = [
        ("a: https now",            vec![by("http://t.test/#", link), by("https://t.test/#", link)],              "NNNNNN"),
        ("b: tracked ids",          vec![by("https://t.test/#?utm_source=a", link), by("https://t.test/#?utm_source=b", link)], "NNNNNN"),
        ("c: random ids",           vec![by("urn:a:#", link), by("urn:b:#", link), by("urn:c:#", link)],         "NNNNNN"),
        ("another host for both",   vec![by("http://t.test/#", link), by("http://u.test/#", "https://u.test/#")], "NNNNNN"),
        ("d: one id, two entries",  vec![
            rss("d", &[item("x", "https://t.test/1", "one", -9), nth(2, -9)]),
            rss("d", &[item("x", "https://t.test/3", "two", -1), item("x", "https://t.test/1", "one", -9)]),
            rss("d", &[item("x", "https://t.test/3", "two", -1), item("x", "https://t.test/1", "one", -9)])],    "NNN"),
        ("e: neither id nor link",  vec![
            rss("e", &[item("", "", "one", None)]),
            rss("e", &[item("", "", "two", None), item("", "", "one", None)])],                                  "NN"),
        ("f: dates edited daily",   vec![edited(-90), edited(-60), edited(-1)],                                  "NNN"),
        ("an id where was none",    vec![
            rss("i", &[item("", "https://t.test/1", "one", -9)]),
            rss("i", &[item("urn:1", "https://t.test/1", "one", -9)])],                                          "N"),
        ("what is new is new",      vec![rss("n", &[nth(1, -9)]), rss("n", &[nth(2, None), nth(1, -9)])],        "NN"),
    ];
    for (place, (why, documents, want)) in cases.into_iter().enumerate() {
        let resource = bench.follow(&format!("/{place}"), &documents).await;
        assert_eq!(bench.letters(&resource).await, want, "{why}");
    }
}

async fn h16_a_distinct_id_is_an_entry_unless_ids_change_all_the_time(database: Database) {
    let bench = Bench::start(&database).await;
    let beacon = |n: usize| item(&format!("urn:b:{n}"), "https://t.test/up", "up", None);
    let only = |items: &[Item]| rss("Beacon", items);
    let each_alone = |count: usize| (0..count).map(|n| only(&[beacon(n)])).collect::<Vec<_>>();
    // The same bytes again, which prove that ids are kept, and the next one.
    let twice = |count: usize| {
        let documents =
            each_alone(count).into_iter().flat_map(|document| [document.clone(), document]);
        documents.collect::<Vec<_>>()
    };
    let unreliable = |more: &[Vec<Item>]| {
        let rest = more.iter().map(|items| only(items));
        each_alone(12).into_iter().chain(rest).collect::<Vec<_>>()
    };
    let both = vec![beacon(11), beacon(10)];
    #[rustfmt::skip]
    let cases: [(&str, Vec<String>, usize); 5] = [
        ("six after the first",                       each_alone(7),                       7),
        ("an id for each fetch, until that is clear", each_alone(40),                      11),
        ("ids that are there twice",                  twice(40),                           40),
        ("two at once, of which one was an alias",    unreliable(std::slice::from_ref(&both)),         12),
        ("and ids that are kept from then on",        unreliable(&[both, vec![beacon(12)]]), 13),
    ];
    for (place, (why, documents, want)) in cases.into_iter().enumerate() {
        let resource = bench.follow(&format!("/{place}"), &documents).await;
        assert_eq!(bench.letters(&resource).await, "N".repeat(want), "{why}");
    }
}

async fn n02_a_feed_whose_ids_repeat_is_known_by_its_links(database: Database) {
    let bench = Bench::start(&database).await;
    // The id is the day, the link is the entry's own.
    let of = |day: &str, n: usize| item(day, &format!("https://t.test/{n}"), &format!("{n}"), None);
    let documents = [
        rss("d", &[of("tue", 4), of("mon", 3), of("mon", 2), of("mon", 1)]),
        rss("d", &[of("tue", 4), of("mon", 3), of("mon", 2), of("mon", 1)]) + "\n",
        rss("d", &[of("tue", 6), of("tue", 4)]),
        rss("d", &[of("tue", 7)]),
    ];
    let resource = bench.follow("/feed", &documents).await;
    assert_eq!(bench.letters(&resource).await, "NNNNNN", "one that comes alone is not lost");
    assert_eq!(resource.polling.known_by_since, Some(at(0)));
}

async fn n05_a_flood_is_kept_and_what_is_recent_is_sent(database: Database) {
    let bench = Bench::start(&database).await;
    let few: Vec<_> = (0..10).map(|n| nth(n, -500)).collect();
    let mut many: Vec<_> = (10_000..10_003).map(|n| nth(n, 0)).collect();
    many.extend((10..5_000).map(|n| nth(n, -1_000 - n as i64)));
    many.extend(few.clone());
    // The documents are long: this is case h. The three oldest entries of the second are not read.
    let resource = bench.follow("/feed", &[rss("Tides", &few), rss("Tides", &many)]).await;
    let letters = bench.letters(&resource).await;
    assert_eq!((letters.matches('N').count(), letters.matches('O').count()), (13, 4_987));
    let refusal = "4987 old entries were not sent";
    assert!(resource.status.http_message.contains(refusal), "{}", resource.status.http_message);
}

async fn n05_a_feed_that_became_another_floods_nobody(database: Database) {
    let bench = Bench::start(&database).await;
    let before: Vec<_> = (0..6).map(|n| nth(n, -500)).collect();
    let mut after = vec![nth(100, 0)];
    after.extend((101..107).map(|n| nth(n, -300)));
    let resource = bench.follow("/feed", &[rss("Tides", &before), rss("Casino", &after)]).await;
    assert_eq!(bench.letters(&resource).await, "NNNNNNOOOOOON", "case j");
    let message = &resource.status.http_message;
    assert!(message.contains("feed identity changed"), "{message}");
}

async fn n06_what_slides_back_into_a_document_is_not_news(database: Database) {
    let bench = Bench::start(&database).await;
    let items = |numbers: std::ops::Range<usize>| -> String {
        let items: Vec<_> = numbers.rev().map(|n| nth(n, n as i64 - 200)).collect();
        rss("Tides", &items)
    };
    // Case g: the newest of ten is taken out, and what was the eleventh is back.
    let resource = bench.follow("/feed", &[items(1..11), items(2..12), items(1..11)]).await;
    assert_eq!(bench.letters(&resource).await, "NNNNNNNNNNN");
    let resource = bench.follow("/other", &[items(1..11), items(0..10)]).await;
    assert_eq!(bench.letters(&resource).await, "NNNNNNNNNNO", "nor if it was never seen");
}

async fn n07_an_edit_takes_the_place_of_what_was_there(database: Database) {
    let bench = Bench::start(&database).await;
    let described = |text: &str| rss("Tides", &[item("urn:1", "https://t.test/1", text, -9)]);
    let documents = [
        described("low"),
        described("<![CDATA[<b>low</b>]]>"),
        described("high"),
        described("low"),
    ];
    let resource = bench.follow("/feed", &documents).await;
    assert_eq!(bench.letters(&resource).await, "NUU", "markup is no text");
    assert!(bench.newest(&resource).await.contains("low"));
}

async fn n08_a_tombstone_is_told_in_the_log(database: Database) {
    let bench = Bench::start(&database).await;
    let entry = |n: u32| {
        format!(
            "<entry><id>urn:x:{n}</id><title>{n}</title><updated>2026-11-01T00:00:00Z</updated></entry>"
        )
    };
    let atom = |inside: String| {
        format!(
            "<feed xmlns='http://www.w3.org/2005/Atom' \
             xmlns:at='http://purl.org/atompub/tombstones/1.0'><title>Tides</title>{inside}</feed>"
        )
    };
    let gone = "<at:deleted-entry ref='urn:x:1' when='2026-11-20T12:00:00Z'/>";
    let documents = [atom(entry(2) + &entry(1)), atom(entry(2) + gone), atom(entry(3) + gone)];
    let resource = bench.follow("/feed", &documents[..2]).await;
    assert_eq!(bench.letters(&resource).await, "NND");
    assert_eq!(
        bench.newest(&resource).await,
        "<at:deleted-entry xmlns:at=\"http://purl.org/atompub/tombstones/1.0\" ref=\"urn:x:1\" \
         when=\"2026-11-20T12:00:00Z\"/>\n"
    );
    assert!(!resource.feed_head.contains("deleted-entry"), "{}", resource.feed_head);
    let resource = bench.follow("/other", &documents).await;
    assert_eq!(bench.letters(&resource).await, "NNDN", "once");

    // The id of an entry that is no IRI is wrapped, and so is the one that its deletion names.
    let documents = documents.map(|document| document.replace("urn:x:", "tide "));
    let resource = bench.follow("/bare", &documents).await;
    assert_eq!(bench.letters(&resource).await, "NNDN");
    let records = bench.store.read_after(resource.id, Seq::NONE, 10).await.unwrap();
    assert!(records[2].atom.contains("ref=\"urn:guid:tide%201\""), "{}", records[2].atom);
    assert_eq!(records[2].entry_id, "urn:guid:tide%201");
}

async fn n09_dates_that_cannot_be_are_shown_as_what_they_are(database: Database) {
    let bench = Bench::start(&database).await;
    let items = [nth(1, 5), nth(2, 50), nth(3, None), nth(4, None), nth(5, -9)];
    let resource = bench.follow("/feed", &[rss("Tides", &items)]).await;
    let records = bench.store.read_after(resource.id, Seq::NONE, 10).await.unwrap();
    let date = |id: &str, name: &str| {
        let atom = &records.iter().find(|record| record.entry_id == id).unwrap().atom;
        let (_, rest) = atom.split_once(&format!("<{name}>"))?;
        rest.split_once('<').map(|(date, _)| date.to_owned())
    };
    let found = Some("2026-11-20T12:00:00Z".to_owned());
    assert_eq!(date("urn:x:1", "published"), found, "hours ahead: discovery");
    assert_eq!(date("urn:x:2", "published"), None, "days ahead: an event, or nothing");
    let ahead = &records.iter().find(|record| record.entry_id == "urn:x:2").unwrap().atom;
    assert!(ahead.contains("2026-11-22T14:00:00"), "but kept: {ahead}");
    let third = date("urn:x:3", "updated").unwrap();
    let fourth = date("urn:x:4", "updated").unwrap();
    let read = |date: &str| DateTime::parse_from_rfc3339(date).unwrap();
    assert_eq!(read(&third) - read(&fourth), TimeDelta::milliseconds(1), "{third} {fourth}");
}

async fn n10_ascending_documents_are_numbered_alike(database: Database) {
    let bench = Bench::start(&database).await;
    let ascending: Vec<_> = (1..6).map(|n| nth(n, n as i64 - 100)).collect();
    let more: Vec<_> = (2..8).map(|n| nth(n, n as i64 - 100)).collect();
    let resource = bench.follow("/feed", &[rss("Log", &ascending), rss("Log", &more)]).await;
    let want: Vec<_> = (1..8).map(|n| format!("urn:x:{n}")).collect();
    assert_eq!(bench.ids(&resource).await, want, "case i");
}
