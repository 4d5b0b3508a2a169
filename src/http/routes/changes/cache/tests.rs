//! Tests: what is rendered and compressed, and how much memory the documents take.

use std::io::Read;
use std::path::Path;

use feedgate_core::host_groups::HostGroups;
use feedgate_core::ping::{Ping, PingSource};
use flate2::read::GzDecoder;
use futures_util::FutureExt;

use super::super::rendered::tests::rendered;
use super::*;

/// Returns a store with so many changes of this moment.
async fn store_with_changes(folder: &Path, many: usize) -> Arc<Store> {
    let settings = feedgate_store::StoreSettings {
        url: format!("sqlite:{}", folder.join("feedgate.db").display()),
        connections: 1,
        groups: HostGroups::new(Duration::ZERO),
        page_limits: Default::default(),
        listed: Default::default(),
        forwarding: Default::default(),
        anonymous_bytes_per_day: 1 << 20,
        account_bytes_per_day: 1 << 20,
        cells: 1,
        secret_keys: Default::default(),
    };
    let store = feedgate_store::open(&settings).await.unwrap();
    for number in 0..many {
        let (name, url) = ("Tides".to_owned(), format!("https://tides.test/{number}"));
        let (at, source) = (runner::now(), PingSource::Weblogs);
        let ping = Ping { at, source, name, url, feed_url: None };
        store.receive(&ping, Duration::ZERO).await.unwrap();
    }
    store
}

fn open(secs: u64) -> RequestedDocument {
    let (time, access) = (CoveredTime::Last(secs), ViewerAccess::Public);
    RequestedDocument::Open(time, TimeUnit::Minutes, access)
}

#[tokio::test(start_paused = true)]
async fn only_so_many_documents_are_rendered_at_the_same_time() {
    let cache = ChangesCache::default();
    let mut permits = Vec::new();
    for _ in 0..RENDERERS {
        permits.push(cache.acquire_renderer().await.unwrap());
    }
    assert!(matches!(cache.acquire_renderer().await, Err(RenderError::Busy)));
    permits.pop();
    assert!(cache.acquire_renderer().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn h11_renderers_pause_for_many_times_as_long_as_they_rendered() {
    let cache = ChangesCache::default();
    for (took_ms, pause_ms) in [(10, 90), (60_000, 2_000)] {
        for _ in 0..RENDERERS {
            pause(cache.acquire_renderer().await.unwrap(), Duration::from_millis(took_ms));
        }
        let begun = Instant::now();
        let next = cache.acquire_renderer().await;
        assert_eq!(begun.elapsed().as_millis(), pause_ms, "{took_ms}");
        drop(next);
        sleep(LONGEST_PAUSE).await;
    }
}

#[tokio::test]
async fn h11_the_longest_document_is_cached_plain_and_compressed() {
    let cache = ChangesCache::default();
    let noise: String = (0..MAX_BYTES as u64 / 100)
        .map(|n| format!("{:0100x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
        .collect();
    let document = rendered(1, &noise);
    assert!(document.text.len() <= MAX_BYTES + 5 && document.text.len() > MAX_BYTES - 100);
    for secs in 0..10 {
        let key = open(secs).key();
        cache.documents.insert(key, Entry::new(&document));
        assert!(cache.documents.get(&key).is_some());
        let body = cache.body(&open(secs), &document, None, true).await;
        assert!(body.is_zipped && body.pieces.len() == 1);
        let entry = cache.documents.get(&key).expect("it is cached with its compressed form");
        assert_eq!(entry.bytes, document.bytes());
        assert!(entry.bytes > document.text.len() + body.pieces[0].len());
        assert!(cache.documents.bytes() <= CAPACITY_BYTES);
    }
    let most = MAX_BYTES + MAX_BYTES + MAX_BYTES / 2;
    let longest = Entry { document: rendered(0, ""), bytes: most - 1_024 };
    cache.documents.insert(open(99).key(), longest);
    assert!(cache.documents.get(&open(99).key()).is_some(), "whatever it is compressed to");
}

#[tokio::test]
async fn h11_a_shorter_time_is_a_part_of_the_document() {
    let cache = ChangesCache::default();
    let document = rendered(9, "line\n");
    #[rustfmt::skip]
    let cases = [
        (None,      9, true),
        (Some(0),   1, false),
        (Some(3),   4, false),
        (Some(8),   9, true),
        (Some(-1),  0, false),
        (Some(600), 9, true),
    ];
    for (secs, lines, says_cut) in cases {
        let span = secs.map(TimeDelta::seconds);
        for takes_gzip in [false, true] {
            let body = cache.body(&open(3_600), &document, span, takes_gzip).await;
            let bytes = body.pieces.concat();
            let mut text = String::new();
            match body.is_zipped {
                true => GzDecoder::new(&*bytes).read_to_string(&mut text).unwrap(),
                false => bytes.as_slice().read_to_string(&mut text).unwrap(),
            };
            assert_eq!(body.is_zipped, takes_gzip);
            assert!(text.starts_with("head\n") && text.ends_with("</weblogUpdates>\n"));
            assert_eq!(text.matches("line\n").count(), lines, "{secs:?}");
            assert_eq!(text.contains("<!--"), says_cut, "{secs:?}: {text}");
            assert_eq!(document.length(span), text.len());
        }
    }
}

#[tokio::test]
async fn the_texts_take_no_more_than_their_capacity() {
    let cache = ChangesCache::default();
    let document = rendered(1, &"x".repeat(MAX_BYTES / 2));
    for secs in 0..40 {
        cache.documents.insert(open(secs).key(), Entry::new(&document));
        assert!(cache.documents.bytes() <= CAPACITY_BYTES);
    }
    assert!(cache.documents.len() >= 8, "{}", cache.documents.len());
}

#[tokio::test]
async fn h11_a_long_document_is_served_while_the_next_is_rendered() {
    let folder = tempfile::tempdir().unwrap();
    let former = rendered(2_000, "");
    let store = store_with_changes(folder.path(), 8).await;
    let (cache, requested) = (Arc::<ChangesCache>::default(), open(300));
    cache.documents.insert(requested.key(), Entry::new(&former));
    let current = current_edition(&store, &requested).await.unwrap();
    while former.freshness(&current, Instant::now()) == Freshness::Fresh {
        sleep(Duration::from_millis(10)).await;
    }
    loop {
        let (edition, found) = cache.find(&store, &requested).await.unwrap();
        let found = found.expect("nobody waits");
        if !Arc::ptr_eq(&found, &former) {
            assert_eq!((edition.lines, edition.count), (found.edition.lines.clone(), 8));
            assert_eq!(String::from_utf8(found.pieces(None).concat()).unwrap().lines().count(), 11);
            break;
        }
        assert_eq!(edition, former.edition);
        sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn h11_a_document_is_cached_although_its_client_has_disconnected() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_with_changes(folder.path(), 1).await;
    let (cache, requested) = (Arc::<ChangesCache>::default(), open(300));
    assert!(cache.get_or_render(&store, &requested).now_or_never().is_none());
    let cached = async {
        while cache.documents.get(&requested.key()).is_none() {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(LONGEST_WAIT, cached).await.expect("the rendering went on");
}
