//! What a publisher can do so that new entries reach subscribers sooner, and at less cost.

use chrono::{DateTime, Utc};
use maud::{Markup, Render, html};

use super::FeedHealth;
use super::validators::ValidatorState;
use crate::http::kit::html::parts::{counted, span};
use crate::http::kit::shell::quoted;
use feedgate_core::redaction;
use feedgate_core::resource::Resource;
use feedgate_core::upstream::UpstreamState;

/// Something to do.
#[derive(Debug)]
pub(super) struct Advice {
    /// What is so now, as a sentence.
    pub(super) finding: String,
    /// What would be better, as sentences.
    pub(super) remedy: Markup,
}

impl Advice {
    fn new(finding: impl Into<String>, remedy: impl Render) -> Advice {
        Advice { finding: finding.into(), remedy: remedy.render() }
    }
}

/// Returns what the publisher of a feed can do, the most important first. Changes can be announced to the
/// hub at `hub` and by pings to `ping`.
pub(super) fn advice(
    health: &FeedHealth,
    (hub, ping): (&str, &str),
    now: DateTime<Utc>,
) -> Vec<Advice> {
    let resource = &health.resource;
    let mut all = Vec::new();
    all.extend(on_failures(resource));
    all.extend(on_validators(resource, now));
    all.extend(on_announcements(health, (hub, ping)));
    all.extend(on_requested_pauses(resource));
    all.extend(on_window(resource));
    all.extend(on_move(resource));
    all
}

fn on_failures(resource: &Resource) -> Option<Advice> {
    let (status, polling) = (&resource.status, &resource.polling);
    if polling.slow_downs > 0 {
        return Some(Advice::new(
            "Your server answered 429: it gets too many requests.",
            "Each 429 doubles the time to the next poll. If that was not meant for feed readers, exempt the \
             feed from the limit; otherwise send Retry-After with the seconds to wait.",
        ));
    }
    status.is_failing().then(|| {
        Advice::new(
            format!("Polls fail: {}.", status.http_message.trim_end_matches('.')),
            "Each failure makes polls rarer. The next poll that gets the feed brings everything back to \
             normal; a ping asks for one at once.",
        )
    })
}

fn on_validators(resource: &Resource, now: DateTime<Utc>) -> Option<Advice> {
    let cost = "A feed that is sent as a whole each time is polled less often.";
    let state = ValidatorState::from_polling(&resource.polling, now);
    match state {
        _ if resource.status.is_failing() => None,
        ValidatorState::Works(_) | ValidatorState::Unused => None,
        ValidatorState::Missing => Some(Advice::new(
            "Your server sends neither an ETag nor a Last-Modified.",
            format!("Send one of them, and answer 304 to a request that has it. {cost}"),
        )),
        ValidatorState::Ignored => Some(Advice::new(
            "Your server sent the whole document although nothing in it had changed.",
            format!(
                "Compare If-None-Match with the ETag, or If-Modified-Since with the time of the last change, \
                 and answer 304. Times and counters in the document make it differ each time. {cost}"
            ),
        )),
        ValidatorState::Wrong => Some(Advice::new(
            "Your server answered 304 although the document had changed.",
            "Change the ETag with the document, and look for a cache in between that was not purged.",
        )),
    }
}

fn on_announcements(health: &FeedHealth, (hub, ping): (&str, &str)) -> Option<Advice> {
    let changed = format!("url={}", health.resource.topic.redacted());
    let relied_on =
        "New entries that are announced are fetched at once, whatever the time of the next poll.";
    match &health.upstream {
        Some(upstream) if upstream.state == UpstreamState::Doubted => Some(Advice::new(
            "Your hub or cloud is not relied on: it refused, or polls found most new entries first.",
            "Notify it as soon as an entry is published, and see whether it sends what it was notified of.",
        )),
        Some(_) => None,
        None if !health.pings.is_empty() => None,
        None => Some(Advice::new(
            "Nothing announces your changes.",
            html! {
                "Name a WebSub hub in the feed, such as " code { "<link rel=\"hub\" href=\"" (hub) "\">" }
                ", and notify it when you publish; or send a ping: "
                code { "curl " (ping) " --data-urlencode " (quoted(&changed)) } ". " (relied_on)
            },
        )),
    }
}

/// Returns what the publisher itself asks for, if that decides when the feed is polled.
fn on_requested_pauses(resource: &Resource) -> Vec<Advice> {
    let polling = &resource.polling;
    let floors = polling.hints.floors(polling.entries_per_hour).into_iter();
    let deciding = floors.filter(|floor| floor.secs > 0 && floor.secs >= resource.status.period_s);
    let mut all: Vec<Advice> = deciding
        .map(|floor| {
            Advice::new(
                format!("You ask for polls no sooner than every {}.", span(floor.secs.into())),
                format!("Shorten it if that is not what you want: {}.", floor.reason),
            )
        })
        .collect();
    let (hours, days) = (polling.hints.skip_hours.len(), polling.hints.skip_days.len());
    if hours + days > 0 {
        all.push(Advice::new(
            format!(
                "You ask for no polls in {} of the day and on {} of the week.",
                counted(hours as u64, "hour"),
                counted(days as u64, "day")
            ),
            "Entries of these times are found later. Remove skipHours and skipDays if that is not what you \
             want.",
        ));
    }
    all
}

fn on_window(resource: &Resource) -> Option<Advice> {
    resource.polling.overrun.then(|| {
        Advice::new(
            format!(
                "All entries of the last document were new, {} of them, so that others may have been missed.",
                resource.polling.window
            ),
            "Keep more entries in the feed, or announce changes.",
        )
    })
}

fn on_move(resource: &Resource) -> Option<Advice> {
    let is_moved = resource.fetch_url != resource.topic.fetch_url().as_str();
    is_moved.then(|| {
        Advice::new(
            format!(
                "The feed was redirected for good, to {}.",
                redaction::feed(&resource.fetch_url)
            ),
            "Keep the redirect: readers that were away for long have the old address.",
        )
    })
}
