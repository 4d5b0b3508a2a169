//! Attacks: what is tried by pages of other sites, by guessing, and with what is left of others.

use feedgate::jobs::runner;
use feedgate_core::account::{NewToken, Scopes, TokenHash};
use feedgate_core::store::StoreError;
use http::header::RETRY_AFTER;
use http::{Method, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::gateway::Gateway;
use crate::support::ports::free_port;
use crate::support::postgres::{Database, Kind};
use crate::support::server::client;
use crate::support::until;
use crate::support::world::World;

const LOGIN: &str = "tester";
const TOKEN: &str = "s3cret";

/// A world with one subscription of the account of the tests.
async fn subscribed() -> World {
    let world = World::with_tides(1, &[]).await;
    let callback = world.subscriber.url("/cb");
    world.gateway.subscribe_superfeedr(&world.topic, &callback, "atom").await;
    world
}

/// Calls the API with the credentials that a browser has stored, and with these headers.
async fn from_browser(
    world: &World,
    method: Method,
    query: &[(&str, &str)],
    headers: &[(&str, &str)],
) -> (StatusCode, String) {
    let mut url = url::Url::parse(&world.gateway.url("/")).unwrap();
    url.query_pairs_mut().extend_pairs(query);
    let mut request = client().request(method, url).basic_auth(LOGIN, Some(TOKEN));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.send().await.unwrap();
    (response.status(), response.text().await.unwrap())
}

#[tokio::test]
async fn t08_a_page_of_another_site_cannot_use_a_stored_login() {
    let world = subscribed().await;
    let callback = world.subscriber.url("/cb");
    let unsubscribe = [
        ("hub.mode", "unsubscribe"),
        ("hub.topic", world.topic.as_str()),
        ("hub.callback", callback.as_str()),
    ];
    let list = [("hub.mode", "list"), ("callback", "leak")];
    let image = [("sec-fetch-site", "cross-site"), ("sec-fetch-dest", "image")];
    let script = [("sec-fetch-site", "cross-site"), ("sec-fetch-dest", "script")];
    let subdomain = [("sec-fetch-site", "same-site"), ("sec-fetch-dest", "script")];
    let fetch = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "cors")];
    let form = [("sec-fetch-site", "cross-site"), ("sec-fetch-dest", "document")];
    let old_browser = [("origin", "https://evil.test")];
    let link = [("sec-fetch-site", "none"), ("sec-fetch-dest", "document")];
    #[rustfmt::skip]
    let cases = [
        ("an image",               Method::GET,  &unsubscribe[..], &image[..]),
        ("a script",               Method::GET,  &list[..],        &script[..]),
        ("a page of a subdomain",  Method::GET,  &list[..],        &subdomain[..]),
        ("a form",                 Method::POST, &unsubscribe[..], &form[..]),
        ("a browser without Sec-Fetch-Site", Method::POST, &unsubscribe[..], &old_browser[..]),
        ("a change by GET",        Method::GET,  &unsubscribe[..], &fetch[..]),
        ("a link in a message",    Method::GET,  &unsubscribe[..], &link[..]),
    ];
    for (why, method, query, headers) in cases {
        let (status, text) = from_browser(&world, method, query, headers).await;
        // Scripts cannot see a status, so that JSONP sends the code in its text.
        let is_refused = status.is_client_error() || text.contains("\"code\":403");
        assert!(is_refused && !text.contains(&callback), "{why}: {status} {text}");
    }
    let own_page = [("sec-fetch-site", "same-origin"), ("sec-fetch-dest", "empty")];
    // Scripts that set the header themselves are clients like others.
    for headers in [&own_page[..], &fetch[..], &[]] {
        let (status, text) =
            from_browser(&world, Method::GET, &[("hub.mode", "list")], headers).await;
        assert!(status == StatusCode::OK && text.contains(&callback), "{text}");
    }
    let (status, text) = from_browser(&world, Method::POST, &unsubscribe, &own_page).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{text}");
}

#[tokio::test]
async fn t09_passwords_cannot_be_guessed_at_speed() {
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[]).await;
    let mut checked = 0;
    let retry_after = loop {
        let guess = format!("guess number {checked}");
        let request = client().put(gateway.url("/storage/ada/feed.xml"));
        let request = request.basic_auth("ada", Some(guess)).body("<rss/>");
        let response = request.send().await.unwrap();
        if response.status() == StatusCode::TOO_MANY_REQUESTS {
            break response.headers()[RETRY_AFTER].to_str().unwrap().parse::<u64>().unwrap();
        }
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        checked += 1;
        assert!(checked < 20, "guesses are never refused");
    };
    assert!(retry_after >= 1);
    // A token is not a password: guessing one is hopeless.
    let query = [("hub.mode", "list"), ("authorization", "dGVzdGVyOnMzY3JldA==")];
    let mut url = url::Url::parse(&gateway.url("/")).unwrap();
    url.query_pairs_mut().extend_pairs(query);
    assert_eq!(client().get(url).send().await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn t02_what_only_anonymous_subscribers_watch_waits_while_the_disk_is_nearly_full() {
    let huge = u64::MAX.to_string();
    let world = World::with_tides(1, &[("FEEDGATE_MIN_FREE_BYTES", &huge)]).await;
    let anonymous = world.subscriber.url("/anonymous");
    world.gateway.subscribe_websub(&world.topic, &anonymous, &[]).await;
    let (status, text) = world.gateway.get("/readyz").await;
    assert_eq!(status, StatusCode::OK);
    assert!(text.contains("FEEDGATE_MIN_FREE_BYTES"), "{text}");
    assert!(world.publisher.fetches("/feed").is_empty());

    let own = world.subscriber.url("/own");
    world.gateway.subscribe_superfeedr(&world.topic, &own, "atom").await;
    world.put_tides(2);
    let publish = [("hub.mode", "publish"), ("hub.url", &world.topic)];
    let (status, text) = world.gateway.post("/", &publish).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{text}");
    world.subscriber.until("/own", |got| !got.is_empty()).await;
}

#[tokio::test]
async fn t10_a_removed_account_receives_nothing_more() {
    let world = subscribed().await;
    let store = world.database.open().await;
    let removed = store.remove_account(LOGIN, runner::now()).await.unwrap().unwrap();
    assert_eq!((removed.subscriptions, removed.tokens), (1, 1));

    let (status, text) = world.gateway.superfeedr(&[("hub.mode", "list")]).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED, "{text}");
    let again = NewToken {
        login: LOGIN.to_owned(),
        name: String::new(),
        scopes: Scopes::all(),
        hash: TokenHash::from_token("new"),
        expires_at: None,
    };
    let refused = store.create_token(&again, runner::now()).await.unwrap_err();
    assert!(matches!(refused, StoreError::AccountRemoved(_)), "{refused}");

    // Somebody else's subscription shows that the new entry has been processed.
    let witness = world.subscriber.url("/witness");
    world.gateway.subscribe_websub(&world.topic, &witness, &[]).await;
    world.put_tides(2);
    let (status, text) =
        world.gateway.post("/", &[("hub.mode", "publish"), ("hub.url", &world.topic)]).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{text}");
    world.subscriber.until("/witness", |got| !got.is_empty()).await;
    world.gateway.comes_to_rest().await;
    assert!(world.subscriber.notified("/cb").is_empty());
}

#[tokio::test]
async fn t10_a_deactivated_account_receives_what_it_missed_once_it_is_active() {
    let world = subscribed().await;
    let store = world.database.open().await;
    assert_eq!(store.deactivate_account(LOGIN, runner::now()).await.unwrap(), Some(1));
    let (status, text) = world.gateway.superfeedr(&[("hub.mode", "list")]).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{text}");
    assert!(text.contains("deactivated"), "{text}");

    let witness = world.subscriber.url("/witness");
    world.gateway.subscribe_websub(&world.topic, &witness, &[]).await;
    world.put_tides(2);
    let publish = [("hub.mode", "publish"), ("hub.url", &world.topic)];
    let (status, text) = world.gateway.post("/", &publish).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{text}");
    world.subscriber.until("/witness", |got| !got.is_empty()).await;
    world.gateway.comes_to_rest().await;
    assert!(world.subscriber.notified("/cb").is_empty());

    assert_eq!(store.activate_account(LOGIN, runner::now()).await.unwrap(), Some(1));
    world.subscriber.until("/cb", |got| !got.is_empty()).await;
    let (status, text) = world.gateway.superfeedr(&[("hub.mode", "list")]).await;
    assert_eq!(status, StatusCode::OK, "{text}");
}

#[tokio::test]
async fn t04_slow_bodies_of_one_client_do_not_block_health_checks() {
    let database = Database::new(Kind::Sqlite).await;
    let health = format!("127.0.0.1:{}", free_port());
    let settings = [
        ("FEEDGATE_MAX_CONNECTIONS", "40"),
        ("FEEDGATE_MAX_CONNECTIONS_PER_CLIENT", "30"),
        ("FEEDGATE_HEALTH_LISTEN", health.as_str()),
    ];
    let gateway = Gateway::start(&database, &settings).await;
    let address = gateway.url("").trim_start_matches("http://").trim_end_matches('/').to_owned();
    let mut slow = Vec::new();
    let mut closed = 0;
    for _ in 0..60 {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        let head = "POST /hub HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\n";
        // Writing to a connection that was closed may fail, now or later.
        stream.write_all(head.as_bytes()).await.ok();
        slow.push(stream);
    }
    for stream in &mut slow[40..] {
        let mut byte = [0];
        closed += usize::from(matches!(stream.read(&mut byte).await, Ok(0) | Err(_)));
    }
    // The connection that waited for the start may end meanwhile, and make room for one.
    assert!(closed >= 19, "beyond the limit, connections are closed at once: {closed} of 20");
    let live = client().get(format!("http://{health}/livez")).send().await.unwrap();
    assert_eq!(live.status(), StatusCode::OK);
    let other = client().get(format!("http://{health}/hub")).send().await.unwrap();
    assert_eq!(other.status(), StatusCode::NOT_FOUND, "nothing else is served there");
    drop(slow);
}

#[tokio::test(flavor = "multi_thread")]
async fn h20_slow_bodies_of_five_addresses_do_not_keep_a_sixth_waiting() {
    let database = Database::new(Kind::Sqlite).await;
    let settings =
        [("FEEDGATE_MAX_CONNECTIONS", "40"), ("FEEDGATE_MAX_CONNECTIONS_PER_CLIENT", "10")];
    let gateway = Gateway::start(&database, &settings).await;
    let address: std::net::SocketAddr =
        gateway.url("").trim_start_matches("http://").parse().unwrap();
    let connect = async |from: [u8; 4]| {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind((std::net::Ipv4Addr::from(from), 0).into()).unwrap();
        socket.connect(address).await.unwrap()
    };
    let mut slow = Vec::new();
    for n in 0..50 {
        let mut stream = connect([127, 0, 0, 2 + n % 5]).await;
        let head = b"POST /ping HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nurl=";
        let _closed = stream.write_all(head).await;
        slow.push(stream);
    }
    // Accepted at once: the slow bodies are still awaited when the response is there.
    let mut sixth = connect([127, 0, 0, 7]).await;
    sixth.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut response = String::new();
    sixth.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    let mut open = 0;
    for stream in &slow {
        let mut first = [0];
        let is_open = matches!(stream.try_read(&mut first), Err(err) if err.kind() == std::io::ErrorKind::WouldBlock);
        open += usize::from(is_open);
    }
    assert!(open >= 20, "{open} slow bodies are still awaited");
}

#[tokio::test]
async fn h20_slow_bodies_of_strangers_leave_memory_to_accounts() {
    let database = Database::new(Kind::Sqlite).await;
    // An eighth is for bodies of requests.
    let settings = [("FEEDGATE_DOCUMENT_MEMORY_BYTES", "67108864")];
    let gateway = Gateway::start(&database, &settings).await;
    let address: std::net::SocketAddr =
        gateway.url("").trim_start_matches("http://").parse().unwrap();
    let mut slow = Vec::new();
    for n in 0..50 {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind((std::net::Ipv4Addr::from([127, 0, 0, 2 + n % 5]), 0).into()).unwrap();
        let mut stream = socket.connect(address).await.unwrap();
        let head = "POST / HTTP/1.1\r\nhost: x\r\nx-forwarded-for: 192.0.2.1\r\n\
                    content-type: application/x-www-form-urlencoded\r\ncontent-length: 1000000\r\n\r\n";
        let body = "a".repeat(300_000);
        stream.write_all(head.as_bytes()).await.unwrap();
        // Some are not read to their end.
        slow.push(tokio::spawn(async move {
            let _closed = stream.write_all(body.as_bytes()).await;
            stream
        }));
    }
    let reserved = async || {
        let metrics = gateway.get("/metrics").await.1;
        let line = metrics.lines().find(|line| line.starts_with("feedgate_document_memory_bytes "));
        line.unwrap().rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    until("the slow bodies have what they may have", async || reserved().await > 4e6).await;
    let form = format!("hub.mode=list&hub.topic={}", "x".repeat(200_000));
    let request = client().post(gateway.url("/")).header("x-forwarded-for", "192.0.2.2");
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    let request = request.basic_auth(LOGIN, Some(TOKEN)).body(form);
    let answer = request.send().await.unwrap();
    assert_ne!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(reserved().await > 4e6, "the slow bodies are still awaited");
}
