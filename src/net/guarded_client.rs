//! The one guarded HTTP client. No other file may build an HTTP client; a test checks.
//!
//! A request is checked twice. [`GuardedClient::check`] checks the URL of every hop: scheme, port,
//! and the address where the URL has one instead of a name, because the client never resolves
//! those (S3). [`Guard::resolve`] checks the addresses of a name: the name is looked up once, it is
//! refused if any of its addresses is forbidden, and only the checked addresses are passed to the
//! connector, so that nothing can change between check and connection (S4). Why it is built like this:
//! `docs/contributing/adr/0003-egress-guard.md`.
//!
//! Deliberately absent: redirects (the caller follows them hop by hop), proxies from
//! the environment (S10), cookies, a `Referer`, and a switch that turns the guard
//! off (S12).

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use ipnet::IpNet;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use rustls::{ClientConfig, RootCertStore};
use tokio::time::{Instant, timeout};
use tracing::warn;
use url::{Host, Url};

use super::FetchError;
use super::address_rules::{is_allowed, is_inner_name, is_listed};
use feedgate_core::topic::host;

/// The maximum time that an idle connection is kept, so that a name whose address has changed is
/// looked up and checked again (rule S4).
const IDLE: Duration = Duration::from_secs(30);

/// The maximum number of servers whose connections are kept alive: those that recently received
/// more than one request. Without it, one change delivered to ten thousand servers would leave as
/// many idle connections open.
const KEEPALIVE_SERVERS: usize = 512;

/// How long HTTP/1.1 is used for a server that violated HTTP/2. Each node remembers this
/// separately; forgetting costs one failed request.
const HTTP1_FOR: Duration = Duration::from_secs(24 * 3_600);

/// The ports below 1024 that may be requested. All others belong to services that could interpret
/// an HTTP request as commands (rule S8).
const LOW_PORTS: [u16; 2] = [80, 443];

/// Ports from 1024 on that belong to such services and must not be requested.
#[rustfmt::skip]
const OTHER_SERVICES: [u16; 25] = [
    1433, 1521, 1723, 2049, 2375, 2376, 2379, 3306, 3389, 3659, 4045, 5060, 5061,
    5432, 5672, 5900, 6000, 6379, 6566, 6667, 6697, 9042, 10_250, 11_211, 27_017,
];

/// A resolver of names: the system's in production, a table in tests.
#[async_trait]
pub trait Lookup: fmt::Debug + Send + Sync {
    /// Returns all addresses of `name`.
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The system's resolver.
#[derive(Debug)]
pub struct SystemLookup;

#[async_trait]
impl Lookup for SystemLookup {
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let found = tokio::net::lookup_host((name, 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    }
}

/// The timeouts for establishing a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectTimeouts {
    /// The timeout of the name lookup.
    pub(super) lookup: Duration,
    /// The timeout until the connection is established: name lookup, TCP and TLS.
    pub(super) connect: Duration,
}

/// A client for topics or for callbacks. The two may be allowed different networks and share no
/// connections.
#[derive(Debug)]
pub(super) struct GuardedClient {
    guard: Arc<Guard>,
    client: reqwest::Client,
    /// The client for servers that do not support HTTP/2 correctly.
    http1_only: reqwest::Client,
    /// The servers without HTTP/2, and when to forget them.
    http1_servers: Mutex<HashMap<String, Instant>>,
    /// The client that keeps no connections alive.
    no_keepalive: reqwest::Client,
    /// The servers that recently received requests, and when to forget them.
    recent_servers: Mutex<HashMap<String, Instant>>,
}

impl GuardedClient {
    /// Creates a client for public addresses and those in `allowed`.
    pub(super) fn new(
        allowed: &[IpNet],
        lookup: Arc<dyn Lookup>,
        timeouts: ConnectTimeouts,
        tls: ClientConfig,
    ) -> GuardedClient {
        let guard = Arc::new(Guard {
            allowed: allowed.to_vec(),
            lookup,
            timeout: timeouts.lookup,
            watched: Mutex::default(),
        });
        let mut http1_tls = tls.clone();
        http1_tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let build =
            |tls, max_idle| build_client(Arc::clone(&guard), timeouts.connect, tls, max_idle);
        GuardedClient {
            http1_only: build(http1_tls, usize::MAX),
            no_keepalive: build(tls.clone(), 0),
            client: build(tls, usize::MAX),
            http1_servers: Mutex::default(),
            recent_servers: Mutex::default(),
            guard,
        }
    }

    /// Returns the client for a request to `url` that was checked with [`check`](Self::check).
    pub(super) fn client(&self, url: &Url) -> &reqwest::Client {
        let servers = self.http1_servers.lock().unwrap_or_else(PoisonError::into_inner);
        let is_http1 = !servers.is_empty()
            && servers.get(&host(url)).is_some_and(|until| *until > Instant::now());
        if is_http1 { &self.http1_only } else { &self.client }
    }

    /// Returns the client for a request that may be the only one to its server for a long time. The
    /// connection of the first request is closed after it; from the second request on, connections
    /// are kept alive.
    pub(super) fn client_for_rare_server(&self, url: &Url) -> &reqwest::Client {
        let (now, host) = (Instant::now(), host(url));
        let mut servers = self.recent_servers.lock().unwrap_or_else(PoisonError::into_inner);
        if servers.len() >= KEEPALIVE_SERVERS && !servers.contains_key(&host) {
            servers.retain(|_, until| *until > now);
        }
        let is_known = servers.get(&host).is_some_and(|until| *until > now);
        if is_known || servers.len() < KEEPALIVE_SERVERS {
            servers.insert(host, now + IDLE);
        }
        drop(servers);
        if is_known { self.client(url) } else { &self.no_keepalive }
    }

    /// Uses HTTP/1.1 for the server of `url` from now on (rule P38). Returns `false` if it was used
    /// already.
    pub(super) fn fall_back_to_http1(&self, url: &Url) -> bool {
        let now = Instant::now();
        let mut servers = self.http1_servers.lock().unwrap_or_else(PoisonError::into_inner);
        servers.retain(|_, until| *until > now);
        servers.insert(host(url), now + HTTP1_FOR).is_none()
    }

    /// Returns an error if a URL must not be requested, judging by the URL alone.
    pub(super) fn check(&self, url: &Url) -> Result<(), FetchError> {
        self.guard.check(url)
    }

    /// Returns whether the host in `url` resolves to `ip`.
    pub(super) async fn resolves_to(&self, url: &Url, ip: IpAddr) -> bool {
        match url.host() {
            Some(Host::Ipv4(own)) => IpAddr::V4(own) == ip.to_canonical(),
            Some(Host::Ipv6(own)) => IpAddr::V6(own).to_canonical() == ip.to_canonical(),
            Some(Host::Domain(name)) => {
                let found = self.guard.resolve(name).await.unwrap_or_default();
                found.iter().any(|own| own.to_canonical() == ip.to_canonical())
            }
            None => false,
        }
    }

    /// Records the addresses of the name in `url` until the trace is dropped.
    pub(super) fn trace_lookup(&self, url: &Url) -> LookupTrace {
        let name = url.host_str().unwrap_or_default().to_owned();
        self.guard.watched().entry(name.clone()).or_default().watchers += 1;
        LookupTrace { guard: Arc::clone(&self.guard), name }
    }
}

#[derive(Debug)]
struct Guard {
    allowed: Vec<IpNet>,
    lookup: Arc<dyn Lookup>,
    timeout: Duration,
    watched: Mutex<HashMap<String, Watched>>,
}

#[derive(Debug, Default)]
struct Watched {
    watchers: usize,
    addresses: Vec<IpAddr>,
}

impl Guard {
    fn check(&self, url: &Url) -> Result<(), FetchError> {
        let bad = |why: &str| FetchError::BadUrl(why.to_owned());
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad("only http: and https: are supported"));
        }
        let port = url.port_or_known_default().unwrap_or_default();
        if !(LOW_PORTS.contains(&port) || (port >= 1024 && !OTHER_SERVICES.contains(&port))) {
            return Err(FetchError::ForbiddenPort { port });
        }
        let ip = match url.host().ok_or_else(|| bad("it has no host"))? {
            Host::Ipv4(ip) => IpAddr::V4(ip),
            Host::Ipv6(ip) => IpAddr::V6(ip),
            Host::Domain(name) if is_inner_name(name) && self.allowed.is_empty() => {
                // The name is not even looked up, because the query would disclose a private name.
                return Err(FetchError::Forbidden { host: name.to_owned() });
            }
            Host::Domain(_) => return Ok(()),
        };
        if is_allowed(ip, &self.allowed) {
            Ok(())
        } else {
            Err(FetchError::Forbidden { host: ip.to_string() })
        }
    }

    /// Returns the addresses of `name` after checking all of them.
    async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, LookupError> {
        let found = match timeout(self.timeout, self.lookup.lookup(name)).await {
            Ok(Ok(found)) if found.is_empty() => return Err(LookupError::NoName),
            Ok(Ok(found)) => found,
            Ok(Err(err)) if is_unknown(&err) => return Err(LookupError::NoName),
            Ok(Err(err)) => return Err(LookupError::Lookup(err)),
            Err(_) => return Err(LookupError::LookupTimedOut),
        };
        if let Some(watched) = self.watched().get_mut(name) {
            watched.addresses.clone_from(&found);
        }
        let inner = is_inner_name(name);
        let passes = |ip: &IpAddr| match inner {
            true => is_listed(*ip, &self.allowed),
            false => is_allowed(*ip, &self.allowed),
        };
        if found.iter().all(passes) { Ok(found) } else { Err(LookupError::Forbidden) }
    }

    fn watched(&self) -> std::sync::MutexGuard<'_, HashMap<String, Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether the resolver reports that the name does not exist, which only the text of the
/// error tells. Any other failure may be the resolver's own.
pub(super) fn is_unknown(err: &io::Error) -> bool {
    let text = err.to_string();
    ["not known", "No address associated", "nodename nor servname", "No such host"]
        .iter()
        .any(|words| text.contains(words))
}

/// The reason why a name was not resolved.
#[derive(Debug, thiserror::Error)]
pub(super) enum LookupError {
    /// The name resolves to an address that is neither public nor allowed.
    #[error("the name resolves to an address that is not public")]
    Forbidden,
    /// The name does not exist.
    #[error("dns: no such name")]
    NoName,
    /// The lookup failed.
    #[error("dns: the lookup failed")]
    Lookup(#[source] io::Error),
    /// The lookup timed out.
    #[error("dns: the lookup timed out")]
    LookupTimedOut,
}

/// The addresses that a name resolved to while the trace was active.
#[derive(Debug)]
pub(super) struct LookupTrace {
    guard: Arc<Guard>,
    name: String,
}

impl LookupTrace {
    /// Returns the addresses of the last lookup; none if a connection was reused.
    pub(super) fn addresses(&self) -> Vec<IpAddr> {
        self.guard.watched().get(&self.name).map(|held| held.addresses.clone()).unwrap_or_default()
    }
}

impl Drop for LookupTrace {
    fn drop(&mut self) {
        let mut watched = self.guard.watched();
        if let Some(held) = watched.get_mut(&self.name) {
            held.watchers -= 1;
            if held.watchers == 0 {
                watched.remove(&self.name);
            }
        }
    }
}

struct Resolver(Arc<Guard>);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = Arc::clone(&self.0);
        Box::pin(async move {
            let found = guard.resolve(name.as_str()).await?;
            // Port 0 means the port of the URL.
            Ok(Box::new(found.into_iter().map(|ip| SocketAddr::new(ip, 0))) as Addrs)
        })
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one place")]
fn build_client(
    guard: Arc<Guard>,
    connect: Duration,
    tls: ClientConfig,
    max_idle: usize,
) -> reqwest::Client {
    reqwest::Client::builder()
        .dns_resolver(Arc::new(Resolver(guard)))
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .referer(false)
        .tls_backend_preconfigured(tls)
        .connect_timeout(connect)
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(max_idle)
        .http1_allow_obsolete_multiline_headers_in_responses(true)
        .http1_allow_spaces_after_header_name_in_responses(true)
        .http1_ignore_invalid_headers_in_responses(true)
        .http2_max_header_list_size(64 * 1024)
        .build()
        .expect("resolver and TLS are given, so nothing is read that could fail")
}

/// Returns the TLS settings: certificates are verified against the system's root certificates (rule
/// P39).
pub(super) fn tls() -> ClientConfig {
    let mut roots = RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(system.certs);
    if roots.is_empty() {
        warn!(
            "this system has no root certificates: every https request will fail; install \
             ca-certificates or set SSL_CERT_FILE"
        );
    }
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(ring)
        .with_safe_default_protocol_versions()
        .expect("ring has the cipher suites of TLS 1.2 and 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config
}

#[cfg(test)]
mod tests {
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
}
