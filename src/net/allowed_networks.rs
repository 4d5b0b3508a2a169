//! Which networks the topics and callbacks of a request may be in.
//!
//! The private networks that the operator allows are for accounts. A topic or a callback that nobody
//! vouches for may have any name, and that name may resolve to a private address at any time: so
//! requests to it pass a guard that allows public addresses only. Where the URL itself names a private
//! host, whoever requested it was allowed to (`subscriptions::caller_networks`), and the allowed
//! networks are reached.

use url::Url;

use super::guarded_client::GuardedClient;
use super::{HttpClient, Purpose, is_inner};

/// Where requests may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum AllowedNetworks {
    /// To public addresses, and to those that the operator allows.
    #[default]
    All,
    /// To public addresses.
    Public,
}

impl HttpClient {
    /// Lets topics and callbacks without an account be in all networks that the operator allows, under
    /// whatever name.
    pub fn with_inner_addresses_for_all(self) -> HttpClient {
        HttpClient { has_inner_for_all: true, ..self }
    }

    /// Returns whether topics and callbacks without an account may be in private networks.
    pub fn has_inner_addresses_for_all(&self) -> bool {
        self.has_inner_for_all
    }

    /// Returns whether some topics may be in private networks and others may not, so that the topic or
    /// its subscribers decide.
    pub fn has_inner_topics_for_some(&self) -> bool {
        !self.has_inner_for_all && !self.inner.settings.allow_topics.is_empty()
    }

    /// Returns the client for callbacks at public addresses only.
    pub fn public_callbacks_only(&self) -> HttpClient {
        HttpClient { callbacks: self.networks_without_account(), ..self.without_account() }
    }

    /// Returns the client for topics at public addresses only.
    pub fn public_topics_only(&self) -> HttpClient {
        HttpClient { topics: self.networks_without_account(), ..self.without_account() }
    }

    /// Returns the client for requests to `callback`, which an account vouches for or not.
    pub fn for_callback(&self, has_account: bool, callback: &Url) -> HttpClient {
        match (has_account, is_inner(callback)) {
            (true, _) => self.clone(),
            (false, true) => self.without_account(),
            (false, false) => self.public_callbacks_only(),
        }
    }

    /// Returns whether requests for topics stay on the public internet.
    pub fn reaches_public_topics_only(&self) -> bool {
        self.topics == AllowedNetworks::Public
    }

    /// Returns the guarded client for requests to topics or to callbacks.
    pub(super) fn guarded(&self, purpose: Purpose) -> &GuardedClient {
        match purpose {
            Purpose::Topic => match self.topics {
                AllowedNetworks::All => &self.inner.topics,
                AllowedNetworks::Public => &self.inner.public_topics,
            },
            Purpose::Callback => match self.callbacks {
                AllowedNetworks::All => &self.inner.callbacks,
                AllowedNetworks::Public => &self.inner.public_callbacks,
            },
        }
    }

    fn networks_without_account(&self) -> AllowedNetworks {
        match self.has_inner_for_all {
            true => AllowedNetworks::All,
            false => AllowedNetworks::Public,
        }
    }
}
