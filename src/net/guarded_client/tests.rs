//! Addresses and ports that must be refused, and the connections that are kept.

use std::io;

use async_trait::async_trait;

use super::*;
use std::ptr;

#[derive(Debug)]
struct Table(&'static [&'static str]);

#[async_trait]
impl Lookup for Table {
    async fn lookup(&self, _name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(self.0.iter().map(|ip| ip.parse().unwrap()).collect())
    }
}

fn guard(allowed: &[&str], answers: &'static [&'static str]) -> Guard {
    Guard {
        allowed: allowed.iter().map(|net| net.parse().unwrap()).collect(),
        lookup: Arc::new(Table(answers)),
        timeout: Duration::from_secs(5),
        watched: Mutex::default(),
    }
}

#[test]
fn odd_spellings_of_inner_addresses_are_refused() {
    let guard = guard(&[], &[]);
    #[rustfmt::skip]
    let cases = [
        "http://2130706433/", "http://0x7f.1/", "http://0x7f000001/", "http://017700000001/",
        "http://127.1/", "http://0/", "http://0177.0.0.1/", "http://127.0.0.1./",
        "http://１２７.０.０.１/", "http://①②⑦.0.0.1/", "http://127。0。0。1/", "http://%31%32%37.0.0.1/",
        "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[0:0:0:0:0:0:0:1]/",
        "http://localhost/", "http://LOCALHOST./", "http://a.localhost/", "http://printer.local/",
        "http://metadata.google.internal/", "http://x.onion/", "http://intranet/", "http://intranet./",
        "http://public.example@127.0.0.1/", "http://10.0.0.1:8080/",
    ];
    for text in cases {
        let url = Url::parse(text).unwrap();
        let refused = guard.check(&url);
        assert!(matches!(refused, Err(FetchError::Forbidden { .. })), "{text}: {refused:?}");
    }
    let fine = Url::parse("http://127.0.0.1@public.example/").unwrap();
    assert!(guard.check(&fine).is_ok(), "the part before @ is not the host");
}

#[test]
fn ports_of_other_services_are_refused() {
    let guard = guard(&[], &[]);
    for port in [0, 1, 22, 25, 81, 139, 1023, 2375, 5432, 6379, 6667, 11_211, 27_017] {
        let url = Url::parse(&format!("http://a.test:{port}/")).unwrap();
        let refused = guard.check(&url).unwrap_err();
        assert_eq!(refused.code(), "forbidden_port", "{port}");
    }
    for port in [80, 443, 1024, 3000, 4443, 8000, 8080, 8443, 65_535] {
        let url = Url::parse(&format!("http://a.test:{port}/")).unwrap();
        assert!(guard.check(&url).is_ok(), "{port}");
    }
}

#[test]
fn only_connections_to_servers_that_are_called_again_are_kept() {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let second = Duration::from_secs(1);
    let timeouts = ConnectTimeouts { lookup: second, connect: second };
    let client = GuardedClient::new(&[], Arc::new(Table(&[])), timeouts, tls);
    let is_kept = |n: usize| {
        let url = Url::parse(&format!("https://{n}.test/")).unwrap();
        ptr::eq(client.client_for_rare_server(&url), &raw const client.client)
    };
    assert_eq!([0, 0, 1, 0, 1].map(is_kept), [false, true, false, true, true]);
    // Many servers that receive one request each.
    let mut others = 2..10 * KEEPALIVE_SERVERS;
    assert!(!others.any(is_kept));
    assert!(client.recent_servers.lock().unwrap().len() <= KEEPALIVE_SERVERS);
    assert!(is_kept(0), "a server that was known before is still known");
}

#[tokio::test]
async fn one_forbidden_answer_refuses_the_whole_name() {
    #[rustfmt::skip]
    let cases: [(&str, &[&str], &'static [&'static str], bool); 8] = [
        ("all public",                   &[],            &["93.184.216.34", "2606:2800::1"], true),
        ("one inner among them",         &[],            &["93.184.216.34", "10.0.0.1"],     false),
        ("inner only",                   &[],            &["127.0.0.1"],                     false),
        ("mapped",                       &[],            &["::ffff:127.0.0.1"],              false),
        ("listed",                       &["10.0.0.0/8"], &["10.0.0.1"],                     true),
        ("one listed, one not",          &["10.0.0.0/8"], &["10.0.0.1", "192.168.0.1"],      false),
        ("metadata in a listed network", &["0.0.0.0/0"], &["169.254.169.254"],               false),
        ("a name without addresses",     &[],            &[],                                false),
    ];
    for (why, allowed, answers, want) in cases {
        let got = guard(allowed, answers).resolve("a.test").await;
        assert_eq!(got.is_ok(), want, "{why}: {got:?}");
    }
}

#[tokio::test]
async fn an_inner_name_leads_to_listed_networks_only() {
    let guard = guard(&["10.0.0.0/8"], &["10.0.0.1"]);
    assert!(guard.check(&Url::parse("http://wiki/").unwrap()).is_ok());
    assert!(guard.resolve("wiki").await.is_ok());
    let public = self::guard(&["10.0.0.0/8"], &["93.184.216.34"]);
    assert!(matches!(public.resolve("wiki").await, Err(LookupError::Forbidden)));
    assert!(public.resolve("a.test").await.is_ok());
}
