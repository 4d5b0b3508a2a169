//! The tour of the README works as it is written: its shell blocks are run, in one
//! shell, against the real program.
//!
//! Only addresses are changed, because a test has no Internet: the feed and the callback
//! are on this machine, and the gateway is on a port that is free.

use std::path::Path;

use crate::support::feeds::rss;
use crate::support::ports::free_port;
use crate::support::publisher::Publisher;
use crate::support::shell;
use crate::support::subscriber::Subscriber;

#[tokio::test]
async fn the_tour_works_as_written() {
    let publisher = Publisher::start().await;
    let subscriber = Subscriber::start().await;
    publisher.put_rss("/feed.xml", rss("tides", 1..3));
    let gateway = format!("127.0.0.1:{}", free_port());
    let script = [
        ("127.0.0.1:8080", gateway.clone()),
        ("https://blog.rust-lang.org/feed.xml", publisher.url("/feed.xml")),
        ("https://example.com/callback", subscriber.url("/callback")),
        ("3000", free_port().to_string()),
    ]
    .iter()
    .fold(tour(), |script, (written, here)| {
        assert!(script.contains(written), "the tour no longer speaks of {written}");
        script.replace(written, here)
    });

    // The option of the tour allows this machine, and nothing else does.
    let script = format!("unset ${{!FEEDGATE_EGRESS_ALLOW_@}}\n{script}");
    // `m`, so that the shell can name its job as a person's shell does.
    let output = shell::run(&script, "-emuxo", &gateway).await;
    let printed = String::from_utf8_lossy(&output.stdout);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{printed}\n{told}", output.status);
    subscriber.verified("/callback", 1).await;
    assert!(printed.lines().any(
        |line| line.contains(" notified ") && line.ends_with("signed, webhook-signature valid")
    ));
    for sign in ["\"items\"", "<weblog ", "rel=\"via\"", "Item 2"] {
        assert!(printed.contains(sign), "nothing printed {sign}:\n{printed}\n{told}");
    }
}

/// The shell blocks of the README's tour, one after the other.
fn tour() -> String {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let text = std::fs::read_to_string(readme).unwrap();
    let (_, tour) = text.split_once("## A five-minute tour").unwrap();
    let (tour, _) = tour.split_once("\n## ").unwrap();
    let blocks = tour.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap());
    blocks.collect()
}
