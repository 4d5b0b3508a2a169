//! What is kept from one poll to the next, and what is not: validators, the topic, and the
//! time of the next fetch.

use feedgate::jobs::runner;
use feedgate_core::record::Seq;
use feedgate_core::subscription::Format;

use super::{Bench, room};
use crate::store::{on_both_stores, on_one_store};
use crate::support::feeds::rss;
use crate::support::origin::{Origin, Step, answer, head};
use crate::support::postgres::Database;

on_both_stores!(p45_a_restart_fetches_nothing_sooner);

on_one_store!(
    p06_validators_of_the_same_bytes_are_kept,
    p07_validators_are_kept_only_with_what_could_be_used,
    p21_the_topic_stays_what_it_is_wherever_it_is_fetched,
);

/// `If-None-Match` of all requests for `path`.
fn tags(origin: &Origin, path: &str) -> Vec<Option<String>> {
    let request = origin.requests().into_iter().filter(|request| request.target() == path);
    request.map(|request| request.header("if-none-match").map(str::to_owned)).collect()
}

fn tag(text: &str) -> Option<String> {
    Some(text.to_owned())
}

async fn p06_validators_of_the_same_bytes_are_kept(database: Database) {
    let bench = Bench::start(&database).await;
    let origin = Origin::start().await;
    let tagged = |tag: &str| answer("200 OK", &[&format!("ETag: {tag}")], rss("tides", 1..=2));
    origin.script("/feed", [tagged("\"1\""), tagged("\"2\""), tagged("\"3\"")]);
    for _ in 0..3 {
        assert_eq!(bench.poll_url(&origin.url("/feed")).await.head, Seq(2));
    }
    assert_eq!(tags(&origin, "/feed"), [None, tag("\"1\""), tag("\"2\"")]);
}

async fn p07_validators_are_kept_only_with_what_could_be_used(database: Database) {
    let bench = Bench::start(&database).await;
    let origin = Origin::start().await;
    let good =
        |tag: &str, last| answer("200 OK", &[&format!("ETag: {tag}")], rss("tides", 1..=last));
    let cut =
        [head("200 OK", &["ETag: \"2\"", "Content-Length: 9999"]), rss("tides", 1..=2).into()];
    let login = "<!doctype html><title>Log in</title><form></form>";
    origin.script(
        "/feed",
        [
            good("\"1\"", 1),
            Step::SendAndClose(cut.concat()),
            answer("200 OK", &["ETag: \"login\""], login),
            answer("500 Internal Server Error", &["ETag: \"trouble\""], ""),
            good("\"2\"", 2),
        ],
    );
    for head in [1, 1, 1, 1, 2] {
        assert_eq!(bench.poll_url(&origin.url("/feed")).await.head, Seq(head));
    }
    let request = tags(&origin, "/feed");
    assert_eq!(request[0], None);
    assert!(request[1..].iter().all(|sent| *sent == tag("\"1\"")), "{request:?}");
}

async fn p21_the_topic_stays_what_it_is_wherever_it_is_fetched(database: Database) {
    let bench = Bench::start(&database).await;
    let origin = Origin::start().await;
    origin.script("/topic", [answer("301 Moved Permanently", &["Location: /new"], "")]);
    origin.script("/new", [answer("200 OK", &["ETag: \"1\""], rss("tides", 1..=2))]);
    let topic = origin.url("/topic");
    for _ in 0..2 {
        let resource = bench.poll_url(&topic).await;
        assert_eq!(resource.topic.as_str(), topic);
        assert_eq!(resource.fetch_url, topic, "nor is one redirect a move (rule P20)");
        assert_eq!(resource.polling.validators.url, origin.url("/new"), "rule P4");
    }
}

async fn p45_a_restart_fetches_nothing_sooner(database: Database) {
    let bench = Bench::start(&database).await;
    bench.subscribe("/feed", Format::Atom).await;
    bench.publisher.put_rss("/feed", rss("tides", 1..=2));
    let next = bench.poll("/feed").await.next_fetch;
    bench.store.close().await;

    let store = database.open().await;
    let until = next + chrono::TimeDelta::seconds(60);
    for (now, want) in [(runner::now(), 0), (next - chrono::TimeDelta::seconds(1), 0), (next, 1)] {
        let due = store.claim_resources(now, until, &room()).await.unwrap();
        assert_eq!(due.len(), want, "{now}, of {next}");
    }
}
