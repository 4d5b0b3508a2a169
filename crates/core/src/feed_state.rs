//! The state of a feed in one word, and as a filter of lists.

use chrono::{DateTime, Utc};

use crate::resource::Resource;
use crate::words::words;

words! {
    /// The state of a feed.
    FeedState {
        /// The last poll succeeded.
        Ok = "ok",
        /// The hub of the feed announces its changes.
        Pushed = "pushed",
        /// No poll has ended yet.
        New = "new",
        /// The feed is fetched at another address than its topic.
        Moved = "moved",
        /// The last poll failed.
        Failing = "failing",
        /// The publisher says that the feed no longer exists.
        Gone = "gone",
    }
}

impl FeedState {
    /// Returns the state of a feed at `now`.
    pub fn from_resource(resource: &Resource, now: DateTime<Utc>) -> FeedState {
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

    /// Returns whether a list of the feeds in the state `wanted` has one in this state: what is gone
    /// fails, too.
    pub fn is_listed_as(self, wanted: FeedState) -> bool {
        self == wanted || (self == FeedState::Gone && wanted == FeedState::Failing)
    }
}
