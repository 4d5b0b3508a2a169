//! Logins that a browser has stored: what pages of other origins, links and programs can do with them
//! (H8).

use http::{HeaderValue, Method, StatusCode};

use crate::store::on_both_stores;
use crate::support::browser::Browser;
use crate::support::gateway::{Gateway, LOGIN, TOKEN};
use crate::support::postgres::{Database, Kind};
use crate::support::server::{Server, client, say};
use crate::support::until;
use crate::support::world::World;

on_both_stores!(
    h08_a_browser_changes_something_for_pages_of_the_gateway_only,
    h08_programs_go_on_as_before,
);

async fn world_on(database: Database) -> World {
    let gateway = Gateway::start(&database, &[]).await;
    let world = World::on(database, gateway).await;
    world.put_tides(1);
    world
}

fn form(world: &World, mode: &str) -> String {
    let callback = world.subscriber.url("/cb");
    let pairs = [("hub.mode", mode), ("hub.topic", &world.topic), ("hub.callback", &callback)];
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

/// The names and values of some headers.
type Headers<'a> = &'a [(&'a str, &'a str)];

/// Sends a form as the query, by GET, or as the body, with the stored login and these headers.
async fn send(
    world: &World,
    method: Method,
    form: &str,
    headers: Headers<'_>,
) -> (StatusCode, String) {
    let request = match method {
        Method::GET => client().get(world.gateway.url(&format!("/?{form}"))),
        method => client()
            .request(method, world.gateway.url("/"))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(form.to_owned()),
    };
    let mut request = request.basic_auth(LOGIN, Some(TOKEN));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.send().await.unwrap();
    (response.status(), response.text().await.unwrap())
}

/// The subscriptions of the account.
async fn count(world: &World) -> usize {
    let (_, text) = world.gateway.superfeedr(&[("hub.mode", "list")]).await;
    serde_json::from_str::<Vec<serde_json::Value>>(&text).unwrap().len()
}

const CHROME: &str = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) \
                      Chrome/130.0.0.0 Safari/537.36";

async fn h08_a_browser_changes_something_for_pages_of_the_gateway_only(database: Database) {
    let world = world_on(database).await;
    let own = world.gateway.url("");
    let other_port = "http://127.0.0.1:1";
    let (subscribe, unsubscribe) = (form(&world, "subscribe"), form(&world, "unsubscribe"));
    assert!(send(&world, Method::POST, &subscribe, &[]).await.0.is_success());
    let opml =
        format!("<opml version=\"2.0\"><body><outline xmlUrl=\"{}\"/></body></opml>", world.topic);
    let callback = world.subscriber.url("/cb");
    let batch = [("hub.mode", "unsubscribe"), ("opml", &opml), ("hub.callback", &callback)];
    let batch = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(batch).finish();
    let script = [("sec-fetch-site", "same-site"), ("sec-fetch-mode", "cors")];
    let with_origin = [script[0], script[1], ("origin", other_port)];
    let null = [("origin", "null"), ("user-agent", CHROME)];
    let plain = [("origin", other_port), ("user-agent", CHROME)];
    let link = [("user-agent", CHROME), ("accept", "text/html,application/xhtml+xml")];
    let image = [("user-agent", CHROME), ("accept", "image/avif,*/*;q=0.8")];
    let bare = [("user-agent", CHROME)];
    let referred = [("referer", "http://evil.test/")];
    let typed = [("sec-fetch-site", "none"), ("sec-fetch-dest", "document")];
    #[rustfmt::skip]
    let cases: [(&str, Method, &str, Headers<'_>); 13] = [
        ("a script of another port",       Method::POST, &unsubscribe, &with_origin),
        ("one without Origin",             Method::POST, &unsubscribe, &script),
        ("a hidden origin",                Method::POST, &unsubscribe, &null),
        ("another port, plain HTTP",       Method::POST, &unsubscribe, &plain),
        ("a script that reads",            Method::GET,  &unsubscribe, &with_origin),
        ("a link over plain HTTP",         Method::GET,  &unsubscribe, &link),
        ("an image over plain HTTP",       Method::GET,  &unsubscribe, &image),
        ("a script over plain HTTP",       Method::GET,  &unsubscribe, &bare),
        ("a page that is named",           Method::GET,  &unsubscribe, &referred),
        ("a link in a message",            Method::GET,  &unsubscribe, &typed),
        ("a list in a link",               Method::GET,  &batch,       &link),
        ("a list by a script",             Method::POST, &batch,       &plain),
        ("JSONP over plain HTTP",          Method::GET,  "hub.mode=list&callback=leak", &bare),
    ];
    for (why, method, form, headers) in cases {
        let (status, text) = send(&world, method, form, headers).await;
        let is_refused = status == StatusCode::FORBIDDEN
            || status == StatusCode::METHOD_NOT_ALLOWED
            || text.contains("\"code\":403");
        assert!(is_refused && !text.contains("/cb"), "{why}: {status} {text}");
        assert_eq!(count(&world).await, 1, "{why}");
    }
    let own_page = [("origin", own.as_str()), ("sec-fetch-site", "same-origin")];
    let own_plain = [("origin", own.as_str()), ("user-agent", CHROME)];
    for headers in [own_page, own_plain] {
        let (status, text) = send(&world, Method::POST, &unsubscribe, &headers).await;
        assert!(status.is_success(), "{status} {text}");
        assert_eq!(count(&world).await, 0);
        assert!(send(&world, Method::POST, &subscribe, &headers).await.0.is_success());
        assert_eq!(count(&world).await, 1);
    }
}

async fn h08_programs_go_on_as_before(database: Database) {
    let world = world_on(database).await;
    let (subscribe, unsubscribe) = (form(&world, "subscribe"), form(&world, "unsubscribe"));
    for agent in [
        "curl/8.5.0",
        "python-requests/2.32.3",
        "Ruby",
        "Java/17.0.1",
        "Mozilla/5.0 (compatible; FeedReader/1.0; +http://reader.test/)",
        "",
    ] {
        let accept = "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2";
        // What the `fetch` of Node.js sends with each request.
        let of_fetch = [("sec-fetch-mode", "cors"), ("accept-language", "*")];
        let headers = [("user-agent", agent), ("accept", accept), of_fetch[0], of_fetch[1]];
        for method in [Method::GET, Method::POST] {
            for (form, want) in [(&subscribe, 1), (&unsubscribe, 0)] {
                let (status, text) = send(&world, method.clone(), form, &headers).await;
                assert!(status.is_success(), "{agent} {method}: {status} {text}");
                assert_eq!(count(&world).await, want, "{agent} {method}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn h08_a_page_at_another_port_cannot_use_what_chromium_has_stored() {
    let world = world_on(Database::new(Kind::Sqlite).await).await;
    let page = "<!doctype html><title>another port</title>";
    let other = Server::start(move |_| async move {
        let mut response = say(StatusCode::OK, page);
        response.headers_mut().insert("content-type", HeaderValue::from_static("text/html"));
        response
    })
    .await;

    assert!(send(&world, Method::POST, &form(&world, "subscribe"), &[]).await.0.is_success());
    let browser = Browser::start().await;
    let root = world.gateway.url("/");
    let with_login = root.replacen("//", &format!("//{LOGIN}:{TOKEN}@"), 1);
    browser.open(&format!("{with_login}?hub.mode=list")).await;
    browser.until("document.body.innerText.includes('/cb')").await;

    browser.open(&other.url("/")).await;
    let unsubscribe = form(&world, "unsubscribe");
    for script in [
        format!(
            "fetch('{root}', {{method: 'POST', credentials: 'include', body: new URLSearchParams('{unsubscribe}')}})"
        ),
        format!(
            "fetch('{root}', {{method: 'POST', mode: 'no-cors', credentials: 'include', body: new URLSearchParams('{unsubscribe}')}})"
        ),
        format!("fetch('{root}?{unsubscribe}', {{credentials: 'include'}})"),
        format!("fetch('{root}?{unsubscribe}', {{mode: 'no-cors', credentials: 'include'}})"),
    ] {
        browser
            .run(&format!(
                "window.sent = false; {script}.catch(() => 0).then(() => window.sent = true)"
            ))
            .await;
        browser.until("window.sent").await;
        assert_eq!(count(&world).await, 1, "{script}");
    }
    browser
        .run(&format!(
            "const form = document.createElement('form'); form.method = 'post'; form.action = '{root}'; \
             for (const [name, value] of new URLSearchParams('{unsubscribe}')) {{ \
             const field = document.createElement('input'); field.name = name; field.value = value; \
             form.append(field) }} document.body.append(form); form.submit()"
        ))
        .await;
    until("the form was sent", async || {
        browser.run("return location.href").await.as_str() == Some(root.as_str())
    })
    .await;
    browser.until("document.body.innerText.includes('stored')").await;
    assert_eq!(count(&world).await, 1);
}
