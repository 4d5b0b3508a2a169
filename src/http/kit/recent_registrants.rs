//! The addresses that lately registered subscriptions without an account. They may see the effect at
//! once, where everybody else is served a view that may be a minute old.

use std::net::IpAddr;

use quick_cache::sync::Cache;

use crate::http::kit::request::Request;

/// The number of addresses that are remembered: more than register in a minute.
const MAX_ADDRESSES: usize = 10_000;

/// The addresses, on this node.
#[derive(Debug)]
pub struct RecentRegistrants(Cache<IpAddr, ()>);

impl RecentRegistrants {
    /// Returns an empty list.
    pub fn new() -> RecentRegistrants {
        RecentRegistrants(Cache::new(MAX_ADDRESSES))
    }

    /// Remembers the client of a request that was accepted.
    pub(crate) fn remember(&self, request: &Request) {
        if let Some(client) = client(request) {
            self.0.insert(client, ());
        }
    }

    /// Returns the address of the client of `request`, if it registered lately.
    pub(crate) fn find(&self, request: &Request) -> Option<IpAddr> {
        client(request).filter(|client| self.0.get(client).is_some())
    }
}

impl Default for RecentRegistrants {
    fn default() -> RecentRegistrants {
        RecentRegistrants::new()
    }
}

/// Returns the address of the client, if it is nobody else's. A page of another site sends requests
/// through the browsers of others.
fn client(request: &Request) -> Option<IpAddr> {
    let is_cross_site = request.headers.contains_key(http::header::ORIGIN);
    let client = request.own_address().filter(|_| !is_cross_site);
    client.map(|client| client.to_canonical())
}
