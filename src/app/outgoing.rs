//! The client for all outgoing requests of a gateway.

use std::sync::Arc;

use url::Url;

use crate::config::Config;
use crate::jobs::host_gate::SharedHostGate;
use crate::net::HttpClient;
use feedgate_store::Store;

/// Returns the client for all outgoing requests.
pub(super) fn new_client(config: &Config, public_url: &Url, store: &Arc<Store>) -> HttpClient {
    let gate = Arc::new(SharedHostGate::new(Arc::clone(store)));
    let client = HttpClient::with_host_gate(config.net(public_url), gate);
    match config.anonymous.reaches_inner_callbacks() {
        true => client.with_inner_addresses_for_all(),
        false => client,
    }
}
