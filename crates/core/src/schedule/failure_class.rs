//! The classes of poll failures that determine when to retry.

use std::fmt;

/// The class of a failure, which determines when to retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureClass {
    /// The connection failed or timed out; a retry may succeed within minutes.
    Network,
    /// The DNS lookup failed, possibly because of the local resolver.
    Lookup,
    /// The host name does not exist.
    NoName,
    /// The TLS certificate or handshake failed.
    Tls,
    /// 401 or 403.
    Denied,
    /// 404, and other client errors.
    Missing,
    /// 410.
    Gone,
    /// 429.
    SlowDown,
    /// 5xx, and other unexpected status codes.
    Server,
    /// A successful response whose content is unusable.
    Unusable,
    /// The egress guard forbids the address.
    Forbidden,
}

impl FailureClass {
    /// Returns the class of a status code without a document.
    pub fn of_status(code: u16) -> FailureClass {
        match code {
            401 | 403 => FailureClass::Denied,
            410 => FailureClass::Gone,
            429 => FailureClass::SlowDown,
            400..=499 => FailureClass::Missing,
            _ => FailureClass::Server,
        }
    }
}

impl fmt::Display for FailureClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FailureClass::Network => {
                "the server could not be reached, or did not complete its response"
            }
            FailureClass::Lookup => "the DNS lookup failed",
            FailureClass::NoName => "the host name does not exist",
            FailureClass::Tls => "the TLS certificate is not trusted",
            FailureClass::Denied => "the server denied access",
            FailureClass::Missing => "the server does not have the resource",
            FailureClass::Gone => "the server reported that the resource is gone",
            FailureClass::SlowDown => "the server reported too many requests",
            FailureClass::Server => "the server reported an error",
            FailureClass::Unusable => "the response could not be used",
            FailureClass::Forbidden => "the address is not allowed",
        })
    }
}
