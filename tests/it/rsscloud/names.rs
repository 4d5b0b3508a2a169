//! The cloud's doors by every name that publishers gave them, and what they say to people.

use http::StatusCode;
use http::header::ALLOW;

use super::worked;
use crate::support::server::client;
use crate::support::world::World;

fn pleasenotify(method: &str, port: u16, path: &str, topic: &str) -> String {
    let topic = topic.replace('&', "&amp;");
    format!(
        "<methodCall><methodName>{method}</methodName><params>\
         <param><value>river.changed</value></param>\
         <param><value><i4>{port}</i4></value></param>\
         <param><value>{path}</value></param>\
         <param><value>xml-rpc</value></param>\
         <param><value><array><data><value>{topic}</value></data></array></value></param>\
         </params></methodCall>"
    )
}

fn ping(method: &str, topic: &str) -> String {
    let topic = topic.replace('&', "&amp;");
    format!(
        "<methodCall><methodName>{method}</methodName><params>\
         <param><value>{topic}</value></param></params></methodCall>"
    )
}

impl World {
    async fn call(&self, path: &str, body: String) -> (StatusCode, String) {
        let request = client().post(self.gateway.url(path)).header("content-type", "text/xml");
        let answer = request.body(body).send().await.unwrap();
        (answer.status(), answer.text().await.unwrap())
    }
}

const TRUE: &str = "<boolean>1</boolean>";

#[tokio::test]
async fn a_cloud_is_found_by_the_names_that_its_publishers_gave_it() {
    let world = World::with_query(&[
        ("FEEDGATE_RSSCLOUD_PATHS", "/old/cloud.php, /old/changed=ping, /old/leave=cancel"),
        ("FEEDGATE_RSSCLOUD_PROCEDURES", "cloud.watch,cloud.changed=ping"),
    ])
    .await;
    let port = world.subscriber.port();
    for (path, method, callback) in [
        ("/RPC2", "xmlStorageSystem.rssPleaseNotify", "/radio"),
        ("/RPC2", "cloud.watch", "/own"),
        ("/old/cloud.php", "rssCloud.pleaseNotify", "/call"),
    ] {
        let answer = world.call(path, pleasenotify(method, port, callback, &world.topic)).await;
        assert!(answer.1.contains(TRUE), "{path} {method}: {answer:?}");
    }
    let form = [
        ("port", port.to_string()),
        ("path", "/form".to_owned()),
        ("protocol", "http-post".to_owned()),
        ("url1", world.topic.clone()),
    ];
    let form = form.each_ref().map(|(name, value)| (*name, value.as_str()));
    assert!(worked(&world.gateway.post("/old/cloud.php", &form).await.1));

    let callbacks = ["/radio", "/own", "/call", "/form"];
    for (item, path) in [(3, "/old/changed"), (4, "/RPC2")] {
        world.put_tides(item);
        let answer = match path {
            "/RPC2" => world.call(path, ping("cloud.changed", &world.topic)).await.1,
            _ => world.gateway.post(path, &[("url", &world.topic)]).await.1,
        };
        assert!(answer.contains(TRUE) || worked(&answer), "{path}: {answer}");
        for callback in callbacks {
            // The first call was the test of the handler.
            world.subscriber.until(callback, |told| told.len() == item - 1).await;
        }
    }
    assert!(worked(&world.gateway.post("/old/leave", &form).await.1));
}

#[tokio::test]
async fn whoever_looks_at_a_door_of_the_cloud_is_told_how_to_ask() {
    let world = World::with_query(&[("FEEDGATE_RSSCLOUD_PATHS", "/old/cloud.php")]).await;
    #[rustfmt::skip]
    let cases = [
        ("/pleaseNotify",   "protocol"),
        ("/rsscloud/ping",  "wait=1"),
        ("/cancel",         "stop notifications"),
        ("/RPC2",           "rssCloud.pleaseNotify"),
        ("/old/cloud.php",  "This is a cloud"),
    ];
    for (path, word) in cases {
        let answer = client().get(world.gateway.url(path)).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED, "{path}");
        assert_eq!(answer.headers()[ALLOW], "POST, OPTIONS", "{path}");
        assert_eq!(answer.headers()["access-control-allow-origin"], "*", "{path}");
        let text = answer.text().await.unwrap();
        assert!(text.contains("POST") && text.contains(word), "{path}: {text}");
    }
}

#[tokio::test]
async fn a_call_is_answered_in_its_own_protocol_even_if_it_cannot_be_read() {
    let world = World::with_query(&[]).await;
    let methods = "<methodCall><methodName>system.listMethods</methodName></methodCall>";
    let (_, answer) = world.call("/RPC2", methods.to_owned()).await;
    for method in ["rssCloud.pleaseNotify", "rssCloud.ping", "weblogUpdates.extendedPing"] {
        assert!(answer.contains(&format!("<string>{method}</string>")), "{answer}");
    }
    let (status, answer) = world.call("/RPC2", "<half".to_owned()).await;
    assert!(status == StatusCode::OK && answer.contains("<name>faultCode</name>"), "{answer}");
    let soap = client().post(world.gateway.url("/RPC2")).header("soapaction", "\"/RPC2\"");
    let answer = soap.body("<half").send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
    let text = answer.text().await.unwrap();
    assert!(text.contains("<SOAP-ENV:Fault>"), "{text}");
}

#[tokio::test]
async fn an_operator_may_leave_the_expiry_out() {
    let world = World::with_query(&[("FEEDGATE_RSSCLOUD_TELL_EXPIRY", "off")]).await;
    let answer = world.register("http-post", "/cb", &[]).await;
    assert!(worked(&answer) && answer.ends_with("Keep on truckin!\"/>"), "{answer}");
}

#[tokio::test]
async fn what_cannot_be_parsed_is_announced_when_its_bytes_change() {
    let world = World::with_query(&[]).await;
    let bytes = |last: u8| vec![0x89, b'P', b'N', b'G', 0, 0xff, 0xfe, last];
    world.publisher.put("/picture", "image/png", bytes(1));
    let world = world.about("/picture");
    assert!(worked(&world.register("http-post", "/cb", &[]).await));
    for (last, told) in [(1, 1), (2, 2), (2, 2), (3, 3)] {
        world.publisher.put("/picture", "image/png", bytes(last));
        let (_, text) = world.gateway.post("/ping?wait=1", &[("url", &world.topic)]).await;
        assert!(worked(&text), "{text}");
        // The first call was the test of the handler.
        assert_eq!(world.subscriber.notified("/cb").len(), told, "byte {last}");
    }
}

#[tokio::test]
async fn f25_the_paths_of_the_deployed_servers_are_served() {
    let world = World::with_query(&[("FEEDGATE_RSSCLOUD_PATHS", "/push=hub")]).await;
    for (n, path) in ["/websub", "/push"].into_iter().enumerate() {
        let callback = world.subscriber.url(path);
        let form = [
            ("hub.mode", "subscribe"),
            ("hub.topic", world.topic.as_str()),
            ("hub.callback", &callback),
            ("hub.verify", "sync"),
        ];
        assert_eq!(world.gateway.post(path, &form).await.0, StatusCode::NO_CONTENT, "{path}");
        world.put_tides(3 + n);
        let form = [("hub.mode", "publish"), ("hub.url", world.topic.as_str())];
        assert_eq!(world.gateway.post(path, &form).await.0, StatusCode::NO_CONTENT, "{path}");
        world.subscriber.until(path, |told| told.len() == 1).await;
    }
    for (path, action) in [("/pingForm", "ping"), ("/pleaseNotifyForm", "pleaseNotify")] {
        let (status, page) = world.gateway.get(path).await;
        assert_eq!(status, StatusCode::OK);
        assert!(page.contains(&format!("method=\"post\" action=\"{action}\"")), "{page}");
    }
}
