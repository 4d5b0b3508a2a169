//! Changes that come in pairs: the second one while the first is delivered, or while its results are stored.
//!
//! Nothing is published after a pair until everybody has it, so that what was lost is not found by luck.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::sleep;

use super::callbacks::Behaviour;
use super::calm::Calm;
use super::cast::{ALL_FEEDS, CROWDED_FEED};
use crate::support::random::Random;

const PAIRS: usize = 12;
/// The longest time between two changes of a pair.
const LONGEST_PAUSE_MS: u64 = 20;
/// The longest time that a callback takes to answer meanwhile.
const LONGEST_ANSWER_MS: u64 = 100;

/// Publishes pairs of entries of all feeds but the crowded one, and waits each time until everybody has them
/// who answers well. Others fail, so that nothing is delivered to them after the second change.
pub(super) async fn are_delivered(calm: &Calm<'_>, random: &mut Random) {
    for _ in 0..PAIRS {
        for life in calm.lives.values() {
            let after = Duration::from_millis(random.below(LONGEST_ANSWER_MS));
            let choices = [Behaviour::Accepting, Behaviour::FailingLate(after)];
            calm.cast.callbacks.set(&life.path, *random.one_of(&choices));
        }
        let feeds = (0..ALL_FEEDS).filter(|feed| *feed != CROWDED_FEED);
        let pairs: Vec<_> = feeds.map(|feed| (feed, random.below(LONGEST_PAUSE_MS))).collect();
        join_all(pairs.into_iter().map(async |(feed, pause_ms)| {
            calm.cast.origins.publish(feed);
            calm.cast.ping(feed, feed).await;
            sleep(Duration::from_millis(pause_ms)).await;
            calm.cast.origins.publish(feed);
            calm.cast.ping(feed + 1, feed).await;
        }))
        .await;
        calm.nothing_is_lost().await;
        for life in calm.lives.values() {
            calm.cast.callbacks.set(&life.path, Behaviour::Accepting);
        }
        calm.retries_are_made_at_once().await;
    }
}
