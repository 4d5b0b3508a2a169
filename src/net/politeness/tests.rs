//! Tests of turns at hosts and addresses, in paused time.

use super::*;

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

async fn turn(hosts: &HostTurns, text: &str) -> HostTurn {
    hosts.turn(&url(text), Patience::Interactive).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn starts_at_one_host_are_spaced_and_others_do_not_wait() {
    let hosts = HostTurns::new(Duration::from_secs(1));
    let begun = Instant::now();
    for _ in 0..3 {
        drop(turn(&hosts, "http://a.test/x").await);
    }
    assert_eq!(begun.elapsed().as_secs(), 2);
    drop(turn(&hosts, "http://b.test/x").await);
    drop(turn(&hosts, "https://a.test/x").await);
    assert_eq!(begun.elapsed().as_secs(), 2);
}

#[tokio::test(start_paused = true)]
async fn f19_a_first_fetch_waits_for_no_pause_and_for_a_crowd_of_its_kind_only() {
    let hosts = HostTurns::new(Duration::from_secs(60));
    let first = || async { hosts.turn(&url("http://a.test/x"), Patience::FirstFetch).await };
    let begun = Instant::now();
    let _poll = turn(&hosts, "http://a.test/y").await;
    let mut turns = Vec::new();
    for _ in 0..FIRST_FETCHES {
        turns.push(first().await.unwrap());
    }
    assert_eq!(begun.elapsed(), Duration::ZERO, "neither the pause nor the poll delays them");
    let mut one_more = std::pin::pin!(first());
    assert!(futures_util::poll!(&mut one_more).is_pending());
    turns.pop();
    one_more.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn p41_hosts_at_one_address_are_fetched_from_a_few_at_a_time() {
    let hosts = HostTurns::new(Duration::ZERO);
    let host = |n: usize| format!("http://{n}.test/");
    for n in 0..=PER_ADDRESS {
        turn(&hosts, &host(n)).await.set_address(IpAddr::from([192, 0, 2, 1]));
    }
    let mut turns = Vec::new();
    for n in 0..PER_ADDRESS {
        turns.push(turn(&hosts, &host(n)).await);
    }
    let last = host(PER_ADDRESS);
    let mut one_more = std::pin::pin!(turn(&hosts, &last));
    assert!(futures_util::poll!(&mut one_more).is_pending());
    drop(turn(&hosts, "http://else.test/").await);
    turns.pop();
    one_more.await;
}

#[tokio::test(start_paused = true)]
async fn a_host_serves_one_at_a_time_in_the_order_of_arrival() {
    let hosts = Arc::new(HostTurns::new(Duration::ZERO));
    let first = turn(&hosts, "http://a.test/").await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut waiting = Vec::new();
    for n in 0..5 {
        let (hosts, order) = (Arc::clone(&hosts), Arc::clone(&order));
        waiting.push(tokio::spawn(async move {
            let _turn = turn(&hosts, "http://a.test./other").await;
            order.lock().unwrap().push(n);
        }));
        tokio::task::yield_now().await;
    }
    assert!(order.lock().unwrap().is_empty());
    drop(first);
    for task in waiting {
        task.await.unwrap();
    }
    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4]);
}

#[tokio::test(start_paused = true)]
async fn p41_a_poll_does_not_wait_long_for_a_busy_host() {
    let hosts = HostTurns::new(Duration::from_secs(1));
    let target = url("http://a.test/");
    let tarpit = turn(&hosts, "http://a.test/").await;
    let polls: Vec<_> = (0..64).map(|_| hosts.turn(&target, Patience::Background)).collect();
    let begun = Instant::now();
    let ends = futures_util::future::join_all(polls).await;
    assert_eq!(begun.elapsed(), BACKGROUND_WAIT);
    let mut retries: Vec<_> = ends.into_iter().map(|end| end.unwrap_err().retry_in).collect();
    retries.sort_unstable();
    retries.dedup();
    assert!(retries.len() >= 60, "they return one after the other: {retries:?}");
    drop(tarpit);
    hosts.turn(&target, Patience::Background).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn p41_few_wait_for_one_host_and_whoever_is_waited_for_still_can() {
    let hosts = HostTurns::new(Duration::ZERO);
    let target = url("http://a.test/");
    let held = turn(&hosts, "http://a.test/").await;
    let mut waiting: Vec<_> =
        (0..4).map(|_| Box::pin(hosts.turn(&target, Patience::Background))).collect();
    for poll in &mut waiting {
        assert!(futures_util::poll!(poll).is_pending());
    }
    let mut fifth = std::pin::pin!(hosts.turn(&target, Patience::Background));
    assert!(futures_util::poll!(&mut fifth).is_ready(), "it is turned away at once");
    let mut interactive = std::pin::pin!(hosts.turn(&target, Patience::Interactive));
    assert!(futures_util::poll!(&mut interactive).is_pending());
    drop(waiting);
    drop(held);
    assert!(interactive.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn p41_a_poll_does_not_wait_long_for_a_busy_address() {
    let hosts = HostTurns::new(Duration::ZERO);
    let host = |n: usize| url(&format!("http://{n}.test/"));
    for n in 0..100 {
        let mut turn = hosts.turn(&host(n), Patience::Background).await.unwrap();
        turn.set_address(IpAddr::from([192, 0, 2, 1]));
    }
    let mut held = Vec::new();
    for n in 0..PER_ADDRESS {
        held.push(hosts.turn(&host(n), Patience::Background).await.unwrap());
    }
    let begun = Instant::now();
    for n in PER_ADDRESS..100 {
        assert!(hosts.turn(&host(n), Patience::Background).await.is_err());
        if n == PER_ADDRESS {
            assert_eq!(begun.elapsed(), BACKGROUND_WAIT);
        }
    }
    held.pop();
    assert!(hosts.turn(&host(99), Patience::Background).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_is_too_long_is_known_before_it_is_waited_for() {
    let hosts = HostTurns::new(Duration::from_secs(60));
    let target = url("http://a.test/");
    drop(hosts.turn(&target, Patience::Background).await.unwrap());
    let begun = Instant::now();
    let busy = hosts.turn(&target, Patience::Background).await.unwrap_err();
    assert_eq!((busy.retry_in.as_secs(), begun.elapsed().as_secs()), (60, 0));
    hosts.turn(&target, Patience::Continued).await.unwrap();
    assert_eq!(begun.elapsed().as_secs(), 60, "a poll that has begun goes on");
}
