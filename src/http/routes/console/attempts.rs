//! The attempts to deliver to a subscription: what was sent, what the callback responded, and what
//! followed.

use chrono::{DateTime, Utc};
use http::StatusCode;
use maud::{Markup, html};
use warp::reply::Response;

use super::subscription_state::{SECTION, to_path};
use super::visit::Visit;
use crate::http::kit::html::parts::{Tone, badge, counted, grouped, relative_time, timestamp};
use crate::http::kit::html::time_chart::{ChartSeries, ChartShape, ChartUnit, TimeChart};
use crate::http::kit::rejection::Rejection;
use crate::jobs::runner;
use feedgate_core::account::Scope;
use feedgate_core::attempt::{
    AttemptVerdict, DeliveryAttempt, HeaderLine, RecordedResponse, StoredAttempt,
};
use feedgate_core::store::{AttemptRange, ListedSubscription};
use feedgate_core::subscription::SubscriptionId;

/// The number of attempts on the page of a subscription.
const ATTEMPTS: usize = 20;

/// Returns the newest attempts of a subscription, as a part of its page.
pub(super) async fn timeline(
    visit: &Visit,
    listed: &ListedSubscription,
) -> Result<Markup, Rejection> {
    let before = visit.value("before").parse().ok();
    let range = AttemptRange { before, limit: ATTEMPTS };
    let id = listed.subscription.id;
    let attempts = visit.gateway.store.attempts(id, range).await;
    let attempts = attempts.map_err(|err| Rejection::unavailable(&err))?;
    let none = match listed.delivery.last_attempt {
        None => "Nothing has been sent yet.",
        // Attempts are stored in batches, shortly after the delivery itself.
        Some(_) => "No attempt is stored. New ones are shown here within seconds.",
    };
    let (now, folder) = (runner::now(), format!("{SECTION}/{}", to_path(id)));
    Ok(html! {
        @if before.is_none() { (durations(&attempts)) }
        table.records {
            thead { tr { @for name in ["Time", "Result", "Sent", "Response", "Took"] {
                th scope="col" { (name) }
            } } }
            tbody {
                @for stored in &attempts { (row(visit, stored, now)) }
                @if attempts.is_empty() { tr { td colspan="5" { (none) } } }
            }
        }
        @if attempts.len() == ATTEMPTS && let Some(last) = attempts.last() {
            nav.pages aria-label="Attempts" {
                a rel="next" href=(visit.address(&format!("{folder}?before={}", last.id))) {
                    "Older attempts"
                }
            }
        }
    })
}

/// Returns a chart of how long the attempts took, the last one on the right. There are no counts by the hour of single
/// subscriptions: each delivery would be another write.
fn durations(attempts: &[StoredAttempt]) -> Markup {
    let Some(newest) = attempts.first() else { return html! {} };
    let attempts = || attempts.iter().rev().map(|stored| &stored.attempt);
    let label = |attempt: &DeliveryAttempt| attempt.at.format("%b %-d %H:%M:%S").to_string();
    let took = |attempt: &DeliveryAttempt| u64::try_from(attempt.took.as_micros()).ok();
    let is_accepted = |attempt: &DeliveryAttempt| attempt.verdict == AttemptVerdict::Delivered;
    let series =
        [("accepted", "good", true), ("failed", "bad", false)].map(|(name, colour, accepted)| {
            let value = |attempt| took(attempt).filter(|_| is_accepted(attempt) == accepted);
            ChartSeries { name, colour, values: attempts().map(value).collect() }
        });
    let many = counted(attempts().count() as u64, "attempt");
    let chart = TimeChart {
        title: "How long attempts took",
        summary: format!(
            "The newest of {many} is on the right; only the last ones are recorded. Times are in UTC."
        ),
        periods: &attempts().map(label).collect::<Vec<_>>(),
        end: &label(&newest.attempt),
        shape: ChartShape::Bars,
        unit: ChartUnit::Micros,
        series: series.into(),
    };
    chart.to_markup()
}

fn row(visit: &Visit, stored: &StoredAttempt, now: DateTime<Utc>) -> Markup {
    let attempt = &stored.attempt;
    html! {
        tr {
            td data-name="" {
                a href=(visit.address(&address(attempt.subscription, stored.id))) {
                    (relative_time(attempt.at, now))
                }
            }
            td data-name="Result" {
                (verdict(attempt))
                @if let Some(next) = attempt.next_attempt_at {
                    br; small { "next attempt " (relative_time(next, now)) }
                }
            }
            td data-name="Sent" { (content(attempt)) }
            td data-name="Response" {
                @match &attempt.response {
                    Some(response) => (response.status),
                    None => (attempt.error),
                }
            }
            td data-name="Took" { (grouped(millis(attempt))) "\u{a0}ms" }
        }
    }
}

fn verdict(attempt: &DeliveryAttempt) -> Markup {
    let tone = match attempt.verdict {
        AttemptVerdict::Delivered => Tone::Good,
        AttemptVerdict::Failed => Tone::Warning,
        AttemptVerdict::Ended => Tone::Bad,
    };
    badge(tone, attempt.verdict.as_str())
}

/// Returns what was sent, in words.
fn content(attempt: &DeliveryAttempt) -> String {
    let request = &attempt.request;
    let entries = u64::try_from(request.entries).unwrap_or(u64::MAX);
    let bytes = counted(u64::try_from(request.body_bytes).unwrap_or(u64::MAX), "byte");
    match (entries, request.first == request.last) {
        (0, _) => format!("{}, {bytes}", request.content.as_str()),
        (1, _) | (_, true) => format!("entry {}, {bytes}", request.last),
        _ => format!("entries {} to {}, {bytes}", request.first, request.last),
    }
}

fn millis(attempt: &DeliveryAttempt) -> u64 {
    u64::try_from(attempt.took.as_millis()).unwrap_or(u64::MAX)
}

fn address(id: SubscriptionId, number: i64) -> String {
    format!("{SECTION}/{}/attempts/{number}", to_path(id))
}

/// Returns the page of one attempt.
pub(super) async fn page(
    visit: &Visit,
    listed: &ListedSubscription,
    number: &str,
) -> Result<Response, Rejection> {
    let not_found = || {
        let reason = "There is no such attempt, or it is no longer stored.";
        Rejection::new(StatusCode::NOT_FOUND, reason)
    };
    let unavailable = |err| Rejection::unavailable(&err);
    let number = number.parse().map_err(|_| not_found())?;
    let id = listed.subscription.id;
    let found = visit.gateway.store.attempt(id, number).await.map_err(unavailable)?;
    let attempt = found.ok_or_else(not_found)?.attempt;
    let may_read = visit.allows(Scope::Retrieve);
    let payload = match may_read {
        true => visit.gateway.composer.payload_of(&listed.subscription, &attempt).await,
        false => Ok(None),
    };
    let payload = payload.map_err(unavailable)?;
    let content = html! {
        (facts(visit, listed, &attempt))
        h2 { "Request" }
        (header_lines(&attempt.request.headers))
        details {
            summary { "Body" }
            @match payload {
                Some(composed) => pre tabindex="0" { code { (String::from_utf8_lossy(&composed.body)) } },
                None if !may_read => p { "The token that you signed in with may not read entries." },
                None => p {
                    "What was sent cannot be composed again: it is no longer stored, or the \
                     subscription now receives something else."
                },
            }
        }
        h2 { "Response" }
        @match attempt.response {
            Some(response) => (response_part(response, visit.is_admin())),
            None => p { "There was no response: " (attempt.error) "." },
        }
    };
    Ok(visit.page("Attempt to deliver", SECTION, content))
}

fn facts(visit: &Visit, listed: &ListedSubscription, attempt: &DeliveryAttempt) -> Markup {
    let now = runner::now();
    let path = format!("{SECTION}/{}", to_path(listed.subscription.id));
    html! {
        dl.facts {
            dt { "Subscription" }
            dd { a href=(visit.address(&path)) { (listed.subscription.callback.as_str()) } }
            dt { "Result" } dd { (verdict(attempt)) " " (attempt.code) }
            dt { "Time" } dd { (timestamp(attempt.at)) }
            dt { "Took" } dd { (grouped(millis(attempt))) "\u{a0}ms" }
            dt { "Sent" } dd { (content(attempt)) }
            dt { "Next attempt" }
            dd {
                @match attempt.next_attempt_at {
                    Some(at) => (relative_time(at, now)),
                    None if attempt.verdict == AttemptVerdict::Failed => "with the next change",
                    None => "none",
                }
            }
        }
    }
}

fn response_part(response: RecordedResponse, is_operator: bool) -> Markup {
    let is_hidden = !response.is_public && !is_operator;
    let response = response.visible_to(is_operator);
    html! {
        p { "Status " (response.status) }
        @if is_hidden {
            p { "The callback is at an inner address: only administrators see more of its response." }
        } @else {
            (header_lines(&response.headers))
            @if response.body.is_empty() { p { "The body is empty." } } @else {
                pre tabindex="0" { code { (String::from_utf8_lossy(&response.body)) } }
            }
        }
    }
}

fn header_lines(lines: &[HeaderLine]) -> Markup {
    html! {
        pre tabindex="0" { code {
            @for line in lines { (line.name) ": " (line.value) "\n" }
        } }
    }
}
