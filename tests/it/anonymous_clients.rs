//! What those may ask who have no account, and what they are shown.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use feedgate::jobs::runner;
use feedgate_core::intent::{Intent, IntentMode};
use feedgate_core::subscription::SubscriptionRequest;
use feedgate_core::topic::{Callback, Topic};
use feedgate_protocol::Protocol;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};

use crate::support::feeds::rss;
use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;
use crate::support::server::{Server, client, say};
use crate::support::subscriber::Subscriber;
use crate::support::until;

/// Behind a proxy on this machine, which says whom it speaks for.
const PROXIED: (&str, &str) = ("FEEDGATE_TRUSTED_PROXIES", "127.0.0.1");
const ANONYMOUS: &str = "8.8.8.8";

async fn ask(gateway: &Gateway, path: &str, body: (&str, &str)) -> (StatusCode, String) {
    let (content_type, body) = body;
    let request = client().post(gateway.url(path)).header(CONTENT_TYPE, content_type);
    let request = request.header("x-forwarded-for", ANONYMOUS).body(body.to_owned());
    let answer = request.send().await.unwrap();
    let status = answer.status();
    let policy = answer.headers().get("ratelimit-policy").map(|value| value.to_str().unwrap());
    assert_eq!(policy, Some("\"anonymous\";q=1;w=60"), "{path}");
    assert!(answer.headers()["ratelimit"].to_str().unwrap().starts_with("\"anonymous\";r=0;t="));
    assert_eq!(answer.headers().contains_key(RETRY_AFTER), status.as_u16() == 429, "{path}");
    (status, answer.text().await.unwrap())
}

#[tokio::test]
async fn s26_one_address_can_ask_only_so_much_at_every_door() {
    let database = Database::new(Kind::Sqlite).await;
    let settings = [PROXIED, ("FEEDGATE_ANONYMOUS_REQUESTS_PER_MIN", "1")];
    let gateway = Gateway::start(&database, &settings).await;
    let form = "application/x-www-form-urlencoded";
    let (name, url) = ("<string>A</string>", "<string>http://a.test/</string>");
    let call = |method: &str, params: &[&str]| {
        let params: String =
            params.iter().map(|p| format!("<param><value>{p}</value></param>")).collect();
        format!(
            "<methodCall><methodName>{method}</methodName><params>{params}</params></methodCall>"
        )
    };
    let weblog = call("weblogUpdates.ping", &[name, url]);
    let first = ask(&gateway, "/RPC2", ("text/xml", &weblog)).await;
    assert!(first.1.contains("Thanks for the ping."), "{}", first.1);

    let cloud = call("rssCloud.ping", &[url]);
    let envelope = "<e:Envelope xmlns:e=\"http://schemas.xmlsoap.org/soap/envelope/\"><e:Body>\
                    <ping><url>http://a.test/</url></ping></e:Body></e:Envelope>";
    let publish = "hub.mode=publish&hub.url=http://a.test/";
    let subscribe = "hub.mode=subscribe&hub.topic=http://a.test/&hub.callback=http://b.test/";
    let register = "notifyProcedure=&port=80&path=/&protocol=http-post&url1=http://a.test/";
    #[rustfmt::skip]
    let cases = [
        ("/hub",                   form,       publish,          429, "Your address has sent too many requests"),
        ("/hub",                   form,       subscribe,        429, "Your address has sent too many requests"),
        ("/",                      form,       publish,          429, "Your address has sent too many requests"),
        ("/rsscloud/pleaseNotify", form,       register,         200, "<notifyResult success=\"false\" msg=\"Your"),
        ("/rsscloud/ping",         form,       "url=http://a.test/", 200, "<result success=\"false\" msg=\"Your"),
        ("/RPC2",                  "text/xml", cloud.as_str(),   200, "<fault>"),
        ("/RPC2",                  "text/xml", weblog.as_str(),  200, "<name>flerror</name><value><boolean>1</boolean>"),
        ("/RPC2",                  "text/xml", envelope,         500, "Your address has sent too many requests"),
        ("/pingSiteForm",          form,       "name=A&url=http://a.test/", 429, "Your address has sent too many requests"),
    ];
    for (path, content_type, body, status, words) in cases {
        let (got, text) = ask(&gateway, path, (content_type, body)).await;
        assert_eq!(got, status, "{path} {body}: {text}");
        assert!(text.contains(words), "{path} {body}: {text}");
    }
    // This machine is the operator's.
    let form = [("hub.mode", "publish"), ("hub.url", "http://a.test/")];
    for _ in 0..3 {
        assert_eq!(gateway.post("/hub", &form).await.0, StatusCode::NO_CONTENT);
    }
}

/// What stays of a request to `/hub` that is answered before it is verified.
fn intent(topic: &str, callback: &str) -> Intent {
    let request = SubscriptionRequest::new(
        Topic::parse(topic).unwrap(),
        Callback::parse(callback).unwrap(),
        Protocol::WebSub,
    );
    Intent::new(IntentMode::Subscribe, request)
}

#[tokio::test]
async fn s26_a_host_that_does_not_agree_is_not_asked_for_all_who_name_it() {
    let database = Database::new(Kind::Sqlite).await;
    let willing = Subscriber::start().await;
    let publisher = Publisher::start().await;
    publisher.put_rss("/feed", rss("tides", 1..2));
    let topic = publisher.url("/feed");
    let store = database.open().await;
    for n in 0..30 {
        // A name that nobody has, since what leads to this machine is not counted.
        let callback = format!("http://nowhere.invalid/{n}");
        store.enqueue_intent(&intent(&topic, &callback), runner::now()).await.unwrap();
    }
    store.close().await;
    let gateway = Gateway::start(&database, &[]).await;
    let failed = |n| {
        format!("feedgate_verifications_total{{mode=\"subscribe\",result=\"unreachable\"}} {n}")
    };
    gateway.measures(&failed(10)).await;
    // Nobody else waits for that.
    gateway.subscribe_websub(&topic, &willing.url("/cb"), &[]).await;
    gateway.measures(&failed(10)).await;
    gateway.measures("feedgate_pending_verifications 30").await;
}

/// Counts the verifications that failed at hosts that were contacted.
async fn failed_verifications(gateway: &Gateway) -> usize {
    let metrics = gateway.get("/metrics").await.1;
    let counts = metrics.lines().filter(|line| {
        line.starts_with("feedgate_verifications_total{") && !line.contains("result=\"ok\"")
    });
    counts.map(|line| line.rsplit(' ').next().unwrap().parse::<usize>().unwrap()).sum()
}

#[tokio::test]
async fn t03_hundreds_of_hosts_in_one_network_are_one_victim() {
    let database = Database::new(Kind::Sqlite).await;
    let willing = Subscriber::start().await;
    let publisher = Publisher::start().await;
    publisher.put_rss("/feed", rss("tides", 1..2));
    let topic = publisher.url("/feed");
    let store = database.open().await;
    for n in 1..=200 {
        // Public by its form, but IANA has allocated it to nobody.
        let callback = format!("http://[3100:db8:0:{n:x}::1]/");
        store.enqueue_intent(&intent(&topic, &callback), runner::now()).await.unwrap();
    }
    store.close().await;
    let gateway = Gateway::start(&database, &[("FEEDGATE_DELIVERY_TIMEOUT_S", "1")]).await;
    until("the permits of the network are used up", async || {
        failed_verifications(&gateway).await >= 40
    })
    .await;
    // Nobody else waits for that.
    gateway.subscribe_websub(&topic, &willing.url("/cb"), &[]).await;
    let failed = failed_verifications(&gateway).await;
    assert!(failed < 60, "{failed}");
    let (_, metrics) = gateway.get("/metrics").await;
    let pending = metrics.lines().find_map(|line| {
        line.strip_prefix("feedgate_pending_verifications ")?.parse::<usize>().ok()
    });
    assert!(pending.unwrap() + failed <= 200, "a host that never agreed is not contacted again");
}

#[tokio::test]
async fn f20_a_name_that_leads_to_this_machine_is_not_counted() {
    let (request, database) = (Arc::new(AtomicUsize::default()), Database::new(Kind::Sqlite).await);
    let counted = Arc::clone(&request);
    let refusing = Server::start(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { say(StatusCode::NOT_FOUND, "Who are you?") }
    })
    .await;
    let publisher = Publisher::start().await;
    publisher.put_rss("/feed", rss("tides", 1..2));
    let store = database.open().await;
    for n in 0..30 {
        let callback = format!("http://localhost:{}/{n}", refusing.port());
        let intent = intent(&publisher.url("/feed"), &callback);
        store.enqueue_intent(&intent, runner::now()).await.unwrap();
    }
    store.close().await;
    let networks = ("FEEDGATE_EGRESS_ALLOW_CALLBACK_CIDRS", "127.0.0.0/8,::1/128");
    let gateway = Gateway::start(&database, &[networks]).await;
    gateway.measures("feedgate_pending_verifications 0").await;
    assert_eq!(request.load(Ordering::SeqCst), 30);
}

#[tokio::test]
async fn s45_metrics_are_shown_to_the_operators_networks_only() {
    let database = Database::new(Kind::Sqlite).await;
    let metrics = |gateway: &Gateway, through: Option<&str>| {
        let request = client().get(gateway.url("/metrics"));
        let request = match through {
            Some(client) => request.header("x-forwarded-for", client),
            None => request,
        };
        async move { request.send().await.unwrap().status() }
    };
    let open = Gateway::start(&database, &[]).await;
    assert_eq!(metrics(&open, None).await, StatusCode::OK);
    let why = "a proxy that nobody told us of passes on what its client made up";
    assert_eq!(metrics(&open, Some("127.0.0.1")).await, StatusCode::FORBIDDEN, "{why}");
    let page = client().get(open.url("/metrics")).header("origin", "https://page.test");
    let why = "a browser here shows a page of somebody else";
    assert_eq!(page.send().await.unwrap().status(), StatusCode::FORBIDDEN, "{why}");
    drop(open);

    let proxied = Gateway::start(&database, &[PROXIED]).await;
    assert_eq!(metrics(&proxied, Some(ANONYMOUS)).await, StatusCode::FORBIDDEN);
    assert_eq!(metrics(&proxied, Some("10.1.2.3")).await, StatusCode::FORBIDDEN);
    drop(proxied);

    let listed = [PROXIED, ("FEEDGATE_METRICS_NETWORKS", "10.0.0.0/8")];
    let url = |gateway: &Gateway| gateway.url("/metrics");
    let closed = Gateway::start(&database, &listed).await;
    assert_eq!(metrics(&closed, Some("10.1.2.3")).await, StatusCode::OK);
    let answer = client().get(url(&closed)).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    assert!(answer.text().await.unwrap().contains("FEEDGATE_METRICS_NETWORKS"));
}

#[tokio::test]
async fn t11_cursors_that_are_made_up_cost_only_so_many_reads() {
    let database = Database::new(Kind::Sqlite).await;
    let settings = [PROXIED, ("FEEDGATE_ANONYMOUS_REQUESTS_PER_MIN", "1")];
    let gateway = Gateway::start(&database, &settings).await;
    let ask = async |query: &str, address: &str| {
        let url = gateway.url(&format!("/subscriptions.json{query}"));
        let answer = client().get(url).header("x-forwarded-for", address).send().await.unwrap();
        (answer.status(), answer.headers().contains_key(RETRY_AFTER))
    };
    let (read, refused) = ((StatusCode::OK, false), (StatusCode::TOO_MANY_REQUESTS, true));
    assert_eq!(ask("?after=7-1", ANONYMOUS).await, read);
    for query in ["?after=7-2", "?after=7-1&limit=9", "?limit=9"] {
        assert_eq!(ask(query, ANONYMOUS).await, refused, "{query}");
    }
    assert_eq!(ask("?after=7-1", ANONYMOUS).await, read, "no read is needed");
    assert_eq!(ask("", ANONYMOUS).await, read, "the first page is for everybody");
    assert_eq!(ask("?after=7-2", "1.1.1.1").await, read);
    assert_eq!(ask("?after=7-3", "127.0.0.1").await, read, "this machine has no limit");
    assert_eq!(ask("?after=7-4", "127.0.0.1").await, read, "this machine has no limit");
}

/// A page whose name leads to this machine is of this machine to the browser (DNS rebinding).
#[tokio::test]
async fn t11_metrics_are_not_shown_to_a_page_by_a_name_of_its_own() {
    let database = Database::new(Kind::Sqlite).await;
    let settings = [("FEEDGATE_PUBLIC_URL", "https://gateway.test/")];
    let gateway = Gateway::start(&database, &settings).await;
    let (url, port) =
        (gateway.url("/metrics"), gateway.url("").rsplit(':').next().unwrap().to_owned());
    let misdirected = StatusCode::MISDIRECTED_REQUEST;
    #[rustfmt::skip]
    let cases = [
        (format!("127.0.0.1:{}", port.trim_end_matches('/')), StatusCode::OK),
        ("localhost".to_owned(),           StatusCode::OK),
        ("[::1]:8080".to_owned(),          StatusCode::OK),
        ("gateway.test".to_owned(),        StatusCode::OK),
        ("page.test".to_owned(),           misdirected),
        ("127.0.0.1.page.test".to_owned(), misdirected),
    ];
    for (host, want) in cases {
        let answer = client().get(&url).header("host", &host).send().await.unwrap();
        assert_eq!(answer.status(), want, "{host}");
        if want == misdirected {
            assert!(answer.text().await.unwrap().contains("FEEDGATE_PUBLIC_URL"), "{host}");
        }
    }
    let page = client().get(gateway.url("/changes.xml")).header("host", "page.test");
    let answer = page.send().await.unwrap();
    assert_eq!(answer.headers()[CACHE_CONTROL], "public, max-age=60", "it sees what all see");
}

#[tokio::test]
async fn t11_the_log_names_no_inner_topic_to_strangers() {
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[PROXIED]).await;
    for topic in ["http://10.0.0.7/feed", "http://feeds.test/public"] {
        gateway.post("/ping", &[("url", topic)]).await;
    }
    let read = async |path: &str, is_anonymous: bool| {
        let mut request = client().get(gateway.url(path));
        if is_anonymous {
            request = request.header("x-forwarded-for", ANONYMOUS);
        }
        request.send().await.unwrap().text().await.unwrap()
    };
    until("both pings are in the log", async || {
        let log = read("/log.json", false).await;
        log.contains("10.0.0.7") && log.contains("feeds.test")
    })
    .await;
    for path in ["/log.json", "/viewLog"] {
        assert!(read(path, false).await.contains("10.0.0.7"), "{path}");
        let seen = read(path, true).await;
        assert!(seen.contains("feeds.test") && !seen.contains("10.0.0.7"), "{path}: {seen}");
    }
    let request = "/log.json?feed=http://10.&limit=1";
    let seen = read(request, true).await;
    assert!(seen.contains("\"events\":[]") && seen.contains("\"next\":null"), "{seen}");
    assert!(!read(request, false).await.contains("\"next\":null"));
}
