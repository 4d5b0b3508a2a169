//! The state of a feed, in words for people and as a filter of lists.

use chrono::{DateTime, Utc};
use maud::Markup;

use crate::http::kit::html::parts::{Tone, badge};
use feedgate_core::redaction;
use feedgate_core::resource::Resource;

/// The maximum length of a title in a list, in characters.
const TITLE_CHARS: usize = 120;

/// The state of a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FeedState {
    /// No poll has ended yet.
    New,
    /// The last poll succeeded.
    Ok,
    /// The hub of the feed announces its changes.
    Pushed,
    /// The feed is fetched at another address than its topic.
    Moved,
    /// The last poll failed.
    Failing,
    /// The publisher says that the feed no longer exists.
    Gone,
}

impl FeedState {
    /// All states, in the order of the filter.
    pub(super) const ALL: [FeedState; 6] = [
        FeedState::Ok,
        FeedState::Pushed,
        FeedState::New,
        FeedState::Moved,
        FeedState::Failing,
        FeedState::Gone,
    ];

    /// Returns the state of a feed.
    pub(super) fn from_resource(resource: &Resource, now: DateTime<Utc>) -> FeedState {
        let is_moved = resource.fetch_url != resource.topic.fetch_url().as_str();
        match resource.status.error.as_str() {
            "gone" => FeedState::Gone,
            "" if resource.status.last_fetch.is_none() && resource.head.0 == 0 => FeedState::New,
            "" if is_moved => FeedState::Moved,
            "" if resource.pushed_until.is_some_and(|until| until > now) => FeedState::Pushed,
            "" => FeedState::Ok,
            _ => FeedState::Failing,
        }
    }

    /// The word on the page and in addresses.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            FeedState::New => "new",
            FeedState::Ok => "ok",
            FeedState::Pushed => "pushed",
            FeedState::Moved => "moved",
            FeedState::Failing => "failing",
            FeedState::Gone => "gone",
        }
    }

    /// Returns the state as a badge.
    pub(super) fn badge(self) -> Markup {
        let tone = match self {
            FeedState::Ok | FeedState::Pushed => Tone::Good,
            FeedState::New | FeedState::Moved => Tone::Neutral,
            FeedState::Failing => Tone::Warning,
            FeedState::Gone => Tone::Bad,
        };
        badge(tone, self.as_str())
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
