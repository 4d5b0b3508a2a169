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

mod guard;
#[cfg(test)]
mod tests;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ipnet::IpNet;
use rustls::{ClientConfig, RootCertStore};
use tokio::time::Instant;
use tracing::warn;
use url::{Host, Position, Url};

use super::FetchError;
use feedgate_core::topic::host;

use guard::{Guard, Resolver};

pub use guard::Lookup;
pub(super) use guard::{LookupError, LookupTrace, LookupsBusy, is_unknown, looking_up_with};

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
        if self.is_recent_server(&url[..Position::BeforePath], Instant::now()) {
            self.client(url)
        } else {
            &self.no_keepalive
        }
    }

    /// Returns whether a server, given with its scheme, received a request recently, and notes this one.
    fn is_recent_server(&self, server: &str, now: Instant) -> bool {
        let mut servers = self.recent_servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(until) = servers.get_mut(server) {
            return std::mem::replace(until, now + IDLE) > now;
        }
        if servers.len() >= KEEPALIVE_SERVERS {
            servers.retain(|_, until| *until > now);
        }
        if servers.len() < KEEPALIVE_SERVERS {
            servers.insert(server.to_owned(), now + IDLE);
        }
        false
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

    /// Returns the address in `url`, or the addresses of its name; none if the name does not exist,
    /// or if one of its addresses is forbidden. It is looked up with `lookup`.
    pub(super) async fn addresses(&self, url: &Url, lookup: &dyn Lookup) -> Vec<IpAddr> {
        match url.host() {
            Some(Host::Ipv4(ip)) => vec![IpAddr::V4(ip)],
            Some(Host::Ipv6(ip)) => vec![IpAddr::V6(ip).to_canonical()],
            Some(Host::Domain(name)) => {
                self.guard.resolve_with(name, lookup).await.unwrap_or_default()
            }
            None => Vec::new(),
        }
    }

    /// Returns a client that opens a new connection for each request.
    pub(super) fn client_without_reuse(&self) -> &reqwest::Client {
        &self.no_keepalive
    }

    /// Records the addresses of the name in `url` until the trace is dropped.
    pub(super) fn trace_lookup(&self, url: &Url) -> LookupTrace {
        let name = url.host_str().unwrap_or_default().to_owned();
        self.guard.watched().entry(name.clone()).or_default().watchers += 1;
        LookupTrace { guard: Arc::clone(&self.guard), name }
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
