//! Verification of rssCloud handlers, which may redirect: to https, or to a path with a slash at its
//! end.
//!
//! A redirect is followed with the same method and body, because a handler that only responds to GET
//! would not be notified by POST. Each address goes through the guard, and counts for the limits of
//! its host. The address that agrees is the callback: deliveries follow no redirects.

use std::time::Duration;

use super::registration::NotificationHandler;
use super::{NotVerified, SubscriptionService, verify};
use crate::verification_limits::VerificationPermit;
use feedgate_core::registrant::RegistrantNetwork;
use feedgate_core::subscription::SubscriptionRequest;
use feedgate_core::topic::Callback;
use feedgate_protocol::Protocol;

/// The maximum number of redirects of a handler: as many as of a topic (rule P18).
const MAX_REDIRECTS: usize = 5;

impl SubscriptionService {
    /// Verifies a handler at `callback`, and returns the address at which it agreed.
    pub(super) async fn verify_handler(
        &self,
        handler: &NotificationHandler,
        request: &SubscriptionRequest,
        visit: Result<VerificationPermit, Duration>,
    ) -> Result<Callback, NotVerified> {
        let callback = &request.callback;
        // A permit that is dropped counts as a failure of its host.
        let mut permits =
            vec![visit.map_err(|retry_after| NotVerified::RateLimited { retry_after })?];
        let mut address = callback.clone();
        let mut is_first_there = true;
        for _ in 0..=MAX_REDIRECTS {
            let is_proven = self.is_proven(handler, callback, &address).await;
            let target = match self.verify_at(handler, request, &address, is_proven).await {
                Ok(()) => {
                    if let Some(permit) = permits.pop() {
                        permit.ends(true);
                    }
                    permits.into_iter().for_each(VerificationPermit::ends_elsewhere);
                    return Ok(address);
                }
                Err(NotVerified::Redirect { target, .. }) => target,
                Err(why) => {
                    if why.unsent_retry_in().is_some() && is_first_there {
                        permits.pop().into_iter().for_each(VerificationPermit::ends_unsent);
                    }
                    return Err(why);
                }
            };
            let next = Callback::parse(target.as_str()).map_err(|_| NotVerified::BadRedirect)?;
            self.check_callback_network(&next, handler.networks)
                .map_err(|_| NotVerified::BadRedirect)?;
            is_first_there = next.host_name() != address.host_name();
            if is_first_there {
                let permit = self.wait_for_permit(&next, request.requester()).await;
                permits
                    .push(permit.map_err(|retry_after| NotVerified::RateLimited { retry_after })?);
            }
            address = next;
        }
        Err(NotVerified::BadRedirect)
    }

    /// Returns whether requests to `address` come back to the caller, so that it need not echo a
    /// challenge (rule S27).
    async fn is_proven(
        &self,
        handler: &NotificationHandler,
        callback: &Callback,
        address: &Callback,
    ) -> bool {
        match (&handler.domain, handler.caller) {
            (None, _) if address.host_name() == callback.host_name() => true,
            (None, Some(caller)) => {
                let client = self.fetch.for_anonymous(RegistrantNetwork::from_client(Some(caller)));
                client.resolves_to(address.url(), caller).await
            }
            _ => false,
        }
    }

    /// Verifies a handler at one address. A `domain` may belong to anybody, so its handler must echo
    /// a challenge; XML-RPC and SOAP procedures cannot echo, but must exist and respond without a
    /// fault.
    async fn verify_at(
        &self,
        handler: &NotificationHandler,
        request: &SubscriptionRequest,
        address: &Callback,
        is_proven: bool,
    ) -> Result<(), NotVerified> {
        let (url, topic) = (address.url().clone(), request.topic.as_str());
        let fetch = self.open_callback_client(request.registrant, address);
        match &handler.protocol {
            Protocol::HttpPost if !is_proven => verify::challenged(&fetch, url, topic).await,
            protocol => verify::test_call(&fetch, protocol, url, topic, !is_proven).await,
        }
    }
}
