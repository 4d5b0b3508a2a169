//! Why a subscription is refused, in the words of the REST API.

use http::StatusCode;

use crate::http::kit::rejection::{Rejection, RejectionCode};
use crate::http::routes::websub::describe_forbidden;
use crate::net::{FetchError, Purpose};
use crate::subscriptions::{NotValidated, NotVerified, SubscriptionRefusal};

/// Returns the rejection of a subscription that was refused, with the field that has to be corrected.
pub(super) fn reject_refusal(refusal: SubscriptionRefusal) -> Rejection {
    let (code, field) = (refusal.code(), field_of(&refusal));
    let rejection = describe_refusal(refusal);
    let rejection = match rejection.code() {
        RejectionCode::BadRequest => rejection.with_code(code),
        _ => rejection,
    };
    match field {
        Some(field) => rejection.with_field(field),
        None => rejection,
    }
}

fn field_of(refusal: &SubscriptionRefusal) -> Option<&'static str> {
    match refusal {
        SubscriptionRefusal::Forbidden(Purpose::Topic, _)
        | SubscriptionRefusal::OwnDocument(_)
        | SubscriptionRefusal::BadPart(_)
        | SubscriptionRefusal::BadTrack(_)
        | SubscriptionRefusal::BadFilter(_)
        | SubscriptionRefusal::NotFollowed(_)
        | SubscriptionRefusal::FeedHeaders
        | SubscriptionRefusal::NotValidated(_) => Some("url"),
        SubscriptionRefusal::Forbidden(Purpose::Callback, _)
        | SubscriptionRefusal::OwnCallback
        | SubscriptionRefusal::NotVerified(_) => Some("callback"),
        _ => None,
    }
}

fn describe_refusal(refusal: SubscriptionRefusal) -> Rejection {
    let unprocessable = |reason: String| Rejection::unprocessable(reason);
    let not_accepted = |reason: String| {
        let reason = format!("The subscription was not accepted: {reason}.");
        Rejection::new(StatusCode::FORBIDDEN, reason)
    };
    match refusal {
        SubscriptionRefusal::Forbidden(purpose, reason) => {
            let field = if purpose == Purpose::Topic { "url" } else { "callback" };
            let reason = describe_forbidden(purpose, &reason);
            unprocessable(format!("{field} cannot be used: {reason}."))
        }
        SubscriptionRefusal::OwnCallback => {
            Rejection::unprocessable("callback cannot be used: it is an address of this gateway.")
        }
        SubscriptionRefusal::OwnDocument(document) => {
            unprocessable(format!("url cannot be used. {}", document.advice()))
        }
        SubscriptionRefusal::BadPart(reason) => {
            unprocessable(format!("The fragment of url cannot be used: {reason}."))
        }
        SubscriptionRefusal::BadTrack(reason) => {
            unprocessable(format!("The track cannot be used: {reason}."))
        }
        SubscriptionRefusal::BadFilter(reason) => {
            unprocessable(format!("The filter in url cannot be used: {reason}."))
        }
        SubscriptionRefusal::NotFollowed(reason) => {
            unprocessable(format!("url cannot be followed: {reason}."))
        }
        SubscriptionRefusal::FeedHeaders => {
            unprocessable(format!("url cannot be used: {refusal}."))
        }
        SubscriptionRefusal::Busy(busy) => Rejection::busy(busy),
        SubscriptionRefusal::NotVerified(NotVerified::RateLimited { retry_after })
        | SubscriptionRefusal::NotValidated(NotValidated::RateLimited { retry_after }) => {
            Rejection::callback_rate_limited(retry_after)
        }
        SubscriptionRefusal::NotVerified(NotVerified::Unreachable(FetchError::Unreachable {
            host,
            detail,
            ..
        })) => unprocessable(format!("callback could not be reached: {host}: {detail}.")),
        SubscriptionRefusal::NotVerified(reason) => {
            unprocessable(format!("callback did not confirm the subscription: {reason}."))
        }
        SubscriptionRefusal::NotValidated(reason) => not_accepted(reason.to_string()),
        SubscriptionRefusal::QuotaExceeded(reason) => not_accepted(reason.to_string()),
        SubscriptionRefusal::Superseded => Rejection::new(
            StatusCode::CONFLICT,
            "A newer request for the same subscription has replaced this one.",
        ),
        SubscriptionRefusal::NoSubscription => {
            Rejection::new(StatusCode::NOT_FOUND, "There is no such subscription.")
        }
        SubscriptionRefusal::Several(_)
        | SubscriptionRefusal::Unreadable(_)
        | SubscriptionRefusal::NoHandler
        | SubscriptionRefusal::Store(_) => Rejection::unavailable(&refusal),
    }
}
