//! What still has to be verified.

use std::sync::LazyLock;

use feedgate_core::callback_headers::CallbackHeaders;
use feedgate_core::claim::ClaimToken;
use feedgate_core::intent::{DueIntent, Intent, IntentMode, VerifyToken};
use feedgate_core::query::EntryFilter;
use feedgate_core::registrant::{RegistrantNetwork, Requester};
use feedgate_core::signing::{Secret, SecretOverlap, SigningRequest};
use feedgate_core::store::{ClaimLimits, IntentFate};
use feedgate_core::subscription::Format;
use feedgate_protocol::Protocol;
use feedgate_protocol::signature::SignatureMethod;
use feedgate_store::Store;

use super::{at, few, listed, on_both_stores, request, topic};
use crate::support::postgres::Database;

on_both_stores!(
    an_intent_waits_until_it_is_ended,
    a_newer_intent_takes_the_place_of_an_older,
    p52_an_intent_for_a_page_takes_the_place_of_one_for_its_feed,
    one_wish_intended_many_times_at_once_is_one_intent,
    an_intent_that_was_replaced_settles_nothing,
    an_intent_is_settled_once,
    e01_what_became_of_an_intent_whose_claim_was_lost_is_known,
    f19_an_intent_that_is_released_is_due_without_an_attempt,
    s26_a_host_that_many_name_hides_no_other,
    s26_who_renews_is_not_counted_with_the_host,
    h01_what_waits_is_counted_by_the_network_of_strangers,
    h01_requesters_are_claimed_side_by_side_at_one_host,
);

fn intent(callback: &str) -> Intent {
    Intent::new(IntentMode::Subscribe, request("a", callback))
}

/// An intent that nobody has claimed.
fn unclaimed(id: i64, intent: &Intent) -> DueIntent {
    DueIntent { id, claim: ClaimToken::NONE, attempts: 0, intent: intent.clone() }
}

async fn an_intent_waits_until_it_is_ended(database: Database) {
    let store = database.open().await;
    let mut one = intent("https://one.test/");
    one.request.protocol = Protocol::Soap { procedure: "notify".to_owned() };
    one.request.signing = SigningRequest {
        secret: Secret::new("opensesame".to_owned()).ok(),
        method: Some(SignatureMethod::Sha512),
        overlap: SecretOverlap::from_secs(60),
        ..SigningRequest::default()
    };
    one.request.format = Format::Atom;
    one.request.headers = CallbackHeaders::parse("x-key: k3y", "Bearer t0ken").ok();
    one.request.is_sanitized = true;
    one.request.filter = EntryFilter::parse("laurel | hardy").ok();
    one.request.reading_list = Some("https://list.test/".to_owned());
    one.verify_token = VerifyToken::parse("token").ok();
    store.enqueue_intent(&one, at(1)).await.unwrap();
    store.enqueue_intent(&intent("https://two.test/"), at(2)).await.unwrap();
    assert_eq!(store.gauges(at(3)).await.unwrap().pending_verifications, 2);

    assert_eq!(store.claim_intents(at(0), at(9), &few(5)).await.unwrap(), [], "not due yet");
    let due = store.claim_intents(at(3), at(9), &few(1)).await.unwrap();
    assert_eq!((due.len(), &due[0].intent, due[0].attempts), (1, &one, 0));
    let other = store.claim_intents(at(3), at(9), &few(5)).await.unwrap();
    assert_eq!((other.len(), &other[0].intent), (1, &intent("https://two.test/")));
    store.end_intent(&other[0]).await.unwrap();

    // Its taker dies; the next one puts it off.
    assert_eq!(store.claim_intents(at(8), at(19), &few(5)).await.unwrap(), []);
    let due = {
        let again = store.claim_intents(at(9), at(19), &few(5)).await.unwrap();
        assert_eq!(again, [DueIntent { claim: again[0].claim, ..due[0].clone() }]);
        assert_ne!(again[0].claim, due[0].claim, "it is another claim");
        again
    };
    store.retry_intent(&due[0], at(60)).await.unwrap();
    assert_eq!(store.claim_intents(at(59), at(69), &few(5)).await.unwrap(), []);
    let again = store.claim_intents(at(60), at(70), &few(5)).await.unwrap();
    assert_eq!((again.len(), again[0].attempts), (1, 1));
    store.end_intent(&again[0]).await.unwrap();
    assert_eq!(store.claim_intents(at(999), at(1_000), &few(5)).await.unwrap(), []);
}

async fn f19_an_intent_that_is_released_is_due_without_an_attempt(database: Database) {
    let store = database.open().await;
    let one = intent("https://one.test/");
    let held = store.enqueue_claimed_intent(&one, at(1), at(20)).await.unwrap();
    assert_eq!(store.claim_intents(at(2), at(9), &few(1)).await.unwrap(), []);
    store.release_intent(&held, at(3)).await.unwrap();
    let due = store.claim_intents(at(3), at(9), &few(1)).await.unwrap();
    assert_eq!((due.len(), &due[0].intent, due[0].attempts), (1, &one, 0));
    store.release_intent(&held, at(99)).await.unwrap();
    store.end_intent(&due[0]).await.unwrap();
    assert_eq!(store.claim_intents(at(99), at(120), &few(1)).await.unwrap(), []);
}

async fn a_newer_intent_takes_the_place_of_an_older(database: Database) {
    let store = database.open().await;
    let older = intent("https://callback.test/");
    store.enqueue_intent(&older, at(1)).await.unwrap();
    let taken = store.claim_intents(at(2), at(9), &few(5)).await.unwrap();
    let newer = Intent { mode: IntentMode::Unsubscribe, ..older };
    store.enqueue_intent(&newer, at(3)).await.unwrap();
    // Whoever is still busy with the older one can neither end nor delay the newer.
    store.retry_intent(&taken[0], at(99)).await.unwrap();
    store.end_intent(&taken[0]).await.unwrap();
    let due = store.claim_intents(at(4), at(9), &few(5)).await.unwrap();
    assert_eq!((due.len(), &due[0].intent, due[0].attempts), (1, &newer, 0));
}

async fn p52_an_intent_for_a_page_takes_the_place_of_one_for_its_feed(database: Database) {
    let store = database.open().await;
    let page = intent("https://callback.test/");
    let address = page.request.topic.as_str().to_owned();
    let mut feed = page.clone();
    feed.request.topic = topic("feed").with_alias(Some(address));
    for (older, newer) in [(&feed, &page), (&page, &feed)] {
        store.enqueue_intent(older, at(1)).await.unwrap();
        store.enqueue_intent(newer, at(2)).await.unwrap();
        let due = store.claim_intents(at(3), at(9), &few(5)).await.unwrap();
        assert_eq!((due.len(), &due[0].intent), (1, newer));
        store.supersede(&older.request).await.unwrap();
        assert_eq!(store.gauges(at(4)).await.unwrap().pending_verifications, 0);
    }
}

async fn one_wish_intended_many_times_at_once_is_one_intent(database: Database) {
    let store = database.open().await;
    let intending = (0..20).map(|_| {
        let store = store.clone();
        tokio::spawn(async move {
            store.enqueue_intent(&intent("https://a.test/"), at(1)).await.unwrap()
        })
    });
    for done in futures_util::future::join_all(intending).await {
        done.unwrap();
    }
    assert_eq!(store.claim_intents(at(2), at(9), &few(50)).await.unwrap().len(), 1);
}

async fn an_intent_that_was_replaced_settles_nothing(database: Database) {
    let store = database.open().await;
    let subscribe = intent("https://callback.test/");
    let unsubscribe = Intent { mode: IntentMode::Unsubscribe, ..subscribe.clone() };

    // The older one asks to subscribe, and its callback is slow to agree.
    let older = store.enqueue_intent(&subscribe, at(1)).await.unwrap();
    let newer = store.enqueue_intent(&unsubscribe, at(2)).await.unwrap();
    assert!(store.complete_intent(&unclaimed(newer, &unsubscribe), at(3)).await.unwrap().is_some());
    assert!(store.complete_intent(&unclaimed(older, &subscribe), at(4)).await.unwrap().is_none());
    assert_eq!(listed(&store).await, []);

    // The other way round.
    let older = store.enqueue_intent(&unsubscribe, at(5)).await.unwrap();
    let newer = store.enqueue_intent(&subscribe, at(6)).await.unwrap();
    assert!(store.complete_intent(&unclaimed(newer, &subscribe), at(7)).await.unwrap().is_some());
    assert!(store.complete_intent(&unclaimed(older, &unsubscribe), at(8)).await.unwrap().is_none());
    assert_eq!(listed(&store).await.len(), 1);

    // What an account vouches for is done at once, and is newer than what waits.
    let waiting = store.enqueue_intent(&unsubscribe, at(9)).await.unwrap();
    store.supersede(&subscribe.request).await.unwrap();
    assert!(
        store.complete_intent(&unclaimed(waiting, &unsubscribe), at(10)).await.unwrap().is_none()
    );
    assert_eq!(listed(&store).await.len(), 1);
}

async fn an_intent_is_settled_once(database: Database) {
    let nodes = [database.open().await, database.open().await];
    let intent = intent("https://callback.test/");
    let id = nodes[0].enqueue_intent(&intent, at(1)).await.unwrap();
    let due = unclaimed(id, &intent);
    let settling = nodes.each_ref().map(|node| node.complete_intent(&due, at(2)));
    let settled = futures_util::future::join_all(settling).await;
    assert_eq!(
        settled.into_iter().filter(|settled| settled.as_ref().unwrap().is_some()).count(),
        1
    );
    assert_eq!(nodes[0].gauges(at(3)).await.unwrap().pending_verifications, 0);
}

/// Who requests an intent without an account from nowhere.
static UNKNOWN: LazyLock<Requester> =
    LazyLock::new(|| Requester::new(None, RegistrantNetwork::UNKNOWN));

/// The callbacks of what is claimed with this room.
async fn claimed(store: &Store, room: &ClaimLimits) -> Vec<String> {
    let due = store.claim_intents(at(500), at(999), room).await.unwrap();
    due.into_iter().map(|due| due.intent.request.callback.as_str().to_owned()).collect()
}

async fn s26_a_host_that_many_name_hides_no_other(database: Database) {
    let store = database.open().await;
    // One name, whatever the port.
    for n in 0..300 {
        store
            .enqueue_intent(&intent(&format!("https://victim.test:{}/", 1_000 + n)), at(n))
            .await
            .unwrap();
    }
    store.enqueue_intent(&intent("https://late.test/"), at(400)).await.unwrap();
    let room = ClaimLimits { limit: 9, per_host: 2, busy: Vec::new() };
    let first = ["https://victim.test:1000/", "https://victim.test:1001/", "https://late.test/"];
    assert_eq!(claimed(&store, &room).await, first);
    let busy = ClaimLimits { busy: vec![UNKNOWN.name_at("victim.test")], ..room };
    assert_eq!(claimed(&store, &busy).await, [""; 0]);
}

async fn s26_who_renews_is_not_counted_with_the_host(database: Database) {
    let store = database.open().await;
    let river = intent("https://river.test/");
    store.subscribe(&river.request, at(0)).await.unwrap();
    let mut other = river.clone();
    other.request.topic = super::topic("b");
    store.enqueue_intent(&other, at(1)).await.unwrap();
    store.enqueue_intent(&river, at(2)).await.unwrap();
    let busy = ClaimLimits { busy: vec![UNKNOWN.name_at("river.test")], ..few(9) };
    let due = store.claim_intents(at(3), at(9), &busy).await.unwrap();
    assert_eq!(due.into_iter().map(|due| due.intent).collect::<Vec<_>>(), [river]);
}

/// An intent of a client with this address.
fn intent_of(client: &str, callback: &str) -> Intent {
    let mut intent = intent(callback);
    intent.request.registrant = RegistrantNetwork::from_client(client.parse().ok());
    intent
}

async fn h01_what_waits_is_counted_by_the_network_of_strangers(database: Database) {
    let store = database.open().await;
    for n in 0..3 {
        let intent = intent_of("192.0.2.1", &format!("https://a.test/{n}"));
        store.enqueue_intent(&intent, at(1)).await.unwrap();
    }
    store.enqueue_intent(&intent("https://a.test/"), at(1)).await.unwrap();
    let waiting = async |client: &str, limit| {
        let network = RegistrantNetwork::from_client(client.parse().ok());
        store.waiting_intents(network, limit).await.unwrap()
    };
    assert_eq!(waiting("192.0.2.1", 9).await, 3);
    assert_eq!(waiting("192.0.2.1", 2).await, 2, "no more are counted");
    assert_eq!(waiting("192.0.2.2", 9).await, 0);
    for client in ["2001:db8:1:1::1", "2001:db8:1:2::1", "2001:db8:2::1"] {
        let intent = intent_of(client, &format!("https://{}.test/", client.len()));
        store.enqueue_intent(&intent, at(1)).await.unwrap();
    }
    store.close().await;
}

async fn h01_requesters_are_claimed_side_by_side_at_one_host(database: Database) {
    let store = database.open().await;
    for n in 0..5 {
        for client in ["192.0.2.1", "198.51.100.1"] {
            let intent = intent_of(client, &format!("https://a.test/{client}/{n}"));
            store.enqueue_intent(&intent, at(n)).await.unwrap();
        }
    }
    let busy = vec![intent_of("192.0.2.1", "https://a.test/").request.limited_name()];
    let limits = ClaimLimits { limit: 9, per_host: 2, busy };
    let due = store.claim_intents(at(9), at(20), &limits).await.unwrap();
    let clients: Vec<_> = due.iter().map(|due| due.intent.request.registrant).collect();
    let other = RegistrantNetwork::from_client("198.51.100.1".parse().ok());
    assert_eq!(clients, [other, other]);
    store.close().await;
}

async fn e01_what_became_of_an_intent_whose_claim_was_lost_is_known(database: Database) {
    let store = database.open().await;
    let one = intent("https://one.test/");
    let held = store.enqueue_claimed_intent(&one, at(1), at(2)).await.unwrap();
    let taken_over = store.claim_intents(at(3), at(9), &few(1)).await.unwrap().remove(0);
    assert_eq!(store.complete_intent(&held, at(3)).await.unwrap(), None);
    assert_eq!(store.intent_fate(&held).await.unwrap(), IntentFate::Waiting);
    assert!(store.complete_intent(&taken_over, at(4)).await.unwrap().is_some());
    assert_eq!(store.intent_fate(&held).await.unwrap(), IntentFate::Ended);
    store.enqueue_intent(&one, at(5)).await.unwrap();
    assert_eq!(store.intent_fate(&held).await.unwrap(), IntentFate::Replaced);
}
