//! The list of changed sites as a page, for people who open its address in a browser.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use maud::html;
use warp::reply::Response;

use super::edition::{Edition, Lines};
use crate::http::kit::browser_view::{BrowserView, web_link};
use crate::http::kit::html::parts::{relative_time, web_address};
use crate::http::kit::rejection::unavailable;
use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use crate::jobs::runner;
use feedgate_core::ping::WeblogChange;
use feedgate_core::redaction;
use feedgate_core::store::StoreError;
use feedgate_store::Store;

/// The number of weblogs on the page.
const WEBLOGS: usize = 100;
/// The maximum length of a name, in characters.
const NAME_CHARS: usize = 120;

/// Returns the response with the page.
pub(super) async fn reply(gateway: &Gateway, request: &Request, edition: &Edition) -> Response {
    match newest_lines(&gateway.store, edition).await {
        Ok(changes) => page(gateway, request, &changes),
        Err(err) => unavailable(&err),
    }
}

/// Returns the newest lines of an edition that the client may see.
async fn newest_lines(
    store: &Arc<Store>,
    edition: &Edition,
) -> Result<Vec<WeblogChange>, StoreError> {
    let mut changes = match &edition.lines {
        Lines::Listed(window) => {
            let lines = store.changes(window, None).await?;
            lines.into_iter().map(|line| line.change).collect()
        }
        Lines::Kept { parts: 0, .. } => Vec::new(),
        Lines::Kept { begins, .. } => store.hour_part(*begins, 0).await?,
    };
    changes.retain(|change| edition.sees(change));
    changes.truncate(WEBLOGS);
    Ok(changes)
}

fn page(gateway: &Gateway, request: &Request, changes: &[WeblogChange]) -> Response {
    let url = gateway.public_url(request.path.trim_start_matches('/'));
    let is_recent = request.path.ends_with("hanges.xml");
    let content = html! {
        p {
            "Sites that changed lately, as their authors reported or this gateway found, for programs that \
             watch many sites."
        }
        h2 { "Use it" }
        p {
            "A program reads this list once a minute instead of every site. To report a change, use the "
            a href=(format!("{}pingSiteForm", "../".repeat(depth(request)))) { "form" }
            " or send a ping by XML-RPC or REST."
        }
        h2 { @if is_recent { "Changed lately" } @else { "Changed in this hour" } }
        @if changes.is_empty() { p { "Nothing changed in this time." } }
        ul.posts { @for change in changes { li { (line(change, runner::now())) } } }
        @if changes.len() == WEBLOGS { p.soft { "These are the newest; the source lists all." } }
    };
    let title = "Changed sites";
    BrowserView { title, media_type: "text/xml", url: &url, links: "", content }.reply(request)
}

fn depth(request: &Request) -> usize {
    request.path.matches('/').count().saturating_sub(1)
}

fn line(change: &WeblogChange, now: DateTime<Utc>) -> maud::Markup {
    let name = redaction::line(&change.name, NAME_CHARS);
    html! {
        @if name.is_empty() { (web_link(&change.url, web_address(&change.url))) } @else {
            b { (web_link(&change.url, name)) }
        }
        " "
        small { (relative_time(change.at, now)) }
        @if let Some(feed_url) = &change.feed_url { br; small { (web_link(feed_url, feed_url.as_str())) } }
    }
}
