//! The documents of seed 004, made anew by publishing what they hold.

use crate::support::feeds::{entry_id, entry_ids, link, rss};
use crate::support::world::World;

use super::get;

/// What a document of the seed's example has: its address and where its links lead.
struct Example {
    address: &'static str,
    next: Option<&'static str>,
    prev: Option<&'static str>,
    via: Option<&'static str>,
    entries: [usize; 3],
}

/// The six documents of the seed: the recent one, the same under its permanent address, and
/// those before it.
const EXAMPLES: [Example; 5] = [
    Example {
        address: "/recent",
        next: None,
        prev: Some("/documents/3"),
        via: Some("/documents/4"),
        entries: [12, 11, 10],
    },
    Example {
        address: "/documents/4",
        next: None,
        prev: Some("/documents/3"),
        via: None,
        entries: [12, 11, 10],
    },
    Example {
        address: "/documents/3",
        next: Some("/documents/4"),
        prev: Some("/documents/2"),
        via: None,
        entries: [9, 8, 7],
    },
    Example {
        address: "/documents/2",
        next: Some("/documents/3"),
        prev: Some("/documents/1"),
        via: None,
        entries: [6, 5, 4],
    },
    Example {
        address: "/documents/1",
        next: Some("/documents/2"),
        prev: None,
        via: None,
        entries: [3, 2, 1],
    },
];

#[tokio::test]
async fn the_documents_of_the_seed_come_out_as_it_has_them() {
    let world = World::with_tides(12, &[("FEEDGATE_PAGE_RECORDS", "3")]).await;
    let callback = world.subscriber.url("/cb");
    world.gateway.subscribe_superfeedr(&world.topic, &callback, "atom").await;
    world.gateway.open_to_anonymous(&world.topic).await;
    let home = world.recent().await.replace("/recent", "");
    let address = |path: Option<&str>| path.map(|path| format!("{home}{path}"));
    let mut ids = Vec::new();
    for example in EXAMPLES {
        let url = format!("{home}{}", example.address);
        let text = get(&url).await.text().await.unwrap();
        let links = ["self", "next-archive", "prev-archive"].map(|rel| link(&text, rel));
        assert_eq!(links, [Some(url), address(example.next), address(example.prev)], "{text}");
        // The source's own address is a via of the recent document besides.
        let own =
            text.contains(&format!("rel=\"via\" type=\"application/atom+xml\" href=\"{home}"));
        assert_eq!(own, example.via.is_some(), "{text}");
        if let Some(via) = address(example.via) {
            assert!(text.contains(&format!("href=\"{via}\"")), "{text}");
        }
        let want = example.entries.map(|n| entry_id("tides", n));
        assert_eq!(entry_ids(&text), want, "newest at the top");
        let (_, after) = text.split_once("<id>").unwrap();
        ids.push(after.split_once("</id>").unwrap().0.to_owned());
    }
    ids.dedup();
    assert_eq!(ids.len(), 1, "one feed");
}

/// "The consumer can now start to work its way back to the front of the feed."
#[tokio::test]
async fn documents_in_ascending_order_lead_a_consumer_from_top_to_bottom() {
    let world = World::with_archive().await;
    let first = format!("{}?order=asc", world.recent().await.replace("recent", "documents/1"));
    let (mut next, mut ids) = (Some(first), Vec::new());
    while let Some(url) = next {
        let text = get(&url).await.text().await.unwrap();
        assert_eq!(link(&text, "via"), Some(url.clone()), "on every page");
        ids.extend(entry_ids(&text));
        next = link(&text, "next-archive");
    }
    let want: Vec<_> = (1..6).map(|n| entry_id("tides", n)).collect();
    assert_eq!(ids, want);
    let recent = format!("{}?order=asc", world.recent().await);
    let text = get(&recent).await.text().await.unwrap();
    assert!(link(&text, "prev-archive").unwrap().ends_with("/documents/2?order=asc"));
    assert!(text.contains("/documents/3?order=asc"), "{text}");
}

/// An entry that changes is added once more, under an id of its own.
#[tokio::test]
async fn n7_an_update_says_what_it_takes_the_place_of() {
    let world = World::with_archive().await;
    let feed = rss("tides", 1..6).replace("The text of 3", "Another text");
    world.publisher.put_rss("/feed", feed);
    world.gateway.post("/ping", &[("url", &world.topic)]).await;
    let document = world.recent_that_has("Another text").await;
    let entry = document.split("<entry").nth(1).unwrap();
    let source = entry_id("tides", 3);
    assert!(entry.contains("<id>urn:uuid:"), "{entry}");
    let names = format!("<link rel=\"predecessor-version\" href=\"{source}\"/>");
    assert!(entry.contains(&names), "{entry}");
    assert!(entry.contains(&format!(">{source}</dcterms:isVersionOf>")), "{entry}");
    let retrieve = [("hub.mode", "retrieve"), ("hub.topic", world.topic.as_str())];
    let (_, text) = world.gateway.superfeedr(&retrieve).await;
    assert!(text.contains("Another text") && !text.contains("predecessor-version"), "{text}");
    assert!(text.contains(&format!("<id>{source}</id>")), "elsewhere it is the same: {text}");
}
