//! What an account sees of its subscriptions, and what a program sees of an error.

use http::header::{CONTENT_TYPE, LINK};
use http::{Method, StatusCode};
use serde_json::Value;

use super::{BASIC, World};
use crate::store::on_both_stores;
use crate::support::PATIENCE;
use crate::support::gateway::Gateway;
use crate::support::postgres::Database;
use crate::support::server::client;
use crate::support::subscriber::Behavior;

impl World {
    /// The only subscription of the account, as it is listed.
    async fn listed(&self) -> Value {
        let mut list = self.ask(Method::GET, &[("hub.mode", "list")], &[]).await.json();
        assert_eq!(list.as_array().unwrap().len(), 1, "{list}");
        list[0]["subscription"].take()
    }

    /// Waits until the deliveries of the only subscription are in this state; the subscription.
    pub(super) async fn until_delivery_is(&self, state: &str) -> Value {
        let wait = async {
            loop {
                let listed = self.listed().await;
                if listed["delivery"]["state"] == state {
                    return listed;
                }
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("never {state}"))
    }
}

on_both_stores!(
    h12_a_search_compares_so_many_for_one_answer_and_says_where_it_continues,
    h12_what_an_account_reads_is_taken_from_its_own_requests,
);

/// A gateway whose account has so many subscriptions, with the callbacks `https://cb.test/0x` and so on.
async fn with_many(database: &Database, many: usize, settings: &[(&str, &str)]) -> Gateway {
    let gateway = Gateway::start(database, settings).await;
    database
        .run(&format!(
            "insert into resources (topic, fetch_url, host, kind, subscribers, next_fetch, due_at,
                                    measured_at)
             values ('https://feeds.test/a', '', '', 'feed', {many}, 9000000000000000,
                     9000000000000000, 9000000000000000);
             insert into resource_details (resource_id, status, polling)
             select id, '{{}}', '{{}}' from resources;
             with recursive n (n) as (select 0 union all select n + 1 from n where n + 1 < {many})
             insert into subscriptions (resource_id, account_id, callback, host, protocol,
                                        procedure, format, cursor, lease_until, created_at)
             select r.id, a.id, 'https://cb.test/' || n || 'x', 'cb.test:443', 'websub', '', 'atom', 0,
                    9000000000000000, 0
               from n cross join resources r cross join accounts a where a.login = 'tester'
              order by n"
        ))
        .await;
    gateway
}

/// The answer to a request of the account: its status, its header `Link` and its body.
async fn answer(url: &str) -> (StatusCode, Option<String>, Value) {
    let response = client().get(url).header("authorization", BASIC).send().await.unwrap();
    let (status, link) = (response.status(), response.headers().get(LINK).cloned());
    let body = serde_json::from_str(&response.text().await.unwrap()).unwrap_or_default();
    (status, link.map(|link| link.to_str().unwrap().to_owned()), body)
}

async fn h12_a_search_compares_so_many_for_one_answer_and_says_where_it_continues(
    database: Database,
) {
    const MANY: usize = 4_500;
    let gateway = with_many(&database, MANY, &[]).await;
    let search = "hub.mode=list&search%5Bendpoint%5D%5Binurl%5D=7x&by_page=500";
    for further in ["", "&detailed=true"] {
        let (mut url, mut found) = (gateway.url(&format!("/?{search}{further}")), Vec::new());
        let mut parts = 0;
        loop {
            let (status, link, mut body) = answer(&url).await;
            assert_eq!(status, StatusCode::OK, "{body}");
            parts += 1;
            let next = link.map(|link| link[1..].split('>').next().unwrap().to_owned());
            if !further.is_empty() {
                assert_eq!(body["meta"]["next"].as_str(), next.as_deref());
                body = body["subscriptions"].take();
            }
            let endpoint =
                |one: &Value| one["subscription"]["endpoint"].as_str().unwrap().to_owned();
            found.extend(body.as_array().unwrap().iter().map(endpoint));
            let Some(next) = next else { break };
            assert!(next.contains("skip=") && !next.contains("s3cret"), "{next}");
            url = next;
        }
        let want = (0..MANY).filter(|n| n % 10 == 7).map(|n| format!("https://cb.test/{n}x"));
        assert_eq!(found, want.collect::<Vec<_>>());
        assert_eq!(parts, 3, "2,000 are compared for one answer");
    }
    let (_, link, all) = answer(&gateway.url("/?hub.mode=list&page=451&by_page=10")).await;
    assert_eq!((link, all.as_array().map(Vec::len)), (None, Some(0)));
    let (_, _, last) = answer(&gateway.url("/?hub.mode=list&page=450&by_page=10")).await;
    assert_eq!(last[9]["subscription"]["endpoint"], "https://cb.test/4499x");
}

async fn h12_what_an_account_reads_is_taken_from_its_own_requests(database: Database) {
    let settings = [("FEEDGATE_ACCOUNT_REQUESTS_PER_MIN", "500")];
    let gateway = with_many(&database, 2_500, &settings).await;
    let search = gateway.url("/?hub.mode=list&search=nothing");
    // Each compares 2,000 subscriptions, which counts as some 240 requests.
    let (first, _, body) = answer(&search).await;
    assert_eq!((first, body.as_array().map(Vec::len)), (StatusCode::OK, Some(0)));
    assert_eq!(answer(&search).await.0, StatusCode::OK);
    assert_eq!(answer(&search).await.0, StatusCode::TOO_MANY_REQUESTS);
    let (status, ..) = answer(&gateway.url("/?hub.mode=list")).await;
    assert_eq!(status, StatusCode::OK, "a page of twenty is one request");
}

/// The parameters of a request.
type Query<'a> = &'a [(&'a str, &'a str)];

#[tokio::test]
async fn f15_a_listed_subscription_shows_how_its_deliveries_fare() {
    let world = World::subscribed("atom").await;
    let fresh = world.listed().await;
    let delivery = &fresh["delivery"];
    assert_eq!(delivery["state"], "ok");
    assert_eq!((&delivery["cursor"], &delivery["lag"]), (&3.into(), &0.into()));
    for unknown in ["failingSince", "lastAttempt", "nextAttempt"] {
        assert!(delivery.get(unknown).is_some_and(Value::is_null), "{unknown}: {delivery}");
    }
    let (created, lease) = (fresh["created"].as_i64(), fresh["leaseUntil"].as_i64());
    assert_eq!(lease.unwrap() - created.unwrap(), 315_359_999);

    world.subscriber.set("/cb", Behavior::Failing(503));
    world.put_tides(4);
    world.gateway.post("/", &[("hub.mode", "publish"), ("hub.url", &world.topic)]).await;
    let failing = world.until_delivery_is("failing").await["delivery"].take();
    assert_eq!((&failing["failures"], &failing["lag"]), (&1.into(), &1.into()));
    let attempt = &failing["lastAttempt"];
    assert_eq!(attempt["status"], 503);
    assert!(attempt["excerpt"].is_string(), "{attempt}");
    assert!(failing["failingSince"].as_i64() <= attempt["at"].as_i64(), "{failing}");
    assert!(failing["nextAttempt"].as_i64() > attempt["at"].as_i64(), "{failing}");

    world.subscriber.set("/cb", Behavior::Accepting);
    let form = [
        ("hub.mode", "replay"),
        ("hub.topic", world.topic.as_str()),
        ("hub.callback", &world.subscriber.url("/cb")),
    ];
    assert_eq!(world.gateway.superfeedr(&form).await.0, StatusCode::NO_CONTENT);
    let well = world.until_delivery_is("ok").await["delivery"].take();
    assert_eq!((&well["cursor"], &well["lag"]), (&4.into(), &0.into()));
    assert_eq!(well["lastAttempt"]["status"], 200);
    assert!(well["failingSince"].is_null() && well["nextAttempt"].is_null(), "{well}");
}

/// Row S-13.
#[tokio::test]
async fn f16_a_list_shows_fingerprints_and_no_secrets() {
    let world = World::subscribed("atom").await;
    assert!(world.listed().await["secret"].is_null());
    let form = [
        ("hub.mode", "subscribe"),
        ("hub.topic", world.topic.as_str()),
        ("hub.callback", &world.subscriber.url("/cb")),
        ("hub.secret", "sesame"),
    ];
    assert_eq!(world.gateway.superfeedr(&form).await.0, StatusCode::NO_CONTENT);
    // printf sesame | sha256sum | cut -c 1-8
    assert_eq!(world.listed().await["secret"], "sha256:d0c04f4b");
    for further in [&[][..], &[("detailed", "true")]] {
        let got = world.ask(Method::GET, &[&[("hub.mode", "list")], further].concat(), &[]).await;
        assert!(!got.text.contains("sesame"), "{}", got.text);
    }
}

#[tokio::test]
async fn a_secret_that_is_replaced_is_listed_while_it_is_used() {
    let world = World::subscribed("atom").await;
    let callback = world.subscriber.url("/cb");
    let subscribe = async |further: &[(&str, &str)]| {
        let form = [
            ("hub.mode", "subscribe"),
            ("hub.topic", world.topic.as_str()),
            ("hub.callback", &callback),
        ];
        world.gateway.superfeedr(&[&form, further].concat()).await
    };
    assert_eq!(subscribe(&[("hub.secret", "sesame")]).await.0, StatusCode::NO_CONTENT);
    let first = world.listed().await;
    assert!(first["previousSecret"].is_null() && first["signature"].is_null(), "{first}");

    let rotate =
        [("hub.secret", "open"), ("signature", "sha256"), ("secret_overlap_seconds", "60")];
    assert_eq!(subscribe(&rotate).await.0, StatusCode::NO_CONTENT);
    let rotated = world.listed().await;
    assert_eq!(
        (&rotated["previousSecret"], &rotated["signature"]),
        (&first["secret"], &"sha256".into())
    );
    assert_ne!(rotated["secret"], first["secret"]);
    assert!(rotated["previousSecretUntil"].as_i64() > first["created"].as_i64(), "{rotated}");

    let ended = [("hub.secret", "open"), ("secret_overlap_seconds", "0")];
    assert_eq!(subscribe(&ended).await.0, StatusCode::NO_CONTENT);
    assert!(world.listed().await["previousSecretUntil"].is_null());

    let (status, text) = subscribe(&[("signature", "sha256")]).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(text, "signature has an effect with hub.secret only.\n");
}

#[tokio::test]
async fn f18_an_error_has_a_code_where_json_is_accepted() {
    let world = World::subscribed("atom").await;
    let topic = world.topic.clone();
    world.subscriber.set("/refusing", Behavior::Refusing);
    let (cb, refusing) = (world.subscriber.url("/cb"), world.subscriber.url("/refusing"));
    let subscribe = [("hub.mode", "subscribe"), ("hub.topic", topic.as_str())];
    let verified =
        [&subscribe[..], &[("hub.callback", &refusing), ("hub.verify", "sync")]].concat();
    #[rustfmt::skip]
    let cases: [(Query<'_>, u16, &str); 7] = [
        (&[("hub.mode", "dance")],                                          422, "unknown_mode"),
        (&[("hub.mode", "subscribe"), ("hub.callback", &cb)],               422, "bad_topic"),
        (&subscribe,                                                        422, "bad_callback"),
        (&verified,                                                         422, "callback_status"),
        (&[("hub.mode", "retrieve"), ("hub.topic", "http://nowhere.test/")], 404, "no_subscription"),
        (&[("hub.mode", "retrieve"), ("hub.topic", &topic), ("before", "x")], 422, "no_such_entry"),
        (&[("hub.mode", "list"), ("page", "first")],                        422, "bad_request"),
    ];
    for (query, status, code) in cases {
        let plain = world.ask(Method::POST, query, &[]).await;
        assert_eq!(plain.status.as_u16(), status, "{}", plain.text);
        assert_eq!(plain.header(CONTENT_TYPE), "text/plain; charset=utf-8");
        let accept = ("accept", "application/json, text/plain;q=0.5");
        let problem = world.ask(Method::POST, query, &[accept]).await;
        assert_eq!(problem.header(CONTENT_TYPE), "application/problem+json");
        let value = problem.json();
        assert_eq!((&value["status"], &value["code"]), (&status.into(), &code.into()), "{value}");
        assert_eq!(value["detail"].as_str().unwrap(), plain.text.trim_end(), "the same sentence");
        assert_eq!(problem.status.as_u16(), status);
    }

    let url = world.gateway.url("/?hub.mode=list");
    let refused = client().get(url).header("accept", "application/json").send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    assert!(refused.headers().contains_key("www-authenticate"));
    let value: Value = serde_json::from_str(&refused.text().await.unwrap()).unwrap();
    assert_eq!(value["code"], "unauthorized");
}
