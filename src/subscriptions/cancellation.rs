//! Cancellation of rssCloud subscriptions before their lease ends (rule D19).
//!
//! A handler is identified by its parts, as in its registration. A caller at the handler's own
//! address may cancel its subscription at once. For any other caller the handler must agree: it
//! receives a request with `cancel=` and a challenge. The parameter is not `challenge=`, because
//! handlers echo that in every request, which would let anybody cancel any subscription.

use std::net::IpAddr;

use tokio::time::Instant;

use super::registration::NotificationHandler;
use super::{CallerNetworks, SubscriptionRefusal, SubscriptionService, events, verify};
use crate::jobs::runner;
use feedgate_core::event::{Event, EventKind};
use feedgate_core::registrant::RegistrantNetwork;
use feedgate_core::store::SubscriptionFilter;
use feedgate_core::topic::{Callback, Topic};
use feedgate_protocol::Protocol;

/// The protocol in the event log, because the request may not name one.
const VIA: &str = "rsscloud";
/// The ports assumed if none is given: some clients cannot send a port.
const PORTS: [&str; 2] = ["80", "443"];

/// The handler whose subscription is to be cancelled, as the request names it, and the address of
/// the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancelled {
    /// `protocol`, as in the registration; all protocols if it is missing.
    pub protocol: Option<String>,
    /// `domain`; the address of the caller if it is missing.
    pub domain: Option<String>,
    /// `port`, as written; 80 and 443 if it is missing.
    pub port: Option<String>,
    /// `path`, as written.
    pub path: String,
    /// The address of the caller; `None` if it is not certain.
    pub caller: Option<IpAddr>,
}

impl Cancelled {
    /// Returns the addresses that the request may mean.
    pub fn callbacks(&self) -> Vec<Callback> {
        self.handlers().map_or(Vec::new(), |(callbacks, _)| callbacks)
    }

    /// Returns the addresses that the request may mean, and the protocols, by their words in the
    /// store.
    fn handlers(&self) -> Result<(Vec<Callback>, &[&'static str]), SubscriptionRefusal> {
        let (schemes, protocols): (&[bool], &[&str]) = match self.protocol.as_deref() {
            None => (&[false, true], &["http-post", "xml-rpc", "soap"]),
            Some("http-post") => (&[false], &["http-post"]),
            Some("https-post") => (&[true], &["http-post"]),
            Some("xml-rpc") => (&[false], &["xml-rpc"]),
            Some("soap") => (&[false], &["soap"]),
            Some(_) => return Err(SubscriptionRefusal::NoSubscription),
        };
        let ports = self.port.as_deref().map_or(PORTS.to_vec(), |port| vec![port]);
        let mut callbacks: Vec<Callback> = Vec::new();
        for port in ports {
            for tls in schemes {
                let handler = NotificationHandler {
                    tls: *tls,
                    protocol: Protocol::HttpPost,
                    domain: self.domain.clone(),
                    port: port.to_owned(),
                    path: self.path.clone(),
                    caller: self.caller,
                    networks: CallerNetworks::Public,
                };
                callbacks.extend(handler.callback().filter(|found| !callbacks.contains(found)));
            }
        }
        if callbacks.is_empty() {
            Err(SubscriptionRefusal::NoHandler)
        } else {
            Ok((callbacks, protocols))
        }
    }
}

impl SubscriptionService {
    /// Cancels the subscriptions of a handler to each of `urls`. Succeeds if one of them was
    /// cancelled; otherwise returns the first refusal.
    pub async fn cancel(
        &self,
        cancelled: &Cancelled,
        urls: &[String],
    ) -> Result<(), SubscriptionRefusal> {
        let (callbacks, protocols) = cancelled.handlers()?;
        let mut refusal = None;
        let mut ended = false;
        for url in urls {
            let Ok(topic) = Topic::parse(url.as_str()) else { continue };
            for callback in &callbacks {
                match self.cancel_one(cancelled, &topic, callback, protocols).await {
                    Ok(one) => ended |= one,
                    Err(SubscriptionRefusal::Store(err)) => return Err(err.into()),
                    Err(why) => refusal = refusal.or(Some(why)),
                }
            }
        }
        if ended {
            return Ok(());
        }
        let why = refusal.unwrap_or(SubscriptionRefusal::NoSubscription);
        let event = Event::new(EventKind::Unsubscribe, runner::now()).via(VIA);
        let event =
            event.about_feed(urls.first().map_or("", String::as_str)).to(callbacks[0].as_str());
        self.event_log.record(events::not_done(event, &why));
        Err(why)
    }

    /// Cancels the subscriptions to one resource. Returns `false` if there are none, without
    /// contacting the handler.
    async fn cancel_one(
        &self,
        cancelled: &Cancelled,
        topic: &Topic,
        callback: &Callback,
        protocols: &[&str],
    ) -> Result<bool, SubscriptionRefusal> {
        let filter = SubscriptionFilter {
            topic: Some(topic.as_str().to_owned()),
            callback: Some(callback.as_str().to_owned()),
            limit: 16,
            ..SubscriptionFilter::default()
        };
        let (held, _) = self.store.list(&filter).await?;
        let is_meant =
            |protocol: &str, account: Option<_>| account.is_none() && protocols.contains(&protocol);
        let held = held.iter().map(|held| &held.subscription);
        if !held.clone().any(|held| is_meant(held.protocol.as_str(), held.account)) {
            return Ok(false);
        }
        let about = |kind| {
            Event::new(kind, runner::now()).via(VIA).about_topic(topic).to(callback.as_str())
        };
        let url = callback.url().clone();
        let network = RegistrantNetwork::from_client(cancelled.caller);
        let is_own = match cancelled.caller {
            Some(caller) => self.fetch.for_anonymous(network).resolves_to(&url, caller).await,
            None => false,
        };
        if !is_own {
            let begun = Instant::now();
            let fetch = self.open_callback_client(network, callback);
            // The handler is subscribed, so it has agreed to requests before.
            let verified = verify::cancelled(&fetch, url, topic.as_str()).await;
            let result = verified.as_ref().map_or_else(verify::NotVerified::code, |()| "ok");
            self.metrics.verified("cancel", result);
            let event = about(EventKind::Verify).lasting(begun.elapsed());
            self.event_log.record(events::with_verification(event, "cancel", &verified));
            verified?;
        }
        let mut ended = false;
        for protocol in protocols {
            ended |= self.store.unsubscribe(None, topic, callback, Some(protocol)).await?;
        }
        if ended {
            self.event_log.record(about(EventKind::Unsubscribe));
        }
        Ok(ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handler_may_be_named_in_part() {
        let named = |protocol: Option<&str>, port: Option<&str>| {
            let cancelled = Cancelled {
                protocol: protocol.map(str::to_owned),
                domain: Some("a.test".to_owned()),
                port: port.map(str::to_owned),
                path: "/cb".to_owned(),
                caller: None,
            };
            let (callbacks, protocols) = cancelled.handlers().unwrap();
            let callbacks: Vec<_> = callbacks.iter().map(|c| c.as_str().to_owned()).collect();
            (callbacks.join(" "), protocols.join(" "))
        };
        #[rustfmt::skip]
        let cases = [
            (None,               None,         "http://a.test/cb https://a.test:80/cb https://a.test/cb", "http-post xml-rpc soap"),
            (None,               Some("5337"), "http://a.test:5337/cb https://a.test:5337/cb",            "http-post xml-rpc soap"),
            (Some("http-post"),  Some("443"),  "https://a.test/cb",                                       "http-post"),
            (Some("https-post"), Some("8443"), "https://a.test:8443/cb",                                  "http-post"),
            (Some("xml-rpc"),    Some("80"),   "http://a.test/cb",                                        "xml-rpc"),
        ];
        for (protocol, port, callbacks, protocols) in cases {
            let want = (callbacks.to_owned(), protocols.to_owned());
            assert_eq!(named(protocol, port), want, "{protocol:?} {port:?}");
        }
    }
}
