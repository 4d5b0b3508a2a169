//! Fetches a topic: follows redirects itself, and sends each hop through the guard.
//!
//! What always holds:
//!
//! * Validators are sent only to the URL they came from, byte for byte (P1, P3, P4); there are
//!   none but those passed in (P2).
//! * Credentials in the topic's URL become an `Authorization` header, which is dropped
//!   for good at the first change of origin (P18, S9). So are the headers that an account chose for a feed.
//! * At most one request is in flight, and only during the turn of its host (P41).
//! * Each hop is signed for its own server, if the client has keys (`request_signer`).

mod redirect;

use std::time::{Duration, SystemTime};

use http::header::{
    ACCEPT, ACCEPT_ENCODING, HeaderName, IF_MODIFIED_SINCE, IF_NONE_MATCH, USER_AGENT,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use reqwest::{Request, Response};
use tokio::time::{Instant, timeout_at};
use url::Url;

use crate::clock;
use crate::document_budget::DocumentBudget;

use super::admitted_groups::{AdmittedGroups, ClaimedGroup};
use super::fetch_limit::FetchPermit;
use super::fetch_owner::FetchOwner;
use super::guarded_client::{GuardedClient, looking_up_with};
use super::politeness::{HostTurn, Patience, host_of};
use super::response_headers::{is_challenge, redirect_target, validators};
use super::user_agent::user_agent;
use super::{
    FetchError, FetchRequest, FetchResponse, Fetched, FetchedDocument, Hop, HttpClient, Inner,
    Purpose, ResourceLocation,
};
use super::{body, credentials, decode, failure, freshness};
use feedgate_core::poll::Validators;

/// The media types that feedgate reads, the preferred ones first (P36).
const ACCEPTED: HeaderValue = HeaderValue::from_static(
    "application/atom+xml, application/rss+xml;q=0.9, application/feed+json;q=0.9, \
     application/rdf+xml;q=0.8, application/xml;q=0.7, text/xml;q=0.7, text/html;q=0.3, */*;q=0.1",
);
/// The media types for servers that respond to the above with 406 (`docs/contributing/polling.md`,
/// "Responses and their consequences").
const ANYTHING: HeaderValue = HeaderValue::from_static("*/*");
/// The content codings that `decode` supports (rule P37).
const CODINGS: HeaderValue = HeaderValue::from_static("gzip, br, zstd, deflate");

/// The maximum length of a validator, in bytes. A longer one was not meant to be sent back (rule
/// S35).
const LONGEST_VALIDATOR_BYTES: usize = 1_024;

impl HttpClient {
    /// Fetches a topic for somebody who waits for it. Waits for the turn of its host first; see
    /// `politeness`.
    pub async fn get(&self, ask: FetchRequest<'_>) -> Fetched {
        self.get_with(ask, Patience::Interactive).await
    }

    /// Fetches a topic, and waits for hosts no longer than `patience` allows.
    pub async fn get_with(&self, ask: FetchRequest<'_>, patience: Patience) -> Fetched {
        self.fetch(ask, patience, None).await
    }

    /// Fetches a topic for a poll that has claimed a host group.
    pub async fn get_claimed(
        &self,
        ask: FetchRequest<'_>,
        patience: Patience,
        claimed: ClaimedGroup<'_>,
    ) -> Fetched {
        self.fetch(ask, patience, Some(claimed)).await
    }

    async fn fetch<'a>(
        &'a self,
        ask: FetchRequest<'a>,
        patience: Patience,
        claimed: Option<ClaimedGroup<'a>>,
    ) -> Fetched {
        let mut session = match FetchSession::new(self, ask, patience) {
            Ok(session) => session,
            Err(err) => {
                let (hops, took, location) =
                    (Vec::new(), Duration::ZERO, ResourceLocation::Unknown);
                return Fetched { result: Err(err), location, hops, took, wire_bytes: 0 };
            }
        };
        if let Some(claimed) = claimed {
            session.groups.claim(claimed);
        }
        let result = session.run().await;
        let took = session.begun.elapsed().saturating_sub(session.waited);
        let location = session.location();
        Fetched { result, location, hops: session.hops, took, wire_bytes: session.wire_bytes }
    }
}

/// A fetch in progress.
pub(super) struct FetchSession<'a> {
    inner: &'a Inner,
    topics: &'a GuardedClient,
    ask: FetchRequest<'a>,
    patience: Patience,
    requester: FetchOwner,
    documents: &'a DocumentBudget,
    /// The URL of the next request, without credentials.
    at: Url,
    /// The credentials, as URL and as headers, while the origin is the one they belong to.
    credentials: Option<(Url, HeaderMap)>,
    /// The accepted media types.
    pub(super) accept: HeaderValue,
    turn: Option<HostTurn>,
    /// The host groups to which requests may be sent.
    pub(super) groups: AdmittedGroups<'a>,
    permit: Option<FetchPermit>,
    /// The maximum length of the body, on the wire and decoded.
    pub(super) body_limit_bytes: u64,
    /// Whether redirects to another origin are not followed.
    pub(super) is_confined: bool,
    hops: Vec<Hop>,
    redirects: usize,
    /// The end of the leading permanent redirects, and whether all redirects so far were permanent
    /// (rule P19).
    moved_to: Option<Url>,
    only_permanent: bool,
    begun: Instant,
    waited: Duration,
    wire_bytes: u64,
    /// Whether the last request ended without a response on an established connection.
    connection_closed: bool,
    /// Whether the reason may be that the server does not support HTTP/2 correctly.
    broke_http2: bool,
}

impl<'a> FetchSession<'a> {
    /// Creates the session of a fetch.
    pub(super) fn new(
        client: &'a HttpClient,
        ask: FetchRequest<'a>,
        patience: Patience,
    ) -> Result<FetchSession<'a>, FetchError> {
        let mut at = Url::parse(ask.url).map_err(|err| FetchError::BadUrl(err.to_string()))?;
        at.set_fragment(None);
        let credentials = credentials::headers(&at, client.feed_headers.as_deref())?;
        let credentials = (!credentials.is_empty()).then(|| (at.clone(), credentials));
        credentials::strip(&mut at);
        let inner = &*client.inner;
        Ok(FetchSession {
            inner,
            topics: client.guarded(Purpose::Topic),
            ask,
            patience,
            requester: client.requester,
            documents: client.documents(),
            at,
            credentials,
            accept: ACCEPTED,
            turn: None,
            groups: AdmittedGroups::new(inner.gate.as_deref()),
            permit: None,
            body_limit_bytes: client.documents().longest_body(inner.settings.body_limit_bytes),
            is_confined: false,
            hops: Vec::new(),
            redirects: 0,
            moved_to: None,
            only_permanent: true,
            begun: Instant::now(),
            waited: Duration::ZERO,
            wire_bytes: 0,
            connection_closed: false,
            broke_http2: false,
        })
    }

    /// Runs the fetch to completion.
    pub(super) async fn run(&mut self) -> Result<FetchResponse, FetchError> {
        loop {
            self.topics.check(&self.at)?;
            self.take_turn().await?;
            let conditional = self.validators();
            let response = match self.request(conditional).await {
                // The server closed the connection when it was reused.
                Err(_) if self.was_stale() => continue,
                // The next attempt uses HTTP/1.1.
                Err(_) if self.broke_http2 && self.topics.fall_back_to_http1(&self.at) => {
                    continue;
                }
                result => result?,
            };
            let status = response.status();
            if let Some(target) = redirect_target(&response, &self.at)? {
                self.follow(status, target)?;
            } else if status == StatusCode::NOT_ACCEPTABLE && self.accept != ANYTHING {
                self.accept = ANYTHING;
            } else {
                return self.read_response(response, conditional.is_some()).await;
            }
        }
    }

    /// Takes the turn of the next host, and then a permit to fetch. The turn of the last host and the
    /// permit are released first; otherwise two fetches that redirect to each other's host would
    /// wait forever.
    async fn take_turn(&mut self) -> Result<(), FetchError> {
        if self.turn.as_ref().is_some_and(|turn| turn.covers(&self.at)) {
            return Ok(());
        }
        (self.turn, self.permit) = (None, None);
        let waiting = Instant::now();
        let spacing = self.inner.settings.host_spacing;
        self.groups.enter((self.hops.last(), &self.at), (self.patience, spacing)).await?;
        let host = host_of(&self.at);
        let is_revisit = self.hops.iter().any(|hop| host_of(&hop.url) == host);
        let patience = match self.patience {
            Patience::Background if is_revisit => Patience::Continued,
            // What a redirect leads to is not what the subscriber named.
            Patience::FirstFetch if self.groups.is_elsewhere() => Patience::Interactive,
            patience => patience,
        };
        let turn = self.inner.hosts.turn(&self.at, patience).await;
        self.turn = turn.map(Some).map_err(FetchError::HostBusy)?;
        let permit = self.inner.fetches.acquire(self.patience, self.requester).await;
        self.waited += waiting.elapsed();
        self.permit = Some(permit?);
        Ok(())
    }

    /// Returns whether a request was sent, or is being sent.
    pub(super) fn has_begun(&self) -> bool {
        !self.hops.is_empty() || self.permit.is_some()
    }

    /// Lets the next request to this host start without the usual pause.
    pub(super) fn skip_pause(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.waive_pause();
        }
    }

    /// Returns where the resource was found, judging by the redirects.
    fn location(&self) -> ResourceLocation {
        match (&self.moved_to, self.hops.first()) {
            (Some(to), _) => {
                ResourceLocation::Moved { to: to.clone(), for_good: self.only_permanent }
            }
            (None, Some(first)) if first.status.is_some() && self.redirects == 0 => {
                ResourceLocation::Here
            }
            (None, Some(first)) if first.status.is_some() => ResourceLocation::Elsewhere,
            _ => ResourceLocation::Unknown,
        }
    }

    /// Returns the time at which `share` of the timeout is over, and how long that is.
    fn deadline(&self, share: f64) -> (Instant, Duration) {
        let allowed = self.inner.settings.fetch_timeout.mul_f64(share);
        (self.begun + self.waited + allowed, allowed)
    }

    /// Returns the validators that were passed in, if they came from this URL.
    fn validators(&self) -> Option<&'a Validators> {
        let held = self.ask.validators;
        (!held.is_empty() && held.url == self.at.as_str()).then_some(held)
    }

    fn headers(&self, conditional: Option<&Validators>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, user_agent(self.inner, &self.ask));
        headers.insert(ACCEPT, self.accept.clone());
        headers.insert(ACCEPT_ENCODING, CODINGS);
        if let Some((_, credentials)) = &self.credentials {
            headers.extend(credentials.clone());
        }
        let mut insert = |name: HeaderName, value: Option<&Vec<u8>>| {
            let value = value.filter(|value| value.len() <= LONGEST_VALIDATOR_BYTES);
            if let Some(Ok(value)) = value.map(|value| HeaderValue::from_bytes(value)) {
                headers.insert(name, value);
            }
        };
        insert(IF_NONE_MATCH, conditional.and_then(|held| held.etag.as_ref()));
        insert(IF_MODIFIED_SINCE, conditional.and_then(|held| held.last_modified.as_ref()));
        self.inner.signer.sign(&self.at, &mut headers);
        headers
    }

    async fn request(&mut self, conditional: Option<&Validators>) -> Result<Response, FetchError> {
        let headers = self.headers(conditional);
        let mut request = Request::new(Method::GET, self.at.clone());
        *request.headers_mut() = headers.clone();

        let watch = self.topics.trace_lookup(&self.at);
        let sent_at = Instant::now();
        let (until, allowed) = self.deadline(5.0 / 6.0);
        let client = self.topics.client(&self.at);
        let lookup = self.inner.lookups.for_owner(self.requester);
        let sent = timeout_at(until, looking_up_with(lookup, client.execute(request))).await;

        let mut hop = Hop {
            url: self.at.clone(),
            addresses: watch.addresses(),
            request: headers,
            version: None,
            status: None,
            response: HeaderMap::new(),
            took: sent_at.elapsed(),
            failure: None,
        };
        (self.connection_closed, self.broke_http2) = (false, false);
        let result = match sent {
            Err(_) => Err(FetchError::TimedOut(allowed)),
            Ok(Err(err)) => {
                hop.failure = Some(failure::exact(&err));
                self.connection_closed = failure::is_connection_closed(&err);
                self.broke_http2 = failure::is_http2(&err, &self.at);
                Err(failure::from_client(&err, &self.at))
            }
            Ok(Ok(response)) => {
                hop.version = Some(response.version());
                hop.status = Some(response.status());
                hop.response = response.headers().clone();
                if let (Some(turn), Some(address)) = (&mut self.turn, response.remote_addr()) {
                    turn.set_address(address.ip());
                }
                // A lookup of another fetch may have been traced while a connection was reused.
                let connected = response.remote_addr().map(|address| address.ip());
                hop.addresses.extend(connected.filter(|ip| !hop.addresses.contains(ip)));
                Ok(response)
            }
        };
        if let (Some(turn), Err(_), Some(address)) =
            (&mut self.turn, &result, hop.addresses.first())
        {
            turn.set_address(*address);
        }
        self.hops.push(hop);
        result
    }

    /// Returns whether the last request failed on a reused connection, which says nothing about the
    /// server: a new connection starts with a name lookup. Each such failure uses up one idle
    /// connection, so the number of retries is limited.
    fn was_stale(&self) -> bool {
        let Some(hop) = self.hops.last() else { return false };
        self.connection_closed && hop.addresses.is_empty() && hop.url.domain().is_some()
    }

    async fn read_response(
        &mut self,
        response: Response,
        conditional: bool,
    ) -> Result<FetchResponse, FetchError> {
        let status = response.status();
        let headers = response.headers().clone();
        let received = SystemTime::from(clock::now());
        let hint_s = freshness::hint_s(&headers, received);
        match status {
            StatusCode::OK => {}
            StatusCode::NOT_MODIFIED if conditional => {
                return Ok(FetchResponse::NotModified { hint_s });
            }
            StatusCode::NO_CONTENT => return Ok(FetchResponse::NotModified { hint_s }),
            _ if is_challenge(&headers) => return Err(FetchError::Blocked { status }),
            _ => {
                let retry_after_s = freshness::retry_after_s(&headers, received);
                return Err(FetchError::Status { status, retry_after_s });
            }
        }
        let limits = body::BodyLimits {
            bytes: self.body_limit_bytes,
            pause: self.inner.settings.fetch_timeout / 3,
            grace: self.inner.settings.fetch_timeout / 6,
            deadline: self.deadline(1.0),
        };
        let memory = body::BodyMemory {
            documents: self.documents,
            patience: self.patience.wait_for_gateway(),
        };
        let wire = body::read(response, limits, memory, &mut self.wire_bytes).await?;
        let (body, memory) = decode::decode(&headers, wire, limits.bytes, memory).await?;
        Ok(FetchResponse::Document(Box::new(FetchedDocument {
            url: self.at.clone(),
            validators: validators(&self.at, &headers, received),
            hint_s: hint_s.unwrap_or(0),
            clock_ahead_s: freshness::clock_ahead_s(&headers, received),
            headers,
            body,
            memory: Some(memory),
        })))
    }
}
