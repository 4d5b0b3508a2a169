//! For whom requests are made: what is limited for strangers leaves a part to accounts.

use std::net::IpAddr;

use url::Url;

use super::{HttpClient, Purpose};
use feedgate_core::registrant::RegistrantNetwork;

/// For whom requests are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum FetchOwner {
    /// An account, a program on the gateway's own machine, or the gateway itself.
    #[default]
    Known,
    /// A client without an account, in this network as far as it is known.
    Anonymous(RegistrantNetwork),
    /// A confirmed subscription that a client without an account has requested from this network.
    Delivery(RegistrantNetwork),
}

impl HttpClient {
    /// Returns the client for what a client without an account requests from `network`.
    pub fn for_anonymous(&self, network: RegistrantNetwork) -> HttpClient {
        HttpClient { requester: FetchOwner::Anonymous(network), ..self.clone() }
    }

    /// Returns this client with half of the memory for documents, and of the parsers for large ones, which it
    /// shares with all others that have half.
    pub fn with_half_of_memory(&self) -> HttpClient {
        HttpClient { has_half_of_memory: true, ..self.clone() }
    }

    /// Returns whether a client without an account makes the requests.
    pub fn is_for_anonymous(&self) -> bool {
        matches!(self.requester, FetchOwner::Anonymous(_))
    }

    /// Returns the client for deliveries to a subscription that a client without an account has requested
    /// from `network`.
    pub fn for_delivery(&self, network: RegistrantNetwork) -> HttpClient {
        HttpClient { requester: FetchOwner::Delivery(network), ..self.clone() }
    }

    /// Returns the addresses of the host of `url`, as
    /// [`GuardedClient::addresses`](super::guarded_client::GuardedClient::addresses) does.
    pub(super) async fn addresses(&self, url: &Url, purpose: Purpose) -> Vec<IpAddr> {
        let lookup = self.inner.lookups.for_owner(self.requester);
        self.guarded(purpose).addresses(url, &*lookup).await
    }

    /// Returns this client for whom nobody vouches, if that is not said already.
    pub(super) fn without_account(&self) -> HttpClient {
        match self.requester {
            FetchOwner::Anonymous(_) | FetchOwner::Delivery(_) => self.clone(),
            FetchOwner::Known => self.for_anonymous(RegistrantNetwork::UNKNOWN),
        }
    }
}
