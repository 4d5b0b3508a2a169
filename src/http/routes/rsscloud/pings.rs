//! Pings of rssCloud that may wait until subscribers have been notified, for REST, XML-RPC and
//! SOAP.

use crate::http::state::Gateway;
use crate::subscriptions::{CallerNetworks, SubscriptionRefusal};
use feedgate_core::ping::Ping;
use feedgate_protocol::form::Form;

/// The reply to a ping.
pub(crate) const PINGED: &str = "Thanks for the ping.";

/// Returns whether the reply to a ping waits for delivery: by its `wait` parameter, or else by the
/// operator's setting.
pub(crate) fn waits_for_delivery(gateway: &Gateway, form: &Form) -> bool {
    if form.has("wait") { form.is_set("wait") } else { gateway.settings.ping_waits }
}

/// Takes a ping and waits, within bounds, until its subscribers have been notified. Returns how
/// many were.
pub(crate) async fn ping_and_wait(
    gateway: &Gateway,
    ping: &Ping,
    networks: CallerNetworks,
) -> Result<u64, SubscriptionRefusal> {
    let waits = (gateway.settings.ping_spacing, gateway.settings.ping_wait);
    gateway.subscribe.ping_and_wait(ping, waits, networks).await
}
