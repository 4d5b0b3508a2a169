//! The list of feeds as a page, for people who open its address in a browser.

use maud::html;
use warp::reply::Response;

use super::TITLE_CHARS;
use crate::http::kit::browser_view::{BrowserView, web_link};
use crate::http::kit::request::Request;
use crate::http::kit::viewer_access::ViewerAccess;
use crate::http::state::Gateway;
use feedgate_core::redaction;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::StoreError;

/// The number of feeds on the page.
const FEEDS: usize = 100;

/// Returns the response with the page, which lists the feeds that were subscribed to first.
pub(super) async fn reply(
    gateway: &Gateway,
    request: &Request,
    access: ViewerAccess,
) -> Result<Response, StoreError> {
    let mut feeds = gateway.store.watched(ResourceId(0)).await?;
    feeds.retain(|feed| access.lists(feed, gateway.settings.listed));
    let are_more = feeds.len() > FEEDS;
    feeds.truncate(FEEDS);
    let content = html! {
        p {
            "The feeds that this gateway watches, as a subscription list (OPML), the format in which \
             feed readers exchange lists."
        }
        h2 { "Use it" }
        p { "Copy the address into a feed reader that can import a list, or subscribe to one feed below." }
        h2 { "Feeds" }
        @if feeds.is_empty() { p { "No feeds are listed yet." } }
        ul.posts {
            @for feed in &feeds {
                li {
                    @let title = redaction::line(&feed.title, TITLE_CHARS);
                    @let topic = feed.topic.as_str();
                    (web_link(topic, if title.is_empty() { topic } else { title.as_str() }))
                    @if !title.is_empty() { br; small { (topic) } }
                }
            }
        }
        @if are_more { p.soft { "There are more; the source lists all." } }
    };
    let (url, title) = (gateway.public_url("feeds.opml"), "Watched feeds");
    let view = BrowserView { title, media_type: "text/x-opml", url: &url, links: "", content };
    Ok(view.reply(request))
}
