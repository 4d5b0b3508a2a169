//! The subscriptions of the demo. They are requested over HTTP, so that the demo shows the requests
//! of a subscriber.

use std::error::Error;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method};
use url::Url;
use url::form_urlencoded::Serializer;

use crate::app::StartError;
use crate::jobs::runner;
use crate::net::{CallbackRequest, HttpClient};
use crate::tokens::{TokenRequest, create_token};
use feedgate_core::account::Scopes;
use feedgate_core::store::SubscriptionFilter;
use feedgate_store::Store;

use super::subscribers::path;
use super::tally::Channel;

type Failure = Box<dyn Error>;

/// The account that subscribes by Superfeedr's API.
const LOGIN: &str = "demo";
const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

/// Sends requests to the gateway.
#[derive(Clone)]
pub(super) struct Desk {
    fetch: HttpClient,
    gateway: Url,
    callbacks: Url,
}

impl Desk {
    /// A desk for subscribers with callbacks below `callbacks`.
    pub(super) fn new(fetch: HttpClient, gateway: Url, callbacks: Url) -> Desk {
        Desk { fetch, gateway, callbacks }
    }

    /// Subscribes every way to every topic; when it returns, all are subscribed.
    pub(super) async fn begin_all(&self, store: &Store, topics: &[String]) -> Result<(), Failure> {
        let now = runner::now();
        let (login, name) = (LOGIN.to_owned(), "demo".to_owned());
        let request = TokenRequest { login, name, scopes: Scopes::all(), expires_at: None };
        let made = create_token(store, request, now).await;
        let (token, number) = made.map_err(StartError::from)?;
        for (sample, topic) in topics.iter().enumerate() {
            self.websub(topic, &path(Channel::WebSub, Some(sample)), None).await?;
            self.websub(topic, &path(Channel::Superfeedr, Some(sample)), Some(&token)).await?;
        }
        // The token is not needed any more: subscriptions outlive the token that created them.
        store.revoke_token(number, runner::now()).await?;
        self.rsscloud("http-post", Channel::HttpPost, topics).await?;
        self.rsscloud("xml-rpc", Channel::XmlRpc, topics).await?;
        self.rsscloud("soap", Channel::Soap, topics).await
    }

    /// Ends every subscription to `topics`.
    pub(super) async fn end_all(&self, store: &Store, topics: &[String]) -> Result<(), Failure> {
        for topic in topics {
            let filter = SubscriptionFilter {
                topic: Some(topic.clone()),
                limit: 100,
                ..SubscriptionFilter::default()
            };
            for listed in store.list(&filter).await?.0 {
                let held = listed.subscription;
                store.unsubscribe(held.account, &held.topic, &held.callback, None).await?;
            }
        }
        Ok(())
    }

    /// Subscribes by WebSub at the open hub, or with a token by Superfeedr's API, which sends JSON.
    async fn websub(&self, topic: &str, path: &str, token: Option<&str>) -> Result<(), Failure> {
        let callback = self.callbacks.join(path)?;
        let form = [
            ("hub.mode", "subscribe"),
            ("hub.topic", topic),
            ("hub.callback", callback.as_str()),
            ("hub.verify", "sync"),
            ("format", "json"),
        ];
        let endpoint = if token.is_some() { "" } else { "hub" };
        self.post(endpoint, &form, token).await.map(|_| ())
    }

    /// Registers several resources by rssCloud, in one request.
    async fn rsscloud(
        &self,
        protocol: &str,
        way: Channel,
        topics: &[String],
    ) -> Result<(), Failure> {
        let port = self.callbacks.port().unwrap_or_default().to_string();
        let path = path(way, None);
        let keys: Vec<String> = (1..=topics.len()).map(|n| format!("url{n}")).collect();
        let mut form = vec![
            ("notifyProcedure", "demo.changed"),
            ("port", &port),
            ("path", &path),
            ("protocol", protocol),
        ];
        form.extend(keys.iter().map(String::as_str).zip(topics.iter().map(String::as_str)));
        let reply = self.post("rsscloud/pleaseNotify", &form, None).await?;
        let is_registered = reply.contains("success=\"true\"");
        if is_registered { Ok(()) } else { Err(reply.into()) }
    }

    /// Posts a form to `path` of the gateway and returns the body of the response.
    pub(super) async fn post(
        &self,
        path: &str,
        form: &[(&str, &str)],
        token: Option<&str>,
    ) -> Result<String, Failure> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, FORM);
        if let Some(token) = token {
            let packed = STANDARD.encode(format!("{LOGIN}:{token}"));
            headers.insert(AUTHORIZATION, HeaderValue::try_from(format!("Basic {packed}"))?);
        }
        let body = Serializer::new(String::new()).extend_pairs(form).finish();
        let (method, url) = (Method::POST, self.gateway.join(path)?);
        let reply = self
            .fetch
            .call(CallbackRequest { method, url, headers, body: Bytes::from(body) })
            .await?;
        let text = String::from_utf8_lossy(&reply.body).into_owned();
        if reply.status.is_success() {
            return Ok(text);
        }
        Err(format!("/{path} responded with {}: {text}", reply.status).into())
    }
}
