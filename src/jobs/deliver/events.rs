//! The event-log entries of deliveries.

use crate::jobs::runner;
use crate::net::{CallbackResponse, FetchError};
use feedgate_core::event::{Event, EventKind, EventOutcome};
use feedgate_core::subscription::Subscription;

use super::verdict::{self, DeliveryVerdict};

/// The failures after which an event says since when a callback fails (rule D7).
const NOTED_AFTER: u32 = 3;

/// Returns the event of an attempt that ended. `subscription` is its state before the attempt.
pub(super) fn notified(
    subscription: &Subscription,
    answer: &Result<CallbackResponse, FetchError>,
    verdict: DeliveryVerdict,
) -> Event {
    let event = Event::new(EventKind::Notify, runner::now())
        .via(subscription.protocol.as_str())
        .about_topic(&subscription.topic)
        .to(subscription.callback.as_str())
        .owned_by(subscription.account);
    let next = match verdict {
        DeliveryVerdict::Delivered => return event,
        DeliveryVerdict::Failed(Some(at)) => {
            format!("next retry at {}", at.format("%H:%M:%S UTC"))
        }
        DeliveryVerdict::Failed(None) => "next retry with the next change".to_owned(),
        DeliveryVerdict::Suspended => {
            "deliveries are suspended until they are resumed or the subscription is renewed"
                .to_owned()
        }
        DeliveryVerdict::Ended => "the subscription was ended".to_owned(),
    };
    let next = match subscription.failing_since {
        Some(since) if subscription.failures >= NOTED_AFTER => {
            format!("{next}, failing since {}", since.format("%Y-%m-%d %H:%M UTC"))
        }
        _ => next,
    };
    let code = verdict::result_code(answer);
    match answer {
        Ok(reply) => {
            let why = format!("webhook delivery failed: HTTP {}, {next}", reply.status);
            event.ended(EventOutcome::Failed, code, &why).answered(&reply.excerpt())
        }
        Err(err) => event.ended(
            EventOutcome::Failed,
            code,
            &format!("webhook delivery failed: {err}, {next}"),
        ),
    }
}
