//! The name, the site and the state of a feed, for people.

use maud::{Markup, html};

use super::visit::Visit;
use crate::http::kit::html::parts::{Tone, badge};
use feedgate_core::feed_state::FeedState;
use feedgate_core::redaction;
use feedgate_core::resource::Resource;

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
