//! One followed feed: its subscription, and the entries that are already known.

use std::collections::HashSet;
use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method};
use tokio::time::Instant;
use url::{Url, form_urlencoded};

use crate::jobs::poll::{self, KnownAs, ParsedDocument, read_document};
use crate::jobs::runner;
use crate::jobs::upstream::{self, UpstreamError, UpstreamRequest};
use crate::net::{
    CallbackRequest, FetchError, FetchRequest, FetchResponse, FetchedDocument, HttpClient,
};
use feedgate_core::signing::Secret;
use feedgate_core::subscription::Lease;
use feedgate_core::upstream::AdvertisedUpstream;
use feedgate_feed::Context;
use feedgate_feed::model::Feed;
use feedgate_protocol::Protocol;
use feedgate_protocol::rsscloud;

use super::account;
use super::callback::ReceivedNotification;
use super::report::reason;
use super::signatures::SignatureVerdicts;

/// How long to wait after a refused registration before the next one.
pub(super) const AGAIN: Duration = Duration::from_secs(60);

/// How to subscribe to a feed.
#[derive(Clone, Debug)]
pub(super) struct RegistrationMethod {
    /// The protocol.
    pub(super) protocol: Protocol,
    /// The cloud or the hub.
    pub(super) endpoint: String,
    /// The credentials for the account API; `None` for all other protocols.
    pub(super) authorization: Option<HeaderValue>,
}

/// A feed, and the subscription to it.
pub(super) struct FollowedFeed {
    feed: Url,
    offer: AdvertisedUpstream,
    authorization: Option<HeaderValue>,
    secret: Secret,
    own: Url,
    is_at_caller: bool,
    /// The ids of entries that are known already.
    known: HashSet<String>,
    /// Whether a subscription request has succeeded.
    pub(super) is_registered: bool,
    /// When to renew the subscription.
    pub(super) renew_at: Instant,
}

impl FollowedFeed {
    /// Fetches a feed, and finds its cloud or hub if no `method` is given.
    pub(super) async fn find(
        fetch: &HttpClient,
        feed: &Url,
        method: Option<RegistrationMethod>,
    ) -> Result<FollowedFeed, Box<dyn Error>> {
        let document = get(fetch, feed).await;
        let read = document.as_ref().ok().and_then(read);
        let mut authorization = None;
        let offer = match method {
            Some(RegistrationMethod { protocol, endpoint, authorization: given }) => {
                authorization = given;
                AdvertisedUpstream { protocol, endpoint, topic: feed.as_str().to_owned() }
            }
            None => {
                let links = poll::links(&document?);
                let offer = AdvertisedUpstream::find_in(&links, read.as_ref(), feed.as_str());
                offer.ok_or_else(|| {
                    format!("{feed} does not advertise a cloud or hub; name one with --cloud")
                })?
            }
        };
        let known = read.into_iter().flat_map(|feed| feed.entries).map(|entry| entry.id);
        let secret = Secret::new(runner::nonce())?;
        Ok(FollowedFeed {
            feed: feed.clone(),
            offer,
            authorization,
            secret,
            own: feed.clone(),
            is_at_caller: true,
            known: known.collect(),
            is_registered: false,
            renew_at: Instant::now(),
        })
    }

    /// Sets the URL of the callback.
    pub(super) fn set_callback(&mut self, own: Url, is_at_caller: bool) {
        (self.own, self.is_at_caller) = (own, is_at_caller);
    }

    /// The cloud or hub, its protocol and the topic.
    pub(super) fn offer(&self) -> &AdvertisedUpstream {
        &self.offer
    }

    /// The cloud or the hub.
    pub(super) fn endpoint(&self) -> &str {
        &self.offer.endpoint
    }

    /// The name of the protocol.
    pub(super) fn by(&self) -> &'static str {
        match self.authorization {
            Some(_) => "account",
            None => self.offer.protocol.as_str(),
        }
    }

    /// The secret with which notifications should be signed.
    pub(super) fn secret(&self) -> &Secret {
        &self.secret
    }

    /// The interval after which to renew, unless a hub grants another lease.
    pub(super) fn renewal(&self) -> Duration {
        let lease = if self.offer.protocol.is_rsscloud() { Lease::RSSCLOUD } else { Lease::WEBSUB };
        self.offer.renewal(Duration::from_secs(lease.as_secs()))
    }

    /// Requests a subscription, or its end.
    pub(super) async fn request(
        &self,
        fetch: &HttpClient,
        mode: &str,
    ) -> Result<(), UpstreamError> {
        let FollowedFeed { offer, secret, own, is_at_caller, .. } = self;
        let wanted = UpstreamRequest { offer, secret, own, is_at_caller: *is_at_caller };
        match &self.authorization {
            Some(authorization) => account::request(fetch, &wanted, mode, authorization).await,
            None => upstream::request_subscription(fetch, &wanted, mode).await,
        }
    }

    /// Unsubscribes. Returns `false` if a hub will verify the request first. The endpoint of a cloud
    /// for unsubscribing, if it has one, is `cancel` beside the one for registering.
    pub(super) async fn leave(&self, fetch: &HttpClient) -> Result<bool, UpstreamError> {
        if self.offer.protocol == Protocol::WebSub {
            // The account API ends a subscription without verifying the callback.
            let is_done = self.authorization.is_some();
            return self.request(fetch, "unsubscribe").await.map(|()| is_done);
        }
        let place = Url::parse(self.endpoint()).and_then(|url| url.join("cancel"));
        let bad =
            |err: url::ParseError| UpstreamError::Unreachable(FetchError::BadUrl(err.to_string()));
        let form = Protocol::HttpPost;
        let url = place.map_err(bad)?;
        let headers = rsscloud::headers(&form, &url);
        let port = self.own.port_or_known_default().unwrap_or(80).to_string();
        let body = form_urlencoded::Serializer::new(String::new())
            .append_pair("port", &port)
            .append_pair("path", self.own.path())
            .append_pair("url", &self.offer.topic)
            .extend_pairs(
                self.own.host_str().filter(|_| !self.is_at_caller).map(|own| ("domain", own)),
            )
            .finish();
        let call = CallbackRequest { method: Method::POST, url, headers, body: body.into() };
        let reply = fetch.call(call).await.map_err(UpstreamError::Unreachable)?;
        match reply.status.is_success() {
            true => upstream::check_response(&form, &reply).map(|()| true),
            false => Err(UpstreamError::Status(reply.status)),
        }
    }

    /// The topic of a notification, and a description of it.
    pub(super) fn describe_notification(
        &self,
        received: &ReceivedNotification,
        verdicts: SignatureVerdicts,
    ) -> (String, String) {
        if let Some(named) = &received.named {
            return (named.clone(), self.by().to_owned());
        }
        let (length, verdicts) = (received.body.len(), verdicts.in_words());
        (self.offer.topic.clone(), format!("{}, {length} bytes, {verdicts}", self.by()))
    }

    /// The entries that are new in the notification, or in the feed that it names; or the reason why
    /// they are not known.
    pub(super) async fn new_entries(
        &mut self,
        fetch: &HttpClient,
        received: &ReceivedNotification,
    ) -> Result<Vec<String>, String> {
        let feed = match &received.named {
            Some(_) => read(&get(fetch, &self.feed).await.map_err(|err| reason(&err))?),
            None => read_body(&self.feed, &received.headers, &received.body),
        };
        let entries = feed.ok_or("the document is not a feed")?.entries.into_iter();
        let new = entries.filter(|entry| self.known.insert(entry.id.clone()));
        let lines = new.map(|entry| {
            let title = entry.title.map(|title| title.value).unwrap_or_default();
            format!("{}  {title}", entry.id)
        });
        Ok(lines.collect())
    }
}

async fn get(fetch: &HttpClient, feed: &Url) -> Result<FetchedDocument, FetchError> {
    let request = FetchRequest::unconditional(feed.as_str());
    match fetch.get(request).await.result? {
        FetchResponse::Document(document) => Ok(*document),
        FetchResponse::NotModified { .. } => Err(FetchError::BadUrl(
            "the server responded with 304, although no validators were sent".to_owned(),
        )),
    }
}

fn read(document: &FetchedDocument) -> Option<Feed> {
    feed_in(&document.body, &document.context(runner::now()))
}

fn read_body(feed: &Url, headers: &HeaderMap, body: &Bytes) -> Option<Feed> {
    let mut context = Context::new(feed.clone());
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    context.headers.extend(content_type.map(|value| ("content-type".to_owned(), value.to_owned())));
    feed_in(body, &context)
}

fn feed_in(body: &Bytes, context: &Context) -> Option<Feed> {
    match read_document(body, context, None, KnownAs::Nothing) {
        ParsedDocument::Feed(feed) => Some(*feed),
        ParsedDocument::NotAFeed(_)
        | ParsedDocument::Other(..)
        | ParsedDocument::FragmentNotFound(_)
        | ParsedDocument::NotMapped(_) => None,
    }
}
