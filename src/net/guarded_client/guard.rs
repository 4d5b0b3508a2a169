//! The guard: checks URLs, and the addresses that names resolve to.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use ipnet::IpNet;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::time::timeout;
use url::{Host, Url};

use crate::net::FetchError;
use feedgate_core::address_rules::{is_allowed, is_inner_name, is_listed};

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

/// The reason of an error of a resolver that looks up too many other names.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("too many other names are being looked up")]
pub(in crate::net) struct LookupsBusy;

impl LookupsBusy {
    fn is_reason_of(err: &io::Error) -> bool {
        err.get_ref().is_some_and(|reason| reason.is::<LookupsBusy>())
    }
}

/// Decides which URLs and addresses may be requested.
#[derive(Debug)]
pub(super) struct Guard {
    /// Networks that are not public but may be requested.
    pub(super) allowed: Vec<IpNet>,
    /// The resolver of names, unless a request is sent with another ([`looking_up_with`]).
    pub(super) lookup: Arc<dyn Lookup>,
    /// The timeout of a lookup.
    pub(super) timeout: Duration,
    /// The names whose lookups are traced.
    pub(super) watched: Mutex<HashMap<String, Watched>>,
}

/// The traces of one name, and the addresses of its last lookup.
#[derive(Debug, Default)]
pub(super) struct Watched {
    pub(super) watchers: usize,
    addresses: Vec<IpAddr>,
}

impl Guard {
    /// Returns an error if `url` must not be requested, judging by the URL alone.
    pub(super) fn check(&self, url: &Url) -> Result<(), FetchError> {
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
    pub(super) async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, LookupError> {
        self.resolve_with(name, &*self.lookup).await
    }

    /// Returns the addresses of `name` as [`resolve`](Self::resolve) does, with another resolver.
    pub(super) async fn resolve_with(
        &self,
        name: &str,
        lookup: &dyn Lookup,
    ) -> Result<Vec<IpAddr>, LookupError> {
        let found = match timeout(self.timeout, lookup.lookup(name)).await {
            Ok(Ok(found)) if found.is_empty() => return Err(LookupError::NoName),
            Ok(Ok(found)) => found,
            Ok(Err(err)) if is_unknown(&err) => return Err(LookupError::NoName),
            Ok(Err(err)) if LookupsBusy::is_reason_of(&err) => return Err(LookupError::Busy),
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

    pub(super) fn watched(&self) -> std::sync::MutexGuard<'_, HashMap<String, Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether the resolver reports that the name does not exist, which only the text of the
/// error tells. Any other failure may be the resolver's own.
pub(in crate::net) fn is_unknown(err: &io::Error) -> bool {
    let text = err.to_string();
    ["not known", "No address associated", "nodename nor servname", "No such host"]
        .iter()
        .any(|words| text.contains(words))
}

/// The reason why a name was not resolved.
#[derive(Debug, thiserror::Error)]
pub(in crate::net) enum LookupError {
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
    /// Too many other names are being looked up, which says nothing about this one.
    #[error("dns: too many other names are being looked up")]
    Busy,
}

/// The addresses that a name resolved to while the trace was active.
#[derive(Debug)]
pub(in crate::net) struct LookupTrace {
    pub(super) guard: Arc<Guard>,
    pub(super) name: String,
}

impl LookupTrace {
    /// Returns the addresses of the last lookup; none if a connection was reused.
    pub(in crate::net) fn addresses(&self) -> Vec<IpAddr> {
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

tokio::task_local! {
    /// The resolver of names for the request that a task sends: connections are shared, and do not know for
    /// whom they are established.
    static LOOKUP: Arc<dyn Lookup>;
}

/// Awaits a request, whose name is looked up with `lookup` if a connection is established for it.
pub(in crate::net) async fn looking_up_with<T>(
    lookup: Arc<dyn Lookup>,
    request: impl Future<Output = T>,
) -> T {
    LOOKUP.scope(lookup, request).await
}

/// Resolves names for the HTTP client, through the guard.
pub(super) struct Resolver(pub(super) Arc<Guard>);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = Arc::clone(&self.0);
        let lookup = LOOKUP.try_with(Arc::clone);
        Box::pin(async move {
            let found = match lookup {
                Ok(lookup) => guard.resolve_with(name.as_str(), &*lookup).await?,
                Err(_) => guard.resolve(name.as_str()).await?,
            };
            // Port 0 means the port of the URL.
            Ok(Box::new(found.into_iter().map(|ip| SocketAddr::new(ip, 0))) as Addrs)
        })
    }
}
