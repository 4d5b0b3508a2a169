//! The guard at the way out, with names that lead where a test wants: S1 to S4, S10,
//! S12, S13.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use feedgate::net::{CallbackRequest, FetchError, HttpClient, Lookup, NetworkSettings};
use feedgate_core::poll::Validators;
use feedgate_core::visibility::SourceNetwork;
use http::{HeaderMap, Method};
use tokio::io::AsyncWriteExt;
use url::Url;

use super::tls;
use super::{ATOM, code, document, get_with, hasty, settings};
use crate::support::origin::{Origin, Step, answer};

/// Each name leads to its answers in turn, then to the last one for ever.
#[derive(Debug, Default)]
struct Names {
    answers: Mutex<HashMap<&'static str, Vec<&'static str>>>,
    lookups: Mutex<Vec<String>>,
}

impl Names {
    fn of(pairs: &[(&'static str, &[&'static str])]) -> Arc<Names> {
        let answers = pairs.iter().map(|(name, answers)| (*name, answers.to_vec())).collect();
        Arc::new(Names { answers: Mutex::new(answers), lookups: Mutex::default() })
    }
}

#[async_trait]
impl Lookup for Names {
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        self.lookups.lock().unwrap().push(name.to_owned());
        let mut answers = self.answers.lock().unwrap();
        let Some(answers) = answers.get_mut(name) else {
            return Err(io::Error::other("Name or service not known"));
        };
        let answer = if answers.len() > 1 { answers.remove(0) } else { answers[0] };
        Ok(answer.split(' ').map(|ip| ip.parse().unwrap()).collect())
    }
}

fn only(network: &str) -> NetworkSettings {
    NetworkSettings {
        allow_topics: vec![network.parse().unwrap()],
        allow_callbacks: vec![network.parse().unwrap()],
        ..settings()
    }
}

#[tokio::test]
async fn s04_a_name_is_judged_at_each_connection_by_what_it_leads_to_then() {
    let origin = Origin::start().await;
    origin.script("/f", [answer("200 OK", &["Connection: close"], ATOM)]);
    let names = Names::of(&[("turncoat.test", &["127.0.0.1", "127.0.0.2"])]);
    let fetch = HttpClient::with_lookup(only("127.0.0.1/32"), names.clone());
    let url = origin.url_as("turncoat.test", "/f");

    let first = get_with(&fetch, &url, &Validators::default()).await;
    assert_eq!(first.hops[0].addresses, ["127.0.0.1".parse::<IpAddr>().unwrap()]);
    document(first);
    assert_eq!(names.lookups.lock().unwrap().len(), 1, "checked and dialled in one lookup");
    let second = get_with(&fetch, &url, &Validators::default()).await;
    assert_eq!(code(&second), "forbidden_address");
    assert_eq!(origin.connections(), 1);
}

#[tokio::test]
async fn h04_the_address_that_was_connected_to_decides_where_a_document_came_from() {
    let origin = Origin::start().await;
    let names = Names::of(&[("a.test", &["127.0.0.1"])]);
    let fetch = HttpClient::with_lookup(settings(), names);
    origin.script("/feed", [answer("200 OK", &[], "x"), answer("404 Not Found", &[], "")]);
    // A name that looks public, and then a refusal on the connection that is open.
    let (url, none) = (origin.url_as("a.test", "/feed"), Validators::default());
    for _ in 0..2 {
        let fetched = get_with(&fetch, &url, &none).await;
        assert_eq!(fetched.source_network(), SourceNetwork::Inner);
    }
    let dead = get_with(&fetch, "http://127.0.0.1:9999/", &none).await;
    assert_eq!(dead.source_network(), SourceNetwork::Inner, "by the address in the URL alone");
}

#[tokio::test]
async fn a_connection_that_died_in_the_pool_costs_no_poll() {
    let origin = Origin::start().await;
    let hang_up = Step::SendAndClose(Vec::new());
    origin
        .script("/f", [answer("200 OK", &[], ATOM), hang_up.clone(), answer("200 OK", &[], ATOM)]);
    origin.script("/never", [hang_up]);
    let fetch = HttpClient::with_lookup(settings(), Names::of(&[("a.test", &["127.0.0.1"])]));
    let url = origin.url_as("a.test", "/f");
    for _ in 0..2 {
        document(get_with(&fetch, &url, &Validators::default()).await);
    }
    assert_eq!((origin.requests().len(), origin.connections()), (3, 2));

    let never = get_with(&fetch, &origin.url_as("a.test", "/never"), &Validators::default()).await;
    assert_eq!(code(&never), "unreachable");
    assert_eq!(origin.requests().len(), 5, "a new connection that is cut off is the server's word");
}

#[tokio::test]
async fn s04_one_inner_answer_among_others_refuses_the_name() {
    let origin = Origin::start().await;
    let names = Names::of(&[("mixed.test", &["127.0.0.1 10.0.0.1"])]);
    let fetch = HttpClient::with_lookup(only("127.0.0.1/32"), names);
    let got = get_with(&fetch, &origin.url_as("mixed.test", "/f"), &Validators::default()).await;
    assert_eq!(code(&got), "forbidden_address");
    assert_eq!(origin.connections(), 0);
}

#[tokio::test]
async fn s02_inner_names_are_not_even_looked_up() {
    let names = Names::of(&[]);
    let closed = NetworkSettings { allow_topics: Vec::new(), ..settings() };
    let fetch = HttpClient::with_lookup(closed, names.clone());
    for host in ["localhost", "db", "printer.local", "vault.internal", "x.onion"] {
        let url = format!("http://{host}:8080/");
        let got = get_with(&fetch, &url, &Validators::default()).await;
        assert_eq!(code(&got), "forbidden_address", "{host}");
    }
    assert!(names.lookups.lock().unwrap().is_empty());
}

#[tokio::test]
async fn s12_topics_and_callbacks_have_lists_of_their_own() {
    let origin = Origin::start().await;
    origin.script("/f", [answer("200 OK", &[], ATOM)]);
    let settings = NetworkSettings { allow_callbacks: Vec::new(), ..settings() };
    let fetch = HttpClient::new(settings);
    document(get_with(&fetch, &origin.url("/f"), &Validators::default()).await);

    let (method, headers, body) = (Method::POST, HeaderMap::new(), Bytes::new());
    let url = Url::parse(&origin.url("/f")).unwrap();
    let refused = fetch.call(CallbackRequest { method, url, headers, body }).await.unwrap_err();
    assert_eq!(refused.code(), "forbidden_address");
    assert_eq!(origin.connections(), 1);
}

#[tokio::test]
async fn s13_closed_and_silent_ports_look_the_same_to_a_subscriber() {
    // A port that nobody listens at any more, and an address that swallows what is sent
    // to it (reserved for documentation, so that nothing is there).
    let closed = Origin::start().await.url_as("closed.test", "/");
    let names = Names::of(&[("closed.test", &["127.0.0.1"]), ("silent.test", &["192.0.2.1"])]);
    let settings = NetworkSettings { allow_topics: vec!["0.0.0.0/0".parse().unwrap()], ..hasty() };
    let fetch = HttpClient::with_lookup(settings, names);
    let mut told = Vec::new();
    for url in [closed.as_str(), "http://silent.test:8080/"] {
        let got = get_with(&fetch, url, &Validators::default()).await;
        let Err(FetchError::Unreachable { detail, .. }) = got.result else {
            panic!("{url}: {:?}", got.result);
        };
        told.push(detail);
    }
    assert_eq!(told[0], told[1]);
}

#[tokio::test]
async fn a_name_that_does_not_exist_is_told_apart_from_a_lookup_that_failed() {
    #[derive(Debug)]
    struct Broken;
    #[async_trait]
    impl Lookup for Broken {
        async fn lookup(&self, _name: &str) -> io::Result<Vec<IpAddr>> {
            Err(io::Error::other("Temporary failure in name resolution"))
        }
    }
    #[derive(Debug)]
    struct Silent;
    #[async_trait]
    impl Lookup for Silent {
        async fn lookup(&self, _name: &str) -> io::Result<Vec<IpAddr>> {
            std::future::pending().await
        }
    }
    let cases: [(Arc<dyn Lookup>, &str); 3] = [
        (Names::of(&[]), "dns: no such name"),
        (Arc::new(Broken), "dns: the lookup failed"),
        (Arc::new(Silent), "dns: the lookup timed out"),
    ];
    for (lookup, want) in cases {
        let fetch = HttpClient::with_lookup(hasty(), lookup);
        match get_with(&fetch, "http://a.test/", &Validators::default()).await.result {
            Err(FetchError::Unreachable { detail, .. }) => assert_eq!(detail, want),
            other => panic!("{want}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn p39_certificates_are_verified_and_their_faults_told_apart() {
    let tls = tls::acceptor();
    let (anonymous, _stop) = tls::greeter(move |stream| {
        let accepting = tls.accept(stream);
        async move { drop(accepting.await) }
    })
    .await;
    let (plain, _stop) = tls::greeter(|mut stream| async move {
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
    })
    .await;
    let fetch =
        HttpClient::with_lookup(settings(), Names::of(&[("stranger.test", &["127.0.0.1"])]));
    let cases = [
        (anonymous, "tls: the certificate is from an unknown issuer"),
        (plain, "tls: the handshake failed"),
    ];
    for (port, want) in cases {
        let url = format!("https://stranger.test:{port}/");
        match get_with(&fetch, &url, &Validators::default()).await.result {
            Err(FetchError::Unreachable { detail, .. }) => assert_eq!(detail, want),
            other => panic!("{url}: {other:?}"),
        }
    }
}
