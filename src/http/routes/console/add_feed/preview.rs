//! The preview of a topic: what a fetch found there, and the form that subscribes to it.

use chrono::{DateTime, Utc};
use maud::{Markup, html};

use super::{preview_link, subscription_form};
use crate::http::kit::html::parts::{counted, grouped, relative_time};
use crate::http::kit::rejection::Rejection;
use crate::http::routes::console::feed::entry_title;
use crate::http::routes::console::feeds::SECTION;
use crate::http::routes::console::new_subscription::{self, follow_checkbox};
use crate::http::routes::console::visit::Visit;
use crate::http::routes::discovered_feeds::type_name;
use crate::http::routes::repair_list::{RepairCount, lines};
use crate::jobs::runner;
use crate::subscriptions::{PreviewedContent, TopicPreview, advertised_feed};
use feedgate_core::redaction;
use feedgate_core::topic::Topic;
use feedgate_feed::documents::DiscoveredFeed;
use feedgate_feed::model::{Entry, Feed, Text};
use feedgate_feed::repair;

/// The maximum length of a title, in characters.
const TITLE_CHARS: usize = 160;

/// Returns the preview and the form.
pub(super) async fn preview(
    visit: &Visit,
    topic: &Topic,
    found: &TopicPreview,
) -> Result<Markup, Rejection> {
    let account = visit.access()?.account;
    let subscriptions = new_subscription::find(&visit.gateway, account, topic, None).await?;
    let known = subscriptions.first().map(|listed| listed.resource.id);
    let now = runner::now();
    Ok(html! {
        @if let Some(id) = known {
            p role="status" {
                "You are subscribed to this address: "
                a href=(visit.address(&format!("{SECTION}/{id}"))) { "go to its page" } "."
            }
        }
        @match &found.content {
            PreviewedContent::Feed { feed, entries, .. } => {
                (feed_facts(visit, found, feed, *entries))
                (entry_list(&feed.entries, now))
                (subscription_form(visit, topic.as_str(), "Subscribe", html! {}))
            }
            PreviewedContent::Other { kind, feeds, listed } => {
                @if let Some(count) = listed {
                    p { "This is a list of " (counted(*count as u64, "feed")) " in OPML." }
                } @else {
                    p { "This is " (kind) ", not a feed." }
                    (offered_feeds(visit, feeds))
                }
                @let may_follow = topic.fragment().is_none();
                @let field = if may_follow { follow_offer(visit, feeds, listed.is_some()) } else { html! {} };
                @let heading = match may_follow && advertised_feed(feeds).is_some() {
                    true => "Subscribe",
                    false => "Watch this document for changes",
                };
                (subscription_form(visit, topic.as_str(), heading, field))
            }
            PreviewedContent::FragmentNotFound(reason) => {
                p role="alert" { "There is no preview: " (reason) "." }
            }
        }
    })
}

/// Returns the field that says whether a document is followed that links to `feeds`, or that is a reading list;
/// nothing if there is nothing to follow.
fn follow_offer(visit: &Visit, feeds: &[DiscoveredFeed], is_list: bool) -> Markup {
    let label = match advertised_feed(feeds) {
        Some(feed) => {
            let feed = redaction::feed(&feed.href);
            format!("Follow the page: subscribe to the feed that it advertises, {feed}")
        }
        None if is_list => {
            "Follow the list: subscribe to its feeds as well, and to those that are added to it"
                .to_owned()
        }
        None => return html! {},
    };
    follow_checkbox(visit, &label, !is_list)
}

fn feed_facts(visit: &Visit, found: &TopicPreview, feed: &Feed, entries: usize) -> Markup {
    let title = feed.title.as_ref().map(Text::to_plain).unwrap_or_default();
    let subtitle = feed.subtitle.as_ref().map(Text::to_plain).unwrap_or_default();
    html! {
        h2 { (redaction::line(&title, TITLE_CHARS)) }
        @if !subtitle.is_empty() { p { (redaction::line(&subtitle, 2 * TITLE_CHARS)) } }
        @if let Some(target) = feed.moved_to.as_deref().filter(|target| !target.is_empty()) {
            p role="status" {
                "The document says that the feed is now at "
                a href=(preview_link(visit, target)) { (redaction::feed(target)) } "."
            }
        }
        dl.facts {
            dt { "Address" } dd { (redaction::feed(found.document.url.as_str())) }
            dt { "Format" } dd { (feed.format.title()) }
            dt { "Entries" } dd { (grouped(entries as u64)) }
            @for (kind, found) in repair::by_kind(&feed.repairs) {
                @if !found.is_empty() {
                    dt { @if kind == "repaired" { "Repaired" } @else { "Adapted" } }
                    dd { (lines(&RepairCount::by_code(&found))) }
                }
            }
            dt { "Fetched" }
            dd { (grouped(found.document.body.len() as u64)) " bytes in " (found.took.as_millis()) "\u{a0}ms" }
        }
    }
}

fn entry_list(entries: &[Entry], now: DateTime<Utc>) -> Markup {
    html! {
        table.records {
            thead { tr { th scope="col" { "Title" } th scope="col" { "Published" } } }
            tbody {
                @for entry in entries {
                    tr {
                        td data-name="" { (entry_title(entry)) }
                        td data-name="Published" {
                            @if let Some(at) = entry.published.or(entry.updated) {
                                (relative_time(at.to_utc(), now))
                            }
                        }
                    }
                }
                @if entries.is_empty() { tr { td colspan="2" { "The feed has no entries." } } }
            }
        }
    }
}

fn offered_feeds(visit: &Visit, feeds: &[DiscoveredFeed]) -> Markup {
    html! {
        @if feeds.is_empty() {
            p { "No feed was found on it." }
        } @else {
            h2 { "Feeds of this page" }
            table.records {
                thead { tr { th scope="col" { "Feed" } th scope="col" { "Type" } } }
                tbody {
                    @for feed in feeds {
                        tr {
                            td data-name="" {
                                a href=(preview_link(visit, &feed.href)) {
                                    (feed_name(feed))
                                }
                                @if !feed.title.is_empty() {
                                    br; small { (redaction::feed(&feed.href)) }
                                }
                            }
                            td data-name="Type" { (type_name(&feed.mime)) }
                        }
                    }
                }
            }
        }
    }
}

fn feed_name(feed: &DiscoveredFeed) -> String {
    match feed.title.as_str() {
        "" => redaction::feed(&feed.href),
        title => redaction::line(title, TITLE_CHARS),
    }
}
