//! Which callbacks a caller may name (rule S12).
//!
//! The private networks that the operator allows for callbacks are for those who are known: accounts,
//! and programs on the gateway's own machine as far as their callbacks are there as well. A stranger
//! who could name a callback there would make the gateway send requests into the network behind it.

use url::{Host, Url};

use super::{SubscriptionRefusal, SubscriptionService};
use crate::net::{HttpClient, Purpose};
use feedgate_core::account::AccountId;
use feedgate_core::topic::Callback;

/// Which callbacks a caller may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallbackReach {
    /// Those at public addresses: the caller may be anybody.
    Public,
    /// Those at public addresses, and those on this machine: the caller is a program on it.
    Local,
    /// Those at public addresses, and those that the operator allows.
    Inner,
}

impl SubscriptionService {
    /// Refuses a callback in a private network that the caller may not name. The refusal is that of
    /// an address which nobody may name, so that strangers do not learn which are allowed.
    pub(super) fn check_reach(
        &self,
        callback: &Callback,
        reach: CallbackReach,
    ) -> Result<(), SubscriptionRefusal> {
        let is_within = match reach {
            CallbackReach::Public => false,
            CallbackReach::Local => is_on_this_machine(callback.url()),
            CallbackReach::Inner => true,
        };
        if is_within || callback.is_null_device() {
            return Ok(());
        }
        match self.fetch.public_callbacks_only().refuses(callback.url(), Purpose::Callback) {
            Some(why) => Err(SubscriptionRefusal::Forbidden(Purpose::Callback, why)),
            None => Ok(()),
        }
    }

    /// Returns the client for requests to the callback of a subscription of `account`, or of nobody.
    pub(super) fn callback_client(
        &self,
        account: Option<AccountId>,
        callback: &Callback,
    ) -> HttpClient {
        self.fetch.for_callback(account.is_some(), callback.url())
    }
}

/// Returns whether a URL leads to this machine, judging by the URL alone.
fn is_on_this_machine(url: &Url) -> bool {
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
