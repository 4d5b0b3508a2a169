//! The limits with a clock of their own: those who never agree, and those who share an address.

use tokio::time::advance;

use feedgate_core::account::AccountId;
use feedgate_core::registrant::RegistrantNetwork;

use super::*;

/// Strangers in the network with this number.
fn anonymous(network: i64) -> Requester {
    Requester::new(None, RegistrantNetwork::from_number(-1 - (network << 8)))
}

fn account(number: i64) -> Requester {
    Requester::new(Some(AccountId(number)), RegistrantNetwork::UNKNOWN)
}

fn callback(url: &str) -> Callback {
    Callback::parse(url).unwrap()
}

/// A host whose name does not resolve.
fn host(url: &str) -> VerificationTarget {
    VerificationTarget::new(&callback(url), &[], anonymous(1))
}

fn host_at(url: &str, address: &str) -> VerificationTarget {
    VerificationTarget::new(&callback(url), &[address.parse().unwrap()], anonymous(1))
}

#[tokio::test(start_paused = true)]
async fn s26_who_never_agrees_is_asked_once_a_minute() {
    let hosts = VerificationLimits::new(Arc::default());
    let mut visits = 0;
    for minute in 0..60 {
        for port in 1_000..1_020 {
            let victim = host(&format!("https://victim.test:{port}/{minute}"));
            if let Some(visit) = hosts.try_visit(&victim) {
                visit.ends(false);
                visits += 1;
            }
        }
        advance(OF_HOST.back_in).await;
    }
    assert_eq!(visits, OF_HOST.permits + 59);
    assert!(hosts.try_visit(&host("https://other.test/")).is_some());
}

#[tokio::test(start_paused = true)]
async fn t03_hundreds_of_names_are_one_victim() {
    #[rustfmt::skip]
    let cases = [
        ("one address",     OF_ADDRESS, ["8.8.8.8",      "8.8.8.8"]),
        ("one network",     OF_NETWORK, ["8.8.8.",       "8.8.8."]),
        ("one IPv6 /48",    OF_NETWORK, ["2620:fe:0:1::", "2620:fe:0:2::"]),
    ];
    for (why, quota, prefixes) in cases {
        let hosts = VerificationLimits::new(Arc::default());
        let mut visits = 0;
        for second in 0..100 {
            for name in 0..600 {
                let prefix = prefixes[name % 2];
                let is_prefix = prefix.ends_with(['.', ':']);
                let end = if is_prefix { (name % 250).to_string() } else { String::new() };
                let url = format!("http://n{name}.test/{second}");
                let target = host_at(&url, &format!("{prefix}{end}"));
                if let Ok(visit) = hosts.visit_claimed(&target) {
                    assert!(!visit.may_repeat());
                    visits += 1;
                }
            }
            advance(Duration::from_secs(1)).await;
        }
        let back_in_time = 99 / quota.back_in.as_secs() as u32;
        assert_eq!(visits, quota.permits + back_in_time, "{why}");
        assert!(hosts.try_visit(&host_at("http://n.test/", "9.9.9.9")).is_some(), "{why}");
    }
}

#[tokio::test(start_paused = true)]
async fn t03_a_host_that_has_agreed_does_not_pay_for_its_neighbours() {
    let hosts = VerificationLimits::new(Arc::default());
    let shared = "8.8.8.8";
    let known = host_at("http://known.test/", shared);
    hosts.try_visit(&known).unwrap().ends(true);
    let other = |n: u32| host_at(&format!("http://n{n}.test/"), shared);
    for n in 0..OF_ADDRESS.permits {
        hosts.visit_claimed(&other(n)).unwrap().ends(false);
    }
    let unknown = host_at("http://unknown.test/", shared);
    assert_eq!(hosts.wait(&unknown).await.err(), Some(OF_ADDRESS.back_in));
    assert!(hosts.try_visit(&known).unwrap().may_repeat());
    let moved = VerificationTarget::new(
        &callback("http://known.test/"),
        &[shared.parse().unwrap(), "9.9.9.9".parse().unwrap()],
        anonymous(1),
    );
    assert!(hosts.try_visit(&moved).is_none(), "it has not agreed at its new address");
}

#[tokio::test(start_paused = true)]
async fn who_agrees_is_asked_as_often_as_there_is_something_to_ask() {
    let hosts = VerificationLimits::new(Arc::default());
    for n in 0..1_000 {
        let river = host_at(&format!("https://r{n}.river.test/"), "8.8.8.8");
        hosts.try_visit(&river).unwrap().ends(true);
    }
    assert!(hosts.state().known.is_empty(), "no failures are kept of it");
    assert!(hosts.busy().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_few_are_asked_at_once_and_the_others_wait() {
    let hosts = VerificationLimits::new(Arc::default());
    let river = host_at("https://river.test/", "8.8.8.8");
    let mut visits: Vec<VerificationPermit> =
        (0..OF_HOST.permits).map(|_| hosts.try_visit(&river).unwrap()).collect();
    assert_eq!(hosts.busy(), [anonymous(1).name_at("river.test")]);
    assert_eq!(hosts.wait(&river).await.err(), Some(PATIENCE), "nobody waits for ever");
    let waiting = tokio::spawn({
        let (hosts, river) = (hosts.clone(), river.clone());
        async move { hosts.wait(&river).await.is_ok() }
    });
    tokio::task::yield_now().await;
    visits.pop().unwrap().ends(true);
    assert!(waiting.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn f20_who_comes_after_too_many_failures_is_turned_away_at_once() {
    let hosts = VerificationLimits::new(Arc::default());
    let river = host("https://river.test/");
    for _ in 0..OF_HOST.permits {
        assert_eq!(hosts.retry_after(&river), None);
        hosts.try_visit(&river).unwrap().ends(false);
    }
    assert_eq!(hosts.retry_after(&river), Some(OF_HOST.back_in));
    let begun = Instant::now();
    assert_eq!(hosts.wait(&river).await.err(), Some(OF_HOST.back_in));
    assert_eq!(begun.elapsed(), Duration::ZERO);
    advance(OF_HOST.back_in).await;
    hosts.wait(&river).await.unwrap().ends(true);
}

#[tokio::test(start_paused = true)]
async fn only_so_many_hosts_are_remembered() {
    let hosts = VerificationLimits::new(Arc::default());
    for agrees in [true, false] {
        for n in 0..MOST + 10 {
            hosts.try_visit(&host(&format!("https://{agrees}{n}.test/"))).unwrap().ends(agrees);
        }
    }
    assert_eq!(hosts.state().known.len(), MOST);
    assert_eq!(hosts.state().agreed.len(), MOST);
}

#[tokio::test(start_paused = true)]
async fn h01_failures_of_some_keep_nobody_else_from_a_host() {
    let hosts = VerificationLimits::new(Arc::default());
    let at = |requester| {
        let found = ["8.8.8.8".parse().unwrap()];
        VerificationTarget::new(&callback("https://hooks.test/"), &found, requester)
    };
    while let Some(visit) = hosts.try_visit(&at(anonymous(1))) {
        visit.ends(false);
    }
    assert_eq!(hosts.retry_after(&at(anonymous(1))), Some(OF_HOST.back_in));
    assert_eq!(hosts.busy(), [anonymous(1).name_at("hooks.test")]);
    for other in [anonymous(2), account(1), account(2)] {
        assert_eq!(hosts.retry_after(&at(other)), None);
        hosts.try_visit(&at(other)).unwrap().ends(false);
        hosts.wait(&at(other)).await.err();
    }
    assert!(hosts.try_visit(&at(anonymous(2))).is_none(), "it has failed here itself");
    assert!(hosts.try_visit(&at(account(1))).is_some(), "it has permits of its own");
    assert!(hosts.try_visit(&at(Requester::GATEWAY)).is_some(), "and so has the gateway");
    advance(OF_HOST.back_in).await;
    hosts.try_visit(&at(anonymous(2))).unwrap().ends(true);
}

#[tokio::test(start_paused = true)]
async fn h01_an_account_that_fails_is_asked_for_once_a_minute() {
    let hosts = VerificationLimits::new(Arc::default());
    let target = VerificationTarget::new(&callback("https://hooks.test/"), &[], account(1));
    for _ in 0..OF_HOST.permits {
        hosts.try_visit(&target).unwrap().ends(false);
    }
    assert_eq!(hosts.retry_after(&target), Some(OF_HOST.back_in));
    assert_eq!(hosts.busy(), [account(1).name_at("hooks.test")]);
    advance(OF_HOST.back_in).await;
    assert_eq!(hosts.retry_after(&target), None);
}

#[tokio::test(start_paused = true)]
async fn h03_a_host_that_redirects_to_one_that_agrees_has_not_agreed() {
    let hosts = VerificationLimits::new(Arc::default());
    let redirecting = host("https://redirecting.test/");
    hosts.try_visit(&redirecting).unwrap().ends_elsewhere();
    assert!(hosts.state().known.is_empty() && hosts.state().agreed.is_empty());
    assert!(!hosts.try_visit(&redirecting).unwrap().may_repeat());
}

#[tokio::test(start_paused = true)]
async fn an_intent_that_waits_for_others_at_its_host_is_claimed_when_they_end() {
    let hosts = VerificationLimits::new(Arc::default());
    let at = |network| {
        VerificationTarget::new(&callback("https://hooks.test/"), &[], anonymous(network))
    };
    let visits: Vec<_> = (0..OF_HOST.permits).map(|_| hosts.try_visit(&at(1)).unwrap()).collect();
    let first = hosts.visit_claimed(&at(2)).unwrap();
    assert_eq!(hosts.visit_claimed(&at(2)).err(), Some(SOON));
    assert!(hosts.busy().contains(&anonymous(2).name_at("hooks.test")));
    drop((visits, first));
}
