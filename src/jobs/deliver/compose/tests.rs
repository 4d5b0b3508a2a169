//! Tests: what many subscriptions are owed is rendered once, and the bodies take bounded memory.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use feedgate_core::change_detection::{Candidate, FeedDocument};
use feedgate_core::host_groups::HostGroups;
use feedgate_core::page::PageLimits;
use feedgate_core::ping_forwarding::PingForwarding;
use feedgate_core::query::EntryFilter;
use feedgate_core::resource::ResourceId;
use feedgate_core::subscription::SubscriptionId;
use feedgate_core::topic::{Callback, Topic};
use futures_util::future::join_all;

use super::super::test_subscriptions::{self, subscription};
use super::*;

const TOPIC: &str = "https://tides.test/feed";

/// Returns a composer on a store with one resource.
pub(in crate::jobs::deliver) async fn composer(folder: &Path) -> (Arc<Composer>, ResourceId) {
    let settings = feedgate_store::StoreSettings {
        url: format!("sqlite:{}", folder.join("feedgate.db").display()),
        connections: 4,
        groups: HostGroups::new(Duration::ZERO),
        page_limits: PageLimits::default(),
        listed: Default::default(),
        forwarding: PingForwarding::default(),
        anonymous_bytes_per_day: 256 << 20,
        account_bytes_per_day: 32 << 30,
        cells: 1,
        secret_keys: Default::default(),
    };
    let store = feedgate_store::open(&settings).await.unwrap();
    let topic = Topic::parse(TOPIC).unwrap();
    let id = store.ensure(&topic, DateTime::UNIX_EPOCH).await.unwrap().id;
    let public_url = Url::parse("https://gateway.test/").unwrap();
    (Arc::new(Composer::new(store, public_url, AnonymousContents::Nothing)), id)
}

/// Returns a subscription that is owed the status in this version.
fn due(resource: ResourceId, number: i64, status: i64) -> DueSubscription {
    let subscription = Subscription {
        id: SubscriptionId { resource, number },
        topic: Topic::parse(TOPIC).unwrap(),
        callback: Callback::parse(format!("https://reader.test/{number}")).unwrap(),
        format: Format::Json,
        ..subscription()
    };
    DueSubscription { status, ..test_subscriptions::due(subscription) }
}

fn payload(content: OwedContent) -> Payload {
    match content {
        OwedContent::Payload(payload) => payload,
        OwedContent::Nothing(upto) => panic!("nothing is owed up to {upto:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_many_subscriptions_are_owed_at_the_same_time_is_rendered_once() {
    let folder = tempfile::tempdir().unwrap();
    let (composer, id) = composer(folder.path()).await;
    let deliveries = (0..512).map(|number| {
        let (composer, due) = (Arc::clone(&composer), due(id, number, 1 + number % 2));
        tokio::spawn(async move { payload(composer.compose(&due).await.unwrap()) })
    });
    let payloads: Vec<Payload> =
        join_all(deliveries).await.into_iter().map(Result::unwrap).collect();
    // Each rendering keeps its own memory while all are alive.
    let rendered: BTreeSet<_> = payloads.iter().map(|payload| payload.body.as_ptr()).collect();
    assert_eq!(rendered.len(), 2, "once for each version of the status");
    assert_eq!(composer.bodies.len(), 2);
}

#[tokio::test]
async fn what_is_missing_is_looked_for_again() {
    let folder = tempfile::tempdir().unwrap();
    let (composer, id) = composer(folder.path()).await;
    let mut raw = due(id, 1, 0);
    (raw.subscription.format, raw.owed) = (Format::Raw, Seq(1));
    let mut entries = raw.clone();
    entries.subscription.format = Format::Atom;
    let gone = due(ResourceId(id.0 + 1), 1, 1);
    for (due, stored) in [(&raw, 0), (&gone, 0), (&entries, 1)] {
        assert_eq!(composer.compose(due).await.unwrap(), OwedContent::Nothing(due.owed));
        assert_eq!(composer.bodies.len(), stored);
    }
}

/// Row S-14.
#[tokio::test]
async fn a_digest_says_that_it_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let (composer, id) = composer(folder.path()).await;
    let key = BodyKey::new(&DueSubscription { is_digest: true, ..due(id, 1, 1) }, false);
    let entry = Candidate::of_id("1", "<entry><id>1</id></entry>".to_owned());
    let document = FeedDocument { candidates: vec![entry], ..FeedDocument::default() };
    composer.store.push(id, document, DateTime::UNIX_EPOCH).await.unwrap();
    let marks = [(Format::Json, r#""digest":true"#), (Format::Atom, r#"superfeedr:digest="true""#)];
    for (format, mark) in marks {
        for is_digest in [true, false] {
            let key = BodyKey { format, is_digest, owed: Seq(1), ..key.clone() };
            let Composed::Payload(payload) = composer.composed(&key).await.unwrap() else {
                panic!("an entry is owed");
            };
            let body = String::from_utf8(payload.body.to_vec()).unwrap();
            assert_eq!(body.contains(mark), is_digest, "{body}");
        }
    }
}

/// Entries with these numbers, the oldest first, each of which says whether it is even.
fn numbered(numbers: std::ops::RangeInclusive<usize>) -> FeedDocument {
    let entry = |n: usize| {
        let word = if n.is_multiple_of(2) { "even" } else { "odd" };
        let atom = format!("<entry><id>{n}</id><title>{word} number {n}</title></entry>");
        Candidate::of_id(&n.to_string(), atom)
    };
    FeedDocument { candidates: numbers.map(entry).collect(), ..FeedDocument::default() }
}

#[tokio::test]
async fn q05_a_filter_leaves_out_entries_and_moves_behind_them() {
    let folder = tempfile::tempdir().unwrap();
    let (composer, id) = composer(folder.path()).await;
    composer.store.push(id, numbered(1..=250), DateTime::UNIX_EPOCH).await.unwrap();
    let owed = |after: i64, status: i64, filter: &str| {
        let mut due = DueSubscription { owed: Seq(250), ..due(id, 1, status) };
        due.subscription.filter = Some(EntryFilter::parse(filter).unwrap());
        due.subscription.cursor = Seq(after);
        due
    };
    let compose = async |due: DueSubscription| composer.compose(&due).await.unwrap();

    let even = payload(compose(owed(0, 0, "even")).await);
    assert_eq!((even.first, even.last, even.entries), (Seq(1), Seq(100), 50));
    let body = String::from_utf8(even.body.to_vec()).unwrap();
    assert!(body.contains("even number 100") && !body.contains("odd"), "{body}");
    let odd = payload(compose(owed(0, 0, "odd")).await);
    assert_eq!(odd.entries, 50, "a body of another filter is another one");

    // None of the first hundred matches, nor of the rest: each step compares a hundred.
    for (after, upto) in [(0, 100), (100, 200), (200, 250)] {
        assert_eq!(compose(owed(after, 0, "none")).await, OwedContent::Nothing(Seq(upto)));
    }
    let last = payload(compose(owed(200, 0, "249")).await);
    assert_eq!((last.first, last.last, last.entries), (Seq(201), Seq(250), 1));

    // A status is sent as before, and counts as sent up to where nothing matches.
    let status = payload(compose(owed(0, 1, "none")).await);
    assert!(status.is_status_only());
    assert_eq!(status.last, Seq(100));
}

#[tokio::test]
async fn the_bodies_take_no_more_than_their_capacity() {
    let folder = tempfile::tempdir().unwrap();
    let (composer, id) = composer(folder.path()).await;
    for number in 0..20 {
        let payload = Payload {
            content_type: "application/json".to_owned(),
            body: Bytes::from(vec![0; CAPACITY_BYTES / 6]),
            first: Seq(1),
            last: Seq(1),
            entries: 1,
            waiting_since: None,
            status: StatusInclusion::None,
            gap: None,
        };
        let key = BodyKey::new(&due(id, 1, number), true);
        composer.bodies.insert(key.clone(), Composed::Payload(payload));
        assert!(composer.bodies.bytes() <= CAPACITY_BYTES);
        assert!(composer.bodies.get(&key).is_some(), "the newest is there");
    }
    assert!(composer.bodies.len() >= 4);
}
