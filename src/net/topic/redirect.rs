//! Redirects of a topic.

use http::StatusCode;
use url::Url;

use super::FetchSession;
use crate::net::{FetchError, credentials};

/// The maximum number of redirects in one fetch (rule P18).
const MOST_REDIRECTS: usize = 5;

impl FetchSession<'_> {
    /// Continues the fetch at the target of a redirect.
    pub(super) fn follow(&mut self, status: StatusCode, mut target: Url) -> Result<(), FetchError> {
        self.redirects += 1;
        if self.redirects > MOST_REDIRECTS {
            return Err(FetchError::Redirects(format!("more than {MOST_REDIRECTS} redirects")));
        }
        target.set_fragment(None);
        credentials::strip(&mut target);
        if self.hops.iter().any(|hop| hop.url == target) {
            return Err(FetchError::Redirects(format!("a redirect loop, back to {target}")));
        }
        if !matches!(target.scheme(), "http" | "https") {
            return Err(FetchError::Redirects(format!("the target is a {}: URL", target.scheme())));
        }
        if target.origin() != self.at.origin() {
            if self.is_confined {
                return Err(FetchError::Redirects("the target is at another server".to_owned()));
            }
            self.credentials = None;
        }
        self.only_permanent &=
            matches!(status, StatusCode::MOVED_PERMANENTLY | StatusCode::PERMANENT_REDIRECT);
        if self.only_permanent {
            let mut moved_to = target.clone();
            if let Some((with, _)) = &self.credentials {
                // The new address is useless for polling without the credentials.
                moved_to.set_username(with.username()).ok();
                moved_to.set_password(with.password()).ok();
            }
            self.moved_to = Some(moved_to);
        }
        self.at = target;
        Ok(())
    }
}
