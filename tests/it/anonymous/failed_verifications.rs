//! Strangers whose callbacks do not confirm, and others who subscribe at the same host.

use http::StatusCode;
use url::form_urlencoded::Serializer;

use super::{ANONYMOUS, FORM, PROXIED, SYNC};
use crate::support::gateway::{Gateway, LOGIN, TOKEN};
use crate::support::postgres::Database;
use crate::support::server::client;

/// Subscribes as a client behind the proxy, with or without the login of an account.
async fn subscribe(
    gateway: &Gateway,
    (path, client_address): (&str, &str),
    (topic, callback): (&str, &str),
) -> StatusCode {
    let form = [("hub.mode", "subscribe"), ("hub.topic", topic), ("hub.callback", callback), SYNC];
    let body = Serializer::new(String::new()).extend_pairs(form).finish();
    let mut request = client().post(gateway.url(path)).body(body);
    request = request.header("content-type", FORM).header("x-forwarded-for", client_address);
    if path == "/" {
        request = request.basic_auth(LOGIN, Some(TOKEN));
    }
    request.send().await.unwrap().status()
}

async fn failures_of_one_network(database: Database) {
    let gateway = Gateway::start(&database, &[PROXIED]).await;
    // A name that nobody has, since what leads to this machine is not counted.
    let topic = "http://nowhere.invalid/feed";
    let callback = |n: &str| format!("http://nowhere.invalid/{n}");
    let mut last = StatusCode::OK;
    for n in 0..11 {
        let failing = (topic, &*callback(&n.to_string()));
        last = subscribe(&gateway, ("/hub", ANONYMOUS), failing).await;
    }
    assert_eq!(last, StatusCode::TOO_MANY_REQUESTS);
    for (who, why) in [
        (("/hub", "198.51.100.77"), "another network"),
        (("/hub", "2001:db8:77::1"), "another network of IPv6"),
        (("/", ANONYMOUS), "an account"),
    ] {
        let status = subscribe(&gateway, who, (topic, &callback("own"))).await;
        assert_ne!(status, StatusCode::TOO_MANY_REQUESTS, "{why}");
    }
    let again = subscribe(&gateway, ("/hub", "198.51.100.78"), (topic, &callback("own"))).await;
    assert_eq!(again, StatusCode::TOO_MANY_REQUESTS, "the network has failed there itself");
}

#[tokio::test]
async fn h01_callbacks_that_do_not_confirm_keep_no_other_network_from_their_host() {
    failures_of_one_network(Database::new(crate::support::postgres::Kind::Sqlite).await).await;
}
