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
use crate::http::kit::shell::quoted;
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
    let form = format!("{}pingSiteForm", "../".repeat(depth(request)));
    let now = runner::now();
    let is_recent = request.path.ends_with("hanges.xml");
    let content = html! {
        p {
            "Sites that changed lately, as their authors reported or this gateway found, for programs that \
             watch many sites."
        }
        h2 { @if is_recent { "Changed lately" } @else { "Changed in this hour" } }
        @if changes.is_empty() {
            p.empty { b { "Nothing changed in this time." } " A site is here from the moment it is pinged for." }
        } @else {
            table.records.dense {
                thead { tr {
                    th scope="col" { "Site" } th.number scope="col" { "Changed" }
                } }
                tbody { @for change in changes { (row(change, now)) } }
            }
        }
        @if changes.len() == WEBLOGS { p.soft { "These are the newest; the source lists all." } }
        h2 { "Use it" }
        p { "A program reads this list once a minute instead of every site." }
        pre tabindex="0" { code { "curl " (quoted(&url)) } }
        h2 { "Report a change" }
        p {
            "Use the " a href=(form) { "form" } ", or send a ping by XML-RPC, SOAP or REST:"
        }
        pre tabindex="0" { code {
            "curl " (gateway.public_url("pingSiteForm")) " \\\n"
            "     --data-urlencode 'name=My site' --data-urlencode 'url=https://example.com/'"
        } }
    };
    let title = "Changed sites";
    BrowserView { title, media_type: "text/xml", url: &url, links: "", content }.reply(request)
}

fn depth(request: &Request) -> usize {
    request.path.matches('/').count().saturating_sub(1)
}

fn row(change: &WeblogChange, now: DateTime<Utc>) -> maud::Markup {
    let name = redaction::line(&change.name, NAME_CHARS);
    let address = change.feed_url.as_ref().or((!name.is_empty()).then_some(&change.url));
    html! {
        tr {
            td.main {
                @if name.is_empty() { (web_link(&change.url, web_address(&change.url))) }
                @else { (web_link(&change.url, name)) }
                @if let Some(address) = address {
                    small { (web_link(address, web_address(address))) }
                }
            }
            td.state.number { (relative_time(change.at, now)) }
        }
    }
}
