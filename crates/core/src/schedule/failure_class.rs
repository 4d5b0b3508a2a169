//! What went wrong with a poll, as far as it matters for when to try again.

use std::fmt;

/// What went wrong, as far as it matters for when to come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureClass {
    /// The connection, or time: it may work in a minute.
    Network,
    /// The name could not be looked up. That may be our own resolver's fault.
    Lookup,
    /// There is no such name.
    NoName,
    /// The certificate, or the handshake.
    Tls,
    /// 401 or 403.
    Denied,
    /// 404, and what else is the request's fault.
    Missing,
    /// 410.
    Gone,
    /// 429.
    SlowDown,
    /// 5xx, and answers that are neither good nor bad.
    Server,
    /// An answer of 200 that is of no use.
    Unusable,
    /// Our own guard forbids to go there.
    Forbidden,
}

impl FailureClass {
    /// The class of a status code that brought no document.
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
            FailureClass::Network => "its server could not be reached, or did not finish",
            FailureClass::Lookup => "its name could not be looked up",
            FailureClass::NoName => "its name does not exist",
            FailureClass::Tls => "its certificate is not to be trusted",
            FailureClass::Denied => "its server lets nobody in without credentials, or not us",
            FailureClass::Missing => "its server does not have it",
            FailureClass::Gone => "its server says that it is gone",
            FailureClass::SlowDown => "its server is asked too often",
            FailureClass::Server => "its server is in trouble",
            FailureClass::Unusable => "what came is of no use",
            FailureClass::Forbidden => "we do not go there",
        })
    }
}
