//! Why a subscription request is refused, in Superfeedr's words.

use std::fmt::Display;

use super::params::{BAD_CALLBACK, BAD_TOPIC};
use http::StatusCode;

use crate::http::kit::rejection::{Rejection, RejectionCode};
use crate::http::routes::websub::describe_forbidden;
use crate::net::{FetchError, Purpose};
use crate::subscriptions::{NotFollowed, NotValidated, NotVerified, SubscriptionRefusal};
use feedgate_core::own_document::OwnDocument;

/// Returns the rejection of a request that was refused.
pub(super) fn reject_refusal(refusal: SubscriptionRefusal) -> Rejection {
    let code = refusal.code();
    let rejection = describe_refusal(refusal);
    match rejection.code() {
        RejectionCode::BadRequest => rejection.with_code(code),
        _ => rejection,
    }
}

fn reject_followed(reason: &NotFollowed) -> Rejection {
    Rejection::unprocessable(format!("{BAD_TOPIC} ({reason})"))
}

fn reject_own_document(document: &OwnDocument) -> Rejection {
    Rejection::unprocessable(format!("{BAD_TOPIC} ({})", document.advice()))
}

fn describe_not_verified(reason: NotVerified) -> Rejection {
    let unreachable = |reason: &dyn Display| {
        Rejection::unprocessable(format!("Your callback URL could not be reached: {reason}."))
    };
    match reason {
        NotVerified::Unreachable(FetchError::Unreachable { host, detail, .. }) => {
            unreachable(&format_args!("{host}: {detail}"))
        }
        NotVerified::Unreachable(reason) => unreachable(&reason),
        NotVerified::NoPublicAddress(_) => unreachable(&reason),
        NotVerified::RateLimited { retry_after } => Rejection::callback_rate_limited(retry_after),
        reason => Rejection::unprocessable(format!(
            "Your callback URL didn't echo the challenge. Please make sure it does. ({reason})"
        )),
    }
}

fn describe_refusal(refusal: SubscriptionRefusal) -> Rejection {
    match refusal {
        SubscriptionRefusal::Forbidden(purpose, reason) => {
            let reason = describe_forbidden(purpose, &reason);
            Rejection::unprocessable(match purpose {
                Purpose::Topic => format!("{BAD_TOPIC} ({reason})"),
                Purpose::Callback => format!("{BAD_CALLBACK} ({reason})"),
            })
        }
        SubscriptionRefusal::OwnCallback => {
            Rejection::unprocessable(format!("{BAD_CALLBACK} (It is an address of this gateway.)"))
        }
        SubscriptionRefusal::OwnDocument(document) => reject_own_document(&document),
        SubscriptionRefusal::BadPart(reason) => Rejection::unprocessable(format!(
            "{BAD_TOPIC} (The fragment of the URL cannot be used: {reason})"
        )),
        SubscriptionRefusal::BadTrack(reason) => {
            Rejection::unprocessable(format!("{BAD_TOPIC} (The track cannot be used: {reason}.)"))
        }
        SubscriptionRefusal::BadFilter(reason) => {
            Rejection::unprocessable(format!("{BAD_TOPIC} (The filter cannot be used: {reason}.)"))
        }
        SubscriptionRefusal::NotFollowed(reason) => reject_followed(&reason),
        SubscriptionRefusal::FeedHeaders => {
            Rejection::unprocessable(format!("{BAD_TOPIC} ({refusal})"))
        }
        SubscriptionRefusal::Busy(busy) => Rejection::busy(busy),
        SubscriptionRefusal::NotVerified(reason) => describe_not_verified(reason),
        SubscriptionRefusal::NotValidated(NotValidated::RateLimited { retry_after }) => {
            Rejection::callback_rate_limited(retry_after)
        }
        SubscriptionRefusal::NotValidated(reason) => Rejection::new(
            StatusCode::FORBIDDEN,
            format!("The subscription was not accepted: {reason}."),
        ),
        SubscriptionRefusal::QuotaExceeded(reason) => Rejection::new(
            StatusCode::FORBIDDEN,
            format!("The subscription was not accepted: {reason}."),
        ),
        SubscriptionRefusal::Superseded => {
            Rejection::unprocessable(format!("The request was not carried out: {refusal}."))
        }
        SubscriptionRefusal::NoSubscription => {
            Rejection::unprocessable("You are not subscribed to this topic.")
        }
        SubscriptionRefusal::Several(many) => Rejection::unprocessable(format!(
            "You have {many} subscriptions to this topic. Please specify the hub.callback."
        )),
        SubscriptionRefusal::Unreadable(_)
        | SubscriptionRefusal::NoHandler
        | SubscriptionRefusal::Store(_) => Rejection::unavailable(&refusal),
    }
}
