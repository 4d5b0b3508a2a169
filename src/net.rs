//! Outgoing HTTP: conditional, rate-limited requests for topics, plain requests to callbacks, and
//! the one guarded connector below both.
//!
//! [`HttpClient::get`] is in `topic`, [`HttpClient::call`] in `callback`; every request goes through
//! `guarded_client`. From one fetch to the next, only open connections, the turns of hosts, recent
//! name lookups and servers that cannot speak HTTP/2 are remembered here. What a poller must
//! remember is passed in and returned.

mod admitted_groups;
mod allowed_networks;
mod body;
mod callback;
mod callback_headers;
mod credentials;
mod decode;
mod failure;
mod fetch_limit;
mod fetch_owner;
mod fetched_document;
mod first_fetch_limit;
pub mod freshness;
mod guarded_client;
mod gzip_file;
mod hop;
mod host_gate;
mod open_response;
mod politeness;
mod request_signer;
mod resolver;
mod resource_location;
mod response_headers;
mod robots;
pub mod site_icon;
mod system_lookup;
mod topic;
mod user_agent;

use std::net::IpAddr;
use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use http::{HeaderValue, StatusCode};
use ipnet::IpNet;
use url::Url;

use crate::document_budget::{DocumentBudget, GatewayBusy};
use feedgate_core::callback_headers::CallbackHeaders;
use feedgate_core::poll::Validators;
use feedgate_core::registrant::RegistrantNetwork;
use feedgate_core::schedule::FailureClass;

use allowed_networks::AllowedNetworks;
use fetch_owner::FetchOwner;

pub use admitted_groups::ClaimedGroup;
pub use callback::{CallbackRequest, CallbackResponse};
pub(crate) use callback_headers::insert_callback_headers;
pub(crate) use feedgate_core::address_rules::{address_and_network, network};
pub use feedgate_core::address_rules::{is_inner, is_metadata, is_public};
pub(crate) use fetch_limit::{SLOW_AFTER, SLOW_LANE};
pub use fetched_document::FetchedDocument;
pub use guarded_client::Lookup;
pub use hop::Hop;
pub use host_gate::{GateRefusal, HostGate};
pub use open_response::OpenResponse;
pub use politeness::{HostBusy, Patience};
pub use request_signer::{PublishedKey, REQUEST_TAG, RequestSigner, Signer, VALID_FOR, authority};
pub use resource_location::ResourceLocation;
pub use robots::RobotsResponse;
pub use system_lookup::SystemLookup;

/// The maximum number of addresses of a name that are told apart: no honest name has more.
const MOST_ADDRESSES: usize = 64;

/// The operator's settings for outgoing requests.
#[derive(Clone, Debug)]
pub struct NetworkSettings {
    /// `feedgate/x.y (+URL`, without the closing bracket: subscribers and feed id are appended to
    /// each request (rule P34).
    pub user_agent: String,
    /// Networks that are not public but may be contacted for topics.
    pub allow_topics: Vec<IpNet>,
    /// Networks that are not public but may be contacted for callbacks.
    pub allow_callbacks: Vec<IpNet>,
    /// The timeout of one fetch, from the name lookup to the last byte (rule P42: 30 s). The steps
    /// have shares of it: a sixth for the lookup (5 s), half until a connection is established (15
    /// s), five sixths until the headers are received (25 s), a third for a pause within the body
    /// (10 s), a sixth until the minimum speed of the body applies (5 s). Waiting for the host's
    /// turn does not count.
    pub fetch_timeout: Duration,
    /// The timeout of one delivery or verification (rule D4: 10 s); half of it until a connection
    /// is established.
    pub callback_timeout: Duration,
    /// The maximum length of a body, on the wire and decoded (rule P43: 10 MiB).
    pub body_limit_bytes: u64,
    /// The minimum interval between the starts of two fetches from one host (rule P41: 1 s).
    pub host_spacing: Duration,
    /// The maximum number of concurrent fetches of this node, without those in the slow lane.
    pub fetch_concurrency: usize,
    /// The memory for documents, in bytes.
    pub document_memory_bytes: u64,
}

/// The use of an address: topics and callbacks may be allowed different networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The address is fetched.
    Topic,
    /// The address receives requests.
    Callback,
}

/// A request for a topic.
#[derive(Clone, Copy, Debug)]
pub struct FetchRequest<'a> {
    /// The URL of the topic.
    pub url: &'a str,
    /// The validators for a conditional request; sent only to the URL they came from.
    pub validators: &'a Validators,
    /// The number of active subscriptions, sent to the publisher in the user agent.
    pub subscribers: u32,
    /// The number of the resource, sent to the publisher in the user agent; `None` for probes.
    pub feed_id: Option<i64>,
}

impl<'a> FetchRequest<'a> {
    /// Returns a request for the document at `url`, whatever was received of it before, on behalf of no
    /// subscription.
    pub fn unconditional(url: &'a str) -> FetchRequest<'a> {
        static NO_VALIDATORS: Validators =
            Validators { url: String::new(), etag: None, last_modified: None };
        FetchRequest { url, validators: &NO_VALIDATORS, subscribers: 0, feed_id: None }
    }
}

/// The result of a fetch, with all details.
#[derive(Debug)]
pub struct Fetched {
    /// The response or the error.
    pub result: Result<FetchResponse, FetchError>,
    /// The location where the resource was found.
    pub location: ResourceLocation,
    /// Every hop from the requested URL to the response.
    pub hops: Vec<Hop>,
    /// The time from the first lookup to the last byte.
    pub took: Duration,
    /// Bytes received, before content decoding.
    pub wire_bytes: u64,
}

impl Fetched {
    /// Returns the new address of a resource that has moved permanently: the end of the leading
    /// permanent redirects (rule P19).
    pub fn moved_to(&self) -> Option<&Url> {
        match &self.location {
            ResourceLocation::Moved { to, .. } => Some(to),
            ResourceLocation::Unknown | ResourceLocation::Here | ResourceLocation::Elsewhere => {
                None
            }
        }
    }
}

/// A usable response.
#[derive(Debug)]
pub enum FetchResponse {
    /// 304 to a conditional request.
    NotModified {
        /// The number of seconds for which the document is fresh, if the response says so (rule
        /// P15).
        hint_s: Option<u32>,
    },
    /// A new document.
    Document(Box<FetchedDocument>),
}

/// The reason why a fetch returned no document.
///
/// Callers decide by [`code`](Self::code) and [`class`](Self::class), never by the text of the
/// message.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The name resolves to an address that is never contacted: loopback, private, link-local and
    /// the like (`docs/contributing/adr/0003-egress-guard.md`).
    #[error("{host} resolves to an address that is not public")]
    Forbidden {
        /// The name that was looked up.
        host: String,
    },
    /// The port belongs to a service other than the web (rule S8).
    #[error("port {port} is reserved for a service other than HTTP")]
    ForbiddenPort {
        /// The requested port.
        port: u16,
    },
    /// The URL cannot be fetched.
    #[error("the URL cannot be fetched: {0}")]
    BadUrl(String),
    /// No complete response within the timeout.
    #[error("no complete response within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// The body is longer than the limit.
    #[error("the body is longer than {limit_bytes} bytes")]
    BodyTooLarge {
        /// The limit that was exceeded, in bytes.
        limit_bytes: u64,
    },
    /// The headers with which the resource is fetched are not stored here.
    #[error("the headers for the feed are not stored here: subscribe with them again")]
    HeadersMissing,
    /// The server responded, but not with a document.
    #[error("the server responded with {status}")]
    Status {
        /// The status code.
        status: StatusCode,
        /// The number of seconds for which the server asked not to be contacted.
        retry_after_s: Option<u32>,
    },
    /// A bot-protection service refused the request unless it comes from a browser.
    #[error("the server responded with {status}: its bot protection requires a browser")]
    Blocked {
        /// The status code.
        status: StatusCode,
    },
    /// Too many redirects, a redirect loop, or an invalid target.
    #[error("invalid redirect: {0}")]
    Redirects(String),
    /// The body cannot be decoded as `Content-Encoding` says, or the encoding is not supported.
    #[error("the body is not valid {0}")]
    Encoding(String),
    /// The host was busy with other requests of this process for too long, so no request was sent
    /// to it. This says nothing about the host.
    #[error("{} is busy with other requests from this gateway; try again in {} s", .0.host, .0.retry_in.as_secs().max(1))]
    HostBusy(HostBusy),
    /// The server, to which a redirect may have led, requested a pause, so no request was sent to it.
    #[error("the server {host} requested that nothing is sent to it before {until}")]
    HostPaused {
        /// The host of the request that was not sent.
        host: String,
        /// The end of the pause.
        until: DateTime<Utc>,
    },
    /// This gateway had no memory for the document, or too many other fetches, for too long. This
    /// says nothing about the host.
    #[error(transparent)]
    GatewayBusy(#[from] GatewayBusy),
    /// Something failed below HTTP: name lookup, connection, TLS.
    #[error("could not reach {host}: {detail}")]
    Unreachable {
        /// The host of the request.
        host: String,
        /// The class of the failure in words that subscribers may read: `dns`, `connect`, `tls`,
        /// `h2` or `http` (rule S13).
        detail: String,
        /// The class of the failure for the schedule.
        class: FailureClass,
    },
}

impl FetchError {
    /// Returns the stable code for logs, metrics and the status document, listed in
    /// `docs/errors.md`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Forbidden { .. } => "forbidden_address",
            Self::ForbiddenPort { .. } => "forbidden_port",
            Self::BadUrl(_) => "bad_url",
            Self::HeadersMissing => "feed_headers_missing",
            Self::TimedOut(_) => "timed_out",
            Self::BodyTooLarge { .. } => "body_too_large",
            Self::Status { .. } => "http_status",
            Self::Blocked { .. } => "blocked",
            Self::Redirects(_) => "bad_redirect",
            Self::Encoding(_) => "bad_encoding",
            Self::HostBusy(_) => "host_busy",
            Self::HostPaused { .. } => "host_paused",
            Self::GatewayBusy(_) => "gateway_busy",
            Self::Unreachable { .. } => "unreachable",
        }
    }

    /// Returns the class of failure, which decides when the resource is polled again.
    pub fn class(&self) -> FailureClass {
        match self {
            Self::Forbidden { .. } | Self::ForbiddenPort { .. } | Self::BadUrl(_) => {
                FailureClass::Forbidden
            }
            Self::TimedOut(_)
            | Self::HostBusy(_)
            | Self::HostPaused { .. }
            | Self::GatewayBusy(_) => FailureClass::Network,
            Self::Status { status, .. } => FailureClass::of_status(status.as_u16()),
            Self::Blocked { .. } | Self::HeadersMissing => FailureClass::Denied,
            Self::BodyTooLarge { .. } | Self::Encoding(_) => FailureClass::Unusable,
            Self::Redirects(_) => FailureClass::Missing,
            Self::Unreachable { class, .. } => *class,
        }
    }
}

/// Returns the shortest time limit of a lookup.
fn shortest_lookup(settings: &NetworkSettings) -> Duration {
    (settings.fetch_timeout / 6).min(settings.callback_timeout / 2)
}

/// The HTTP client. Clones share connections and host turns.
#[derive(Clone, Debug)]
pub struct HttpClient {
    inner: Arc<Inner>,
    /// Where callbacks may be.
    callbacks: AllowedNetworks,
    /// Where topics may be.
    topics: AllowedNetworks,
    /// Whether the topics and callbacks of those without an account may be in private networks too.
    has_inner_for_all: bool,
    requester: FetchOwner,
    /// Whether documents are read in half of the memory for them.
    has_half_of_memory: bool,
    /// The headers of the resource for which requests are made, if it has its own, with its URL.
    feed_headers: Option<Arc<(Url, CallbackHeaders)>>,
}

#[derive(Debug)]
struct Inner {
    settings: NetworkSettings,
    /// The user agent for callbacks, without subscriber counts.
    user_agent: HeaderValue,
    topics: Arc<guarded_client::GuardedClient>,
    /// The same, if no private network is allowed.
    public_topics: Arc<guarded_client::GuardedClient>,
    callbacks: Arc<guarded_client::GuardedClient>,
    /// The same, if no private network is allowed.
    public_callbacks: Arc<guarded_client::GuardedClient>,
    hosts: politeness::HostTurns,
    gate: Option<Arc<dyn HostGate>>,
    fetches: fetch_limit::FetchLimit,
    first_fetches: first_fetch_limit::FirstFetchLimit,
    documents: DocumentBudget,
    /// Half of the same.
    half_of_documents: DocumentBudget,
    signer: request_signer::RequestSigner,
    lookups: resolver::Lookups,
}

impl HttpClient {
    /// Creates a client with these settings that uses the system's resolver.
    pub fn new(settings: NetworkSettings) -> HttpClient {
        let lookups = resolver::Lookups::of_system(shortest_lookup(&settings));
        HttpClient::build(settings, lookups, None)
    }

    /// Creates the client of a gateway, whose nodes share the limits of servers.
    pub fn with_host_gate(settings: NetworkSettings, gate: Arc<dyn HostGate>) -> HttpClient {
        let lookups = resolver::Lookups::of_system(shortest_lookup(&settings));
        HttpClient::build(settings, lookups, Some(gate))
    }

    /// Creates a client that resolves names with `lookup`.
    pub fn with_lookup(settings: NetworkSettings, lookup: Arc<dyn Lookup>) -> HttpClient {
        HttpClient::with_lookups(settings, Arc::clone(&lookup), lookup)
    }

    /// Creates a client that resolves names with `known` for accounts and the gateway itself, and with
    /// `others` for all others.
    pub fn with_lookups(
        settings: NetworkSettings,
        known: Arc<dyn Lookup>,
        others: Arc<dyn Lookup>,
    ) -> HttpClient {
        HttpClient::build(settings, resolver::Lookups::Given { known, others }, None)
    }

    fn build(
        settings: NetworkSettings,
        lookups: resolver::Lookups,
        gate: Option<Arc<dyn HostGate>>,
    ) -> HttpClient {
        let topics = guarded_client::ConnectTimeouts {
            lookup: settings.fetch_timeout / 6,
            connect: settings.fetch_timeout / 2,
        };
        let callbacks = guarded_client::ConnectTimeouts {
            lookup: settings.callback_timeout / 2,
            connect: settings.callback_timeout / 2,
        };
        let parsers = std::thread::available_parallelism().map_or(1, NonZero::get);
        let documents = DocumentBudget::new(settings.document_memory_bytes, parsers);
        let tls = guarded_client::tls();
        let user_agent = HeaderValue::from_str(&format!("{})", settings.user_agent));
        let known = lookups.for_owner(FetchOwner::Known);
        let anonymous = lookups.for_owner(FetchOwner::Anonymous(RegistrantNetwork::UNKNOWN));
        // A client for the networks that are allowed, and one for public addresses only, to which strangers
        // have requests sent.
        let clients = |allowed: &[IpNet], timeouts| {
            let client = |allowed: &[IpNet], lookup: &Arc<dyn Lookup>| {
                let (lookup, tls) = (Arc::clone(lookup), tls.clone());
                Arc::new(guarded_client::GuardedClient::new(allowed, lookup, timeouts, tls))
            };
            (client(allowed, &known), client(&[], &anonymous))
        };
        let (topics, public_topics) = clients(&settings.allow_topics, topics);
        let (callbacks, public_callbacks) = clients(&settings.allow_callbacks, callbacks);
        let inner = Inner {
            user_agent: user_agent.unwrap_or(HeaderValue::from_static("feedgate")),
            topics,
            public_topics,
            callbacks,
            public_callbacks,
            hosts: politeness::HostTurns::new(settings.host_spacing),
            gate,
            fetches: fetch_limit::FetchLimit::new(settings.fetch_concurrency, &documents),
            first_fetches: first_fetch_limit::FirstFetchLimit::default(),
            half_of_documents: documents.half(),
            documents,
            signer: request_signer::RequestSigner::default(),
            lookups,
            settings,
        };
        let (callbacks, topics) = (AllowedNetworks::All, AllowedNetworks::All);
        let requester = FetchOwner::Known;
        HttpClient {
            inner: Arc::new(inner),
            callbacks,
            topics,
            has_inner_for_all: false,
            requester,
            has_half_of_memory: false,
            feed_headers: None,
        }
    }

    /// Returns the memory for documents, which everything that reads documents shares, or the half of it
    /// that this client has.
    pub fn documents(&self) -> &DocumentBudget {
        match self.has_half_of_memory {
            true => &self.inner.half_of_documents,
            false => &self.inner.documents,
        }
    }

    /// Returns what signs the requests of this client to publishers.
    pub fn request_signer(&self) -> &RequestSigner {
        &self.inner.signer
    }

    /// Returns whether the host of the callback `url` resolves to `ip` and passes the guard.
    pub async fn resolves_to(&self, url: &Url, ip: IpAddr) -> bool {
        let found = self.addresses(url, Purpose::Callback).await;
        found.iter().any(|own| own.to_canonical() == ip.to_canonical())
    }

    /// Returns the public addresses that the host of `url` resolves to; none if its name does not
    /// exist or may not be contacted. `None` if it has addresses and all of them are the operator's.
    pub async fn public_addresses(&self, url: &Url, purpose: Purpose) -> Option<Vec<IpAddr>> {
        let mut found = self.addresses(url, purpose).await;
        let is_known = !found.is_empty();
        found.retain(|ip| is_public(*ip));
        found.truncate(MOST_ADDRESSES);
        (!is_known || !found.is_empty()).then_some(found)
    }

    /// Counts the first fetch of a resource that anybody may request. The error is the time after which
    /// it may be requested again: too many were requested of the addresses or the networks of its
    /// host. Addresses that are not public are not limited.
    pub async fn admit_first_fetch(&self, url: &Url) -> Result<(), Duration> {
        match self.public_addresses(url, Purpose::Topic).await {
            Some(addresses) => {
                let admitted = self.inner.first_fetches.admit(&addresses);
                admitted.map_err(|wait| wait.max(Duration::from_secs(1)))
            }
            None => Ok(()),
        }
    }

    /// Returns the reason why a request to `url` is always refused, judging by the URL alone: its
    /// address, a name that is private by its form, or its port. No name is looked up.
    pub fn refuses(&self, url: &Url, purpose: Purpose) -> Option<FetchError> {
        self.guarded(purpose).check(url).err()
    }
}
