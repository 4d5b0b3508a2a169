//! What was measured, as a table that can be put into a document.

use std::time::Duration;

use super::megabytes;
use super::peer::Peer;

/// Prints speeds, and how many times as fast the first two of `peers` are as each other one: all of
/// feedgate, and its parser alone. The ratio of medians stands beside the ratio of the best rounds: where
/// they differ, the machine was busy.
pub(crate) fn print(peers: &[Peer], bytes: usize) {
    let [whole, parsing, ..] = peers else { return };
    println!(
        "| | MB/s, best | median | entries | feedgate is, best | median | parsing is, best | median |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for peer in peers {
        let per_second = |round: Duration| megabytes(bytes) / round.as_secs_f64();
        let best = |ours: &Peer| peer.best().as_secs_f64() / ours.best().as_secs_f64();
        let median = |ours: &Peer| peer.median().as_secs_f64() / ours.median().as_secs_f64();
        println!(
            "| {} | {:.1} | {:.1} | {} | {:.2}x | {:.2}x | {:.2}x | {:.2}x |",
            peer.name,
            per_second(peer.best()),
            per_second(peer.median()),
            peer.entries,
            best(whole),
            median(whole),
            best(parsing),
            median(parsing),
        );
    }
}
