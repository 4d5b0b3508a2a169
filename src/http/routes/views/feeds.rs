//! `/feeds.opml`: what is watched, as a subscription list. It is in the order in which it
//! was first asked for, because it is written while it is read.

use std::sync::Arc;

use super::document::{Document, Press};
use super::{Audience, TITLE_CHARS};
use crate::http::state::Gateway;
use crate::jobs::runner;
use feedgate_core::ports::{StoreError, WatchedResource};
use feedgate_core::redaction;
use feedgate_core::resource::{ResourceId, ResourceKind};
use feedgate_feed::render::opml::{END, OpmlOutline, push_head, push_note, push_outline};

/// What the list may take in memory: some three hundred thousand feeds.
const MOST_BYTES: usize = 16 << 20;
const OPML: &str = "text/x-opml; charset=utf-8";

/// The list as it is now.
pub(super) async fn print(
    gateway: &Gateway,
    audience: Audience,
    before: Option<Arc<Document>>,
) -> Result<Arc<Document>, StoreError> {
    let now = runner::now();
    let host = gateway.settings.public_url.host_str().unwrap_or_default();
    let (mut press, mut text) = (Press::new(), String::new());
    push_head(&mut text, &format!("Feeds that feedgate watches at {host}"), now);
    press.push_moment(&text);
    text.clear();
    let (mut after, mut is_empty) = (ResourceId(0), true);
    loop {
        let some = gateway.store.watched(after).await?;
        let Some(last) = some.last() else { break };
        after = last.id;
        let mut listed = some.iter().filter(|watched| audience.sees(&watched.topic)).peekable();
        is_empty &= listed.peek().is_none();
        listed.for_each(|watched| push(&mut text, watched, audience));
        press.push(&text);
        text.clear();
        if press.bytes() > MOST_BYTES {
            push_note(&mut text, "There are more feeds than are listed here.");
            break;
        }
    }
    if is_empty {
        push_note(&mut text, "No feeds are listed yet.");
    }
    text.push_str(END);
    press.push(&text);
    Ok(press.finish(OPML, now).unless_as(before))
}

fn push(text: &mut String, watched: &WatchedResource, audience: Audience) {
    let outline = OpmlOutline {
        title: &redaction::line(&watched.title, TITLE_CHARS),
        url: &watched.topic,
        site: watched.site_url.as_deref().filter(|site| audience.sees(site)),
        is_feed: watched.kind != ResourceKind::Other,
    };
    push_outline(text, &outline);
}
