//! Where a resource is, and whether its server can be believed, over days: rules P9, P20,
//! P22, P23 and P32. Time is handed in.

use chrono::{DateTime, TimeDelta, Utc};
use feedgate::net::Patience;
use feedgate_core::poll::Trigger;
use feedgate_core::resource::Resource;
use feedgate_core::store::DueResource;
use feedgate_core::topic::Topic;
use futures_util::future::join_all;

use super::{Bench, client, poller};
use crate::store::{on_both_stores, on_one_store};
use crate::support::feeds::rss;
use crate::support::origin::{Origin, Step, answer};
use crate::support::postgres::Database;

on_both_stores!(
    p20_a_permanent_redirect_is_followed_after_a_week,
    h03_the_rules_of_a_server_hold_for_what_redirects_lead_to,
);

on_one_store!(
    p09_a_server_that_says_not_modified_for_eight_days_is_asked_for_the_whole,
    a10_a_304_after_a_ping_is_checked_later_and_at_once_where_one_was_wrong_before,
    p20_a_portal_that_answers_for_everybody_moves_nothing,
    s06_an_address_that_was_followed_is_refused_once_it_is_not_allowed,
    p22_a_document_that_says_it_has_moved_is_as_good_as_a_redirect,
    p23_an_address_that_a_feed_gives_for_itself_is_told_and_not_followed,
    p32_while_most_servers_fail_alike_no_resource_is_blamed,
);

/// Polls `url` on that day, as the schedule would.
async fn poll_on(bench: &Bench, url: &str, day: i64) -> Resource {
    let now = DateTime::<Utc>::UNIX_EPOCH + TimeDelta::days(20_000 + day);
    poll_at(bench, url, now).await
}

async fn poll_at(bench: &Bench, url: &str, now: DateTime<Utc>) -> Resource {
    poll_for(bench, url, Trigger::Schedule, now).await
}

async fn poll_for(bench: &Bench, url: &str, trigger: Trigger, now: DateTime<Utc>) -> Resource {
    let resource = bench.store.ensure(&Topic::parse(url).unwrap(), now).await.unwrap();
    let until = now + TimeDelta::minutes(1);
    let claimed = bench.store.claim_resource(resource.id, now, until).await.unwrap().unwrap();
    let due = DueResource { trigger, ..claimed };
    bench.ingest.poll(&due, now, Patience::Background).await.unwrap();
    bench.store.get(due.resource.id).await.unwrap().unwrap()
}

/// What was asked for, `robots.txt` left out.
fn requests_to(origin: &Origin) -> Vec<String> {
    let request = origin.requests().into_iter().map(|request| request.target().to_owned());
    request.filter(|target| target != "/robots.txt").collect()
}

fn moved(to: &str) -> Step {
    answer("301 Moved Permanently", &[&format!("Location: {to}")], "")
}

async fn p09_a_server_that_says_not_modified_for_eight_days_is_asked_for_the_whole(
    database: Database,
) {
    let bench = Bench::start(&database).await;
    let origin = Origin::start().await;
    let fresh = |last| answer("200 OK", &["ETag: \"stuck\""], rss("tides", 1..=last));
    let same = || answer("304 Not Modified", &[], "");
    let steps = [fresh(1)].into_iter().chain((0..8).map(|_| same())).chain([fresh(2), same()]);
    origin.script("/feed", steps);
    let mut heads = Vec::new();
    for day in 0..=11 {
        heads.push(poll_on(&bench, &origin.url("/feed"), day).await.head.0);
    }
    assert_eq!(heads, [1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2]);
    let requests = origin.requests();
    let whole = requests.iter().filter(|request| request.target() == "/feed");
    let whole: Vec<_> = whole.map(|request| request.header("if-none-match").is_none()).collect();
    let unconditional: Vec<_> = (0..).zip(whole).filter(|(_, whole)| *whole).collect();
    assert_eq!(unconditional, [(0, true), (9, true)], "on the first day and on the ninth");
}

async fn a10_a_304_after_a_ping_is_checked_later_and_at_once_where_one_was_wrong_before(
    database: Database,
) {
    let bench = Bench::start(&database).await;
    let origin = Origin::start().await;
    let fresh = |last| answer("200 OK", &["ETag: \"always\""], rss("tides", 1..=last));
    let same = || answer("304 Not Modified", &[], "");
    let url = origin.url("/feed");
    let at = |day: i64, seconds: i64| {
        DateTime::<Utc>::UNIX_EPOCH + TimeDelta::days(20_000 + day) + TimeDelta::seconds(seconds)
    };
    let (planned, pinged) = (Trigger::Schedule, Trigger::Ping);
    // What is answered; the head after the poll, and which of its requests were unconditional.
    #[rustfmt::skip]
    let cases = [
        (planned, at(0, 0),     vec![fresh(1)],         1, vec![true]),
        (pinged,  at(1, 0),     vec![same()],           1, vec![false]),
        (planned, at(1, 10),    vec![fresh(1)],         1, vec![true]),
        (pinged,  at(1, 20),    vec![same()],           1, vec![false]),
        (pinged,  at(3, 0),     vec![same()],           1, vec![false]),
        (planned, at(3, 10),    vec![fresh(2)],         2, vec![true]),
        (pinged,  at(3, 20),    vec![same()],           2, vec![false]),
        (pinged,  at(5, 0),     vec![same(), fresh(3)], 3, vec![false, true]),
        (pinged,  at(5, 3_600), vec![same()],           3, vec![false]),
    ];
    origin.script("/feed", cases.iter().flat_map(|case| case.2.clone()));
    for (trigger, now, _, head, unconditional) in cases {
        let so_far = origin.requests().len();
        let resource = poll_for(&bench, &url, trigger, now).await;
        assert_eq!(resource.head.0, head, "{now}");
        let requests = origin.requests().split_off(so_far);
        let feed = requests.iter().filter(|request| request.target() == "/feed");
        let sent: Vec<_> = feed.map(|request| request.header("if-none-match").is_none()).collect();
        assert_eq!(sent, unconditional, "{now}");
        let is_recheck_due = resource.polling.is_recheck_due;
        assert_eq!(is_recheck_due, resource.next_fetch <= now + TimeDelta::seconds(10), "{now}");
    }
}

async fn p20_a_permanent_redirect_is_followed_after_a_week(database: Database) {
    let bench = Bench::start(&database).await;
    let origin = Origin::start().await;
    let feed = answer("200 OK", &["ETag: \"1\""], rss("tides", 1..=2));
    origin.script("/old", [feed.clone(), moved("/new")]);
    origin.script("/new", [feed, answer("304 Not Modified", &[], "")]);
    let old = origin.url("/old");
    let mut resource = poll_on(&bench, &old, 0).await;
    for day in [1, 3, 5, 7] {
        resource = poll_on(&bench, &old, day).await;
        assert_eq!(resource.fetch_url, old, "day {day}");
    }
    let before = resource.status.version;
    resource = poll_on(&bench, &old, 8).await;
    assert_eq!((resource.topic.as_str(), &resource.fetch_url), (old.as_str(), &origin.url("/new")));
    assert_eq!(resource.status.version, before + 1, "a move is a transition");
    assert!(resource.status.http_message.contains("moved permanently"), "{:?}", resource.status);
    let log = bench.store.moves(resource.id).await.unwrap();
    assert_eq!((log.len(), &log[0].from, &log[0].to), (1, &old, &origin.url("/new")));

    let so_far = requests_to(&origin).len();
    let resource = poll_on(&bench, &old, 9).await;
    assert_eq!(requests_to(&origin)[so_far..], ["/new"], "no detour any more (rule P21)");
    assert_eq!(origin.last().header("if-none-match"), Some("\"1\""));
    assert_eq!((resource.head.0, resource.status.http_code), (2, 304), "and nothing came twice");
}

/// The guard is applied when an address is used, not only when a redirect is followed.
async fn s06_an_address_that_was_followed_is_refused_once_it_is_not_allowed(database: Database) {
    let mut bench = Bench::start(&database).await;
    let origin = Origin::start().await;
    let feed = answer("200 OK", &[], rss("tides", 1..=2));
    origin.script("/old", [feed.clone(), moved("/new")]);
    origin.script("/new", [feed]);
    let old = origin.url("/old");
    for day in [0, 1, 3, 5, 7, 8] {
        poll_on(&bench, &old, day).await;
    }
    let so_far = origin.connections();

    bench.ingest = poller(&bench.store, client("192.0.2.0/24"));
    let resource = poll_on(&bench, &old, 9).await;
    assert_eq!(resource.fetch_url, origin.url("/new"));
    assert!(resource.status.http_message.contains("not public"), "{:?}", resource.status);
    assert_eq!(origin.connections(), so_far);
}

async fn p20_a_portal_that_answers_for_everybody_moves_nothing(database: Database) {
    let bench = Bench::start(&database).await;
    let origin = Origin::start().await;
    let feed = answer("200 OK", &[], rss("tides", 1..=2));
    origin.script("/feed", [feed, moved("/login")]);
    origin.script("/login", [answer("200 OK", &["Content-Type: text/html"], "<html><form>")]);
    let url = origin.url("/feed");
    for day in 0..=20 {
        let resource = poll_on(&bench, &url, day).await;
        assert_eq!(resource.fetch_url, url);
    }
    let other = answer("200 OK", &[], rss("another", 5..=9));
    origin.script("/login", [other]);
    for day in 21..=40 {
        let resource = poll_on(&bench, &url, day).await;
        assert_eq!((resource.fetch_url.as_str(), day), (url.as_str(), day), "another feed");
        if day == 21 {
            break;
        }
    }
}

async fn p22_a_document_that_says_it_has_moved_is_as_good_as_a_redirect(database: Database) {
    let bench = Bench::start(&database).await;
    let origin = Origin::start().await;
    let feed = answer("200 OK", &[], rss("tides", 1..=2));
    let place = format!("<redirect><newLocation>{}</newLocation></redirect>", origin.url("/new"));
    origin.script("/old", [feed.clone(), answer("200 OK", &[], place)]);
    origin.script("/new", [feed]);
    let old = origin.url("/old");
    let mut places = Vec::new();
    for day in [0, 1, 3, 5, 7, 8] {
        places.push(poll_on(&bench, &old, day).await.fetch_url == origin.url("/new"));
    }
    assert_eq!(places, [false, false, false, false, false, true]);
}

async fn p23_an_address_that_a_feed_gives_for_itself_is_told_and_not_followed(database: Database) {
    let bench = Bench::start(&database).await;
    let origin = Origin::start().await;
    let told = |head: &str| {
        let feed = format!(
            "<rss version='2.0' xmlns:itunes='http://www.itunes.com/dtds/podcast-1.0.dtd'
                  xmlns:atom='http://www.w3.org/2005/Atom'><channel><title>Tides</title>{head}
             <item><guid isPermaLink='false'>tag:a,2026:1</guid></item></channel></rss>"
        );
        answer("200 OK", &[], feed)
    };
    let own = format!("<atom:link rel='self' href='{}/'/>", origin.url("/feed"));
    let cases = [
        ("<atom:link rel='self' href='https://b.test/feed'/>", "https://b.test/feed"),
        ("<itunes:new-feed-url> https://c.test/feed </itunes:new-feed-url>", "https://c.test/feed"),
        (own.as_str(), ""),
    ];
    for (day, (head, want)) in (0..).zip(cases) {
        origin.script("/feed", [told(head)]);
        let resource = poll_on(&bench, &origin.url("/feed"), day).await;
        let message = &resource.status.http_message;
        let announced = message.split("announces another address: ").nth(1).unwrap_or_default();
        assert_eq!(announced, want, "{head}");
        assert_eq!(resource.fetch_url, origin.url("/feed"));
    }
}

async fn p32_while_most_servers_fail_alike_no_resource_is_blamed(database: Database) {
    let bench = Bench::start(&database).await;
    let now = DateTime::<Utc>::UNIX_EPOCH + TimeDelta::days(20_000);
    // A server of its own for each: none goes before all are there, or two would share a port.
    let servers = join_all((0..25).map(|_| Origin::start())).await;
    let urls: Vec<_> = servers.iter().map(|server| server.url("/feed")).collect();
    for (server, url) in servers.iter().zip(&urls) {
        server.script("/feed", [answer("200 OK", &[], rss("tides", 1..2))]);
        poll_at(&bench, url, now - TimeDelta::days(1)).await;
    }
    drop(servers);
    let mut polled = Vec::new();
    for url in &urls {
        polled.push(poll_at(&bench, url, now).await);
    }
    let blamed = polled.iter().filter(|resource| resource.polling.failures > 0).count();
    assert_eq!(blamed, 19, "until it is known");
    let last = polled.last().unwrap();
    assert_eq!((last.status.error.as_str(), last.polling.failing_since), ("", None));
    assert!(last.status.period_reason.contains("the network of this node"), "{:?}", last.status);
    for resource in &polled {
        let held = bench.store.get(resource.id).await.unwrap().unwrap();
        assert!(held.next_fetch <= now + TimeDelta::minutes(4), "it is asked again soon");
    }
    let origin = Origin::start().await;
    origin.script("/feed", [answer("500 Internal Server Error", &[], "")]);
    let ill = poll_at(&bench, &origin.url("/feed"), now).await;
    assert_eq!(ill.polling.failures, 1, "who answers is judged by the answer");
}

async fn h03_the_rules_of_a_server_hold_for_what_redirects_lead_to(database: Database) {
    let (bench, origin) = (Bench::start(&database).await, Origin::start().await);
    let target = &bench.publisher;
    target.put("/robots.txt", "text/plain", "User-agent: *\nDisallow: /closed\n");
    for path in ["/closed/page", "/open/page"] {
        target.put(path, "text/html", "<p>7</p>");
    }
    target.put_rss("/closed/feed", rss("tides", 1..2));
    for (path, error) in
        [("/closed/page", "robots_disallowed"), ("/open/page", ""), ("/closed/feed", "")]
    {
        let location = format!("Location: {}", target.url(path));
        origin.script(path, [answer("302 Found", &[&location], "")]);
        let found = poll_on(&bench, &origin.url(path), 0).await;
        assert_eq!(found.status.error, error, "{path}");
        assert_eq!(found.head.0, i64::from(error.is_empty()), "{path}");
    }
}
