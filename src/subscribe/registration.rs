//! rssCloud registrations: `pleaseNotify`, whichever way it came.
//!
//! The rules are those of the walkthrough (seed 000). A registration names a handler
//! by its parts; what is glued together here is checked part by part, so that no part
//! can smuggle another (rule S9), and a handler is called only if it is at the
//! caller's own address or agrees to a challenge (rule S27).

use std::net::IpAddr;

use chrono::{DateTime, Utc};
use futures_util::{FutureExt, StreamExt, stream};
use tokio::time::Instant;
use url::{Host, Url};

use super::{Refusal, Subscribe, events, verify};
use crate::domain::event::{Event, Kind};
use crate::domain::subscription::{Format, Lease, Protocol, Statuses, Updates, Wish};
use crate::domain::topic::{Callback, Topic};
use crate::worker;

/// Resources of one registration looked at side by side: one caller does not make us
/// knock at one handler a hundred times at once (rule S26).
const AT_ONCE: usize = 4;

/// A handler as a registration names it, and the caller's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handler {
    /// Whether the protocol's name asked for TLS (`https-post`).
    pub tls: bool,
    /// The protocol.
    pub protocol: Protocol,
    /// `domain`, if one was given.
    pub domain: Option<String>,
    /// `port`, as it was written.
    pub port: String,
    /// `path`, as it was written.
    pub path: String,
    /// Where the request came from.
    pub caller: Option<IpAddr>,
}

impl Handler {
    /// The address to call; `None` if the parts make none.
    pub fn callback(&self) -> Option<Callback> {
        let port: u16 = self.port.trim().parse().ok().filter(|port| *port > 0)?;
        // Port 443 means https whatever the protocol is called: many clients know
        // only the name http-post.
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

impl Subscribe {
    /// Registers `handler` for each of `urls`. It has worked if it worked for one of
    /// them, as with the deployed servers, and lasts until the time that is returned; else
    /// the first refusal says why.
    pub async fn register(
        &self,
        handler: &Handler,
        urls: &[String],
        now: DateTime<Utc>,
    ) -> Result<DateTime<Utc>, Refusal> {
        let each: Vec<_> =
            urls.iter().map(|url| self.register_one(handler, url, now).boxed()).collect();
        let done: Vec<_> = stream::iter(each).buffered(AT_ONCE).collect().await;
        match done.iter().flatten().min() {
            Some(lease_until) => Ok(*lease_until),
            None => done.into_iter().next().unwrap_or(Err(Refusal::NoSubscription)),
        }
    }

    async fn register_one(
        &self,
        handler: &Handler,
        url: &str,
        now: DateTime<Utc>,
    ) -> Result<DateTime<Utc>, Refusal> {
        let done = self.try_register(handler, url, now).await;
        if let Err(why) = &done {
            let event = Event::new(Kind::Subscribe, now).via(handler.protocol.as_str()).of(url);
            let event = match handler.callback() {
                Some(callback) => event.to(callback.as_str()),
                None => event,
            };
            self.journal.tell(events::not_done(event, why));
        }
        done
    }

    async fn try_register(
        &self,
        handler: &Handler,
        url: &str,
        now: DateTime<Utc>,
    ) -> Result<DateTime<Utc>, Refusal> {
        let unreadable = || Refusal::Unreadable(url.to_owned());
        let topic = Topic::parse(url).map_err(|_| unreadable())?;
        super::check_part(&topic)?;
        let callback = handler.callback().ok_or(Refusal::NoHandler)?;

        let resource = self.look(&topic, now).await?;
        let is_unread =
            resource.status.last_fetch.is_none() && !self.awaits_history(&resource).await?;
        if resource.status.is_failing() || is_unread {
            return Err(unreadable());
        }
        let wish = Wish {
            account: None,
            topic,
            callback,
            protocol: handler.protocol.clone(),
            // What is told is that the document changed, with whichever entries.
            format: Format::Raw,
            updates: Updates::default(),
            statuses: Statuses::Never,
            secret: None,
            lease: Lease::RSSCLOUD,
        };
        let begun = Instant::now();
        let verified = self.verify_handler(handler, &wish.callback, &wish.topic).await;
        let result = verified.as_ref().map_or_else(verify::NotVerified::code, |()| "ok");
        self.metrics.verified("pleaseNotify", result);
        let event = events::verified(&wish, "pleaseNotify", &verified, worker::now());
        self.journal.tell(event.lasting(begun.elapsed()));
        verified?;

        let held = self.store.subscribe(&wish, now).await?;
        self.journal.tell(events::kept(&wish, &held, now));
        Ok(held.lease_until)
    }

    /// A `domain` may be anybody's, so it is asked with a challenge; the procedures of
    /// XML-RPC and SOAP cannot echo one, but must exist and answer without a fault.
    async fn verify_handler(
        &self,
        handler: &Handler,
        callback: &Callback,
        topic: &Topic,
    ) -> Result<(), verify::NotVerified> {
        let (url, topic) = (callback.url(), topic.as_str());
        match (&handler.domain, &handler.protocol) {
            (Some(_), Protocol::HttpPost) => verify::challenged(&self.fetch, url, topic).await,
            (domain, protocol) => {
                verify::test_call(&self.fetch, protocol, url, topic, domain.is_some()).await
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn callback(domain: Option<&str>, port: &str, path: &str) -> Option<String> {
        let handler = Handler {
            tls: false,
            protocol: Protocol::HttpPost,
            domain: domain.map(str::to_owned),
            port: port.to_owned(),
            path: path.to_owned(),
            caller: Some("2001:db8::1".parse().unwrap()),
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
