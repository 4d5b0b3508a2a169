//! Tests: what is rendered and compressed, and how much memory the documents take.

use std::io::Read;

use flate2::read::GzDecoder;

use super::super::rendered::tests::rendered;
use super::*;

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
