//! What is told of deliveries, in the words of the log page.

use crate::jobs::runner;
use crate::net::{CallbackResponse, FetchError};
use feedgate_core::event::{Event, EventKind, EventOutcome};
use feedgate_core::subscription::Subscription;

use super::verdict::{self, DeliveryVerdict};

/// An attempt ended. `subscription` stands as before it.
pub(super) fn notified(
    subscription: &Subscription,
    answer: &Result<CallbackResponse, FetchError>,
    verdict: DeliveryVerdict,
) -> Event {
    let event = Event::new(EventKind::Notify, runner::now())
        .via(subscription.protocol.as_str())
        .about_feed(subscription.topic.as_str())
        .to(subscription.callback.as_str())
        .owned_by(subscription.account);
    let next = match verdict {
        DeliveryVerdict::Told => return event,
        DeliveryVerdict::Failed(Some(at)) => {
            format!("tried again at {}", at.format("%H:%M:%S UTC"))
        }
        DeliveryVerdict::Failed(None) => "tried again with the next change".to_owned(),
        DeliveryVerdict::Ended => "which ends its subscription".to_owned(),
    };
    let code = verdict::word(answer);
    match answer {
        Ok(reply) => {
            let why = format!("it answered {}, {next}", reply.status);
            event.ended(EventOutcome::Failed, code, &why).answered(&reply.excerpt())
        }
        Err(err) => event.ended(EventOutcome::Failed, code, &format!("{err}; {next}")),
    }
}
