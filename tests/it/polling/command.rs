//! `feedgate poll`: the trace for people and for programs. It runs the program itself.

use std::process::{Command, Output};

use serde_json::Value;

use super::redirect;
use crate::support::origin::{Origin, answer};

const RSS: &str = "<rss version=\"2.0\"><channel><title>Tides</title>\
    <link>http://tides.test/</link><description>High and low</description><ttl>120</ttl>\
    <item><title>Spring \u{9b}31mtide</title><link>http://tides.test/1</link>\
    <pubDate>Sat, 07 Sep 2002 00:00:01 GMT</pubDate></item></channel></rss>";

/// Runs `feedgate poll` with loopback allowed, in a place without settings.
async fn poll(arguments: &[&str], environment: &[(&str, String)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_feedgate"));
    command.arg("poll").args(arguments).env_clear();
    command.env("FEEDGATE_EGRESS_ALLOW_TOPIC_CIDRS", "127.0.0.0/8");
    command.envs(environment.iter().map(|(name, value)| (*name, value)));
    // The origin answers on this thread, which must therefore not wait.
    tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[tokio::test]
async fn a_trace_tells_hops_entries_and_schedule_and_keeps_secrets() {
    let origin = Origin::start().await;
    origin.script("/old", [redirect("301 Moved Permanently", "/f")]);
    let headers = ["Set-Cookie: session=hidden", "X-Evil: \u{1b}[31mred"];
    origin.script("/f", [answer("200 OK", &headers, RSS)]);
    let url = origin.url("/old").replace("http://", "http://ann:hidden@");

    let told = text(&poll(&[&url], &[]).await);
    for want in [
        "301 Moved Permanently",
        "200 OK",
        "rss2.0",
        "\"Tides\"",
        "7200 s",
        "ttl",
        "permanently, to",
    ] {
        assert!(told.contains(want), "{want} is missing in:\n{told}");
    }
    assert!(!told.contains("hidden") && !told.contains("YW5u"), "a secret is in:\n{told}");
    let tame = |c: char| c == '\n' || !c.is_control();
    assert!(told.chars().all(tame), "a control character is in:\n{told:?}");
}

#[tokio::test]
async fn h20_what_servers_write_cannot_change_how_the_report_looks() {
    let origin = Origin::start().await;
    let body = RSS.replace("Tides", "Tides \u{202e}gpj.exe\u{2066}\u{feff}");
    for path in ["/f", "/missing\u{202e}"] {
        let headers = ["X-Evil: a\u{202e}b\u{2069}", "ETag: \"\u{200f}\""];
        origin.script("/f", [answer("200 OK", &headers, &body)]);
        for arguments in [&[][..], &["--json"]] {
            let url = origin.url(path);
            let output = poll(&[&[url.as_str()], arguments].concat(), &[]).await;
            let told = text(&output) + &String::from_utf8_lossy(&output.stderr);
            let hidden = |c: char| {
                matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
                    | '\u{2066}'..='\u{2069}' | '\u{feff}')
                    || (c.is_control() && c != '\n')
            };
            assert!(!told.chars().any(hidden), "{path} {arguments:?}: {told:?}");
        }
    }
}

/// Without what differs from one run to the next, numbers that measure and dates of the
/// schedule, and without what was mended, which `feedgate normalize --explain` is tested by.
fn settled(told: &str, port: &str) -> String {
    let mut settled = String::new();
    let is_about_faults = |line: &&str| line.starts_with("repaired") || line.starts_with("adapted");
    for line in told.replace(port, "PORT").lines().filter(|line| !is_about_faults(line)) {
        let is_time = |word: &str| word.ends_with('Z') || word.ends_with("Z:");
        let words: Vec<&str> = line.split(' ').collect();
        let words = words.iter().enumerate().map(|(n, word)| {
            let is_measured = words.get(n + 1).is_some_and(|unit| *unit == "ms");
            if is_measured || (line.starts_with("next ") && is_time(word)) { "…" } else { word }
        });
        settled.push_str(&words.collect::<Vec<_>>().join(" "));
        settled.push('\n');
    }
    settled
}

const EXPLAINED: &str = "\
GET http://127.0.0.1:PORT/f
  at 127.0.0.1
  > user-agent: feedgate/VERSION (+http://127.0.0.1:8080/bot)
  > accept: application/atom+xml, application/rss+xml;q=0.9, application/feed+json;q=0.9, application/rdf+xml;q=0.8, application/xml;q=0.7, text/xml;q=0.7, text/html;q=0.3, */*;q=0.1
  > accept-encoding: gzip, br, zstd, deflate
  < HTTP/1.1 200 OK after … ms
  < cache-control: max-age=600
  < etag: \"1\"
  < content-length: 401

body        401 bytes received, 401 decoded
begins      <rss version=\"2.0\" xmlns:sy=\"http://purl.org/rss/1.0/modules/syndication
validators  the ETag is sent with the next request, so that an unchanged body is not sent again
took        … ms
feed        rss2.0, 1 entries, titled \"Tides\"
notified    the first poll sends no notifications; later polls send the entries that are new since
entry       2002-09-07T00:00:01+00:00  Spring tide
hint        the headers declare it fresh for 600 s
hint        ttl requests 7200 s
hint        sy:updatePeriod requests 3600 s
hint        skipHours: 3 (GMT)
wanted      5.1 h: the resource publishes less than one entry a month
at least    24.0 h: no new entries for half a year
at least    60 s: the shortest period for this kind of resource
at least    5 min: the shortest period allowed by the operator
at least    10 min: the HTTP headers declare the document fresh for this long
at least    2.0 h: the ttl of the document requests it
at least    60 min: the sy:updatePeriod of the document requests it
period      86400 s (24.0 h): no new entries for half a year
next        between … and … the second poll is at a random time in the first period
";

#[tokio::test]
async fn every_decision_is_explained_in_words() {
    let origin = Origin::start().await;
    let hints = "<ttl>120</ttl><skipHours><hour>3</hour></skipHours>\
        <sy:updatePeriod>hourly</sy:updatePeriod>";
    let rss = RSS.replace("<ttl>120</ttl>", hints).replace("\u{9b}31m", "").replacen(
        "\"2.0\"",
        "\"2.0\" xmlns:sy=\"http://purl.org/rss/1.0/modules/syndication/\"",
        1,
    );
    origin.script("/f", [answer("200 OK", &["Cache-Control: max-age=600", "ETag: \"1\""], &rss)]);
    let url = origin.url("/f");
    let port = url.split([':', '/']).nth(4).unwrap();
    let told = text(&poll(&[&url], &[]).await);
    let told = settled(&told, port).replace(env!("CARGO_PKG_VERSION"), "VERSION");
    assert_eq!(told, EXPLAINED, "{told}");
}

#[tokio::test]
async fn programs_are_told_the_same_in_json() {
    let origin = Origin::start().await;
    origin.script("/f", [answer("200 OK", &["Cache-Control: max-age=60"], RSS)]);
    let output = poll(&["--json", &origin.url("/f")], &[]).await;
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["hops"][0]["status"], 200);
    assert_eq!(told["feed"]["format"], "rss2.0");
    assert_eq!(told["feed"]["entries"].as_array().unwrap().len(), 1);
    assert_eq!(told["schedule"]["hints"]["headers_s"], 60);
    assert_eq!(told["schedule"]["hints"]["ttl_s"], 7_200);
}

#[tokio::test]
async fn a_failed_fetch_ends_with_1_and_what_is_no_feed_does_not() {
    let origin = Origin::start().await;
    origin.script("/page", [answer("200 OK", &["Content-Type: text/html"], "<html><p>Hello")]);
    let page = poll(&[&origin.url("/page")], &[]).await;
    assert_eq!(page.status.code(), Some(0));
    assert!(text(&page).contains("none: "), "{}", text(&page));

    let missing = poll(&[&origin.url("/missing")], &[]).await;
    assert_eq!(missing.status.code(), Some(1));
    assert!(
        text(&missing).contains(": the last poll failed: the server does not have the resource\n"),
        "{}",
        text(&missing)
    );
    let closed = [("FEEDGATE_EGRESS_ALLOW_TOPIC_CIDRS", "10.0.0.0/8".to_owned())];
    let forbidden = poll(&[&origin.url("/page")], &closed).await;
    assert_eq!(forbidden.status.code(), Some(1));
    assert!(text(&forbidden).contains("forbidden_address"), "{}", text(&forbidden));
    let no_url = poll(&["notaurl"], &[]).await;
    assert!(text(&no_url).contains("bad_url"), "{}", text(&no_url));
    for hopeless in [forbidden, no_url] {
        let told = text(&hopeless);
        let hopeless = "no retry will help until the URL or the settings are corrected";
        assert!(told.contains(hopeless), "polling does not mend this:\n{told}");
    }
    let told = poll(&["--json", "notaurl"], &[]).await;
    let told: Value = serde_json::from_slice(&told.stdout).unwrap();
    assert!(told["schedule"].is_null(), "{told}");
}

#[tokio::test]
async fn p52_a_trace_shows_what_a_page_offers_and_the_part_that_is_asked_for() {
    let origin = Origin::start().await;
    let page = "<html><head><link rel=alternate type=application/rss+xml title=Tides href=/f></head>\
                <body><p class=x>High</p><p>Low";
    origin.script("/page", [answer("200 OK", &["Content-Type: text/html"], page)]);
    let told = text(&poll(&[&origin.url("/page")], &[]).await);
    let want = format!("offers      {}  application/rss+xml, Tides\n", origin.url("/f"));
    assert!(told.contains(&want), "{told}");
    let told = text(&poll(&[&origin.url("/page#.x")], &[]).await);
    assert!(told.contains("<p class=\"x\">High</p>\n"), "{told}");
    let told = text(&poll(&[&origin.url("/page#.y")], &[]).await);
    assert!(told.contains("none: nothing in an HTML page matches .y"), "{told}");
    let output = poll(&["--json", &origin.url("/page")], &[]).await;
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["feed"]["offers"][0]["href"], origin.url("/f"));
    assert!(
        origin.requests().iter().all(|request| request.target() == "/page"),
        "and asks for no more"
    );
}

#[tokio::test]
async fn s10_proxies_named_in_the_environment_are_not_used() {
    let (origin, proxy) = (Origin::start().await, Origin::start().await);
    origin.script("/f", [answer("200 OK", &[], RSS)]);
    let names = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"];
    let proxies: Vec<_> = names.iter().map(|name| (*name, proxy.url(""))).collect();
    let polled = poll(&[&origin.url("/f")], &proxies).await;
    assert!(polled.status.success(), "{}", text(&polled));
    assert_eq!((proxy.connections(), origin.requests().len()), (0, 1));
}
