//! The meaning of a callback's response for its subscription: pure functions, no clock.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::concurrency_limit::HostResponse;
use crate::net::{CallbackResponse, FetchError, freshness};
use feedgate_core::delivery_health::AttemptResponse;
use feedgate_core::record::Seq;
use feedgate_core::store::DeliveryOutcome;
use feedgate_core::subscription::Subscription;
use feedgate_protocol::Protocol;

/// The waits before a failed WebSub delivery is retried: after the first failure, the second, and
/// so on. The last wait is repeated until the lease ends (rule D6).
const WEBSUB_STEPS_S: [u64; 10] =
    [10, 60, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];
/// How long a callback fails, without one success, before its subscription is suspended (rule D7):
/// the waits above, which take some three days, and then an attempt a day for 30 days.
const SUSPENDED_AFTER: TimeDelta = TimeDelta::days(33);
/// The waits before a failed rssCloud delivery is retried. Its subscriber can read the feed by
/// itself, so after these waits the subscription waits for the next change. Three consecutive
/// errors, and the subscription is dropped at the top of the hour (seed 000).
const RSSCLOUD_STEPS_S: [u64; 2] = [10, 60];
/// The shortest wait after a response of an overloaded callback: 429, 503, 504 and timeouts.
const OVERLOADED_S: u64 = 60;

/// The result of one attempt for its subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeliveryVerdict {
    /// The callback accepted the delivery.
    Delivered,
    /// The attempt failed. The delivery is retried at this time, or with the next change.
    Failed(Option<DateTime<Utc>>),
    /// The attempt failed, as all before it have for [`SUSPENDED_AFTER`].
    Suspended,
    /// The callback ended the subscription.
    Ended,
}

impl DeliveryVerdict {
    /// Returns the outcome for the store: delivered up to `last`, with the version `status` of the
    /// status.
    pub(super) fn into_outcome(self, last: Seq, status: i64) -> DeliveryOutcome {
        match self {
            DeliveryVerdict::Delivered => DeliveryOutcome::Delivered { cursor: last, status },
            DeliveryVerdict::Failed(retry_at) => DeliveryOutcome::Failed { retry_at },
            DeliveryVerdict::Suspended => DeliveryOutcome::Suspended,
            DeliveryVerdict::Ended => DeliveryOutcome::Ended,
        }
    }
}

/// Returns the verdict on a response. Only 2xx is success, and no redirect is followed (rule D5).
/// `jitter` returns a random number from 0 to 1.
pub(super) fn classify(
    subscription: &Subscription,
    response: &Result<CallbackResponse, FetchError>,
    now: DateTime<Utc>,
    jitter: impl FnOnce() -> f64,
) -> DeliveryVerdict {
    match response {
        Ok(reply) if reply.status.is_success() => DeliveryVerdict::Delivered,
        Ok(reply) if reply.status.as_u16() == 410 => DeliveryVerdict::Ended,
        _ if has_failed_for_long(subscription, now) => DeliveryVerdict::Suspended,
        _ => {
            let wait = wait(subscription, response, now);
            DeliveryVerdict::Failed(wait.map(|wait| now + wait.mul_f64(0.8 + 0.4 * jitter())))
        }
    }
}

/// Returns whether a callback has failed since so long ago that one more failure suspends its
/// subscription. Few attempts are no proof: this gateway may have been stopped.
fn has_failed_for_long(subscription: &Subscription, now: DateTime<Utc>) -> bool {
    subscription.protocol == Protocol::WebSub
        && subscription.failures as usize > WEBSUB_STEPS_S.len()
        && subscription.failing_since.is_some_and(|since| now - since >= SUSPENDED_AFTER)
}

/// A change of a callback's health, for the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HealthTransition {
    /// The callback began to fail. The delivery is retried at this time, or with the next change.
    Failing(Option<DateTime<Utc>>),
    /// The callback recovered.
    Recovered,
    /// The callback has failed for long, and its subscription is suspended.
    Suspended,
    /// The callback ended the subscription.
    Ended,
}

/// Returns the health transition that `verdict` causes, if any. `subscription` is its state before
/// the attempt.
pub(super) fn health_transition(
    subscription: &Subscription,
    verdict: DeliveryVerdict,
) -> Option<HealthTransition> {
    match (verdict, subscription.failures) {
        (DeliveryVerdict::Failed(again_at), 0) => Some(HealthTransition::Failing(again_at)),
        (DeliveryVerdict::Delivered, 1..) => Some(HealthTransition::Recovered),
        (DeliveryVerdict::Suspended, _) => Some(HealthTransition::Suspended),
        (DeliveryVerdict::Ended, _) => Some(HealthTransition::Ended),
        (DeliveryVerdict::Failed(_), _) | (DeliveryVerdict::Delivered, 0) => None,
    }
}

/// Returns the code of the result, for metrics and the event log.
pub(in crate::jobs) fn result_code(
    response: &Result<CallbackResponse, FetchError>,
) -> &'static str {
    match response {
        Ok(reply) if reply.status.is_success() => "ok",
        Ok(reply) if reply.status.is_redirection() => "redirect",
        Ok(reply) if reply.status.as_u16() == 410 => "gone",
        Ok(reply) if reply.status.is_client_error() => "http_4xx",
        Ok(_) => "http_5xx",
        Err(err) => err.code(),
    }
}

/// Returns what the owner of the subscription is shown of the response: of a success its status
/// code. The body of a response from an address that is not public is the operator's only.
pub(in crate::jobs) fn attempt_response(
    answer: &Result<CallbackResponse, FetchError>,
) -> AttemptResponse {
    match answer {
        Ok(reply) => {
            let status = Some(reply.status.as_u16());
            if reply.status.is_success() {
                return AttemptResponse { status, excerpt: String::new() };
            }
            AttemptResponse { status, excerpt: reply.excerpt().public_text().to_owned() }
        }
        Err(err) => AttemptResponse { status: None, excerpt: err.to_string() },
    }
}

/// Returns the meaning of the response for the load of the host.
pub(super) fn host_response(answer: &Result<CallbackResponse, FetchError>) -> HostResponse {
    match answer {
        Ok(reply) if reply.status.is_success() => HostResponse::Accepted,
        Err(FetchError::TimedOut(_)) => HostResponse::TimedOut,
        _ if is_overloaded(answer) => HostResponse::Overloaded,
        _ => HostResponse::Failed,
    }
}

/// Returns how long to wait before the next attempt; `None` waits for the next change.
fn wait(
    subscription: &Subscription,
    response: &Result<CallbackResponse, FetchError>,
    now: DateTime<Utc>,
) -> Option<Duration> {
    let failures = subscription.failures as usize; // without this one
    if subscription.protocol.is_rsscloud() {
        return RSSCLOUD_STEPS_S.get(failures).copied().map(Duration::from_secs);
    }
    let last = WEBSUB_STEPS_S.len() - 1;
    let mut wait_s = WEBSUB_STEPS_S[failures.min(last)];
    if is_overloaded(response) {
        wait_s = wait_s.max(OVERLOADED_S);
    }
    if let Ok(reply) = response {
        let retry_after_s = freshness::retry_after_s(&reply.headers, now.into());
        wait_s = wait_s.max(retry_after_s.unwrap_or(0).into());
    }
    Some(Duration::from_secs(wait_s))
}

fn is_overloaded(response: &Result<CallbackResponse, FetchError>) -> bool {
    match response {
        Ok(reply) => matches!(reply.status.as_u16(), 429 | 503 | 504),
        Err(err) => matches!(err, FetchError::TimedOut(_)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_subscriptions;
    use super::*;
    use bytes::Bytes;
    use http::header::{DATE, RETRY_AFTER};
    use http::{HeaderMap, StatusCode};

    fn subscription(protocol: Protocol, failures: u32) -> Subscription {
        Subscription { protocol, failures, ..test_subscriptions::subscription() }
    }

    fn response(status: u16, retry_after: Option<&str>) -> Result<CallbackResponse, FetchError> {
        let mut headers = HeaderMap::new();
        if let Some(value) = retry_after {
            headers.insert(RETRY_AFTER, value.parse().unwrap());
        }
        Ok(CallbackResponse {
            status: StatusCode::from_u16(status).unwrap(),
            headers,
            body: Bytes::new(),
            is_public: true,
        })
    }

    #[test]
    fn f15_only_a_public_callback_shows_the_body_of_its_error() {
        let body = Bytes::from_static(b"no such user");
        for (is_public, status, want) in
            [(true, 500, "no such user"), (false, 500, ""), (true, 200, "")]
        {
            let mut reply = response(status, None).unwrap();
            (reply.is_public, reply.body) = (is_public, body.clone());
            let want = AttemptResponse { status: Some(status), excerpt: want.to_owned() };
            assert_eq!(attempt_response(&Ok(reply)), want);
        }
        let timeout = attempt_response(&Err(FetchError::TimedOut(Duration::from_secs(10))));
        assert!(timeout.status.is_none() && !timeout.excerpt.is_empty(), "{timeout:?}");
    }

    #[test]
    fn only_2xx_moves_the_cursor_and_only_410_ends() {
        #[rustfmt::skip]
        let cases = [
            ("any success counts",        200, DeliveryVerdict::Delivered),
            ("whatever it is called",     202, DeliveryVerdict::Delivered),
            ("even without an answer",    204, DeliveryVerdict::Delivered),
            ("410 is meant",              410, DeliveryVerdict::Ended),
            ("a redirect is a failure",   302, DeliveryVerdict::Failed(Some(at(10)))),
            ("307 too",                   307, DeliveryVerdict::Failed(Some(at(10)))),
            ("404 may be a bad moment",   404, DeliveryVerdict::Failed(Some(at(10)))),
            ("500 is one",                500, DeliveryVerdict::Failed(Some(at(10)))),
            ("overloaded: a minute",      503, DeliveryVerdict::Failed(Some(at(60)))),
        ];
        for (why, status, want) in cases {
            let got = classify(
                &subscription(Protocol::WebSub, 0),
                &response(status, None),
                at(0),
                || 0.5,
            );
            assert_eq!(got, want, "{why}");
        }
    }

    /// WebSub 7: failures are retried until the lease ends.
    #[test]
    fn failures_are_retried_at_growing_distances() {
        let rsscloud = Protocol::HttpPost;
        let date = "Thu, 01 Jan 1970 02:00:00 GMT";
        #[rustfmt::skip]
        let cases = [
            ("WebSub: a minute after the second",   Protocol::WebSub, 1,  500, None,          Some(60)),
            ("an hour later",                       Protocol::WebSub, 4,  500, None,          Some(7_200)),
            ("daily until the lease ends",          Protocol::WebSub, 99, 500, None,          Some(86_400)),
            ("Retry-After lengthens",               Protocol::WebSub, 0,  503, Some("120"),   Some(120)),
            ("but does not shorten",                Protocol::WebSub, 3,  503, Some("5"),     Some(1_800)),
            ("nor asks for more than a day",        Protocol::WebSub, 0,  429, Some("999999"), Some(86_400)),
            ("Retry-After as a date",               Protocol::WebSub, 0,  503, Some(date),    Some(7_200)),
            ("rubbish in it is nothing",            Protocol::WebSub, 0,  500, Some("soon"),  Some(10)),
            ("rssCloud: soon, once more",           rsscloud.clone(), 0,  500, None,          Some(10)),
            ("and after a minute",                  rsscloud.clone(), 1,  500, None,          Some(60)),
            ("then with the next change",           rsscloud,         2,  500, None,          None),
        ];
        for (why, protocol, failures, status, retry_after, want) in cases {
            let subscription = subscription(protocol, failures);
            let got = classify(&subscription, &response(status, retry_after), at(0), || 0.5);
            assert_eq!(got, DeliveryVerdict::Failed(want.map(at)), "{why}");
        }
    }

    #[test]
    fn d07_a_subscription_is_suspended_after_a_month_of_nothing_but_failures() {
        let day = 86_400;
        let next = DeliveryVerdict::Failed(Some(at(34 * day)));
        #[rustfmt::skip]
        let cases = [
            ("a month",                    Protocol::WebSub, 40, Some(0),        500, DeliveryVerdict::Suspended),
            ("a month, overloaded",        Protocol::WebSub, 40, Some(0),        503, DeliveryVerdict::Suspended),
            ("a week",                     Protocol::WebSub, 40, Some(26 * day), 500, next),
            ("few attempts",               Protocol::WebSub, 10, Some(0),        500, next),
            ("a success",                  Protocol::WebSub, 40, Some(0),        200, DeliveryVerdict::Delivered),
            ("the end",                    Protocol::WebSub, 40, Some(0),        410, DeliveryVerdict::Ended),
            ("rssCloud has its own rule",  Protocol::HttpPost, 40, Some(0),      500, DeliveryVerdict::Failed(None)),
        ];
        for (why, protocol, failures, since, status, want) in cases {
            let mut subscription = subscription(protocol, failures);
            subscription.failing_since = since.map(at);
            let got = classify(&subscription, &response(status, None), at(33 * day), || 0.5);
            assert_eq!(got, want, "{why}");
        }
    }

    #[test]
    fn a_callback_whose_clock_is_off_is_understood() {
        let mut reply = response(503, Some("Thu, 01 Jan 1970 05:02:00 GMT"));
        if let Ok(reply) = &mut reply {
            let date = "Thu, 01 Jan 1970 05:00:00 GMT"; // it is midnight
            reply.headers.insert(DATE, date.parse().unwrap());
        }
        let got = classify(&subscription(Protocol::WebSub, 0), &reply, at(0), || 0.5);
        assert_eq!(got, DeliveryVerdict::Failed(Some(at(120))));
    }

    #[test]
    fn waits_are_spread_by_a_fifth() {
        let timeout = Err(FetchError::TimedOut(Duration::from_secs(10)));
        let subscription = subscription(Protocol::WebSub, 0);
        for (jitter, want) in [(0.0, 48), (1.0, 72)] {
            let got = classify(&subscription, &timeout, at(0), || jitter);
            assert_eq!(got, DeliveryVerdict::Failed(Some(at(want))));
        }
    }

    fn at(secs: u64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + Duration::from_secs(secs)
    }

    #[test]
    fn only_what_changes_is_told() {
        let at = Some(DateTime::UNIX_EPOCH);
        #[rustfmt::skip]
        let cases = [
            (0, DeliveryVerdict::Delivered,         None),
            (0, DeliveryVerdict::Failed(at),   Some(HealthTransition::Failing(at))),
            (1, DeliveryVerdict::Failed(at),   None),
            (9, DeliveryVerdict::Failed(None), None),
            (9, DeliveryVerdict::Delivered,         Some(HealthTransition::Recovered)),
            (0, DeliveryVerdict::Ended,        Some(HealthTransition::Ended)),
        ];
        for (failures, verdict, want) in cases {
            let before = subscription(Protocol::WebSub, failures);
            assert_eq!(health_transition(&before, verdict), want, "{verdict:?} after {failures}");
        }
    }
}
