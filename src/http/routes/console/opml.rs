//! The list of feeds as OPML, for readers and other gateways: export, and import.

mod import;
pub(crate) mod imports;
mod report;

use std::sync::Arc;

use http::{StatusCode, header};
use maud::{Markup, html};
use warp::reply::Response;

use super::feed_state::title;
use super::feeds::SECTION;
use super::new_subscription::{NewSubscription, fields, follow_checkbox, more_fields};
use super::visit::Visit;
use crate::http::kit::auth;
use crate::http::kit::html::parts::grouped;
use crate::http::kit::html::{Interaction, Width};
use crate::http::kit::rejection::Rejection;
use crate::http::kit::reply::{set_header, with_content_type};
use crate::jobs::runner;
use feedgate_core::account::Scope;
use feedgate_core::resource::{Resource, ResourceId, ResourceKind};
use feedgate_feed::render::opml::{END, OpmlOutline, push_head, push_note, push_outline};

use import::Import;
use imports::ImportRefusal;

/// The address of the page.
const PATH: &str = "console/opml";
/// The maximum length of an imported document, in bytes.
pub(super) const MAX_IMPORT_BYTES: usize = 1 << 20;
/// The maximum number of feeds of an import.
const MAX_FEEDS: usize = 2_000;
/// The reason why an import cannot begin, and the number of seconds after which it may.
const TOO_MANY_IMPORTS: &str =
    "Too many imports are in progress, please import the list again in a minute.";
const IMPORT_RETRY_S: u64 = 60;
/// Why there is no page of an import.
const NO_REPORT: &str = "This import was not found. A report is kept on the node that ran the import, until it restarts or later \
     imports replace the report. The feeds that were subscribed to are listed under Feeds.";
/// The scripts of the page of an import.
const SCRIPTS: &[&str] = &["console/page.js"];
/// The number of feeds that are read at once for an export.
const FEEDS_READ: usize = 1_000;
/// The maximum length of an export, in bytes: some hundred thousand feeds.
const MAX_EXPORT_BYTES: usize = 16 << 20;

/// Returns the page.
pub(super) fn page(visit: &Visit) -> Response {
    form_page(visit, StatusCode::OK, html! {})
}

/// Begins to import the list of a form, and leads to the page of the import.
pub(super) async fn act(visit: &Visit) -> Result<Response, Rejection> {
    auth::require(visit.access()?, Scope::Subscribe)?;
    let request = match NewSubscription::read(visit)? {
        Ok(request) => request,
        Err(reason) => return Ok(refuse(visit, &reason)),
    };
    let import = match Import::read(visit).await? {
        Ok(import) => import,
        Err(reason) => return Ok(refuse(visit, &reason)),
    };
    let (gateway, session) = (Arc::clone(&visit.gateway), visit.require_session()?.clone());
    let account = session.access.account;
    let kept = gateway.imports.begin(account, import.len(), request.new_secret().cloned());
    let kept = match kept {
        Ok(kept) => kept,
        Err(ImportRefusal::InProgress(id)) => return Ok(refuse_second(visit, &id)),
        Err(ImportRefusal::Busy) => {
            return Err(Rejection::overloaded(TOO_MANY_IMPORTS, IMPORT_RETRY_S));
        }
    };
    let response = visit.see_other(&format!("{PATH}/imports/{}", kept.id));
    tokio::spawn(import.carry_out(gateway, session, request, kept));
    Ok(response)
}

/// Returns the page of an import: how far it is, or the report on it.
pub(super) fn import_page(visit: &Visit, id: &str) -> Result<Response, Rejection> {
    let kept = visit.gateway.imports.find(visit.access()?.account, id);
    let kept = kept.ok_or_else(|| Rejection::new(StatusCode::NOT_FOUND, NO_REPORT))?;
    let mut state = kept.state();
    let interaction = match state.end {
        None => Interaction::RefreshedScripts(SCRIPTS),
        Some(_) => Interaction::Scripts(SCRIPTS),
    };
    let content = report::report(visit, kept.total, &mut state);
    Ok(visit.page_with_scripts(("Import of feeds", SECTION), interaction, content))
}

fn refuse_second(visit: &Visit, id: &str) -> Response {
    let page = visit.address(&format!("{PATH}/imports/{id}"));
    let note = html! {
        p role="alert" { "An import of this account is still in progress. " a href=(page) { "Show it" } }
    };
    form_page(visit, StatusCode::CONFLICT, note)
}

fn refuse(visit: &Visit, reason: &str) -> Response {
    let note = html! { p role="alert" { (reason) } };
    form_page(visit, StatusCode::UNPROCESSABLE_ENTITY, note)
}

fn form_page(visit: &Visit, status: StatusCode, note: Markup) -> Response {
    let export = visit.address(&format!("{PATH}/feeds.opml"));
    let content = html! {
        (note)
        h2 { "Export" }
        @if visit.is_admin() {
            p { "The list has all feeds of this gateway, except those whose address contains a \
                 password or a token." }
        } @else {
            p { "The list has all feeds that you are subscribed to." }
        }
        p { a.button href=(export) download { "Download the list" } }
        @if visit.allows(Scope::Subscribe) { (import_section(visit)) }
    };
    visit.page_with(status, ("OPML", SECTION, Width::Text), content)
}

fn import_section(visit: &Visit) -> Markup {
    html! {
        h2 { "Import" }
        p { "Subscribe to every feed in a list, including those in folders. A list may have up to "
            (grouped(MAX_FEEDS as u64)) " feeds and 1\u{a0}MiB. Feeds that you have already subscribed \
            to with the same callback stay as they are." }
        (last_import(visit))
        form.stacked method="post" enctype="multipart/form-data" action=(visit.address(PATH)) {
            (visit.csrf_field())
            label for="file" { "OPML file" }
            input id="file" name="file" type="file" accept=".opml,.xml,text/x-opml,text/xml";
            label for="opml" { "or its text" }
            textarea id="opml" name="opml" rows="4" spellcheck="false" { (visit.value("opml")) }
            (follow_checkbox(
                visit,
                "Follow pages and lists: if an address is that of a page, subscribe to the feed that it \
                 advertises; if it is that of a list of feeds in OPML, to these as well. All addresses are \
                 fetched first, which takes longer.",
                false,
            ))
            (fields(visit))
            (more_fields(visit, html! {}))
            button.primary type="submit" { "Import" }
        }
    }
}

fn last_import(visit: &Visit) -> Markup {
    let account = visit.access().ok().map(|access| access.account);
    let last = account.and_then(|account| visit.gateway.imports.of_account(account));
    html! {
        @if let Some(last) = last {
            p { a href=(visit.address(&format!("{PATH}/imports/{}", last.id))) {
                "Show the last import"
            } }
        }
    }
}

/// Returns the list of the feeds that the account may see, as a download.
pub(super) async fn export(visit: &Visit) -> Result<Response, Rejection> {
    let is_listed = |feed: &Resource| {
        // Secrets of other accounts stay with them.
        feed.kind != ResourceKind::Collection && (!visit.is_admin() || feed.topic.is_public())
    };
    let (store, account) = (&visit.gateway.store, visit.visible_account()?);
    let mut text = String::new();
    push_head(&mut text, "Feeds", runner::now());
    let (mut next, mut is_empty) = (Some(ResourceId(0)), true);
    while let Some(after) = next {
        if text.len() > MAX_EXPORT_BYTES {
            push_note(&mut text, "This list is incomplete: there are more feeds.");
            break;
        }
        let feeds = match account {
            Some(account) => store.resources_of_account(account, after, FEEDS_READ).await,
            None => store.resources_page(after, FEEDS_READ).await,
        };
        let feeds = feeds.map_err(|err| Rejection::unavailable(&err))?;
        for feed in feeds.resources.iter().filter(|feed| is_listed(feed)) {
            is_empty = false;
            push(&mut text, feed);
        }
        next = feeds.next;
    }
    if is_empty {
        push_note(&mut text, "There are no feeds yet.");
    }
    text.push_str(END);
    let mut response = with_content_type(StatusCode::OK, "text/x-opml; charset=utf-8", text);
    let name = "attachment; filename=\"feeds.opml\"";
    set_header(&mut response, header::CONTENT_DISPOSITION, name);
    Ok(response)
}

fn push(text: &mut String, feed: &Resource) {
    let outline = OpmlOutline {
        title: &title(feed),
        url: &feed.topic.displayed(),
        site: None,
        is_feed: feed.kind != ResourceKind::Other,
    };
    push_outline(text, &outline);
}
