//! rssCloud registrations (`pleaseNotify`), independent of their interface.
//!
//! The rules are those of the walkthrough (seed 000). A registration names a handler by its parts,
//! which are checked one by one before they are joined, so that no part can inject another (rule
//! S9). A handler is accepted only if it is at the caller's address or answers a challenge (rule
//! S27).

use std::net::IpAddr;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::{FutureExt, StreamExt, stream};
use tokio::time::Instant;
use url::{Host, Url};

use super::{
    CallerNetworks, SubscriptionRefusal, SubscriptionService, events, request_checks, verify,
};
use crate::jobs::poll::PolledNow;
use crate::jobs::runner;
use feedgate_core::account::AccountId;
use feedgate_core::event::{Event, EventKind};
use feedgate_core::registrant::RegistrantNetwork;
use feedgate_core::resource::Resource;
use feedgate_core::store::{StoreError, SubscriptionFilter};
use feedgate_core::subscription::{Lease, SubscriptionRequest};
use feedgate_core::topic::{Callback, Topic};
use feedgate_protocol::Protocol;

/// The maximum number of resources of one registration that are processed concurrently, so that one
/// caller cannot make feedgate send a hundred requests to one handler at once (rule S26).
const REGISTRATION_CONCURRENCY: usize = 4;
/// The maximum number of subscriptions of one handler to one resource that are examined: the
/// anonymous one in each protocol, and some of accounts.
const MOST_OF_ONE: usize = 20;

/// A handler as a registration names it, and the address of the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotificationHandler {
    /// Whether the name of the protocol asks for TLS (`https-post`).
    pub tls: bool,
    /// The protocol.
    pub protocol: Protocol,
    /// `domain`, if one was given.
    pub domain: Option<String>,
    /// `port`, as written.
    pub port: String,
    /// `path`, as written.
    pub path: String,
    /// The address of the caller.
    pub caller: Option<IpAddr>,
    /// Which handlers the caller may name.
    pub networks: CallerNetworks,
}

impl NotificationHandler {
    /// Returns the callback address; `None` if the parts do not form one.
    pub fn callback(&self) -> Option<Callback> {
        let port: u16 = self.port.trim().parse().ok().filter(|port| *port > 0)?;
        // Port 443 means https whatever the protocol is called, because many clients know only the
        // name http-post.
        let mut tls = self.tls || port == 443;
        let host = match &self.domain {
            Some(domain) => {
                let domain = domain.trim();
                tls |= domain.starts_with("https://");
                let bare = domain.strip_prefix("https://").or(domain.strip_prefix("http://"));
                host(bare.unwrap_or(domain).trim_end_matches('/'))?
            }
            None => host(&self.caller?.to_string())?,
        };
        let path = self.path.trim();
        // A URL would hold it in its encoded form, which is not what was sent.
        if path.contains('\0') {
            return None;
        }
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let scheme = if tls { "https" } else { "http" };
        let url = Url::parse(&format!("{scheme}://{host}:{port}{path}")).ok()?;
        Callback::parse(url.as_str()).ok()
    }
}

fn host(text: &str) -> Option<Host> {
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V4(ip)) => Some(Host::Ipv4(ip)),
        Ok(IpAddr::V6(ip)) => Some(Host::Ipv6(ip)),
        Err(_) => Host::parse(text).ok(),
    }
}

impl SubscriptionService {
    /// Registers `handler` for each of `urls`, and returns the time at which the first of these
    /// subscriptions ends. As on deployed servers, the registration succeeds if one of the
    /// resources could be registered; otherwise the first refusal is returned. A failure of the
    /// store for any resource fails the whole registration, which may safely be repeated. No
    /// resource is fetched sooner than `spacing` after its last fetch (rule S29).
    pub async fn register(
        &self,
        handler: &NotificationHandler,
        urls: &[String],
        spacing: Duration,
        now: DateTime<Utc>,
    ) -> Result<DateTime<Utc>, SubscriptionRefusal> {
        let each = urls.iter().map(|url| self.register_one(handler, url, spacing, now).boxed());
        let each: Vec<_> = each.collect();
        let done: Vec<_> = stream::iter(each).buffered(REGISTRATION_CONCURRENCY).collect().await;
        let (mut ends, mut first_refusal) = (Vec::new(), None);
        for done in done {
            match done {
                Ok(lease_until) => ends.push(lease_until),
                Err(refusal @ SubscriptionRefusal::Store(_)) => return Err(refusal),
                Err(refusal) => first_refusal = first_refusal.or(Some(refusal)),
            }
        }
        let refusal = first_refusal.unwrap_or(SubscriptionRefusal::NoSubscription);
        ends.into_iter().min().ok_or(refusal)
    }

    async fn register_one(
        &self,
        handler: &NotificationHandler,
        url: &str,
        spacing: Duration,
        now: DateTime<Utc>,
    ) -> Result<DateTime<Utc>, SubscriptionRefusal> {
        let done = self.try_register(handler, url, spacing, now).await;
        if let Err(why) = &done {
            let event = Event::new(EventKind::Subscribe, now)
                .via(handler.protocol.as_str())
                .about_feed(url);
            let event = match handler.callback() {
                Some(callback) => event.to(callback.as_str()),
                None => event,
            };
            self.event_log.record(events::not_done(event, why));
        }
        done
    }

    async fn try_register(
        &self,
        handler: &NotificationHandler,
        url: &str,
        spacing: Duration,
        now: DateTime<Utc>,
    ) -> Result<DateTime<Utc>, SubscriptionRefusal> {
        let unreadable = || SubscriptionRefusal::Unreadable(url.to_owned());
        let topic = Topic::parse(url).map_err(|_| unreadable())?;
        request_checks::check_part(&topic)?;
        let callback = handler.callback().ok_or(SubscriptionRefusal::NoHandler)?;
        self.check_is_elsewhere(&callback)?;
        self.check_callback_network(&callback, handler.networks)?;
        self.check_topic_network(&topic, handler.networks).await?;

        let registrant = RegistrantNetwork::from_client(handler.caller);
        let PolledNow { resource, busy } =
            self.ensure_read(&topic, (None, registrant), now).await?;
        let is_reachable = busy.is_none() && self.is_reachable(&resource, spacing, now).await?;
        // Anybody can name a handler by its domain, and some handlers respond to every procedure.
        let keeps_procedure = handler.domain.is_some() && !handler.protocol.procedure().is_empty();
        // What is held is read only where it decides something: most registrations need no such read.
        let held = match !is_reachable || keeps_procedure {
            true => self.held_protocol(&topic, &callback, &handler.protocol).await?,
            false => None,
        };
        // A renewal while the publisher is unavailable must not lose the subscription.
        if !is_reachable && held.is_none() {
            return Err(busy.map_or_else(unreadable, SubscriptionRefusal::Busy));
        }
        let mut request = SubscriptionRequest {
            lease: Lease::RSSCLOUD,
            registrant,
            ..SubscriptionRequest::new(topic, callback, handler.protocol.clone())
        };
        self.check_quota(&request).await?;
        self.check_failures(&request).await?;
        let visit = self.visit(&request).await?;
        let begun = Instant::now();
        let verified = self.verify_handler(handler, &request, visit).await;
        let verified = verified.map(|address| request.callback = address);
        let result = verified.as_ref().map_or_else(verify::NotVerified::code, |()| "ok");
        self.metrics.verified("pleaseNotify", result);
        let event = events::verified(&request, "pleaseNotify", &verified, runner::now());
        self.event_log.record(event.lasting(begun.elapsed()));
        verified?;

        if let Some(held) = held.filter(|_| keeps_procedure) {
            request.protocol = held;
        }
        // The handler may have redirected to another host.
        self.check_is_elsewhere(&request.callback)?;
        self.check_quota(&request).await?;
        let held = self.store.subscribe(&request, now).await?;
        self.event_log.record(events::kept(&request, &held, now));
        Ok(held.lease_until)
    }

    /// Returns whether a resource can be read. A resource whose last fetch failed is fetched again
    /// if its schedule allows; while its server asks not to be contacted, a resource that could be
    /// read before counts as readable.
    async fn is_reachable(
        &self,
        resource: &Resource,
        spacing: Duration,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let status = &resource.status;
        if status.last_fetch.is_none() {
            return Ok(!status.is_failing() && self.awaits_history(resource).await?);
        }
        if !status.is_failing() || self.is_readable(resource, now, spacing).await? {
            return Ok(true);
        }
        let left_alone = self.ingest.host_backoff_until(resource, runner::now()).await?;
        Ok(status.last_parse.is_some() && left_alone.is_some())
    }

    /// Returns the protocol, with its procedure, in which this handler is registered already.
    async fn held_protocol(
        &self,
        topic: &Topic,
        callback: &Callback,
        protocol: &Protocol,
    ) -> Result<Option<Protocol>, StoreError> {
        let filter = SubscriptionFilter {
            account: Some(AccountId::NOBODY),
            topic: Some(topic.as_str().to_owned()),
            callback: Some(callback.as_str().to_owned()),
            limit: MOST_OF_ONE,
            ..SubscriptionFilter::default()
        };
        let (listed, _) = self.store.list(&filter).await?;
        let mut held = listed.into_iter().map(|listed| listed.subscription.protocol);
        Ok(held.find(|held| held.as_str() == protocol.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn callback(domain: Option<&str>, port: &str, path: &str) -> Option<String> {
        let handler = NotificationHandler {
            tls: false,
            protocol: Protocol::HttpPost,
            domain: domain.map(str::to_owned),
            port: port.to_owned(),
            path: path.to_owned(),
            caller: Some("2001:db8::1".parse().unwrap()),
            networks: CallerNetworks::Public,
        };
        handler.callback().map(|callback| callback.as_str().to_owned())
    }

    #[test]
    fn a_handler_is_put_together_from_checked_parts() {
        #[rustfmt::skip]
        let cases = [
            ("the caller's address",     None,                      "5337", "/RPC2",       Some("http://[2001:db8::1]:5337/RPC2")),
            ("a domain",                 Some("a.test"),            "80",   "/notify",     Some("http://a.test/notify")),
            ("an address",               Some("192.0.2.1"),         "81",   "/",           Some("http://192.0.2.1:81/")),
            ("port 443 means https",     Some("a.test"),            "443",  "/n",          Some("https://a.test/n")),
            ("a domain with a scheme",   Some("https://a.test/"),   "8443", "/n",          Some("https://a.test:8443/n")),
            ("a path without a slash",   Some("a.test"),            "80",   "n",           Some("http://a.test/n")),
            ("a path with a query",      Some("a.test"),            "80",   "/?rsscloud=notify", Some("http://a.test/?rsscloud=notify")),
            ("no port",                  Some("a.test"),            "",     "/n",          None),
            ("a port that is too great", Some("a.test"),            "99999", "/n",         None),
            ("a port that is a host",    Some("a.test"),            "80@evil.example:1", "/n", None),
            ("a domain that is a path",  Some("a.test/x"),          "80",   "/n",          None),
            ("a domain with credentials", Some("b@a.test"),         "80",   "/n",          None),
            ("a domain with a port",     Some("a.test:81"),         "80",   "/n",          None),
        ];
        for (why, domain, port, path, want) in cases {
            assert_eq!(callback(domain, port, path).as_deref(), want, "{why}");
        }
    }
}
