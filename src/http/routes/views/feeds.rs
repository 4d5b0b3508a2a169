//! `/feeds.opml`: the watched feeds as a subscription list, in the order in which they were first
//! subscribed to, because the list is written while it is read.

use std::sync::Arc;

use super::TITLE_CHARS;
use super::document::{DocumentWriter, ViewDocument};
use crate::http::kit::rejection::Rejection;
use crate::http::kit::viewer_access::ViewerAccess;
use crate::http::state::Gateway;
use crate::jobs::runner;
use feedgate_core::redaction;
use feedgate_core::resource::{ResourceId, ResourceKind};
use feedgate_core::store::{StoreError, WatchedResource};
use feedgate_feed::render::opml::{END, OpmlOutline, push_head, push_note, push_outline};
use feedgate_protocol::form::Form;

/// How much memory the list may take: some three hundred thousand feeds.
const MAX_BYTES: usize = 16 << 20;
const OPML: &str = "text/x-opml; charset=utf-8";

/// Whose addresses of the feeds the list has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ListedUrls {
    /// The addresses at this gateway, where feeds are Atom whatever their sources are.
    Gateway,
    /// The addresses of the sources.
    Source,
}

impl ListedUrls {
    /// Parses the query: `urls=gateway`, the default, or `urls=source`.
    pub(super) fn from_query(query: &str) -> Result<ListedUrls, Rejection> {
        let form = Form::from_urlencoded(query.as_bytes()).unwrap_or_default();
        match form.get("urls") {
            None | Some("gateway") => Ok(ListedUrls::Gateway),
            Some("source") => Ok(ListedUrls::Source),
            Some(word) => {
                let reason = format!("urls must be gateway or source, not {word}.");
                Err(Rejection::bad_request(reason))
            }
        }
    }
}

/// Renders the current list.
pub(super) async fn render(
    gateway: &Gateway,
    (access, urls): (ViewerAccess, ListedUrls),
    before: Option<Arc<ViewDocument>>,
) -> Result<Arc<ViewDocument>, StoreError> {
    let now = runner::now();
    let host = gateway.settings.public_url.host_str().unwrap_or_default();
    let (mut writer, mut text) = (DocumentWriter::new(), String::new());
    push_head(&mut text, &format!("Feeds that feedgate watches at {host}"), now);
    writer.push_unhashed(&text);
    text.clear();
    let (mut after, mut is_empty, listed) = (ResourceId(0), true, gateway.settings.listed);
    loop {
        let some = gateway.store.watched(after).await?;
        let Some(last) = some.last() else { break };
        after = last.id;
        let mut listed = some.iter().filter(|watched| access.lists(watched, listed)).peekable();
        is_empty &= listed.peek().is_none();
        for watched in listed {
            // A resource that is no feed is listed as a link, which leads to the resource.
            let is_ours = urls == ListedUrls::Gateway && watched.kind != ResourceKind::Other;
            let ours = is_ours.then(|| gateway.public_url(&format!("feeds/{}", watched.id)));
            push(&mut text, watched, ours.as_deref(), access);
        }
        writer.push(&text);
        text.clear();
        if writer.bytes() > MAX_BYTES {
            push_note(&mut text, "This list is incomplete: there are more feeds.");
            break;
        }
    }
    if is_empty {
        push_note(&mut text, "No feeds are listed yet.");
    }
    text.push_str(END);
    writer.push(&text);
    Ok(writer.finish(OPML, now).or_unchanged(before))
}

/// Appends a resource, at the address `url` if there is one, else at that of its source.
fn push(text: &mut String, watched: &WatchedResource, url: Option<&str>, access: ViewerAccess) {
    let outline = OpmlOutline {
        title: &redaction::line(&watched.title, TITLE_CHARS),
        url: url.unwrap_or(watched.topic.as_str()),
        site: watched.site_url.as_deref().filter(|site| access.sees(site)),
        is_feed: watched.kind != ResourceKind::Other,
    };
    push_outline(text, &outline);
}
