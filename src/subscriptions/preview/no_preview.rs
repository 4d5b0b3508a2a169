//! Why there is no preview, and what of that a client without an account learns.

use std::net::IpAddr;
use std::time::Duration;

use http::StatusCode;

use crate::net::FetchError;
use crate::subscriptions::SubscriptionRefusal;
use feedgate_core::address_rules::is_inner_name;
use feedgate_core::schedule::FailureClass;
use feedgate_core::store::StoreError;

/// How long somebody waits for a preview: for its turn, for the server, and until the document is read.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// The reason why there is no preview.
#[derive(Debug, thiserror::Error)]
pub enum NoPreview {
    /// The owner of the preview requested too many, or too many were requested of the server.
    #[error("too many previews, please try again in {} s", .retry_in.as_secs())]
    RateLimited {
        /// After how long another one is possible.
        retry_in: Duration,
    },
    /// The topic can never be subscribed to.
    #[error(transparent)]
    Refused(#[from] SubscriptionRefusal),
    /// The fetch failed, or this gateway was too busy for it.
    #[error(transparent)]
    Failed(#[from] FetchError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The server took too long.
    #[error("the server did not send the document within {} s", PATIENCE.as_secs())]
    TooSlow,
    /// The document could not be read.
    #[error("the document could not be read")]
    Unreadable,
}

impl NoPreview {
    /// Returns what a client without an account may learn of it: a name that leads inside is like one that
    /// does not exist (rule S13), and a pause, which may have been requested of an account's feed, like a
    /// refusal now (rule S56).
    pub(super) fn for_anonymous(self) -> NoPreview {
        let NoPreview::Failed(why) = self else { return self };
        NoPreview::Failed(match why {
            FetchError::Forbidden { host } if !is_inner_by_form(&host) => {
                let (detail, class) = ("dns: no such name".to_owned(), FailureClass::NoName);
                FetchError::Unreachable { host, detail, class }
            }
            FetchError::HostPaused { .. } => refused_now(0),
            why => why,
        })
    }
}

/// Returns the failure of a fetch that the server refused now, with the status of its last refusal as far
/// as that is known.
pub(super) fn refused_now(status: u16) -> FetchError {
    let status = StatusCode::from_u16(status).ok();
    let is_refusal = |status: &StatusCode| status.is_client_error() || status.is_server_error();
    let status = status.filter(is_refusal).unwrap_or(StatusCode::TOO_MANY_REQUESTS);
    FetchError::Status { status, retry_after_s: None }
}

/// Returns whether a host is an address, or a name that everybody knows to be valid inside networks only.
fn is_inner_by_form(host: &str) -> bool {
    host.parse::<IpAddr>().is_ok() || is_inner_name(host)
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    #[test]
    fn s13_s56_a_client_without_an_account_learns_of_no_inner_name_and_of_no_pause() {
        let forbidden = |host: &str| FetchError::Forbidden { host: host.to_owned() };
        let (host, until) = ("a.test".to_owned(), DateTime::UNIX_EPOCH);
        let missing = "could not reach inside.test: dns: no such name";
        #[rustfmt::skip]
        let cases = [
            (forbidden("inside.test"),               missing),
            (forbidden("10.0.0.1"),                  "10.0.0.1 resolves to an address that is not public"),
            (forbidden("fd00::1"),                   "fd00::1 resolves to an address that is not public"),
            (forbidden("printer.local"),             "printer.local resolves to an address that is not public"),
            (FetchError::HostPaused { host, until }, "the server responded with 429 Too Many Requests"),
            (refused_now(503),                       "the server responded with 503 Service Unavailable"),
        ];
        for (why, want) in cases {
            let found = NoPreview::Failed(why).for_anonymous();
            assert_eq!(found.to_string(), want);
        }
    }
}
