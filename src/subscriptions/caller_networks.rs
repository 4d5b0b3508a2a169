//! Which private addresses a caller may name, in topics and callbacks (rule S12).
//!
//! The private networks that the operator allows are for those who are known: accounts, and programs
//! on the gateway's own machine as far as what they name is there as well. A stranger who could name a
//! callback there would make the gateway send requests into the network behind it, and one who could
//! name a topic there would be sent what is published inside.

use url::{Host, Url};

use super::{SubscriptionRefusal, SubscriptionService};
use crate::net::{FetchError, HttpClient, Purpose};
use feedgate_core::registrant::RegistrantNetwork;
use feedgate_core::subscription::SubscriptionRequest;
use feedgate_core::topic::{Callback, Topic};
use feedgate_core::visibility::SourceNetwork;

/// Which addresses a caller may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallerNetworks {
    /// Those at public addresses: the caller may be anybody.
    Public,
    /// Those at public addresses, and those on this machine: the caller is a program on it.
    Local,
    /// Those at public addresses, and those that the operator allows.
    Inner,
}

impl CallerNetworks {
    /// Returns whether the caller may name this URL although it may be in a private network.
    pub(super) fn includes(self, url: &Url) -> bool {
        match self {
            CallerNetworks::Public => false,
            CallerNetworks::Local => is_on_this_machine(url),
            CallerNetworks::Inner => true,
        }
    }
}

impl SubscriptionService {
    /// Refuses a callback in a private network that the caller may not name.
    pub(super) fn check_callback_network(
        &self,
        callback: &Callback,
        networks: CallerNetworks,
    ) -> Result<(), SubscriptionRefusal> {
        match callback.is_null_device() {
            true => Ok(()),
            false => self.check_network(callback.url(), Purpose::Callback, networks),
        }
    }

    /// Refuses a topic in a private network that the caller may not name: by its URL, or because its
    /// documents were found to come from there, whatever its name.
    pub(super) async fn check_topic_network(
        &self,
        topic: &Topic,
        networks: CallerNetworks,
    ) -> Result<(), SubscriptionRefusal> {
        let url = topic.fetch_url();
        self.check_network(&url, Purpose::Topic, networks)?;
        if networks != CallerNetworks::Public {
            return Ok(());
        }
        let known = self.store.find(topic.as_str()).await?;
        match known.is_some_and(|known| known.exposure.source_network == SourceNetwork::Inner) {
            true => {
                let host = url.host_str().unwrap_or_default().to_owned();
                let why = FetchError::Forbidden { host };
                Err(SubscriptionRefusal::Forbidden(Purpose::Topic, why))
            }
            false => Ok(()),
        }
    }

    /// Refuses a URL in a private network that the caller may not name. The refusal is that of an
    /// address which nobody may name, so that strangers do not learn which are allowed.
    pub(super) fn check_network(
        &self,
        url: &Url,
        purpose: Purpose,
        networks: CallerNetworks,
    ) -> Result<(), SubscriptionRefusal> {
        if networks.includes(url) {
            return Ok(());
        }
        match self.fetch.public_callbacks_only().refuses(url, Purpose::Callback) {
            Some(why) => Err(SubscriptionRefusal::Forbidden(purpose, why)),
            None => Ok(()),
        }
    }

    /// Returns the client for fetches of what a stranger in `network` names, who may name addresses of
    /// these networks: a name that looks public may lead inside a private one.
    pub(super) fn anonymous_topic_client(
        &self,
        network: RegistrantNetwork,
        (url, may_name): (&Url, CallerNetworks),
    ) -> HttpClient {
        let client = self.fetch.for_anonymous(network);
        if may_name.includes(url) { client } else { client.public_topics_only() }
    }

    /// Returns the client for requests to a callback that a subscription request causes.
    pub(super) fn callback_client(
        &self,
        request: &SubscriptionRequest,
        callback: &Callback,
    ) -> HttpClient {
        match request.account {
            Some(_) => self.fetch.for_callback(true, callback.url()),
            None => self.open_callback_client(request.registrant, callback),
        }
    }

    /// Returns the client for requests to a callback that a stranger in `network` causes.
    pub(super) fn open_callback_client(
        &self,
        network: RegistrantNetwork,
        callback: &Callback,
    ) -> HttpClient {
        self.fetch.for_anonymous(network).for_callback(false, callback.url())
    }
}

/// Returns whether a URL leads to this machine, judging by the URL alone.
pub(crate) fn is_on_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.to_canonical().is_loopback(),
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h05_a_url_tells_that_it_leads_to_this_machine() {
        #[rustfmt::skip]
        let cases = [
            ("http://127.0.0.1:8080/cb",     true),  ("http://127.9.9.9/",          true),
            ("http://[::1]/",                true),  ("http://[::ffff:127.0.0.1]/", true),
            ("http://localhost:81/",         true),  ("http://LOCALHOST./",         true),
            ("http://2130706433/",           true),  ("http://a.localhost/",        true),
            ("http://10.0.0.1/",             false), ("http://notlocalhost/",       false),
            ("http://127.0.0.1.example.org/", false), ("http://localhost.example/",  false),
            ("http://0.0.0.0/",              false), ("http://example.org/",        false),
        ];
        for (url, want) in cases {
            assert_eq!(is_on_this_machine(&Url::parse(url).unwrap()), want, "{url}");
        }
    }
}
