//! The way out: a polite conditional client for topics, a plain one for callbacks,
//! and the one guarded connector below both.
//!
//! [`HttpClient::get`] is in `get`, [`HttpClient::call`] in `call`; whatever leaves the process
//! passes `egress`. Nothing here is remembered from one fetch to the next but open
//! connections, whose turn it is, what names led to a moment ago and which servers cannot
//! speak HTTP/2: what a resource's poller must know is handed in and given back.

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

/// What the operator decides about requests that go out.
#[derive(Clone, Debug)]
pub struct NetworkSettings {
    /// `feedgate/x.y (+URL`, without the closing bracket: subscribers and feed id are
    /// appended per request (rule P34).
    pub user_agent: String,
    /// Networks that topics may lead to though they are not public.
    pub allow_topics: Vec<IpNet>,
    /// Networks that callbacks may lead to though they are not public.
    pub allow_callbacks: Vec<IpNet>,
    /// For one fetch, from the lookup of the name to the last byte (rule P42: 30 s). Its
    /// steps have shares of it: a sixth for the lookup (5 s), half until a connection
    /// stands (15 s), five sixths until the headers are there (25 s), a third for a pause
    /// within the body (10 s), a sixth until a body may no longer be slow (5 s). Waiting
    /// for the host's turn does not count.
    pub fetch_timeout: Duration,
    /// For one delivery or verification (rule D4: 10 s), half of it until a connection
    /// stands.
    pub callback_timeout: Duration,
    /// The longest body read, on the wire and decoded (rule P43: 10 MiB).
    pub body_limit_bytes: u64,
    /// Between the starts of two fetches from one host (rule P41: 1 s).
    pub host_spacing: Duration,
}

/// What an address is for: topics and callbacks may lead to different networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It is fetched.
    Topic,
    /// It is called.
    Callback,
}

/// A request for a topic.
#[derive(Clone, Copy, Debug)]
pub struct FetchRequest<'a> {
    /// Where.
    pub url: &'a str,
    /// What to send for "not modified"; sent only to the URL they came from.
    pub validators: &'a Validators,
    /// Live subscriptions, told to the publisher.
    pub subscribers: u32,
    /// The resource's number, told to the publisher; `None` for own probes.
    pub feed_id: Option<i64>,
}

/// What came of a fetch, with everything that can be told about it.
#[derive(Debug)]
pub struct Fetched {
    /// The answer.
    pub result: Result<FetchResponse, FetchError>,
    /// Where the resource was found to be.
    pub location: ResourceLocation,
    /// Every hop on the way.
    pub hops: Vec<Hop>,
    /// From the first lookup to the last byte.
    pub took: Duration,
    /// Bytes received, before content decoding.
    pub wire_bytes: u64,
}

impl Fetched {
    /// Where the resource has moved for good, if it has: the end of the leading permanent
    /// redirects (rule P19).
    pub fn moved_to(&self) -> Option<&Url> {
        match &self.location {
            ResourceLocation::Moved { to, .. } => Some(to),
            ResourceLocation::Unknown | ResourceLocation::Here | ResourceLocation::Elsewhere => {
                None
            }
        }
    }
}

/// What the way to an answer tells of where a resource is (rule P19).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceLocation {
    /// Nothing: no answer came.
    Unknown,
    /// Where it was asked for.
    Here,
    /// Behind a redirect that is for now only.
    Elsewhere,
    /// It has moved for good.
    Moved {
        /// To the end of the leading permanent redirects.
        to: Url,
        /// Whether all redirects were permanent, so that this is what answered.
        for_good: bool,
    },
}

/// One request on the way and its answer, for `feedgate poll`.
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
    /// What went wrong below HTTP, exactly. For the operator only: it may tell a closed
    /// port from a filtered one (rule S13).
    pub failure: Option<String>,
}

/// A usable answer.
#[derive(Debug)]
pub enum FetchResponse {
    /// 304 to a conditional request.
    NotModified {
        /// Seconds for which this is good, if the answer said so (rule P15).
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
    /// Seconds for which the headers say it is good (rule P12).
    pub hint_s: u32,
}

impl FetchedDocument {
    /// What a reader of the body must know of it. `received_at` is when it came.
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

/// Why a fetch gave no document.
///
/// A failed fetch is asked what to put in the status ([`code`](Self::code)) and how
/// long to stay away. Nobody matches on message text.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The name leads to an address we never connect to: loopback, private,
    /// link-local and the like (`docs/contributing/adr/0003-egress-guard.md`).
    #[error("{host} leads to an address that is not public")]
    Forbidden {
        /// The name that was looked up.
        host: String,
    },
    /// A port that belongs to another service than the web (rule S8).
    #[error("port {port} is not a web server's")]
    ForbiddenPort {
        /// The port asked for.
        port: u16,
    },
    /// Nothing that can be fetched.
    #[error("not a URL to fetch: {0}")]
    BadUrl(String),
    /// No complete answer in the time allowed.
    #[error("no complete answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// The body is longer than we are willing to read.
    #[error("body is longer than {limit_bytes} bytes")]
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
    /// The server's guard wants to see a browser before it lets anybody in.
    #[error("the server answered {status}: its guard wants to see a browser")]
    Blocked {
        /// Its status code.
        status: StatusCode,
    },
    /// More redirects than we follow, or in a circle, or to nowhere.
    #[error("redirects lead nowhere: {0}")]
    Redirects(String),
    /// The body does not decode as `Content-Encoding` says, or in no way we know.
    #[error("the body is not valid {0}")]
    Encoding(String),
    /// Something failed below HTTP: name lookup, connection, TLS.
    #[error("could not reach {host}: {detail}")]
    Unreachable {
        /// The server we tried to reach.
        host: String,
        /// The class of the failure, `dns`, `connect`, `tls`, `h2` or `http`, and no more
        /// words than a subscriber may read (rule S13).
        detail: String,
        /// The same for the schedule.
        class: FailureClass,
    },
}

impl FetchError {
    /// A word for logs, metrics and the status document. Never changes once
    /// released; `docs/errors.md` lists them.
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

    /// What it means for when to come again.
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

/// A request to a callback. Redirects are not followed (rule D5).
#[derive(Clone, Debug)]
pub struct CallbackRequest {
    /// How.
    pub method: Method,
    /// Where.
    pub url: Url,
    /// With what headers; `User-Agent` is added.
    pub headers: HeaderMap,
    /// With what body.
    pub body: Bytes,
}

/// What a callback answered.
#[derive(Clone, Debug)]
pub struct CallbackResponse {
    /// Its status code.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// The first 16 kB of its body (rule D4).
    pub body: Bytes,
    /// Whether it came from a public address.
    pub is_public: bool,
}

impl CallbackResponse {
    /// Its beginning, for people.
    pub fn excerpt(&self) -> AnswerExcerpt {
        AnswerExcerpt::new(&self.body, self.is_public)
    }
}

/// The client. Cheap to clone; clones share connections and turns.
#[derive(Clone, Debug)]
pub struct HttpClient {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    settings: NetworkSettings,
    /// For callbacks: complete, without counts.
    user_agent: HeaderValue,
    topics: guarded_client::GuardedClient,
    callbacks: guarded_client::GuardedClient,
    hosts: politeness::HostTurns,
}

impl HttpClient {
    /// A client with these settings that asks the system what names lead to.
    pub fn new(settings: NetworkSettings) -> HttpClient {
        HttpClient::with_lookup(
            settings,
            Arc::new(resolver::CachingLookup::new(Arc::new(SystemLookup))),
        )
    }

    /// A client that asks `lookup` what names lead to.
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

    /// Whether the callback at `url` is at the address `ip`, as far as the guard lets us
    /// know.
    pub async fn leads_to(&self, url: &Url, ip: IpAddr) -> bool {
        self.inner.callbacks.leads_to(url, ip).await
    }

    /// Why no request to `url` would ever be made, as far as the URL itself tells: by an
    /// address in it, a name that is inner by its form, or its port. Nothing is looked up.
    pub fn refuses(&self, url: &Url, purpose: Purpose) -> Option<FetchError> {
        let way = match purpose {
            Purpose::Topic => &self.inner.topics,
            Purpose::Callback => &self.inner.callbacks,
        };
        way.check(url).err()
    }
}
