//! Redirects, which we follow by hand: rules P18 and P19, S3 and S5.

use feedgate::net::{HttpClient, NetworkSettings};
use feedgate_core::poll::Validators;

use super::{ATOM, code, document, get, get_with, redirect, settings};
use crate::support::origin::{Origin, answer};

/// Row S-19.
#[tokio::test]
async fn p18_five_redirects_are_followed_and_no_more() {
    let origin = Origin::start().await;
    for n in 0..6 {
        origin.script(&format!("/{n}"), [redirect("302 Found", &format!("/{}", n + 1))]);
    }
    origin.script("/6", [answer("200 OK", &[], ATOM)]);

    let five = document(get(&origin.url("/1")).await);
    assert_eq!(five.url.path(), "/6");
    let six = get(&origin.url("/0")).await;
    assert_eq!(code(&six), "bad_redirect");
    assert_eq!(six.hops.len(), 6);
    assert!(!origin.requests()[6..].iter().any(|request| request.target() == "/6"));
}

#[tokio::test]
async fn p18_a_circle_is_noticed_by_the_normalized_url() {
    let origin = Origin::start().await;
    origin.script("/a", [redirect("301 Moved Permanently", "/x/../b#top")]);
    origin.script("/b", [redirect("302 Found", &origin.url("/a"))]);
    let got = get(&origin.url("/a")).await;
    assert_eq!(code(&got), "bad_redirect");
    assert_eq!(origin.requests().len(), 2);
}

#[tokio::test]
async fn p18_redirects_that_lead_nowhere_are_refused() {
    let targets =
        ["file:///etc/passwd", "gopher://a.test/", "ftp://a.test/f", "data:,x", "http://"];
    for target in targets {
        let origin = Origin::start().await;
        origin.script("/f", [redirect("302 Found", target)]);
        assert_eq!(code(&get(&origin.url("/f")).await), "bad_redirect", "{target}");
    }
    let origin = Origin::start().await;
    origin.script("/f", [answer("301 Moved Permanently", &[], "")]);
    assert_eq!(code(&get(&origin.url("/f")).await), "bad_redirect");
}

#[tokio::test]
async fn p18_credentials_end_at_the_first_change_of_origin() {
    let (own, other) = (Origin::start().await, Origin::start().await);
    own.script("/f", [redirect("302 Found", "/g")]);
    own.script("/g", [redirect("302 Found", &other.url("/h"))]);
    other.script("/h", [redirect("302 Found", &own.url("/i"))]);
    own.script("/i", [answer("200 OK", &[], ATOM)]);

    let url = own.url("/f").replace("http://", "http://ann:p%40ss@");
    let got = get(&url).await;
    let sent: Vec<_> =
        own.requests().iter().map(|r| r.header("authorization").map(str::to_owned)).collect();
    let basic = Some("Basic YW5uOnBAc3M=".to_owned());
    assert_eq!(sent, [basic.clone(), basic, None], "not even back at home");
    assert_eq!(other.last().header("authorization"), None);
    assert!(!format!("{:?}", got.hops).contains("YW5u"), "a trace shows no credentials");
    let document = document(got);
    assert_eq!(document.url.username(), "");
}

#[tokio::test]
async fn p19_only_a_leading_run_of_permanent_redirects_moves_the_resource() {
    let cases: [(&[&str], Option<&str>); 6] = [
        (&["301 Moved Permanently"], Some("/1")),
        (&["308 Permanent Redirect", "301 Moved Permanently"], Some("/2")),
        (&["301 Moved Permanently", "302 Found"], Some("/1")),
        (&["302 Found", "301 Moved Permanently"], None),
        (&["301 Moved Permanently", "307 Temporary Redirect", "301 Moved Permanently"], Some("/1")),
        (&["303 See Other"], None),
    ];
    for (statuses, want) in cases {
        let origin = Origin::start().await;
        for (n, status) in statuses.iter().enumerate() {
            origin.script(&format!("/{n}"), [redirect(status, &format!("/{}", n + 1))]);
        }
        origin.script(&format!("/{}", statuses.len()), [answer("200 OK", &[], ATOM)]);
        let got = get(&origin.url("/0")).await;
        assert_eq!(got.moved_to().map(|url| url.path()), want, "{statuses:?}");
        assert_eq!(document(got).url.path(), format!("/{}", statuses.len()));
    }
}

#[tokio::test]
async fn p19_a_move_within_an_origin_keeps_its_credentials() {
    let origin = Origin::start().await;
    origin.script("/f", [redirect("301 Moved Permanently", "/g")]);
    origin.script("/g", [answer("200 OK", &[], ATOM)]);
    let got = get(&origin.url("/f").replace("http://", "http://ann:p%40ss@")).await;
    let moved_to = got.moved_to().unwrap();
    assert_eq!((moved_to.username(), moved_to.password()), ("ann", Some("p%40ss")));
}

#[tokio::test]
async fn s03_a_redirect_to_an_inner_address_is_never_requested() {
    let (origin, inner) = (Origin::start().await, Origin::start_at("127.0.0.2").await);
    inner.script("/", [answer("200 OK", &[], "secret")]);
    // The server of the first hop may be reached, the rest of loopback may not.
    let allow_topics = vec!["127.0.0.1/32".parse().unwrap()];
    let fetch = HttpClient::new(NetworkSettings { allow_topics, ..settings() });
    let hosts = [
        "127.0.0.2",
        "2130706434",
        "0x7f.2",
        "0177.0.0.2",
        "127.2",
        "0",
        "[::ffff:127.0.0.2]",
        "[::1]",
        "10.0.0.1",
        "169.254.169.254",
        "[fd00:ec2::254]",
        "100.100.100.200",
        "168.63.129.16",
        "[64:ff9b::7f00:2]",
    ];
    for host in hosts {
        origin.script("/f", [redirect("302 Found", &inner.url_as(host, "/"))]);
        let got = get_with(&fetch, &origin.url("/f"), &Validators::default()).await;
        assert_eq!(code(&got), "forbidden_address", "{host}");
    }
    assert_eq!(inner.connections(), 0);
}
