//! The attempts to deliver to a subscription: what was sent, what the callback responded, and what
//! followed.

mod by_hand;

use chrono::{DateTime, Utc};
use http::StatusCode;
use maud::{Markup, html};
use warp::reply::Response;

use super::feed_state::{address as feed_address, title};
use super::feeds;
use super::subscription_state::{SECTION, status_in_words, to_path};
use super::visit::Visit;
use crate::http::kit::html::parts::{Tone, badge, counted, grouped, relative_time, timestamp};
use crate::http::kit::html::time_chart::{ChartSeries, ChartShape, ChartUnit, TimeChart};
use crate::http::kit::rejection::Rejection;
use crate::jobs::runner;
use feedgate_core::account::Scope;
use feedgate_core::attempt::{
    AttemptVerdict, DeliveryAttempt, HeaderLine, PayloadContent, RecordedResponse, StoredAttempt,
};
use feedgate_core::record::Seq;
use feedgate_core::store::{AttemptRange, ListedSubscription, StoreError};
use feedgate_core::subscription::{Format, SubscriptionId};

/// The number of attempts on the page of a subscription.
const ATTEMPTS: usize = 20;
/// The newest attempts of a subscription among which that after another one is looked for.
const NEWEST_READ: usize = 50;
/// The most bytes of a body on the page, which stays below 100 kB.
const BODY_BYTES: usize = 24 << 10;

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
                @for (n, stored) in attempts.iter().enumerate() {
                    // The next attempt of the others was made, or is on the page before.
                    @let next = stored.attempt.next_attempt_at.filter(|_| n == 0 && before.is_none());
                    (row(visit, listed, stored, (next, now)))
                }
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
    let is_one_day =
        attempts().all(|other| other.at.date_naive() == newest.attempt.at.date_naive());
    let format = if is_one_day { "%H:%M:%S" } else { "%b %-d %H:%M" };
    let label = |attempt: &DeliveryAttempt| attempt.at.format(format).to_string();
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

fn row(
    visit: &Visit,
    listed: &ListedSubscription,
    stored: &StoredAttempt,
    (next, now): (Option<DateTime<Utc>>, DateTime<Utc>),
) -> Markup {
    let attempt = &stored.attempt;
    html! {
        tr {
            td data-name="" {
                a href=(visit.address(&address(stored))) {
                    (relative_time(attempt.at, now))
                }
            }
            td data-name="Result" {
                (verdict(attempt))
                @if let Some(next) = next.filter(|next| *next > now) {
                    br; small { "next attempt " (relative_time(next, now)) }
                }
            }
            td data-name="Sent" { (sent(visit, listed, attempt)) }
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

/// Returns the badge of an attempt.
pub(super) fn verdict(attempt: &DeliveryAttempt) -> Markup {
    let tone = match attempt.verdict {
        AttemptVerdict::Delivered => Tone::Good,
        AttemptVerdict::Failed | AttemptVerdict::Ended => Tone::Bad,
    };
    badge(tone, attempt.verdict.as_str())
}

/// Returns what came back, in words.
fn response_in_words(attempt: &DeliveryAttempt) -> String {
    let status = attempt.response.as_ref().map(|response| status_in_words(response.status));
    status.unwrap_or_else(|| attempt.error.clone())
}

/// Returns what was sent, in words that lead to the entries.
pub(super) fn sent(
    visit: &Visit,
    listed: &ListedSubscription,
    attempt: &DeliveryAttempt,
) -> Markup {
    let request = &attempt.request;
    let bytes = counted(u64::try_from(request.body_bytes).unwrap_or(u64::MAX), "byte");
    let (first, last) = (request.first, request.last);
    html! {
        @match request.entries {
            0 => (request.content.as_str()),
            1 => { "entry " (entry(visit, listed, attempt, last)) }
            _ if first == last => { "entry " (entry(visit, listed, attempt, last)) }
            _ => {
                "entries " (entry(visit, listed, attempt, first))
                " to " (entry(visit, listed, attempt, last))
            }
        }
        ", " (bytes)
    }
}

/// Returns the number of an entry that was sent, with the link to its page.
fn entry(
    visit: &Visit,
    listed: &ListedSubscription,
    attempt: &DeliveryAttempt,
    seq: Seq,
) -> Markup {
    html! {
        @if leads_to_entries(visit, listed, attempt) {
            a href=(visit.address(&format!("{}/{}/entries/{seq}", feeds::SECTION, listed.resource.id))) {
                (seq)
            }
        } @else { (seq) }
    }
}

/// Returns whether the numbers of an attempt are those of entries that the reader may open.
fn leads_to_entries(visit: &Visit, listed: &ListedSubscription, attempt: &DeliveryAttempt) -> bool {
    attempt.request.content == PayloadContent::Entries
        && listed.subscription.format != Format::Raw
        && visit.allows(Scope::Retrieve)
}

fn millis(attempt: &DeliveryAttempt) -> u64 {
    u64::try_from(attempt.took.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the address of the page of an attempt.
pub(super) fn address(stored: &StoredAttempt) -> String {
    format!("{SECTION}/{}/attempts/{}", to_path(stored.attempt.subscription), stored.id)
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
    let neighbours = Neighbours::read(visit, id, number).await.map_err(unavailable)?;
    let may_read = visit.allows(Scope::Retrieve);
    let payload = match may_read {
        true => visit.gateway.composer.payload_of(&listed.subscription, &attempt).await,
        false => Ok(None),
    };
    let payload = payload.map_err(unavailable)?;
    let above = format!("{SECTION}/{}", to_path(id));
    let is_accepted = attempt.verdict == AttemptVerdict::Delivered;
    let content = html! {
        (visit.crumbs(&[("Subscriptions", SECTION), (listed.subscription.callback.as_str(), &above)]))
        (facts(visit, listed, &attempt, neighbours.after.as_ref()))
        (neighbours.links(visit))
        @if !is_accepted { (response(&attempt, visit.is_admin())) }
        h2 { "Request" }
        (message(&format!("POST {}\n", listed.subscription.callback.as_str()), &attempt.request.headers))
        details {
            summary { "Body, composed again" }
            @match &payload {
                Some(composed) => (body(&composed.body)),
                None if !may_read => p { "The token that you signed in with may not read entries." },
                None => p {
                    "What was sent cannot be composed again: it is no longer stored, or the \
                     subscription now receives something else."
                },
            }
        }
        (by_hand::section(&listed.subscription, &attempt, payload.as_ref().map(|it| &it.body[..])))
        @if is_accepted { (response(&attempt, visit.is_admin())) }
    };
    Ok(visit.page("Attempt to deliver", SECTION, content))
}

/// The attempts before and after another one, as far as they are stored.
struct Neighbours {
    before: Option<StoredAttempt>,
    after: Option<StoredAttempt>,
}

impl Neighbours {
    async fn read(
        visit: &Visit,
        id: SubscriptionId,
        number: i64,
    ) -> Result<Neighbours, StoreError> {
        let store = &visit.gateway.store;
        let before = AttemptRange { before: Some(number), limit: 1 };
        let newest = AttemptRange { before: None, limit: NEWEST_READ };
        let before = store.attempts(id, before).await?.into_iter().next();
        let newest = store.attempts(id, newest).await?.into_iter();
        // The newest are first, so the one after it is the last of those that are newer.
        let after = newest.take_while(|other| other.id > number).last();
        Ok(Neighbours { before, after })
    }

    fn links(&self, visit: &Visit) -> Markup {
        html! {
            @if self.before.is_some() || self.after.is_some() {
                nav.pages aria-label="Attempts" {
                    @if let Some(before) = &self.before {
                        a rel="prev" href=(visit.address(&address(before))) { "Attempt before" }
                    }
                    @if let Some(after) = &self.after {
                        a rel="next" href=(visit.address(&address(after))) { "Attempt after" }
                    }
                }
            }
        }
    }
}

fn facts(
    visit: &Visit,
    listed: &ListedSubscription,
    attempt: &DeliveryAttempt,
    after: Option<&StoredAttempt>,
) -> Markup {
    let now = runner::now();
    let path = format!("{SECTION}/{}", to_path(listed.subscription.id));
    let feed = format!("{}/{}", feeds::SECTION, listed.resource.id);
    html! {
        dl.facts {
            dt { "Subscription" }
            dd { a href=(visit.address(&path)) { (listed.subscription.callback.as_str()) } }
            dt { "Result" } dd { (verdict(attempt)) ": " (response_in_words(attempt)) }
            dt { "Time" } dd { (timestamp(attempt.at)) }
            dt { "Took" } dd { (grouped(millis(attempt))) "\u{a0}ms" }
            dt { "Sent" } dd { (sent(visit, listed, attempt)) }
            dt { "Feed" } dd { a href=(visit.address(&feed)) { (title(&listed.resource)) } }
            dt { "Source" }
            dd { a href=(feed_address(&listed.resource)) rel="nofollow noreferrer" {
                (feed_address(&listed.resource))
            } }
            @if attempt.verdict == AttemptVerdict::Failed {
                dt { "Next attempt" }
                dd { @match (after, attempt.next_attempt_at) {
                    (Some(after), _) => a href=(visit.address(&address(after))) {
                        (relative_time(after.attempt.at, now))
                    },
                    (None, Some(at)) if at > now => (relative_time(at, now)),
                    (None, Some(at)) => { "was due " (relative_time(at, now)) }
                    (None, None) => "with the next change",
                } }
            }
        }
    }
}

/// Returns the beginning of a body that was composed again.
fn body(bytes: &[u8]) -> Markup {
    let is_whole = bytes.len() <= BODY_BYTES;
    let beginning = &bytes[..bytes.len().min(BODY_BYTES)];
    html! {
        p.soft {
            "What was sent is not stored. The entries are the same; the title and the status of the feed are those of \
             now, so the body may differ from what was sent."
        }
        pre tabindex="0" { code { (String::from_utf8_lossy(beginning)) } }
        @if !is_whole { p.soft { "Only the beginning of the body is displayed." } }
    }
}

/// Returns the part of the page about the response.
fn response(attempt: &DeliveryAttempt, is_operator: bool) -> Markup {
    html! {
        h2 { "Response" }
        @match attempt.response.clone() {
            Some(response) => (response_part(response, is_operator)),
            None => p { "There was no response: " (attempt.error) "." },
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
            (message("", &response.headers))
            @if response.body.is_empty() { p { "The body is empty." } } @else {
                pre.wrap tabindex="0" { code { (String::from_utf8_lossy(&response.body)) } }
            }
        }
    }
}

/// Returns the head of a request or a response.
fn message(first_line: &str, lines: &[HeaderLine]) -> Markup {
    html! {
        pre tabindex="0" { code {
            (first_line)
            @for line in lines { (line.name) ": " (line.value) "\n" }
        } }
    }
}
