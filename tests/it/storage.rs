//! Feeds stored for their authors: saved by every protocol, served to anybody, announced.

use feedgate::jobs::runner;
use feedgate_core::password::{Password, PasswordHash};
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_MATCH, IF_MODIFIED_SINCE,
    IF_NONE_MATCH, LAST_MODIFIED, LOCATION, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::{Method, StatusCode};
use reqwest::RequestBuilder;

use crate::store::on_both_stores;
use crate::support::feeds::{between, rss};
use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::server::client;
use crate::support::subscriber::Subscriber;

on_both_stores!(what_is_saved_is_saved_though_it_cannot_be_pinged);

pub(crate) const PASSWORD: &str = "correct horse";

/// A gateway with the account `ada`, and what it stands on.
pub(crate) async fn start(settings: &[(&str, &str)]) -> (Gateway, Database) {
    let database = Database::new(Kind::Sqlite).await;
    (start_on(&database, settings).await, database)
}

async fn start_on(database: &Database, settings: &[(&str, &str)]) -> Gateway {
    let store = database.open().await;
    let hash = PasswordHash::from_password(&Password::chosen(PASSWORD).unwrap(), [7; 16]);
    assert!(store.create_account("ada", &hash, runner::now()).await.unwrap());
    store.close().await;
    Gateway::start(database, settings).await
}

fn put(gateway: &Gateway, path: &str, body: impl Into<reqwest::Body>) -> RequestBuilder {
    client().put(gateway.url(path)).basic_auth("ada", Some(PASSWORD)).body(body)
}

/// Calls a procedure with texts; what it answers.
async fn call(gateway: &Gateway, method: &str, params: &[&str]) -> String {
    let params: String = params
        .iter()
        .map(|param| format!("<param><value><![CDATA[{param}]]></value></param>"))
        .collect();
    let body = format!(
        "<methodCall><methodName>{method}</methodName><params>{params}</params></methodCall>"
    );
    let answer = client().post(gateway.url("/RPC2")).header(CONTENT_TYPE, "text/xml").body(body);
    answer.send().await.unwrap().text().await.unwrap()
}

#[tokio::test]
async fn a_feed_is_saved_served_and_removed_by_its_author() {
    let (gateway, _database) = start(&[]).await;
    let (path, feed) = ("/storage/ada/tides.xml", rss("tides", 1..3));
    assert_eq!(gateway.get(path).await.0, StatusCode::NOT_FOUND);

    let made = put(&gateway, path, feed.clone()).send().await.unwrap();
    assert_eq!(made.status(), StatusCode::CREATED);
    assert_eq!(made.headers()[LOCATION], gateway.url(path));
    let tag = made.headers()[ETAG].clone();
    assert_eq!(made.text().await.unwrap().trim(), gateway.url(path));

    let served = client().get(gateway.url(path)).send().await.unwrap();
    let headers = served.headers().clone();
    assert_eq!(headers[CONTENT_TYPE], "application/rss+xml; charset=utf-8");
    assert_eq!((&headers[ETAG], &headers[CACHE_CONTROL]), (&tag, &"no-cache".parse().unwrap()));
    assert_eq!(headers[CONTENT_SECURITY_POLICY], "default-src 'none'; sandbox", "rule S24");
    assert_eq!(headers[X_CONTENT_TYPE_OPTIONS], "nosniff");
    assert_eq!(served.text().await.unwrap(), feed, "to the byte");
    let head = client().request(Method::HEAD, gateway.url(path)).send().await.unwrap();
    assert_eq!((head.status(), head.headers()[ETAG].clone()), (StatusCode::OK, tag.clone()));
    for (name, value) in [(IF_NONE_MATCH, &tag), (IF_MODIFIED_SINCE, &headers[LAST_MODIFIED])] {
        let same = client().get(gateway.url(path)).header(&name, value).send().await.unwrap();
        assert_eq!(same.status(), StatusCode::NOT_MODIFIED, "{name}");
    }

    let again = put(&gateway, path, rss("tides", 1..4)).header(IF_MATCH, &tag);
    assert_eq!(again.send().await.unwrap().status(), StatusCode::OK);
    #[rustfmt::skip]
    let unmet: [(_, &[u8]); 4] =
        [(IF_MATCH, tag.as_bytes()), (IF_MATCH, b""), (IF_MATCH, b"\"\xff\""), (IF_NONE_MATCH, b"*")];
    for (name, value) in unmet {
        let stale = put(&gateway, path, feed.clone()).header(&name, value);
        assert_eq!(stale.send().await.unwrap().status(), StatusCode::PRECONDITION_FAILED);
    }
    assert!(gateway.get(path).await.1.contains("tides.test/3"), "the refused ones changed nothing");

    let remove = || client().delete(gateway.url(path)).basic_auth("ada", Some(PASSWORD));
    assert_eq!(remove().send().await.unwrap().status(), StatusCode::NO_CONTENT);
    assert_eq!(remove().send().await.unwrap().status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn s33_only_its_author_writes_and_nobody_learns_which_half_was_wrong() {
    let (gateway, _database) = start(&[]).await;
    let feed = rss("tides", 1..2);
    let url = gateway.url("/storage/ada/rss.xml");
    let mut told = Vec::new();
    for (login, password) in [("ada", "wrong horse"), ("eve", PASSWORD), ("", ""), ("ada", "")] {
        let refused =
            client().put(&url).basic_auth(login, Some(password)).body(feed.clone()).send().await;
        let refused = refused.unwrap();
        assert_eq!(refused.status(), StatusCode::UNAUTHORIZED, "{login}");
        assert!(refused.headers()[WWW_AUTHENTICATE].to_str().unwrap().starts_with("Basic "));
        told.push(refused.text().await.unwrap());
    }
    assert!(told.windows(2).all(|pair| pair[0] == pair[1]), "{told:?}");
    let nobody = client().put(&url).body(feed.clone()).send().await.unwrap();
    assert_eq!(nobody.status(), StatusCode::UNAUTHORIZED);

    // A token opens its own folder, and no other.
    let token = |path: &str| {
        client().put(gateway.url(path)).basic_auth("tester", Some("s3cret")).body(feed.clone())
    };
    let own = token("/storage/tester/rss.xml").send().await.unwrap();
    assert_eq!(own.status(), StatusCode::CREATED);
    let other = token("/storage/ada/rss.xml").send().await.unwrap();
    assert_eq!(other.status(), StatusCode::FORBIDDEN);
    for path in ["/storage/ada/..%2frss.xml", "/storage/ada/rss", "/storage/ada/a/b.xml"] {
        let nowhere = put(&gateway, path, feed.clone()).send().await.unwrap();
        assert_eq!(nowhere.status(), StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn what_cannot_be_kept_is_refused_with_its_reason() {
    let settings = [
        ("FEEDGATE_STORAGE_FILE_BYTES", "2000"),
        ("FEEDGATE_STORAGE_FILES", "2"),
        ("FEEDGATE_STORAGE_BYTES", "2000"),
    ];
    let (gateway, _database) = start(&settings).await;
    let feed = rss("tides", 1..2);
    let long = format!("{feed}<!--{}-->", " ".repeat(1_500));
    let whole = "<rss><channel>\n<title>x</link></channel></rss>";
    #[rustfmt::skip]
    let cases = [
        ("broken",   whole.to_owned(),          StatusCode::UNPROCESSABLE_ENTITY, "line 2, column 9: found \"</link>\""),
        ("no feed",  "<html/>".to_owned(),      StatusCode::UNPROCESSABLE_ENTITY, "not a root element of RSS"),
        ("too long", " ".repeat(2_001),         StatusCode::PAYLOAD_TOO_LARGE,    "longer than 2000 bytes"),
        ("a",        feed.clone(),              StatusCode::CREATED,              "/storage/ada/a.xml"),
        ("bytes",    long,                      StatusCode::INSUFFICIENT_STORAGE, "2 files with 2000 bytes"),
        ("b",        feed.clone(),              StatusCode::CREATED,              "/storage/ada/b.xml"),
        ("files",    feed,                      StatusCode::INSUFFICIENT_STORAGE, "2 files with 2000 bytes"),
    ];
    for (name, body, status, words) in cases {
        let path = format!("/storage/ada/{}.xml", name.replace(' ', "-"));
        let answer = put(&gateway, &path, body).send().await.unwrap();
        let (got, text) = (answer.status(), answer.text().await.unwrap());
        assert!(got == status && text.contains(words), "{name}: {got} {text}");
    }
}

#[tokio::test]
async fn save_rss_is_called_by_xml_rpc_and_soap_under_any_family_name() {
    let (gateway, _database) = start(&[]).await;
    let url = gateway.url("/storage/ada/rss.xml");
    let long = rss("tides", 1..1_500);
    assert!(long.len() > 100_000, "longer than other calls may be (rule S20)");
    let answer = call(&gateway, "rssCloud.saveRss", &["ada", PASSWORD, &long]).await;
    assert_eq!(between(&answer, "<string>", "</string>"), Some(url.as_str()), "{answer}");
    assert_eq!(gateway.fetch(&url).await.1, long);

    let latin = "<?xml version=\"1.0\" encoding=\"iso-8859-1\"?><rss><channel>é</channel></rss>";
    call(&gateway, "xmlStorageSystem.saveRss", &["ada", PASSWORD, latin]).await;
    assert_eq!(gateway.fetch(&url).await.1, latin.replace("iso-8859-1", "utf-8"));

    let envelope = |password: &str| {
        format!(
            "<E:Envelope xmlns:E='x'><E:Body><saveRss><username>ada</username>\
             <password>{password}</password><rsstext>&lt;rss>&lt;channel/>&lt;/rss></rsstext>\
             </saveRss></E:Body></E:Envelope>"
        )
    };
    let send = async |body: String| {
        let answer = client().post(gateway.url("/RPC2")).body(body).send().await.unwrap();
        (answer.status(), answer.text().await.unwrap())
    };
    let (status, answer) = send(envelope(PASSWORD)).await;
    assert!(status == StatusCode::OK && answer.contains(&url), "{answer}");
    assert_eq!(gateway.fetch(&url).await.1, "<rss><channel/></rss>");
    let (status, answer) = send(envelope("wrong horse")).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(answer.contains("the username or the password is wrong"), "{answer}");

    #[rustfmt::skip]
    let faults: [(&[&str], &str); 3] = [
        (&["ada", PASSWORD, "<rss>\n<channel>&nbsp;</channel></rss>"], "line 2, column 10"),
        (&["ada", "wrong horse", "<rss/>"],                            "the username or the password is wrong"),
        (&["ada", PASSWORD],                                           "there aren't enough parameters"),
    ];
    for (params, words) in faults {
        let answer = call(&gateway, "rssCloud.saveRss", params).await;
        assert!(answer.contains("<fault>") && answer.contains(words), "{answer}");
    }
    let other = format!("<methodCall><methodName>x</methodName>{}", " ".repeat(70_000));
    let (status, answer) = send(other).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    assert!(answer.contains("<fault>") && answer.contains("longer than 65536 bytes"), "{answer}");
}

#[tokio::test]
async fn who_watches_a_stored_feed_is_told_when_it_is_saved() {
    let (gateway, _database) = start(&[]).await;
    let subscriber = Subscriber::start().await;
    let url = gateway.url("/storage/ada/rss.xml");
    call(&gateway, "rssCloud.saveRss", &["ada", PASSWORD, &rss("tides", 1..3)]).await;
    gateway.subscribe_websub(&url, &subscriber.url("/cb"), &[]).await;
    gateway.subscribe_rsscloud("http-post", &url, &subscriber, "/river").await;
    let answer = call(&gateway, "rssCloud.saveRss", &["ada", PASSWORD, &rss("tides", 1..4)]).await;
    assert!(answer.contains(&url), "{answer}");
    subscriber
        .until("/cb", |told| told.iter().any(|told| told.text().contains("tides.test/3")))
        .await;
    subscriber.until("/river", |told| told.len() == 2).await;
    gateway.comes_to_rest().await;
}

async fn what_is_saved_is_saved_though_it_cannot_be_pinged(database: Database) {
    let gateway = start_on(&database, &[]).await;
    let (path, feed) = ("/storage/ada/rss.xml", rss("tides", 1..3));
    database.run("alter table changes rename to elsewhere").await;
    let saved = put(&gateway, path, feed.clone()).send().await.unwrap();
    assert_eq!(saved.status(), StatusCode::CREATED);
    let text = saved.text().await.unwrap();
    assert!(text.starts_with(&gateway.url(path)), "{text}");
    assert!(text.contains("could not be notified yet"), "{text}");
    assert_eq!(gateway.get(path).await.1, feed);
    let answer = call(&gateway, "rssCloud.saveRss", &["ada", PASSWORD, &rss("tides", 1..4)]).await;
    assert!(answer.contains(&gateway.url(path)) && !answer.contains("<fault>"), "{answer}");

    // Saved once more, it is told, though nothing has changed.
    database.run("alter table elsewhere rename to changes").await;
    let again = put(&gateway, path, rss("tides", 1..4)).send().await.unwrap();
    assert_eq!(again.status(), StatusCode::OK);
    assert_eq!(again.text().await.unwrap().trim(), gateway.url(path));
    let (_, changes) = gateway.get("/changes.xml").await;
    assert!(changes.contains(path), "{changes}");
    let gone = client().delete(gateway.url(path)).basic_auth("ada", Some(PASSWORD));
    database.run("alter table changes rename to elsewhere").await;
    assert_eq!(gone.send().await.unwrap().status(), StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn signing_in_does_not_keep_others_from_being_served() {
    let (gateway, _database) = start(&[]).await;
    let url = gateway.url("/storage/ada/rss.xml");
    let attempts = (0..40).map(|n| {
        let password = format!("guess number {n}");
        let attempt = client().put(&url).basic_auth("ada", Some(password)).body("<rss/>");
        async { attempt.send().await.unwrap().status() }
    });
    let guessing = futures_util::future::join_all(attempts);
    let served = async {
        for _ in 0..20 {
            assert_eq!(gateway.get("/livez").await.0, StatusCode::OK);
        }
    };
    let (statuses, ()) = futures_util::future::join(guessing, served).await;
    let expected = [StatusCode::UNAUTHORIZED, StatusCode::SERVICE_UNAVAILABLE];
    assert!(statuses.iter().all(|status| expected.contains(status)), "{statuses:?}");
}
