//! What was measured, as a table that can be put into a document.

use std::time::Duration;

use super::megabytes;
use super::peer::Peer;

/// Prints speeds, and how many times as fast the first of `peers` is as each other. The
/// ratio of medians stands beside the ratio of the best rounds: where they differ, the
/// machine was busy.
pub(crate) fn print(peers: &[Peer], bytes: usize) {
    let Some(ours) = peers.first() else { return };
    println!("| | MB/s, best | median | entries | entries/s | feedgate is, best | median |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: |");
    for peer in peers {
        let per_second = |round: Duration| megabytes(bytes) / round.as_secs_f64();
        println!(
            "| {} | {:.1} | {:.1} | {} | {:.0} | {:.2}x | {:.2}x |",
            peer.name,
            per_second(peer.best()),
            per_second(peer.median()),
            peer.entries,
            f64::from(peer.entries) / peer.best().as_secs_f64(),
            peer.best().as_secs_f64() / ours.best().as_secs_f64(),
            peer.median().as_secs_f64() / ours.median().as_secs_f64(),
        );
    }
}
