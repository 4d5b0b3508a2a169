//! Which networks the callbacks of a request may be in.
//!
//! The private networks that the operator allows for callbacks are for accounts. A callback that
//! nobody vouches for may have any name, and that name may resolve to a private address at any time:
//! so requests to it pass a guard that allows public addresses only. Where the URL itself names a
//! private host, whoever requested it was allowed to (`subscriptions::caller_networks`), and the
//! allowed networks are reached.

use url::Url;

use super::{HttpClient, is_inner};

/// Which callbacks nobody's requests may go to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CallbackNetworks {
    /// Those at public addresses, and those that the operator allows.
    #[default]
    Allowed,
    /// Those at public addresses.
    Public,
}

impl HttpClient {
    /// Lets callbacks without an account be in all networks that the operator allows for callbacks,
    /// under whatever name.
    pub fn with_inner_callbacks_for_all(self) -> HttpClient {
        HttpClient { has_inner_for_all: true, ..self }
    }

    /// Returns the client for callbacks at public addresses only.
    pub fn public_callbacks_only(&self) -> HttpClient {
        let callbacks = match self.has_inner_for_all {
            true => CallbackNetworks::Allowed,
            false => CallbackNetworks::Public,
        };
        HttpClient { callbacks, ..self.clone() }
    }

    /// Returns the client for requests to `callback`, which an account vouches for or not.
    pub fn for_callback(&self, has_account: bool, callback: &Url) -> HttpClient {
        match has_account || is_inner(callback) {
            true => self.clone(),
            false => self.public_callbacks_only(),
        }
    }
}
