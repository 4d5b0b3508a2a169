//! The keys with which requests to publishers are signed.

use std::sync::Arc;

use tracing::warn;

use super::Shared;
use crate::config::Config;
use crate::jobs::runner;
use crate::jobs::signing_keys::SigningKeyring;

/// Returns the keys of requests to publishers, if others can reach this gateway to read them. They are
/// read before the first request, which is not signed if that fails.
pub(super) async fn keyring(shared: &Shared, config: &Config) -> Option<SigningKeyring> {
    let public_url = config.public_url.clone()?;
    let signer = shared.client.request_signer().clone();
    let keyring = SigningKeyring::new(Arc::clone(&shared.store), signer, public_url);
    if let Err(err) = keyring.update(runner::now()).await {
        warn!(error = &err as &dyn std::error::Error, "requests to publishers are not signed yet");
    }
    Some(keyring)
}
