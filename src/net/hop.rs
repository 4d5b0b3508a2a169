//! One request of a fetch.

use std::net::IpAddr;
use std::time::Duration;

use http::{HeaderMap, StatusCode, Version};
use url::Url;

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
