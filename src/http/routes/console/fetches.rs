//! The last fetches of a feed on its page: requests, responses, freshness and the decision when to
//! fetch next, as `feedgate poll` prints them.

use std::fmt::Write;

use chrono::{DateTime, Utc};
use maud::{Markup, html};

use super::visit::Visit;
use crate::fetch_traces::{FetchTrace, TracedRequest};
use crate::http::kit::html::parts::{Tone, badge, counted, grouped, relative_time, span};
use feedgate_core::poll::Trigger;
use feedgate_core::resource::ResourceId;

/// Returns the last fetches of a feed by this node, newest first.
pub(super) fn list(visit: &Visit, feed: ResourceId, now: DateTime<Utc>) -> Markup {
    let traces = visit.gateway.fetch_traces.of_feed(feed);
    html! {
        @if traces.is_empty() {
            p { "This node has not fetched the feed since it started, or not lately." }
        } @else {
            p.soft {
                "By this node since it started, at most ten. Open one for its requests and the \
                 decision when to fetch next."
            }
        }
        @for trace in &traces {
            details.fetch {
                summary { (headline(trace, now)) }
                (requests(trace, visit.is_admin()))
                (decision(trace, now))
            }
        }
    }
}

fn headline(trace: &FetchTrace, now: DateTime<Utc>) -> Markup {
    let is_good = trace.message.is_empty();
    html! {
        (badge(if is_good { Tone::Good } else { Tone::Bad }, result_word(trace)))
        " " (relative_time(trace.at, now)) " "
        span.soft {
            (trigger(trace.trigger)) ", " (grouped(millis(trace.took))) "\u{a0}ms, "
            (counted(trace.wire_bytes, "byte"))
            @if trace.new > 0 { ", " (grouped(trace.new as u64)) " new" }
        }
    }
}

/// Returns how the fetch ended, in one or two words.
pub(super) fn result_word(trace: &FetchTrace) -> &'static str {
    match trace.outcome {
        "ok_new" => "changed",
        "ok_same" => "nothing new stored",
        "not_modified" => "not modified",
        code => code,
    }
}

/// Returns why the feed was fetched.
fn trigger(trigger: Trigger) -> &'static str {
    match trigger {
        Trigger::Schedule => "due",
        Trigger::Ping => "after a ping or by hand",
        Trigger::Push => "after its hub or cloud announced a change",
    }
}

fn requests(trace: &FetchTrace, is_operator: bool) -> Markup {
    html! {
        @for request in &trace.requests {
            pre tabindex="0" { code { (request_text(request, is_operator)) } }
        }
        @if trace.requests.is_empty() {
            p { "No request was sent: the document was received before, or may not be requested." }
        }
    }
}

/// Returns a request and its response as `feedgate poll` prints them.
fn request_text(request: &TracedRequest, is_operator: bool) -> String {
    let mut text = format!("GET {}\n", request.url);
    for (name, value) in &request.sent {
        let _ = writeln!(text, "> {name}: {value}");
    }
    match &request.status {
        Some(status) => {
            let _ = writeln!(text, "< {status} after {} ms", request.took.as_millis());
        }
        None => text.push_str("no response\n"),
    }
    if request.is_public || is_operator {
        for (name, value) in &request.received {
            let _ = writeln!(text, "< {name}: {value}");
        }
    } else {
        text.push_str("(an inner address: only administrators see more of its response)\n");
    }
    text
}

/// Returns how long the document is fresh, what each rule made of the period, and the next fetch.
fn decision(trace: &FetchTrace, now: DateTime<Utc>) -> Markup {
    let hints = &trace.hints;
    let wishes = [
        ("its headers", hints.headers_s),
        ("ttl", hints.ttl_s),
        ("sy:updatePeriod", hints.syndication_s),
    ];
    let wishes = wishes.into_iter().filter(|(_, secs)| *secs > 0);
    let wishes: Vec<_> =
        wishes.map(|(name, secs)| format!("{} by {name}", span(secs.into()))).collect();
    html! {
        dl.facts {
            @if !trace.message.is_empty() { dt { "Failure" } dd { (trace.message) } }
            dt { "Fresh for" }
            dd { @if wishes.is_empty() { "not stated" } @else { (wishes.join(", ")) } }
            @if !trace.steps.is_empty() {
                dt { "Decision" }
                dd {
                    @for (n, step) in trace.steps.iter().enumerate() {
                        @if n > 0 { br; }
                        (step.bound.as_str()) " " (span(step.secs.into())) ": " (step.reason.to_string())
                    }
                }
            }
            dt { "Next fetch" }
            dd {
                (relative_time(trace.next_fetch, now)) ", every " (span(trace.period_s.into()))
                ": " (trace.period_reason)
            }
        }
    }
}

fn millis(took: std::time::Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}
