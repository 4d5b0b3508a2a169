//! The page of an import: how far it is, and at its end how many feeds were subscribed to, and which
//! were not and why.

use maud::{Markup, html};

use super::imports::{ImportEnd, ImportResult, ImportState, ImportedFeed};
use crate::http::kit::html::parts::{counted, grouped};
use crate::http::routes::console::feeds::SECTION;
use crate::http::routes::console::new_subscription::new_secret_note;
use crate::http::routes::console::visit::Visit;
use feedgate_core::redaction;

/// The maximum length of a title, in characters.
const TITLE_CHARS: usize = 120;

/// Returns how far an import of `total` feeds is, or the report on it, which displays the secret that
/// was made for it once. The script of the page looks for the ids.
pub(super) fn report(visit: &Visit, total: usize, state: &mut ImportState) -> Markup {
    let Some(end) = state.end else { return progress(total, state.done.len()) };
    // After a failure of the store, a subscription may exist that is not known of here.
    let is_new = |imported: &ImportedFeed| matches!(imported.result, ImportResult::Subscribed);
    let is_secret_used = end != ImportEnd::Complete || state.done.iter().any(is_new);
    let new_secret = state.new_secret.take().filter(|_| is_secret_used);
    let done = &state.done;
    let of = |is_one: fn(&ImportResult) -> bool| -> Vec<&ImportedFeed> {
        done.iter().filter(|imported| is_one(&imported.result)).collect()
    };
    let subscribed = of(|result| matches!(result, ImportResult::Subscribed));
    let existing = of(|result| matches!(result, ImportResult::Existing));
    let repeated = of(|result| matches!(result, ImportResult::Repeated));
    let failed = of(|result| matches!(result, ImportResult::Failed(_)));
    html! {
        p #status role="status" {
            "Subscribed to " (counted(subscribed.len() as u64, "feed"))
            " of " (grouped(total as u64)) "."
            @if !subscribed.is_empty() { " First fetches follow, one after the other." }
        }
        div #import {
            (incomplete(end, total - done.len()))
            (new_secret_note(new_secret.as_ref()))
            @if !failed.is_empty() {
                h2 { "Failed: " (grouped(failed.len() as u64)) }
                (failures(&failed))
            }
            (list("Subscribed", &subscribed))
            (list("Already subscribed", &existing))
            (list("Listed more than once", &repeated))
            p.actions {
                a.button href=(visit.address(SECTION)) { "Go to the feeds" }
                a.button href=(visit.address(super::PATH)) { "Import another list" }
            }
        }
    }
}

fn progress(total: usize, done: usize) -> Markup {
    html! {
        p #status role="status" {
            "Importing: " (grouped(done as u64)) " of " (counted(total as u64, "feed")) " done."
        }
        div #import data-in-progress {
            progress aria-label="Imported feeds" max=(total) value=(done) {}
            p { "You can leave this page. The import continues, and its report stays here until \
                 feedgate restarts or later imports replace it." }
        }
    }
}

/// Returns why feeds of the list were left out, if an import ended early.
fn incomplete(end: ImportEnd, missing: usize) -> Markup {
    let reason = match end {
        ImportEnd::Complete => return html! {},
        ImportEnd::SessionEnded => "you signed out, or the token was revoked or has expired",
        ImportEnd::StoreFailed => "the database failed",
        ImportEnd::Stopped => "feedgate was stopped",
    };
    html! {
        p role="alert" {
            "The import ended early because " (reason) ". Feeds not imported: "
            (grouped(missing as u64)) ". Import the list again; existing subscriptions are not changed."
        }
    }
}

fn failures(failed: &[&ImportedFeed]) -> Markup {
    html! {
        table.records {
            thead { tr {
                th.number scope="col" { "Line" }
                th scope="col" { "Feed" }
                th scope="col" { "Reason" }
            } }
            tbody {
                @for ImportedFeed { feed, result } in failed {
                    tr {
                        td.number data-name="Line" { (feed.line) }
                        td data-name="Feed" { (name(feed.title.as_str(), &feed.url)) }
                        td data-name="Reason" {
                            @if let ImportResult::Failed(reason) = result { (reason) }
                        }
                    }
                }
            }
        }
    }
}

fn list(heading: &str, feeds: &[&ImportedFeed]) -> Markup {
    html! {
        @if !feeds.is_empty() {
            details {
                summary { (heading) ": " (grouped(feeds.len() as u64)) }
                ul {
                    @for ImportedFeed { feed, .. } in feeds { li { (name(&feed.title, &feed.url)) } }
                }
            }
        }
    }
}

fn name(title: &str, url: &str) -> Markup {
    let address = redaction::feed(url);
    html! {
        @if !title.is_empty() { (redaction::line(title, TITLE_CHARS)) br; }
        small { (address) }
    }
}
