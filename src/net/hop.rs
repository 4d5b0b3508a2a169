//! One request of a fetch.

use std::net::IpAddr;
use std::time::Duration;

use http::{HeaderMap, StatusCode, Version};
use url::Url;

use super::{FetchError, Fetched, is_inner, is_public};
use feedgate_core::visibility::SourceNetwork;

/// One request and its response, for `feedgate poll`.
#[derive(Clone, Debug)]
pub struct Hop {
    /// The requested URL.
    pub url: Url,
    /// The addresses that the name resolved to; empty for an address literal.
    pub addresses: Vec<IpAddr>,
    /// The headers sent; secrets among them are marked as sensitive.
    pub request: HeaderMap,
    /// The version of HTTP, if there was a response.
    pub version: Option<Version>,
    /// The status code, if there was a response.
    pub status: Option<StatusCode>,
    /// The headers received.
    pub response: HeaderMap,
    /// The time until the headers were received.
    pub took: Duration,
    /// The exact failure below HTTP. For the operator only, because it distinguishes a closed port
    /// from a filtered one (rule S13).
    pub failure: Option<String>,
}

impl Hop {
    /// Returns whether the request led into a private network: to an address that is not public, or to a
    /// name that is valid only inside a network.
    fn is_inner(&self) -> bool {
        is_inner(&self.url) || self.addresses.iter().any(|address| !is_public(*address))
    }
}

impl Fetched {
    /// Returns where the requests led. Every hop counts: whoever chose the first address chose the others
    /// too. That of an address nothing was received from is known only if it is inner. An address that the
    /// guard refused was not contacted and says nothing.
    pub fn source_network(&self) -> SourceNetwork {
        let is_refused = |hop: &Hop| {
            matches!(self.result, Err(FetchError::Forbidden { .. })) && hop.status.is_none()
        };
        match self.result.is_ok() {
            _ if self.hops.iter().any(|hop| hop.is_inner() && !is_refused(hop)) => {
                SourceNetwork::Inner
            }
            true if self.hops.iter().all(|hop| !hop.addresses.is_empty()) => SourceNetwork::Public,
            true | false => SourceNetwork::Unknown,
        }
    }
}
