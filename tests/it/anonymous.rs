//! What callers without an account may do, and whom they make the gateway contact.

mod clients;
mod failed_verifications;
mod inner;
mod own_logs;
mod renewals;

use http::header::{CACHE_CONTROL, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{Method, StatusCode};

use crate::support::feeds::rss;
use crate::support::gateway::{Gateway, LOGIN, TOKEN};
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;
use crate::support::server::client;

/// Behind a proxy on this machine, which says whom it speaks for.
const PROXIED: (&str, &str) = ("FEEDGATE_TRUSTED_PROXIES", "127.0.0.1");
const ANONYMOUS: &str = "8.8.8.8";
const FORM: &str = "application/x-www-form-urlencoded";
const SYNC: (&str, &str) = ("hub.verify", "sync");

/// Who sends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caller {
    /// A program on this machine.
    Local,
    /// Somebody for whom the proxy speaks.
    Anonymous,
    /// The same, with the login of an account.
    Account,
}

async fn send(
    gateway: &Gateway,
    caller: Caller,
    (method, path): (Method, &str),
    (content_type, body): (&str, &str),
) -> reqwest::Response {
    let mut request = client().request(method, gateway.url(path)).body(body.to_owned());
    if !content_type.is_empty() {
        request = request.header(CONTENT_TYPE, content_type);
    }
    if caller != Caller::Local {
        request = request.header("x-forwarded-for", ANONYMOUS);
    }
    if caller == Caller::Account {
        request = request.basic_auth(LOGIN, Some(TOKEN));
    }
    request.send().await.unwrap()
}

async fn post(gateway: &Gateway, caller: Caller, path: &str, form: &[(&str, &str)]) -> String {
    let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
    let answer = send(gateway, caller, (Method::POST, path), (FORM, &body)).await;
    format!("{} {}", answer.status().as_u16(), answer.text().await.unwrap())
}

/// An XML-RPC call with these parameters.
fn call(method: &str, params: &[&str]) -> String {
    let params: String =
        params.iter().map(|param| format!("<param><value>{param}</value></param>")).collect();
    format!("<methodCall><methodName>{method}</methodName><params>{params}</params></methodCall>")
}

/// A request without credentials, and what closes it.
struct AnonymousRequest {
    /// The word of `FEEDGATE_ANONYMOUS` that permits the request.
    word: &'static str,
    method: Method,
    path: &'static str,
    content_type: &'static str,
    body: String,
    /// The status of the answer if the request is not permitted, and a part of its text.
    refusal: (u16, &'static str),
}

impl AnonymousRequest {
    async fn send(&self, gateway: &Gateway, caller: Caller) -> reqwest::Response {
        let target = (self.method.clone(), self.path);
        send(gateway, caller, target, (self.content_type, &self.body)).await
    }

    /// Whether this is the answer to a stranger who is not permitted. The event log quotes such
    /// answers, so that what is read tells it by the status code.
    fn is_refused(&self, status: StatusCode, text: &str) -> bool {
        match self.method {
            Method::GET => status.as_u16() == self.refusal.0,
            _ => text.contains("from accounts only"),
        }
    }

    /// Whether the answer never ends.
    fn is_endless(&self) -> bool {
        self.path == "/log/stream"
    }
}

/// One request of each kind that needs no account.
fn anonymous_requests(topic: &str) -> Vec<AnonymousRequest> {
    let site = "http://a.test/";
    let subscribe = format!("hub.mode=subscribe&hub.topic={topic}&hub.callback=http://b.test/");
    let register = format!("port=80&path=/&protocol=http-post&domain=b.test&url1={topic}");
    let publish = format!("hub.mode=publish&hub.url={site}");
    let cloud = call("rssCloud.ping", &[site]);
    let weblog = call("weblogUpdates.ping", &["A", site]);
    let notify = call("rssCloud.pleaseNotify", &["", "80", "/", "http-post", topic, "b.test"]);
    let envelope = "<e:Envelope xmlns:e=\"http://schemas.xmlsoap.org/soap/envelope/\"><e:Body>\
                    <ping><url>http://a.test/</url></ping></e:Body></e:Envelope>";
    let (get, sent) = (Method::GET, Method::POST);
    #[rustfmt::skip]
    let table: [(_, &Method, _, _, &str, _, _); 31] = [
        ("hub",      &sent, "/hub",                   FORM,       &subscribe,          403, "from accounts only"),
        ("hub",      &sent, "/websub",                FORM,       &subscribe,          403, "from accounts only"),
        ("pings",    &sent, "/hub",                   FORM,       &publish,            403, "from accounts only"),
        ("pings",    &sent, "/",                      FORM,       &publish,            403, "from accounts only"),
        ("rsscloud", &sent, "/rsscloud/pleaseNotify", FORM,       &register,           200, "<notifyResult success=\"false\" msg=\"This gateway accepts rssCloud"),
        ("rsscloud", &sent, "/cancel",                FORM,       &register,           200, "<cancelResult success=\"false\" msg=\"This gateway accepts rssCloud"),
        ("rsscloud", &sent, "/RPC2",                  "text/xml", &notify,             200, "<fault>"),
        ("pings",    &sent, "/ping",                  FORM,       "url=http://a.test/", 200, "<result success=\"false\" msg=\"This gateway accepts pings"),
        ("pings",    &sent, "/RPC2",                  "text/xml", &cloud,              200, "<fault>"),
        ("pings",    &sent, "/RPC2",                  "text/xml", &weblog,             200, "<name>flerror</name><value><boolean>1</boolean>"),
        ("pings",    &sent, "/RPC2",                  "text/xml", envelope,            500, "from accounts only"),
        ("pings",    &sent, "/pingSiteForm",          FORM,       "name=A&url=http://a.test/", 403, "from accounts only"),
        ("pings",    &get,  "/pingSiteForm?name=A&url=http://a.test/", "", "",         403, "from accounts only"),
        ("storage",  &get,  "/storage/tester/rss.xml", "",        "",                  401, "from accounts only"),
        ("views",    &get,  "/feeds.opml",            "",         "",                  401, "from accounts only"),
        ("views",    &get,  "/subscriptions.json",    "",         "",                  401, "from accounts only"),
        ("views",    &get,  "/stats.json",            "",         "",                  401, "from accounts only"),
        ("views",    &get,  "/stats",                 "",         "",                  401, "from accounts only"),
        ("views",    &get,  "/changes.xml",           "",         "",                  401, "from accounts only"),
        ("views",    &get,  "/shortChanges.xml",      "",         "",                  401, "from accounts only"),
        ("views",    &get,  "/2026/11/01/00.xml",     "",         "",                  401, "from accounts only"),
        ("views",    &get,  "/viewLog",               "",         "",                  401, "from accounts only"),
        ("views",    &get,  "/log.json",              "",         "",                  401, "from accounts only"),
        ("views",    &get,  "/log/stream",            "",         "",                  401, "from accounts only"),
        ("views",    &get,  "/feeds/1",               "",         "",                  401, "from accounts only"),
        ("views",    &get,  "/feeds/1/recent",        "",         "",                  401, "from accounts only"),
        ("views",    &get,  "/feeds/1/documents/1",   "",         "",                  401, "from accounts only"),
        ("views",    &get,  "/feeds?topic=http://a.test/", "",    "",                  401, "from accounts only"),
        ("views",    &get,  "/all/recent",            "",         "",                  401, "from accounts only"),
        ("views",    &get,  "/feed-health?url=http://a.test/", "", "",                 401, "from accounts only"),
        ("try",      &get,  "/try?url=http://a.test/", "",        "",                  404, "to accounts only"),
    ];
    let requests = table.map(|(word, method, path, content_type, body, status, words)| {
        let (method, body, refusal) = (method.clone(), body.to_owned(), (status, words));
        AnonymousRequest { word, method, path, content_type, body, refusal }
    });
    requests.into()
}

#[tokio::test]
async fn h05_what_is_closed_to_strangers_is_refused_in_each_protocol() {
    let database = Database::new(Kind::Sqlite).await;
    let publisher = Publisher::start().await;
    publisher.put_rss("/feed", rss("tides", 1..2));
    let gateway = Gateway::start(&database, &[PROXIED, ("FEEDGATE_ANONYMOUS", "none")]).await;
    for request in anonymous_requests(&publisher.url("/feed")) {
        let AnonymousRequest { path, body, refusal: (status, words), .. } = &request;
        for caller in [Caller::Anonymous, Caller::Local] {
            let answer = request.send(&gateway, caller).await;
            assert_eq!(answer.status().as_u16(), *status, "{path} {body}");
            let asks = answer.headers().contains_key(WWW_AUTHENTICATE);
            assert_eq!(asks, *status == 401, "{path}");
            let text = answer.text().await.unwrap();
            assert!(text.contains(words), "{path} {body}: {text}");
        }
        if request.is_endless() {
            continue;
        }
        let answer = request.send(&gateway, Caller::Account).await;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let text = answer.text().await.unwrap();
        assert!(!request.is_refused(status, &text), "{path} {body}: {status} {text}");
        let cached = headers.get(CACHE_CONTROL).and_then(|value| value.to_str().ok());
        assert!(!cached.unwrap_or_default().contains("public"), "{path}: {cached:?}");
    }
}

#[tokio::test]
async fn h05_each_kind_of_request_is_closed_by_its_own_word() {
    let database = Database::new(Kind::Sqlite).await;
    let publisher = Publisher::start().await;
    publisher.put_rss("/feed", rss("tides", 1..2));
    let requests = anonymous_requests(&publisher.url("/feed"));
    let all = ["hub", "rsscloud", "pings", "storage", "views", "try"];
    for closed in all {
        let open: Vec<_> = all.into_iter().filter(|word| *word != closed).collect();
        let open = open.join(",");
        let gateway = Gateway::start(&database, &[PROXIED, ("FEEDGATE_ANONYMOUS", &open)]).await;
        for request in requests.iter().filter(|request| !request.is_endless()) {
            let answer = request.send(&gateway, Caller::Anonymous).await;
            let (status, text) = (answer.status(), answer.text().await.unwrap());
            let is_closed = request.is_refused(status, &text);
            assert_eq!(is_closed, request.word == closed, "{closed} {}: {text}", request.path);
        }
    }
}
