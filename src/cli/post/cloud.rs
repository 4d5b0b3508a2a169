//! Adds a post to a feed that a gateway stores: the feed is read, changed, and saved only if nobody
//! else has changed it meanwhile. The gateway pings itself.

use std::error::Error;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::InvalidHeaderValue;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use url::Url;

use crate::net::{CallbackRequest, FetchError, FetchRequest, FetchResponse, HttpClient};
use feedgate_core::password::Password;
use feedgate_core::stored_file::PathSegment;
use feedgate_protocol::rss::{self, ChannelInfo, FeedEdit};

/// How many times a post is added again because somebody else has changed the feed meanwhile.
const ATTEMPTS: usize = 5;

/// A gateway that stores feeds, and an account at it.
#[derive(Debug)]
pub(super) struct Cloud<'c> {
    pub(super) fetch: &'c HttpClient,
    pub(super) base: &'c Url,
    pub(super) login: &'c PathSegment,
    pub(super) password: Password,
}

impl Cloud<'_> {
    /// Adds a post to a feed, which is created if it does not exist. Returns its URL.
    pub(super) async fn post(
        &self,
        name: &PathSegment,
        change: &FeedEdit<'_>,
        title: Option<&str>,
    ) -> Result<Url, Box<dyn Error>> {
        let public = self.base.as_str().trim_end_matches('/');
        let login = self.login.as_str();
        let url = Url::parse(&format!("{public}/storage/{login}/{}", name.as_str()))?;
        let about = ChannelInfo {
            url: Some(url.to_string()),
            cloud: Some(self.base.clone()),
            title: title.unwrap_or(login).to_owned(),
            description: format!("Posts by {login}"),
        };
        for _ in 0..ATTEMPTS {
            let (held, tag) = self.read(&url).await?;
            let feed = rss::add(held.as_deref(), change, &about)?;
            let reply = self.save(&url, feed, tag).await?;
            match reply.0 {
                status if status.is_success() => return Ok(url),
                StatusCode::PRECONDITION_FAILED => {} // somebody else has changed it
                status => {
                    return Err(format!("{url} could not be saved: {status}: {}", reply.1).into());
                }
            }
        }
        Err(format!("{url} could not be saved, because others keep changing it").into())
    }

    /// Returns the stored feed, if there is one, and its entity tag.
    async fn read(
        &self,
        url: &Url,
    ) -> Result<(Option<String>, Option<HeaderValue>), Box<dyn Error>> {
        let ask = FetchRequest::unconditional(url.as_str());
        match self.fetch.get(ask).await.result {
            Ok(FetchResponse::Document(document)) => {
                let checked = rss::check(&document.body)?;
                let tag = document.headers.get(header::ETAG).map(strong).transpose()?;
                Ok((Some(rss::as_utf8(&checked.text).into_owned()), tag))
            }
            Err(FetchError::Status { status, .. }) if status == StatusCode::NOT_FOUND => {
                Ok((None, None))
            }
            Ok(FetchResponse::NotModified { .. }) => {
                Err(format!("the response from {url} is invalid").into())
            }
            Err(err) => Err(Box::new(err)),
        }
    }

    async fn save(
        &self,
        url: &Url,
        feed: String,
        tag: Option<HeaderValue>,
    ) -> Result<(StatusCode, String), Box<dyn Error>> {
        let given = format!("{}:{}", self.login.as_str(), self.password.reveal());
        let mut basic = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(given)))?;
        basic.set_sensitive(true);
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, basic);
        let rss = HeaderValue::from_static("application/rss+xml; charset=utf-8");
        headers.insert(header::CONTENT_TYPE, rss);
        match tag {
            Some(tag) => headers.insert(header::IF_MATCH, tag),
            None => headers.insert(header::IF_NONE_MATCH, HeaderValue::from_static("*")),
        };
        let (method, body) = (Method::PUT, Bytes::from(feed));
        let reply =
            self.fetch.call(CallbackRequest { method, url: url.clone(), headers, body }).await?;
        Ok((reply.status, String::from_utf8_lossy(&reply.body).trim().to_owned()))
    }
}

/// Converts an entity tag to the form that `If-Match` can compare. A proxy that compresses prefixes
/// the tag of the gateway with `W/`, and a weak tag never matches (RFC 9110 `#field.if-match`). The
/// gateway recognizes its tags without the prefix.
fn strong(tag: &HeaderValue) -> Result<HeaderValue, InvalidHeaderValue> {
    let bytes = tag.as_bytes();
    HeaderValue::from_bytes(bytes.strip_prefix(b"W/").unwrap_or(bytes))
}
