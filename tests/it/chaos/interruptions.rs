//! Nodes that end or are suspended at the worst moments: in the middle of a pass over the crowd, and with
//! notifications in progress.
//!
//! What was lost then is found by `calm.rs`: nothing is published after it that would make it due again.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, sleep};

use super::Node;
use super::callbacks::Behaviour;
use super::cast::{ALL_FEEDS, Cast};
use super::crowd::Crowd;
use super::lives::{Life, Verb};
use super::origins::name;
use super::stalls::Stalls;
use crate::support::feeds::entry_id;
use crate::support::until;

/// How long the crowd takes to answer while nodes are stopped, and while they are killed.
const QUICK: Behaviour = Behaviour::Late(Duration::from_millis(100));
const QUICKER: Behaviour = Behaviour::Late(Duration::from_millis(20));
/// How long the crowd takes to answer while its subscriptions are paused in the middle of a pass: what waits is
/// sent more than a second later.
const WHILE_PAUSED: Duration = Duration::from_millis(1_200);
/// How long the crowd takes to answer while others wait for it: within the time limit of a delivery.
const HELD_UP: Duration = Duration::from_secs(2);
/// How long a node claims others meanwhile, and gives back what would wait for too many.
const CLAIMS: Duration = Duration::from_millis(1_500);
/// How long is waited for a moment at most; then it has passed, and nothing is interrupted.
const LONGEST: Duration = Duration::from_secs(8);
/// After this time no request is open to a callback that accepts at once.
const ANSWERED: Duration = Duration::from_secs(2);
/// How long a node is suspended: longer than its claims and its callback hosts are its own, and than others
/// wait for what it may be sending.
const SUSPENDED: Duration = Duration::from_secs(9);
/// How long after that everybody has everything: 5 s are promised, but some five processes share the cores of a
/// machine that may build at the same time.
const WITHIN: Duration = Duration::from_secs(10);

/// Between two looks at what was received.
const EVERY: Duration = Duration::from_millis(20);

pub(super) struct Interruptions<'a> {
    pub(super) cast: &'a Cast,
    pub(super) stalls: &'a Stalls,
}

impl Interruptions<'_> {
    /// Stops all nodes in the middle of a pass, lets them go on with it, and kills them in the middle of the
    /// next one: whoever takes over a claim begins with the first subscriber again.
    pub(super) async fn of_passes(&self, crowd: &Crowd<'_>, nodes: &mut [Node]) {
        crowd.set_behaviour(QUICK);
        let members = paths(crowd);
        let first = crowd.publish().await;
        if !crowd.receive(&first, (&members, members.len() / 4), LONGEST).await {
            return;
        }
        restart(nodes).await;
        let notified = crowd.have_received(&first);
        crowd.set_behaviour(QUICKER);
        let second = crowd.publish().await;
        let has_begun = crowd.receive(&second, (&notified, 1), LONGEST).await;
        crowd.set_behaviour(QUICK);
        if has_begun {
            self.kill(nodes).await;
        }
    }

    /// Restarts all nodes, which know nothing of callbacks then, and lets the crowd answer so late that most
    /// of it is given back for a while, in the middle of a pass.
    pub(super) async fn of_knowledge(&self, crowd: &Crowd<'_>, nodes: &mut [Node]) {
        restart(nodes).await;
        crowd.set_behaviour(Behaviour::Late(HELD_UP));
        let id = crowd.publish().await;
        crowd.receive(&id, (&paths(crowd), 1), LONGEST).await;
        sleep(CLAIMS).await;
        crowd.set_behaviour(Behaviour::Accepting);
    }

    /// Pauses all subscriptions of the crowd in the middle of a pass, while many wait that are claimed.
    pub(super) async fn of_subscriptions(&self, crowd: &mut Crowd<'_>) {
        crowd.set_behaviour(Behaviour::Late(WHILE_PAUSED));
        let id = crowd.publish().await;
        if crowd.receive(&id, (&paths(crowd), 1), LONGEST).await {
            crowd.change_all(Verb::Pause).await;
            sleep(WHILE_PAUSED * 3).await;
        }
        crowd.set_behaviour(Behaviour::Accepting);
        crowd.change_all(Verb::Resume).await;
    }

    /// Suspends a node while others are pinged, and checks that everybody who behaves has everything soon
    /// after it. No request of the node is open meanwhile, which would reach its time limit.
    pub(super) async fn by_suspension(&self, node: &Node, lives: &[&Life]) {
        // A feed that has failed may be left alone for a while.
        let begun = Instant::now();
        self.publish_everything().await;
        let mut watched = Vec::new();
        for life in lives {
            watched.extend(self.has_newest(life, || begun + LONGEST).await.then_some(*life));
        }
        sleep(ANSWERED).await;
        let since = Instant::now();
        node.gateway.suspend();
        let pings = (0..ALL_FEEDS).map(async |feed| {
            self.cast.origins.publish(feed);
            self.cast.ping(feed, feed).await;
        });
        tokio::join!(join_all(pings), sleep(SUSPENDED));
        node.gateway.resume();
        let resumed = Instant::now();
        self.cast.note_absence(since);
        self.publish_everything().await;
        let deadline = || resumed + WITHIN + self.stalls.between(resumed, Instant::now());
        let mut late = Vec::new();
        for life in &watched {
            late.extend((!self.has_newest(life, deadline).await).then_some(*life));
        }
        let trace = |life: &&Life| life.trace(&self.cast.callbacks.received(&life.path));
        assert!(
            late.is_empty(),
            "a_suspended_node_delays_nothing: {} of {} do not have the newest entry {:?} after it\n{}",
            late.len(),
            watched.len(),
            resumed.elapsed(),
            late.first().map(trace).unwrap_or_default()
        );
    }

    /// Waits until a callback has the newest entry of its feed. Returns whether it has it in time.
    async fn has_newest(&self, life: &Life, deadline: impl Fn() -> Instant) -> bool {
        let id = entry_id(&name(life.feed), self.cast.origins.count(life.feed));
        while !self.cast.callbacks.has_received(&life.path, &id) {
            if Instant::now() > deadline() {
                return false;
            }
            sleep(EVERY).await;
        }
        true
    }

    async fn publish_everything(&self) {
        join_all((0..ALL_FEEDS).map(async |feed| {
            self.cast.origins.publish(feed);
            until("a node accepts a ping", async || self.cast.ping(0, feed).await).await;
        }))
        .await;
    }

    async fn kill(&self, nodes: &mut [Node]) {
        let since = Instant::now();
        nodes.iter_mut().for_each(|node| node.gateway.kill());
        join_all(nodes.iter_mut().map(|node| node.gateway.restart_until_ready())).await;
        self.cast.note_absence(since);
    }
}

/// The paths of those who are to be notified.
fn paths<'a>(crowd: &'a Crowd<'_>) -> Vec<&'a str> {
    crowd.members().into_iter().map(|life| life.path.as_str()).collect()
}

/// Stops all nodes as an operator does, and starts them again.
async fn restart(nodes: &mut [Node]) {
    nodes.iter().for_each(|node| node.gateway.terminate());
    join_all(nodes.iter_mut().map(async |node| {
        node.gateway.ended().await;
        node.gateway.restart_until_ready().await;
    }))
    .await;
}
