//! Outgoing HTTP: conditional, rate-limited requests for topics, plain requests to callbacks, and
//! the one guarded connector below both.
//!
//! [`HttpClient::get`] is in `topic`, [`HttpClient::call`] in `callback`; every request goes through
//! `guarded_client`. From one fetch to the next, only open connections, the turns of hosts, recent
//! name lookups and servers that cannot speak HTTP/2 are remembered here. What a poller must
//! remember is passed in and returned.

mod address_rules;
mod body;
mod callback;
mod credentials;
mod decode;
mod failure;
pub mod freshness;
mod guarded_client;
mod politeness;
mod resolver;
mod robots;
mod topic;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version};
use ipnet::IpNet;
use url::Url;

use feedgate_core::event::AnswerExcerpt;
use feedgate_core::poll::Validators;
use feedgate_core::schedule::FailureClass;
use feedgate_feed::Context;
use feedgate_feed::model::KnownBy;

pub use address_rules::{is_inner, is_metadata, is_public};
pub use guarded_client::{Lookup, SystemLookup};
pub use robots::RobotsResponse;

/// The operator's settings for outgoing requests.
#[derive(Clone, Debug)]
pub struct NetworkSettings {
    /// `feedgate/x.y (+URL`, without the closing bracket: subscribers and feed id are
    /// appended per request (P34).
    pub user_agent: String,
    /// Networks that are not public but may be contacted for topics.
    pub allow_topics: Vec<IpNet>,
    /// Networks that are not public but may be contacted for callbacks.
    pub allow_callbacks: Vec<IpNet>,
    /// For one fetch, from the lookup of the name to the last byte (P42: 30 s). Its
    /// steps have shares of it: a sixth for the lookup (5 s), half until a connection
    /// stands (15 s), five sixths until the headers are there (25 s), a third for a pause
    /// within the body (10 s), a sixth until a body may no longer be slow (5 s). Waiting
    /// for the host's turn does not count.
    pub fetch_timeout: Duration,
    /// For one delivery or verification (D4: 10 s), half of it until a connection
    /// stands.
    pub callback_timeout: Duration,
    /// The longest body read, on the wire and decoded (P43: 10 MiB).
    pub body_limit_bytes: u64,
    /// Between the starts of two fetches from one host (P41: 1 s).
    pub host_spacing: Duration,
}

/// The use of an address: topics and callbacks may be allowed different networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It is fetched.
    Topic,
    /// It receives requests.
    Callback,
}

/// A request for a topic.
#[derive(Clone, Copy, Debug)]
pub struct FetchRequest<'a> {
    /// The address.
    pub url: &'a str,
    /// The validators for a conditional request; sent only to the URL they came from.
    pub validators: &'a Validators,
    /// The number of live subscriptions, sent to the publisher in the user agent.
    pub subscribers: u32,
    /// The number of the resource, sent to the publisher in the user agent; `None` for probes.
    pub feed_id: Option<i64>,
}

/// The result of a fetch, with all details.
#[derive(Debug)]
pub struct Fetched {
    /// The response.
    pub result: Result<FetchResponse, FetchError>,
    /// Where the resource was found.
    pub location: ResourceLocation,
    /// Every hop on the client.
    pub hops: Vec<Hop>,
    /// From the first lookup to the last byte.
    pub took: Duration,
    /// Bytes received, before content decoding.
    pub wire_bytes: u64,
}

impl Fetched {
    /// Where the resource has moved for good, if it has: the end of the leading permanent
    /// redirects (P19).
    pub fn moved_to(&self) -> Option<&Url> {
        match &self.location {
            ResourceLocation::Moved { to, .. } => Some(to),
            ResourceLocation::Unknown | ResourceLocation::Here | ResourceLocation::Elsewhere => {
                None
            }
        }
    }
}

/// Where a resource was found, judged by the redirects on the client to the response (P19).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceLocation {
    /// Unknown: there was no response.
    Unknown,
    /// At the requested address.
    Here,
    /// Behind a temporary redirect.
    Elsewhere,
    /// At another address, permanently.
    Moved {
        /// The end of the leading permanent redirects.
        to: Url,
        /// Whether all redirects were permanent, so that the response came from this address.
        for_good: bool,
    },
}

/// One request and its response, for `feedgate poll`.
#[derive(Clone, Debug)]
pub struct Hop {
    /// Where.
    pub url: Url,
    /// What the name led to; empty for an address literal.
    pub addresses: Vec<IpAddr>,
    /// The headers sent; secrets among them are marked as sensitive.
    pub request: HeaderMap,
    /// The version of HTTP spoken, if there was an answer.
    pub version: Option<Version>,
    /// The status code received, if any was.
    pub status: Option<StatusCode>,
    /// The headers received.
    pub response: HeaderMap,
    /// Until the headers were there.
    pub took: Duration,
    /// The exact failure below HTTP. For the operator only: it distinguishes a closed port from
    /// a filtered one (S13).
    pub failure: Option<String>,
}

/// A usable response.
#[derive(Debug)]
pub enum FetchResponse {
    /// 304 to a conditional request.
    NotModified {
        /// Seconds for which this is good, if the answer said so (P15).
        hint_s: Option<u32>,
    },
    /// A document.
    Document(Box<FetchedDocument>),
}

/// A document as it was received.
#[derive(Clone, Debug)]
pub struct FetchedDocument {
    /// The URL that answered.
    pub url: Url,
    /// All response headers.
    pub headers: HeaderMap,
    /// The body, decoded.
    pub body: Bytes,
    /// What to send next time.
    pub validators: Validators,
    /// Seconds for which the headers say it is good (P12).
    pub hint_s: u32,
}

impl FetchedDocument {
    /// The context in which the body is parsed. `received_at` is when it arrived.
    pub fn context(&self, received_at: DateTime<Utc>) -> Context {
        let headers = self.headers.iter().map(|(name, value)| {
            let value = value.as_bytes().iter().map(|byte| char::from(*byte)).collect();
            (name.as_str().to_owned(), value)
        });
        Context {
            url: self.url.clone(),
            headers: headers.collect(),
            received_at: Some(received_at),
            known_by: KnownBy::default(),
        }
    }
}

/// Why a fetch returned no document.
///
/// Callers use [`code`](Self::code) and [`class`](Self::class), never the text of the message.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The name resolves to an address that is never contacted: loopback, private, link-local and
    /// the like (`docs/contributing/adr/0003-egress-guard.md`).
    #[error("{host} resolves to an address that is not public")]
    Forbidden {
        /// The name that was looked up.
        host: String,
    },
    /// A port that belongs to a service other than the web (S8).
    #[error("port {port} is reserved for another service than HTTP")]
    ForbiddenPort {
        /// The port asked for.
        port: u16,
    },
    /// The URL cannot be fetched.
    #[error("the URL cannot be fetched: {0}")]
    BadUrl(String),
    /// No complete response in the time allowed.
    #[error("no complete response within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// The body is longer than the limit.
    #[error("the body is longer than {limit_bytes} bytes")]
    BodyTooLarge {
        /// The limit that was passed, in bytes.
        limit_bytes: u64,
    },
    /// The server answered, but not with a document.
    #[error("the server answered {status}")]
    Status {
        /// Its status code.
        status: StatusCode,
        /// Seconds for which it asked to be left alone.
        retry_after_s: Option<u32>,
    },
    /// A bot-protection service refused the request unless it comes from a browser.
    #[error("the server answered {status}: its bot protection requires a browser")]
    Blocked {
        /// Its status code.
        status: StatusCode,
    },
    /// Too many redirects, a redirect loop, or an invalid target.
    #[error("invalid redirect: {0}")]
    Redirects(String),
    /// The body cannot be decoded as `Content-Encoding` says, or the encoding is not supported.
    #[error("the body is not valid {0}")]
    Encoding(String),
    /// Something failed below HTTP: name lookup, connection, TLS.
    #[error("could not reach {host}: {detail}")]
    Unreachable {
        /// The server we tried to reach.
        host: String,
        /// The class of the failure, `dns`, `connect`, `tls`, `h2` or `http`, in words that a
        /// subscriber may read (S13).
        detail: String,
        /// The same for the schedule.
        class: FailureClass,
    },
}

impl FetchError {
    /// The stable code for logs, metrics and the status document, listed in `docs/errors.md`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Forbidden { .. } => "forbidden_address",
            Self::ForbiddenPort { .. } => "forbidden_port",
            Self::BadUrl(_) => "bad_url",
            Self::TimedOut(_) => "timed_out",
            Self::BodyTooLarge { .. } => "body_too_large",
            Self::Status { .. } => "http_status",
            Self::Blocked { .. } => "blocked",
            Self::Redirects(_) => "bad_redirect",
            Self::Encoding(_) => "bad_encoding",
            Self::Unreachable { .. } => "unreachable",
        }
    }

    /// The kind of failure, which decides when the resource is polled again.
    pub fn class(&self) -> FailureClass {
        match self {
            Self::Forbidden { .. } | Self::ForbiddenPort { .. } | Self::BadUrl(_) => {
                FailureClass::Forbidden
            }
            Self::TimedOut(_) => FailureClass::Network,
            Self::Status { status, .. } => FailureClass::of_status(status.as_u16()),
            Self::Blocked { .. } => FailureClass::Denied,
            Self::BodyTooLarge { .. } | Self::Encoding(_) => FailureClass::Unusable,
            Self::Redirects(_) => FailureClass::Missing,
            Self::Unreachable { class, .. } => *class,
        }
    }
}

/// A request to a callback. Redirects are not followed (D5).
#[derive(Clone, Debug)]
pub struct CallbackRequest {
    /// The method.
    pub method: Method,
    /// The address.
    pub url: Url,
    /// The headers; `User-Agent` is added.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// The response of a callback.
#[derive(Clone, Debug)]
pub struct CallbackResponse {
    /// Its status code.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// The first 16 kB of its body (D4).
    pub body: Bytes,
    /// Whether it came from a public address.
    pub is_public: bool,
}

impl CallbackResponse {
    /// The beginning of the body, for people.
    pub fn excerpt(&self) -> AnswerExcerpt {
        AnswerExcerpt::new(&self.body, self.is_public)
    }
}

/// The HTTP client. Clones share connections and host turns.
#[derive(Clone, Debug)]
pub struct HttpClient {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    settings: NetworkSettings,
    /// The user agent for callbacks, without subscriber counts.
    user_agent: HeaderValue,
    topics: guarded_client::GuardedClient,
    callbacks: guarded_client::GuardedClient,
    hosts: politeness::HostTurns,
}

impl HttpClient {
    /// A client with these settings that uses the system's resolver.
    pub fn new(settings: NetworkSettings) -> HttpClient {
        HttpClient::with_lookup(
            settings,
            Arc::new(resolver::CachingLookup::new(Arc::new(SystemLookup))),
        )
    }

    /// A client that resolves names with `lookup`.
    pub fn with_lookup(settings: NetworkSettings, lookup: Arc<dyn Lookup>) -> HttpClient {
        let topics = guarded_client::ConnectTimeouts {
            lookup: settings.fetch_timeout / 6,
            connect: settings.fetch_timeout / 2,
        };
        let callbacks = guarded_client::ConnectTimeouts {
            lookup: settings.callback_timeout / 2,
            connect: settings.callback_timeout / 2,
        };
        let tls = guarded_client::tls();
        let user_agent = HeaderValue::from_str(&format!("{})", settings.user_agent));
        let inner = Inner {
            user_agent: user_agent.unwrap_or(HeaderValue::from_static("feedgate")),
            topics: guarded_client::GuardedClient::new(
                &settings.allow_topics,
                Arc::clone(&lookup),
                topics,
                tls.clone(),
            ),
            callbacks: guarded_client::GuardedClient::new(
                &settings.allow_callbacks,
                lookup,
                callbacks,
                tls,
            ),
            hosts: politeness::HostTurns::new(settings.host_spacing),
            settings,
        };
        HttpClient { inner: Arc::new(inner) }
    }

    /// Whether the host of the callback `url` resolves to `ip` and passes the guard.
    pub async fn resolves_to(&self, url: &Url, ip: IpAddr) -> bool {
        self.inner.callbacks.resolves_to(url, ip).await
    }

    /// Why a request to `url` is always refused, judging by the URL alone: an address in it, a
    /// name that is private by its form, or its port. No name is looked up.
    pub fn refuses(&self, url: &Url, purpose: Purpose) -> Option<FetchError> {
        let client = match purpose {
            Purpose::Topic => &self.inner.topics,
            Purpose::Callback => &self.inner.callbacks,
        };
        client.check(url).err()
    }
}
