//! `/metrics` is what Prometheus expects, in both of its formats.

mod monitoring;

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

use http::header::{ACCEPT, CONTENT_TYPE};

use crate::support::server::client;
use crate::support::world::World;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A gateway in which something happened, so that its counters have labels.
async fn busy_world() -> World {
    let world = World::with_tides(2, &[]).await;
    let callback = world.subscriber.url("/cb");
    world.gateway.subscribe_superfeedr(&world.topic, &callback, "atom").await;
    world.gateway.measures("feedgate_subscriptions 1").await;
    world
}

/// The media type and the text of a scrape.
async fn scrape(world: &World, accept: &str) -> (String, String) {
    let request = client().get(world.gateway.url("/metrics")).header(ACCEPT, accept);
    let answer = request.send().await.unwrap();
    let content_type = answer.headers()[CONTENT_TYPE].to_str().unwrap().to_owned();
    (content_type, answer.text().await.unwrap())
}

/// The names of the families of a scrape, with their types.
fn families(text: &str) -> BTreeMap<&str, &str> {
    text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect()
}

#[tokio::test]
async fn the_format_is_the_one_that_is_asked_for() {
    let world = busy_world().await;
    let (content_type, text) = scrape(&world, "*/*").await;
    assert_eq!(content_type, PROMETHEUS);
    let plain = families(&text);
    assert_eq!(plain["feedgate_polls_total"], "counter");
    assert_eq!(plain["feedgate_build_info"], "gauge");
    assert!(!text.contains("# EOF") && !text.contains("# UNIT"), "{text}");

    let (content_type, text) =
        scrape(&world, "application/openmetrics-text;q=0.7, */*;q=0.1").await;
    assert_eq!(content_type, OPEN_METRICS);
    let open = families(&text);
    assert_eq!(open["feedgate_polls"], "counter");
    assert_eq!(open["feedgate_build"], "info");
    assert!(text.ends_with("\n# EOF\n") && text.matches("# EOF").count() == 1, "{text}");
    assert_eq!(open.len(), plain.len());
}

#[tokio::test]
async fn a_scrape_tells_of_the_process_the_database_and_the_queues() {
    let world = busy_world().await;
    let (_, text) = scrape(&world, "text/plain").await;
    let version = env!("CARGO_PKG_VERSION");
    for start in [
        "process_cpu_seconds_total ",
        "process_resident_memory_bytes ",
        "process_virtual_memory_bytes ",
        "process_open_fds ",
        "process_max_fds ",
        "process_start_time_seconds ",
        &format!("feedgate_build_info{{version=\"{version}\","),
        "feedgate_database_size_bytes ",
        "feedgate_oldest_due_seconds{queue=\"polls\"} ",
        "feedgate_oldest_due_seconds{queue=\"deliveries\"} ",
        "feedgate_oldest_due_seconds{queue=\"verifications\"} ",
        "feedgate_oldest_due_seconds{queue=\"forwarded_pings\"} ",
        "feedgate_store_transaction_seconds_count{engine=\"sqlite\",kind=\"read\"} ",
        "feedgate_store_transaction_seconds_count{engine=\"sqlite\",kind=\"write\"} ",
    ] {
        assert!(text.lines().any(|line| line.starts_with(start)), "{start} not in:\n{text}");
    }
}

#[tokio::test]
async fn promtool_finds_no_fault_in_a_scrape() {
    let world = busy_world().await;
    let (_, text) = scrape(&world, "text/plain").await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("metrics");
    fs::write(&file, &text).unwrap();
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]).stdin(Stdio::from(fs::File::open(&file).unwrap()));
    let checked = promtool.output().expect("promtool, which tests/run installs");
    let findings = [checked.stdout, checked.stderr].concat();
    let findings = String::from_utf8_lossy(&findings);
    assert!(checked.status.success() && findings.is_empty(), "{findings}\n{text}");
}
