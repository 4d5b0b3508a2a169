//! The page about one feed.

use chrono::{DateTime, Utc};
use http::header;
use maud::{Markup, html};

use super::FeedHealth;
use super::advice::advice;
use super::validators::ValidatorState;
use crate::fetch_traces::{FetchTrace, TracedRequest};
use crate::http::kit::html::parts::{counted, grouped, optional_time, relative_time};
use crate::http::kit::viewer_access::ViewerAccess;
use crate::http::routes::console::feed_state::{last_result, reason_for_next_fetch, state_cards};
use crate::http::routes::try_page::form::address_of;
use crate::http::state::Gateway;
use crate::jobs::runner;
use feedgate_core::event::StoredEvent;
use feedgate_core::ping::PingSource;
use feedgate_core::poll::Trigger;
use feedgate_core::redaction;
use feedgate_core::upstream::{UpstreamState, UpstreamSummary};

/// The maximum length of the title, in characters.
const TITLE_CHARS: usize = 160;

/// Returns the page about a feed.
pub(super) fn content(gateway: &Gateway, health: &FeedHealth) -> Markup {
    let now = runner::now();
    let (hub, ping) = (gateway.public_url("hub"), gateway.public_url("ping"));
    let advice = advice(health, (&hub, &ping), now);
    let title = redaction::line(&health.resource.status.title, TITLE_CHARS);
    html! {
        h2 { @if title.is_empty() { (health.resource.topic.redacted()) } @else { (title) } }
        (state_cards(&health.resource, "poll", now, &html! {}))
        h2 { "What would bring entries sooner" }
        @if advice.is_empty() {
            p { "Nothing: the feed is polled as it publishes, its validators work, and its changes are announced by a hub or by pings." }
        } @else {
            ul {
                @for item in &advice { li { b { (item.finding) } " " (item.remedy) } }
            }
        }
        h2 { "What is known of it" }
        (facts(health, now))
        h2 { "What your server answered" }
        (fetches(health, now))
        p {
            a href=(address_of(health.resource.topic.as_str(), None)) rel="nofollow" {
                "See the entries as they are sent, and what had to be repaired"
            }
        }
    }
}

fn facts(health: &FeedHealth, now: DateTime<Utc>) -> Markup {
    let FeedHealth { resource, upstream, pings, .. } = health;
    let (status, polling) = (&resource.status, &resource.polling);
    let validators = ValidatorState::from_polling(polling, now);
    html! {
        dl.facts {
            dt { "Address" } dd { (resource.topic.redacted()) }
            @if !status.http_message.is_empty() {
                dt { "Last result" } dd { (last_result(status)) }
            }
            dt { "Why then" } dd { (reason_for_next_fetch(resource, now)) }
            @if status.last_fetch.is_some() && !status.is_failing() {
                dt { "ETag, Last-Modified" } dd { (validators.describe()) }
                dt { "Length" } dd { (counted(polling.body_bytes.into(), "byte")) }
            }
            dt { "Hub or cloud" }
            dd {
                @match upstream {
                    Some(upstream) => (upstream_text(upstream, now)),
                    None => "none that this gateway is subscribed to",
                }
            }
            dt { "Pings" } dd { (pings_in_words(pings, now)) }
        }
    }
}

/// Returns when the last pings came, newest first, those of one kind together.
fn pings_in_words(pings: &[StoredEvent], now: DateTime<Utc>) -> Markup {
    let mut kinds: Vec<(&str, DateTime<Utc>, u64)> = Vec::new();
    for StoredEvent { event, .. } in pings {
        match kinds.iter_mut().find(|(via, ..)| *via == event.via) {
            Some((_, _, many)) => *many = many.saturating_add(event.many),
            None => kinds.push((&event.via, event.at, event.many)),
        }
    }
    html! {
        @for (n, (via, last, many)) in kinds.iter().enumerate() {
            @if n > 0 { "; " }
            (relative_time(*last, now)) " by " (ping_name(via))
            @if *many > 1 { ", the last of " (counted(*many, "ping")) " lately" }
        }
        @if kinds.is_empty() { "none lately" }
    }
}

/// Returns the name of the protocol of a ping, of which the word is stored.
fn ping_name(via: &str) -> &str {
    const NAMES: [(PingSource, &str); 4] = [
        (PingSource::RssCloud, "rssCloud"),
        (PingSource::Weblogs, "a weblog's ping"),
        (PingSource::Publish, "WebSub"),
        (PingSource::Upstream, "your hub or cloud"),
    ];
    let known = NAMES.iter().find(|(source, _)| source.as_str() == via);
    known.map_or(via, |(_, name)| name)
}

fn upstream_text(upstream: &UpstreamSummary, now: DateTime<Utc>) -> Markup {
    let state = match upstream.state {
        UpstreamState::Wanted => "not subscribed to yet",
        UpstreamState::Requested => "has not confirmed the subscription yet",
        UpstreamState::Active => "subscribed to",
        UpstreamState::Doubted => "not relied on for now",
    };
    let proof = upstream.proof;
    html! {
        (redaction::feed(&upstream.endpoint)) ", " (state) "; last announced a change: "
        (optional_time(upstream.pushed_at, now)) "."
        @if proof.pushed.saturating_add(proof.missed) > 0 {
            " Of the last new entries, " (grouped(proof.pushed.into())) " were announced first, and "
            (grouped(proof.missed.into())) " were found first by a poll."
        }
    }
}

fn fetches(health: &FeedHealth, now: DateTime<Utc>) -> Markup {
    html! {
        @if health.fetches.is_empty() {
            p { "This node of the gateway has not polled the feed since it started, or not lately." }
        } @else {
            p.soft {
                "The last ten polls by this node of the gateway, with the headers that save you work: If-None-Match and \
                 If-Modified-Since as they were sent, ETag, Last-Modified and the like as they were received."
            }
            table.records {
                thead { tr { @for name in ["Time", "Why", "Answer", "Sent", "Received"] {
                    th scope="col" { (name) }
                } } }
                tbody { @for fetch in &health.fetches { (fetch_row(fetch, health.access, now)) } }
            }
        }
    }
}

fn fetch_row(fetch: &FetchTrace, access: ViewerAccess, now: DateTime<Utc>) -> Markup {
    const SENT: [header::HeaderName; 2] = [header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE];
    const RECEIVED: [header::HeaderName; 5] = [
        header::ETAG,
        header::LAST_MODIFIED,
        header::CACHE_CONTROL,
        header::EXPIRES,
        header::RETRY_AFTER,
    ];
    let last = fetch.requests.last();
    let is_visible =
        |request: &&TracedRequest| request.is_public || access == ViewerAccess::OperatorNetwork;
    let visible = last.filter(is_visible);
    html! {
        tr {
            td data-name="Time" { (relative_time(fetch.at, now)) }
            td data-name="Why" { (reason(fetch.trigger)) }
            td data-name="Answer" {
                (last.and_then(|request| request.status.as_deref()).unwrap_or("none"))
                @if !fetch.message.is_empty() { br; small { (fetch.message) } }
            }
            td data-name="Sent" { (headers(visible.map(|request| &request.sent[..]), &SENT)) }
            td data-name="Received" {
                (headers(visible.map(|request| &request.received[..]), &RECEIVED))
            }
        }
    }
}

fn headers(
    headers: Option<&[(header::HeaderName, String)]>,
    wanted: &[header::HeaderName],
) -> Markup {
    let kept = headers.unwrap_or_default().iter().filter(|(name, _)| wanted.contains(name));
    let mut kept = kept.peekable();
    html! {
        @if kept.peek().is_none() { span.absent { "none of these" } }
        @for (name, value) in kept { code { (name.as_str()) ": " (value) } br; }
    }
}

fn reason(trigger: Trigger) -> &'static str {
    match trigger {
        Trigger::Schedule => "it was due",
        Trigger::Ping => "a ping, or a request",
        Trigger::Push => "your hub or cloud announced a change",
    }
}
