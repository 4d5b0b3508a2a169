//! The report on an import: how many feeds were subscribed to, and which were not and why.

use maud::{Markup, html};

use super::import::{ImportResult, ImportedFeed};
use crate::http::kit::html::parts::{counted, grouped};
use crate::http::routes::console::feeds::SECTION;
use crate::http::routes::console::new_subscription::{NewSubscription, new_secret_note};
use crate::http::routes::console::visit::Visit;
use feedgate_core::redaction;

/// The maximum length of a title, in characters.
const TITLE_CHARS: usize = 120;

/// Returns the report.
pub(super) fn report(visit: &Visit, done: &[ImportedFeed], request: &NewSubscription) -> Markup {
    let of = |is_one: fn(&ImportResult) -> bool| -> Vec<&ImportedFeed> {
        done.iter().filter(|imported| is_one(&imported.result)).collect()
    };
    let subscribed = of(|result| matches!(result, ImportResult::Subscribed));
    let existing = of(|result| matches!(result, ImportResult::Existing));
    let repeated = of(|result| matches!(result, ImportResult::Repeated));
    let failed = of(|result| matches!(result, ImportResult::Failed(_)));
    html! {
        p role="status" {
            "Subscribed to " (counted(subscribed.len() as u64, "feed"))
            " of " (grouped(done.len() as u64)) "."
            @if !subscribed.is_empty() { " They are fetched one after the other from now on." }
        }
        @if !subscribed.is_empty() { (new_secret_note(request.new_secret())) }
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
