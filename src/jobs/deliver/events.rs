//! What is told of deliveries, in the words of the log page.

use crate::jobs::runner;
use crate::net::{FetchError, Reply};
use feedgate_core::event::{Event, EventKind, EventOutcome};
use feedgate_core::subscription::Subscription;

use super::verdict::{self, Verdict};

/// An attempt ended. `subscription` stands as before it.
pub(super) fn notified(
    subscription: &Subscription,
    answer: &Result<Reply, FetchError>,
    verdict: Verdict,
) -> Event {
    let event = Event::new(EventKind::Notify, runner::now())
        .via(subscription.protocol.as_str())
        .of(subscription.topic.as_str())
        .to(subscription.callback.as_str())
        .owned_by(subscription.account);
    let next = match verdict {
        Verdict::Told => return event,
        Verdict::Failed(Some(at)) => format!("tried again at {}", at.format("%H:%M:%S UTC")),
        Verdict::Failed(None) => "tried again with the next change".to_owned(),
        Verdict::Ended => "which ends its subscription".to_owned(),
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
