//! Tests: hosts and resources take turns, and no delivery begins twice or after its claim.

use std::time::Duration;

use super::super::concurrency_limit::HostResponse;
use super::super::test_subscriptions::{self, subscription};
use super::*;
use feedgate_core::account::AccountId;
use feedgate_core::record::Seq;
use feedgate_core::resource::ResourceId;
use feedgate_core::subscription::Subscription;
use feedgate_core::topic::Callback;

fn due(resource: i64, number: i64, host: &str) -> DueSubscription {
    let subscription = Subscription {
        id: SubscriptionId { resource: ResourceId(resource), number },
        callback: Callback::parse(format!("http://{host}/{number}")).unwrap(),
        ..subscription()
    };
    let (claim, owed, newest) = (ClaimToken(number), Seq(1), Seq(1));
    DueSubscription { claim, owed, newest, ..test_subscriptions::due(subscription) }
}

fn later() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

fn queues(per_host: usize) -> HostQueues {
    HostQueues::new(512, per_host, Arc::default())
}

fn accepted() -> Attempt {
    let took = Duration::from_millis(5);
    Attempt { response: HostResponse::Accepted, begun: Instant::now(), took }
}

#[test]
fn a_host_never_has_more_in_progress_than_its_limit() {
    let queues = queues(3);
    queues.add((0..16).map(|n| due(1, n, "a.test")).collect(), later());
    let started = queues.start(100);
    assert_eq!(started.len(), 1, "a part is left to other feeds");
    assert_eq!(queues.start(100).len(), 0);
    let mut delivered = 0;
    for (_, permit) in started {
        let mut next = permit.finish(&accepted());
        while let Some((_, permit)) = next {
            delivered += 1;
            next = permit.finish(&accepted());
        }
    }
    assert_eq!(delivered, 15, "each permit goes on with what waits");
}

#[test]
fn hosts_take_turns_and_so_do_resources() {
    let queues = queues(1);
    queues.add((0..10).map(|n| due(1, n, "a.test")).collect(), later());
    queues.add(vec![due(2, 10, "a.test"), due(3, 11, "b.test")], later());
    let started = queues.start(100);
    let numbers: Vec<_> = started.iter().map(|(due, _)| due.subscription.id.number).collect();
    assert_eq!(numbers, [0, 11], "one of each host");
    let (_, permit) = started.into_iter().next().unwrap();
    let (next, _permit) = permit.finish(&accepted()).unwrap();
    assert_eq!(next.subscription.id.resource, ResourceId(2), "the other resource");
}

#[test]
fn d16_accounts_take_turns_whatever_they_wait_for() {
    let queues = queues(1);
    let owned = |account, resource, number| {
        let mut due = due(resource, number, "a.test");
        due.subscription.account = Some(AccountId(account));
        due
    };
    // One account waits for many resources, the other for one.
    queues.add((0..10).map(|n| owned(1, n, n)).collect(), later());
    queues.add(vec![owned(2, 10, 10), due(11, 11, "a.test")], later());
    let mut started = queues.start(100);
    let mut numbers = Vec::new();
    while let Some((due, permit)) = started.pop() {
        numbers.push(due.subscription.id.number);
        started.extend(permit.finish(&accepted()));
    }
    assert_eq!(numbers[..4], [0, 10, 11, 1], "the other account, and those without one");
    assert_eq!(numbers.len(), 12);
}

#[test]
fn a_host_that_runs_low_is_claimed_for() {
    let queues = queues(32);
    let limits = queues.claim_limits().unwrap();
    assert_eq!((limits.limit, limits.busy.len()), (2_048, 0));
    queues.add((0..limits.per_host as i64).map(|n| due(1, n, "a.test")).collect(), later());
    assert_eq!(queues.claim_limits().unwrap().busy, ["a.test:80"], "it has enough");
    assert_eq!(queues.take_refills(16), []);
    let mut started = queues.start(100);
    assert_eq!(started.len(), 8);
    assert_eq!(queues.take_refills(16), [], "its speed is not known yet");
    let (_, first) = started.pop().unwrap();
    started.extend(first.finish(&accepted()));
    let refills = queues.take_refills(16);
    assert_eq!(refills.len(), 1, "a small part of its portion is left");
    assert!(refills[0].portion > limits.per_host, "it has responded quickly");
    assert_eq!(queues.claim_limits().unwrap().busy, ["a.test:80"], "it is being claimed for");
    queues.add_refill(&refills[0], vec![due(1, 99, "a.test")], later());
    while let Some((_, permit)) = started.pop() {
        started.extend(permit.finish(&accepted()));
    }
    let refills = queues.take_refills(16);
    assert_eq!(refills.len(), 1, "what was passed over while it was busy is looked for");
    queues.add_refill(&refills[0], Vec::new(), later());
    assert_eq!(queues.claim_limits().unwrap().busy.len(), 0);
}

#[test]
fn hosts_that_run_low_are_claimed_for_in_turn() {
    let queues = queues(32);
    let hosts = ["a.test", "b.test", "c.test"];
    for (resource, host) in (1..).zip(hosts) {
        let portion = (0..16).map(|n| due(resource, resource * 100 + n, host));
        queues.add(portion.collect(), later());
    }
    let started = queues.start(100);
    assert_eq!(started.len(), 24);
    // One of each host responds.
    let (ended, _running): (Vec<_>, Vec<_>) =
        started.into_iter().partition(|(due, _)| due.subscription.id.number % 100 == 0);
    let next = ended.into_iter().filter_map(|(_, permit)| permit.finish(&accepted()));
    let _next: Vec<_> = next.collect();
    let refills: Vec<Refill> = (0..3).flat_map(|_| queues.take_refills(1)).collect();
    let refilled: Vec<&str> = refills.iter().map(|refill| refill.host.as_str()).collect();
    assert_eq!(refilled, ["a.test:80", "b.test:80", "c.test:80"]);
}

/// Moves these deliveries to the slow lane.
fn turn_slow(started: &mut [(DueSubscription, DeliveryPermit)]) {
    for (_, permit) in started {
        permit.turn_slow();
    }
}

#[test]
fn e04_callbacks_that_hang_leave_the_host_to_others() {
    let queues = queues(32);
    queues.add((0..16).map(|n| due(1, n, "a.test")).collect(), later());
    let mut hanging = queues.start(100);
    assert_eq!(hanging.len(), 8);
    turn_slow(&mut hanging);
    assert_eq!(queues.start(100).len(), 0, "the others of their feed may hang too");
    let refill = queues.take_refills(16).pop().expect("what waits for them keeps no other waiting");
    queues.add_refill(
        &refill,
        (16..20).chain([99]).map(|n| due(1 + n / 99, n, "a.test")).collect(),
        later(),
    );
    let started = queues.start(100);
    let numbers: Vec<_> = started.iter().map(|(due, _)| due.subscription.id.number).collect();
    assert_eq!(numbers, [99], "the other feed");
}

#[test]
fn e04_a_callback_that_hung_waits_for_the_slow_lane() {
    let queues = queues(32);
    let hung =
        Attempt { response: HostResponse::TimedOut, took: Duration::from_secs(10), ..accepted() };
    queues.add((0..8).map(|n| due(1, n, "a.test")).collect(), later());
    for (n, (_, mut permit)) in queues.start(100).into_iter().enumerate() {
        if n == 0 {
            permit.finish(&accepted());
        } else {
            permit.turn_slow();
            permit.finish(&hung);
        }
    }
    queues.add((0..8).map(|n| due(1, n, "a.test")).collect(), later());
    let started = queues.start(100);
    let mut numbers: Vec<_> = started.iter().map(|(due, _)| due.subscription.id.number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers[0], 0, "the one that was quick");
    let permits = queues.queues().hosts["a.test:80"].limit.current();
    assert!(numbers.len() <= 1 + permits, "{numbers:?}");
}

#[test]
fn e05_thousands_of_slow_hosts_leave_half_to_others_and_are_not_all_kept_here() {
    let queues = HostQueues::new(16, 8, Arc::default());
    let slow = (0..100).map(|n| due(1, n, &format!("slow{n}.test")));
    queues.add(slow.collect(), later());
    let mut hanging = queues.start(100);
    assert_eq!(hanging.len(), 16);
    turn_slow(&mut hanging);
    assert_eq!(queues.start(100).len(), 0, "others may be as slow");
    assert!(queues.claim_limits().is_some(), "they keep nothing from being claimed");
    assert_eq!(queues.take_held_up().len(), 76, "most of them are claimed again later");
    let more = (100..200).map(|n| due(1, n, &format!("slow{n}.test")));
    queues.add(more.collect(), later());
    assert_eq!(queues.take_held_up().len(), 100, "and so are others");
    let mut owned = due(1, 500, "quick.test");
    owned.subscription.account = Some(AccountId(1));
    queues.add(vec![owned], later());
    let started = queues.start(100);
    assert_eq!(started.len(), 1);
    assert_eq!(started[0].0.subscription.id.number, 500);
    drop(started);
    drop(hanging);
    assert_eq!(queues.start(100).len(), 8, "those that wait here");
}

#[test]
fn a_host_is_not_forgotten_while_a_claim_for_it_is_in_progress() {
    let queues = queues(32);
    queues.add((0..16).map(|n| due(1, n, "a.test")).collect(), later());
    let mut started = queues.start(100);
    while let Some((_, permit)) = started.pop() {
        started.extend(permit.finish(&accepted()));
    }
    let refills = queues.take_refills(16);
    assert_eq!(refills.len(), 1);
    assert!(queues.queues().hosts["a.test:80"].limit.latency().is_some(), "its latency is known");
    queues.add_refill(&refills[0], Vec::new(), later());
    assert!(queues.queues().hosts.is_empty());
}

#[test]
fn a_delivery_is_not_begun_after_its_claim_has_expired_or_is_lost() {
    let queues = queues(32);
    let now = Instant::now();
    queues.add(vec![due(1, 0, "a.test")], now);
    assert_eq!(queues.start(100).len(), 0);
    queues.add(vec![due(1, 1, "a.test"), due(1, 2, "a.test")], now + Duration::from_secs(1));
    let claims = queues.claims();
    assert_eq!(claims.len(), 2);
    let held = HashSet::from([SubscriptionId { resource: ResourceId(1), number: 2 }]);
    queues.renew(&claims, &held, later());
    let started = queues.start(100);
    assert_eq!(started.len(), 1);
    assert_eq!(started[0].0.subscription.id.number, 2);
}

#[test]
fn a_host_that_waits_for_its_first_response_is_claimed_for_if_its_other_claims_are_lost() {
    let queues = queues(32);
    queues.add((0..16).map(|n| due(1, n, "a.test")).collect(), later());
    let _running = queues.start(100);
    assert_eq!(queues.take_refills(16), []);
    queues.renew(&queues.claims(), &HashSet::new(), later());
    assert_eq!(queues.take_refills(16).len(), 1);
}

#[test]
fn an_overloaded_host_whose_claims_were_lost_is_claimed_for_again() {
    let queues = queues(32);
    queues.add((0..16).map(|n| due(1, n, "a.test")).collect(), later());
    let started = queues.start(100);
    queues.renew(&queues.claims(), &HashSet::new(), later());
    queues.add(vec![due(2, 99, "b.test")], later());
    for (_, permit) in started {
        let overloaded = Attempt { response: HostResponse::Overloaded, ..accepted() };
        assert!(permit.finish(&overloaded).is_none(), "nothing is left to send");
    }
    assert_eq!(queues.claim_limits().unwrap().busy.len(), 0);
}

#[test]
fn what_has_not_begun_is_given_back_when_the_worker_stops() {
    let queues = queues(2);
    queues.add((0..5).map(|n| due(1, n, "a.test")).collect(), later());
    let started = queues.start(100);
    assert_eq!(queues.close().len(), 4);
    for (_, permit) in started {
        assert!(permit.finish(&accepted()).is_none());
    }
    assert_eq!(queues.start(100).len(), 0);
}
