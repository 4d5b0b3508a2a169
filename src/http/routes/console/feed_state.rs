//! The name, the site and the state of a feed, for people.

use chrono::{DateTime, TimeDelta, Utc};
use maud::{Markup, html};

use super::visit::Visit;
use crate::http::kit::html::parts::{Tone, badge, grouped, optional_time, relative_time, span};
use crate::http::routes::normalizer_words::in_words;
use feedgate_core::feed_state::FeedState;
use feedgate_core::redaction;
use feedgate_core::resource::Resource;
use feedgate_core::status::Status;
use feedgate_feed::model::FeedFormat;

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

/// Returns what the last fetch found, in words: the length of the document in groups of digits, the name of its
/// format, and what was wrong with it instead of codes.
pub(crate) fn last_result(status: &Status) -> String {
    let message = in_words(&status.http_message);
    let length = message.split_once(" bytes").map(|(length, rest)| (length.parse(), rest));
    let Some((Ok(bytes), rest)) = length else { return message };
    let (comma, rest) = rest.split_at(if rest.starts_with(", ") { 2 } else { 0 });
    let (format, rest) = rest.split_at(rest.find([',', ';']).unwrap_or(rest.len()));
    format!("{}\u{a0}bytes{comma}{}{rest}", grouped(bytes), format_title(format))
}

/// Returns the name of a format whose word is stored.
pub(crate) fn format_title(word: &str) -> &str {
    word.parse().ok().map(FeedFormat::title).filter(|title| !title.is_empty()).unwrap_or(word)
}

/// Returns the state of a feed, and when it was and will be fetched, as cards. The page calls that a `fetch`.
pub(crate) fn state_cards(
    resource: &Resource,
    fetch: &str,
    now: DateTime<Utc>,
    more: &Markup,
) -> Markup {
    let (status, state) = (&resource.status, FeedState::from_resource(resource, now));
    html! {
        div.cards {
            div.card { "State" b { (badge_of(state)) } }
            div.card { "Last " (fetch) b { (optional_time(status.last_fetch, now)) } }
            div.card {
                "Next " (fetch)
                b {
                    @if state == FeedState::Gone { "none" }
                    @else if resource.next_fetch <= now { "due" }
                    @else { (relative_time(resource.next_fetch, now)) }
                }
                @if status.period_s > 0 { small { "every " (span(status.period_s.into())) } }
            }
            div.card { "Last new entry" b { (optional_time(resource.polling.last_new, now)) } }
            (more)
        }
    }
}

/// Returns why a feed is fetched next when it is.
pub(crate) fn reason_for_next_fetch(resource: &Resource, now: DateTime<Utc>) -> Markup {
    let planned = resource.polling.planned_at;
    let is_ahead = |planned: &DateTime<Utc>| resource.next_fetch + TimeDelta::seconds(1) < *planned;
    let reason = resource.status.period_reason.as_str();
    html! {
        @if let Some(planned) = planned.filter(is_ahead) {
            "because of a ping or a request; otherwise " (relative_time(planned, now))
            @if !reason.is_empty() { ": " }
        }
        @else if reason.is_empty() { "it has not been fetched yet" }
        (reason)
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
    fn the_last_result_is_told_in_words() {
        #[rustfmt::skip]
        let cases = [
            ("2999 bytes, rss2.0",    "2\u{a0}999\u{a0}bytes, RSS 2.0"),
            ("7 bytes, atom1.0, 1 entry; adapted: id_not_an_iri",
                "7\u{a0}bytes, Atom 1.0, 1 entry; adapted: an id is not an IRI"),
            ("5 bytes, text/html",    "5\u{a0}bytes, text/html"),
            ("404 Not Found",         "404 Not Found"),
            ("longer than 30 bytes",  "longer than 30 bytes"),
        ];
        for (message, want) in cases {
            let status = Status { http_message: message.to_owned(), ..Default::default() };
            assert_eq!(last_result(&status), want);
        }
    }
}
