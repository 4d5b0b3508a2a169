//! The name, the site and the state of a feed, for people.

use chrono::{DateTime, TimeDelta, Utc};
use maud::{Markup, html};

use super::visit::Visit;
use crate::http::kit::html::parts::{Tone, badge, grouped, relative_time, span};
use feedgate_core::feed_state::FeedState;
use feedgate_core::redaction;
use feedgate_core::resource::Resource;
use feedgate_core::status::Status;

/// The maximum length of a title in a list, in characters.
const TITLE_CHARS: usize = 120;

/// Returns a state as a badge.
pub(crate) fn badge_of(state: FeedState) -> Markup {
    let tone = match state {
        FeedState::Ok | FeedState::Pushed => Tone::Good,
        FeedState::New | FeedState::Moved => Tone::Neutral,
        FeedState::Failing => Tone::Warning,
        FeedState::Gone => Tone::Bad,
    };
    badge(tone, state.as_str())
}

/// Returns what the last fetch found, with the length of the document in groups of digits.
pub(crate) fn last_result(status: &Status) -> String {
    let message = &status.http_message;
    let length = message.split_once(" bytes").map(|(length, rest)| (length.parse(), rest));
    match length {
        Some((Ok(bytes), rest)) => format!("{}\u{a0}bytes{rest}", grouped(bytes)),
        _ => message.clone(),
    }
}

/// Returns when a feed is fetched next, how often it is fetched, and why.
pub(crate) fn next_fetch(resource: &Resource, now: DateTime<Utc>) -> Markup {
    let (status, next) = (&resource.status, resource.next_fetch);
    let planned = resource.polling.planned_at;
    let is_ahead = planned.is_some_and(|planned| next + TimeDelta::seconds(1) < planned);
    html! {
        @if next <= now { "due " }
        (relative_time(next, now))
        @if is_ahead { ", because of a ping or a request" }
        @if status.period_s > 0 {
            @if is_ahead { "; otherwise every " } @else { ", every " } (span(status.period_s.into()))
        }
        @if !status.period_reason.is_empty() { ": " (status.period_reason) }
    }
}

/// Returns the title of a feed, or its address if it has none.
pub(super) fn title(resource: &Resource) -> String {
    let title = redaction::line(&resource.status.title, TITLE_CHARS);
    if title.is_empty() { address(resource) } else { title }
}

/// Returns the address of a feed, without credentials.
pub(super) fn address(resource: &Resource) -> String {
    resource.topic.redacted().to_owned()
}

/// Returns a tile with the first letter of the host of a feed. The script of the console replaces it with the icon
/// of the site, if there is one.
pub(super) fn site_tile(visit: &Visit, resource: &Resource) -> Markup {
    let url = resource.topic.fetch_url();
    let host = url.host_str().unwrap_or_default();
    let host = host.strip_prefix("www.").unwrap_or(host).trim_start_matches('[');
    let letter: String = host.chars().take(1).collect();
    let icon = visit.address(&format!("console/icons/{}", resource.id));
    html! {
        span.site data-icon=(icon) data-letter=(letter.to_uppercase()) aria-hidden="true" {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_document_is_grouped_in_the_last_result() {
        #[rustfmt::skip]
        let cases = [
            ("2999 bytes, rss2.0",    "2\u{a0}999\u{a0}bytes, rss2.0"),
            ("404 Not Found",         "404 Not Found"),
            ("longer than 30 bytes",  "longer than 30 bytes"),
        ];
        for (message, want) in cases {
            let status = Status { http_message: message.to_owned(), ..Default::default() };
            assert_eq!(last_result(&status), want);
        }
    }
}
