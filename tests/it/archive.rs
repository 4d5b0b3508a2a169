//! Simplefeed archives, as a reader finds them.

mod browser;
mod caching;
mod formats;
mod newest;
mod seed;
mod subscribing;

use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH};
use http::{Method, StatusCode};
use reqwest::Response;

use crate::support::feeds::{entry_id, entry_ids, link};
use crate::support::gateway::{LOGIN, TOKEN};
use crate::support::reader::Reader;
use crate::support::server::client;
use crate::support::until;
use crate::support::validator::assert_sound;
use crate::support::world::World;

impl World {
    /// A feed of five entries, in documents of two.
    async fn with_archive() -> World {
        let world = World::with_tides(5, &[("FEEDGATE_PAGE_RECORDS", "2")]).await;
        let callback = world.subscriber.url("/cb");
        world.gateway.subscribe_superfeedr(&world.topic, &callback, "atom").await;
        world.gateway.open_to_anonymous(&world.topic).await;
        world
    }

    async fn publish_and_wait(&self, n: usize) {
        self.put_tides(n);
        let form = [("hub.mode", "publish"), ("hub.url", self.topic.as_str())];
        assert_eq!(self.gateway.post("/", &form).await.0, StatusCode::NO_CONTENT);
        self.gateway.archive_holds(&self.topic, &entry_id("tides", n)).await;
    }

    /// The recent document, once it has this text.
    async fn recent_that_has(&self, text: &str) -> String {
        let recent = self.recent().await;
        let mut document = String::new();
        let holds = async || {
            document = get(&recent).await.text().await.unwrap();
            document.contains(text)
        };
        until(text, holds).await;
        document
    }

    /// The address of the recent document.
    async fn recent(&self) -> String {
        let answer = get(&self.gateway.archive_of(&self.topic)).await;
        link(&answer.text().await.unwrap(), "self").unwrap()
    }
}

/// The answer; an archive document in it must be sound.
async fn get(url: &str) -> Response {
    let answer = client().get(url).send().await.unwrap();
    if answer.status() != StatusCode::OK {
        return answer;
    }
    let from = answer.url().to_string();
    let mut whole = http::Response::new(());
    *whole.headers_mut() = answer.headers().clone();
    let bytes = answer.bytes().await.unwrap();
    assert_sound(&from, std::str::from_utf8(&bytes).unwrap());
    whole.map(|()| reqwest::Body::from(bytes)).into()
}

fn header(answer: &Response, name: HeaderName) -> String {
    answer.headers().get(name).map_or_else(String::new, |v| v.to_str().unwrap().to_owned())
}

#[tokio::test]
async fn the_chain_leads_from_the_newest_entry_to_the_oldest() {
    let world = World::with_archive().await;
    let mut next = Some(world.recent().await);
    let mut pages = Vec::new();
    while let Some(url) = next {
        let answer = get(&url).await;
        assert_eq!(header(&answer, CONTENT_TYPE), "application/atom+xml");
        assert_eq!(header(&answer, http::header::X_CONTENT_TYPE_OPTIONS), "nosniff");
        let text = answer.text().await.unwrap();
        assert_eq!(link(&text, "self"), Some(url.clone()));
        pages.push(entry_ids(&text));
        next = link(&text, "prev-archive");
        if let Some(before) = &next {
            let before = get(before).await.text().await.unwrap();
            let after = link(&before, "next-archive").unwrap();
            let again = get(&after).await.text().await.unwrap();
            assert_eq!(entry_ids(&again), entry_ids(&text), "the way back leads to the same");
        }
    }
    let want = [&[5][..], &[4, 3], &[2, 1]];
    let want: Vec<Vec<String>> =
        want.iter().map(|page| page.iter().map(|n| entry_id("tides", *n)).collect()).collect();
    assert_eq!(pages, want);
}

#[tokio::test]
async fn an_archived_document_never_changes_again() {
    let world = World::with_archive().await;
    let recent = world.recent().await;
    let via = link(&get(&recent).await.text().await.unwrap(), "via").unwrap();
    let prev = link(&get(&recent).await.text().await.unwrap(), "prev-archive").unwrap();
    let (before, open) = (get(&prev).await, get(&via).await);
    assert_eq!(header(&before, CACHE_CONTROL), "public, max-age=31536000, immutable");
    assert_eq!(
        header(&get(&recent).await, CACHE_CONTROL),
        "public, max-age=15, stale-while-revalidate=30, stale-if-error=86400"
    );
    // Soon the next document leads to it: what a cache kept of it would not be all of it.
    assert_eq!(header(&open, CACHE_CONTROL), "public, no-cache");
    let (etag, text) = (header(&before, ETAG), before.text().await.unwrap());

    world.publish_and_wait(6).await;
    world.publish_and_wait(7).await;
    let after = get(&prev).await;
    assert_eq!(header(&after, ETAG), etag);
    assert_eq!(after.text().await.unwrap(), text);
    // The document that was recent is archived under the address it had all along.
    let archived = get(&via).await;
    assert_ne!(header(&archived, ETAG), header(&open, ETAG));
    let ids = entry_ids(&archived.text().await.unwrap());
    assert_eq!(ids, [entry_id("tides", 6), entry_id("tides", 5)]);
}

#[tokio::test]
async fn a_reader_misses_nothing_between_two_visits() {
    let world = World::with_archive().await;
    let recent = world.recent().await;
    let mut reader = Reader::default();
    reader.catch_up(&recent).await.unwrap();
    for n in 6..10 {
        world.publish_and_wait(n).await;
    }
    reader.catch_up(&recent).await.unwrap();
    let want: Vec<String> = (1..10).map(|n| entry_id("tides", n)).collect();
    assert_eq!(reader.processed, want);
}

#[tokio::test]
async fn documents_can_be_asked_for_again_and_by_their_head() {
    let world = World::with_archive().await;
    for url in [world.recent().await, world.recent().await.replace("recent", "documents/1")] {
        let answer = get(&url).await;
        let (etag, text) = (header(&answer, ETAG), answer.text().await.unwrap());
        let again = client().get(&url).header(IF_NONE_MATCH, &etag).send().await.unwrap();
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(header(&again, ETAG), etag);
        let head = client().request(Method::HEAD, &url).send().await.unwrap();
        assert_eq!(header(&head, http::header::CONTENT_LENGTH), text.len().to_string());
        let posted = client().post(&url).send().await.unwrap();
        assert_eq!(posted.status(), StatusCode::METHOD_NOT_ALLOWED);
    }
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let world = World::with_archive().await;
    let home = world.recent().await.replace("/recent", "");
    for path in ["/documents/0", "/documents/4", "/documents/x", "/documents/01", "/nothing", "/"] {
        let answer = get(&format!("{home}{path}")).await;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{path}");
    }
    let nobody = world.gateway.get("/feeds?topic=http://nobody.test/").await;
    assert_eq!(nobody.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn s48_a_topic_with_a_secret_is_shown_to_its_accounts_only() {
    let world = World::with_archive().await;
    let password = world.topic.replace("http://", "http://me:opensesame@");
    for secret in [password, format!("{}?token=opensesame", world.topic)] {
        world.gateway.subscribe_superfeedr(&secret, "http://127.0.0.1:9/dev/null", "atom").await;
        world.gateway.subscribe_websub(&secret, "http://127.0.0.1:9/dev/null", &[]).await;
        let archive = world.gateway.archive_of(&secret);
        let (status, text) = world.gateway.fetch(&archive).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{secret}");
        assert!(!text.contains("opensesame"));
        let own = client().get(&archive).basic_auth(LOGIN, Some(TOKEN)).send().await.unwrap();
        assert_eq!(own.status(), StatusCode::OK, "{secret}");
    }
}
