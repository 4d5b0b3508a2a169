//! What was found at an address, as the parts of the page: what a feed says of itself, its entries, each
//! in full, and what would be done with it.

mod entries;

use chrono::{DateTime, Utc};
use maud::{Markup, html};
use tokio::time::Instant;

use super::ADD_PAGE;
use super::form::{address_of, with_url};
use crate::http::kit::html::parts::{counted, grouped, span};
use crate::http::routes::discovered_feeds::type_name;
use crate::http::routes::repair_list::{RepairCount, lines};
use crate::jobs::poll;
use crate::jobs::runner;
use crate::subscriptions::{NoPreview, PreviewedContent, TopicPreview};
use feedgate_core::redaction;
use feedgate_core::schedule::{PeriodReason, PollPlan};
use feedgate_core::topic::Topic;
use feedgate_core::upstream::AdvertisedUpstream;
use feedgate_feed::documents::DiscoveredFeed;
use feedgate_feed::model::{Feed, Text};
use feedgate_feed::repair::{self, Repair};

use entries::TriedEntries;

/// The maximum length of a title, in characters.
const TITLE_CHARS: usize = 160;
/// The maximum number of feeds of a page.
const MOST_LISTED: usize = 25;
/// The maximum length of the addresses of listed feeds together, in bytes: the page has each three times.
const LONGEST_ADDRESSES_BYTES: usize = 8 << 10;

/// What was found at an address, rendered.
pub(super) struct TriedAddress {
    /// When it was found.
    pub(super) made_at: Instant,
    /// What stands above the entries.
    overview: Markup,
    entries: TriedEntries,
    /// What stands below the entries.
    details: Markup,
}

impl TriedAddress {
    /// Renders what a preview found, which has its place until then.
    pub(super) async fn read(
        topic: Topic,
        preview: TopicPreview,
    ) -> Result<TriedAddress, NoPreview> {
        preview.read(move |preview| render(&topic, preview)).await
    }

    /// Returns the parts of the page, with the entry that has this number, from 1 on.
    pub(super) fn section(&self, number: usize) -> Markup {
        html! { (self.overview) (self.entries.section(number)) (self.details) }
    }

    /// Returns the approximate size in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.overview.0.capacity() + self.details.0.capacity() + self.entries.bytes()
    }
}

fn render(topic: &Topic, preview: &TopicPreview) -> TriedAddress {
    let now = runner::now();
    let (overview, entries) = match &preview.content {
        PreviewedContent::Feed { feed, entries, linked } => {
            let overview = feed_overview(topic, preview, (&**feed, *entries), linked);
            (overview, TriedEntries::read(topic, preview, feed, now))
        }
        PreviewedContent::Other { kind, feeds, listed } => {
            let kind = if preview.document.body.is_empty() { "an empty document" } else { *kind };
            (other_overview(topic, kind, feeds, *listed), TriedEntries::default())
        }
        PreviewedContent::FragmentNotFound(reason) => {
            let overview = html! {
                p role="alert" { "Nothing can be shown: " (redaction::line(reason, 2 * TITLE_CHARS)) "." }
                p { "Without # and what follows, the whole document is shown." }
            };
            (overview, TriedEntries::default())
        }
    };
    let details = match &preview.content {
        PreviewedContent::Feed { feed, .. } => html! {
            (repairs(&feed.repairs))
            (schedule(&preview.plan, now))
        },
        PreviewedContent::Other { .. } => schedule(&preview.plan, now),
        PreviewedContent::FragmentNotFound(_) => html! {},
    };
    TriedAddress { made_at: Instant::now(), overview, entries, details }
}

/// Returns what a feed says of itself, and how it was read.
fn feed_overview(
    topic: &Topic,
    preview: &TopicPreview,
    (feed, entries): (&Feed, usize),
    linked: &[DiscoveredFeed],
) -> Markup {
    let TopicPreview { document, took, plan, .. } = preview;
    let title = feed.title.as_ref().map(Text::to_plain).unwrap_or_default();
    let subtitle = feed.subtitle.as_ref().map(Text::to_plain).unwrap_or_default();
    let url = document.url.as_str();
    let upstream = AdvertisedUpstream::find_in(&poll::links(document), Some(feed), url);
    html! {
        h2 { @if title.is_empty() { "A feed without a title" } @else { (redaction::line(&title, TITLE_CHARS)) } }
        @if !subtitle.is_empty() { p { (redaction::line(&subtitle, 2 * TITLE_CHARS)) } }
        (subscribe(topic, "Subscribe"))
        @if let Some(target) = feed.moved_to.as_deref().filter(|target| can_be_tried(target)) {
            p role="status" {
                "The document says that the feed is now at "
                a href=(address_of(target, None)) rel="nofollow" { (redaction::feed(target)) } "."
            }
        }
        dl.facts {
            dt { "Address" } dd { (redaction::feed(url)) }
            dt { "Format" } dd { (feed.format.title()) }
            dt { "Entries" } dd { (grouped(entries as u64)) }
            dt { "Fetched" }
            dd { (grouped(document.body.len() as u64)) " bytes in " (took.as_millis()) "\u{a0}ms" }
            dt { "Would be fetched" }
            dd { "every " (span(plan.period.as_secs().into())) ": " (plan.period.reason().to_string()) }
            dt { "Hub or cloud" }
            dd {
                @match &upstream {
                    Some(upstream) => { (redaction::feed(&upstream.endpoint)) ", which announces changes" }
                    None => "the feed names none, so that changes are found by fetching it, unless its publisher pings",
                }
            }
            dt { "If unchanged" }
            dd {
                @match document.validators.is_empty() {
                    true => "the whole document is sent again: it has neither an ETag nor a Last-Modified",
                    false => "the server can answer 304, without the document",
                }
            }
        }
        @if !linked.is_empty() {
            p { "This is a page whose own entries are read. It links to feeds as well:" }
            (feed_list(linked))
        }
    }
}

/// Returns what a document is that is not a feed, and what would be one.
fn other_overview(
    topic: &Topic,
    kind: &str,
    feeds: &[DiscoveredFeed],
    listed: Option<usize>,
) -> Markup {
    html! {
        @match listed {
            Some(count) => {
                p { "This is a list of " (counted(count as u64, "feed")) " in OPML, not a feed." }
                p { "An account can follow it: its feeds are subscribed to, also those that are added later." }
            }
            None if !feeds.is_empty() => {
                h2 { "Feeds of this page" }
                p { "Choose one to see its entries." }
                (feed_list(feeds))
            }
            None => {
                p role="alert" { "This is " (kind) ", not a feed, and no feed was found on it." }
                p {
                    "A page names its feed in its head, and readers find it: "
                    code { "<link rel=\"alternate\" type=\"application/atom+xml\" href=\"…\">" }
                    ". If you know the address of the feed, paste that."
                }
            }
        }
        (subscribe(topic, "Watch the document itself for changes"))
    }
}

fn subscribe(topic: &Topic, label: &str) -> Markup {
    html! { p { a.button.primary href=(with_url(ADD_PAGE, topic.as_str())) rel="nofollow" { (label) } } }
}

fn can_be_tried(address: &str) -> bool {
    (1..=Topic::LONGEST_BYTES).contains(&address.len())
}

/// Returns the feeds that are listed: the first, as long as there is room for their addresses.
fn listed(feeds: &[DiscoveredFeed]) -> impl Iterator<Item = &DiscoveredFeed> {
    let mut bytes = 0;
    feeds.iter().take(MOST_LISTED).take_while(move |feed| {
        bytes += feed.href.len();
        bytes <= LONGEST_ADDRESSES_BYTES
    })
}

fn feed_list(feeds: &[DiscoveredFeed]) -> Markup {
    html! {
        table.records {
            thead { tr { th scope="col" { "Feed" } th scope="col" { "Type" } } }
            tbody {
                @for feed in listed(feeds) {
                    tr {
                        td data-name="" {
                            @let href = redaction::feed(&feed.href);
                            a href=(address_of(&feed.href, None)) rel="nofollow" {
                                @match feed.title.as_str() {
                                    "" => (href),
                                    title => (redaction::line(title, TITLE_CHARS)),
                                }
                            }
                            @if !feed.title.is_empty() { br; small { (href) } }
                        }
                        td data-name="Type" { (type_name(&feed.mime)) }
                    }
                }
            }
        }
    }
}

/// Returns what was repaired and adapted in the whole document.
fn repairs(repairs: &[Repair]) -> Markup {
    html! {
        @for (kind, found) in repair::by_kind(repairs).into_iter().filter(|(_, found)| !found.is_empty()) {
            h2 { @if kind == "repaired" { "What was repaired" } @else { "What was adapted" } }
            @if kind == "adapted" {
                p { "These are no faults: Atom requires more than the format of the document." }
            }
            p { (lines(&RepairCount::by_code(&found))) }
        }
    }
}

/// Returns when the document would be fetched, and what each rule makes of that.
fn schedule(plan: &PollPlan, now: DateTime<Utc>) -> Markup {
    let hours = &plan.polling.hints.skip_hours;
    html! {
        h2 { "How often it would be fetched" }
        p {
            "Every " (span(plan.period.as_secs().into())) ", because "
            (plan.period.reason().to_string()) ". The second fetch would be within "
            (span((plan.next_fetch - now).num_seconds().unsigned_abs())) "."
        }
        @if plan.steps.iter().any(|step| matches!(step.reason, PeriodReason::Rate { .. })) {
            p.soft {
                "The rate is estimated from the dates of the entries in the document, of which the newest \
                 count most. Once the feed is subscribed to, it is what polls find."
            }
        }
        @if !plan.steps.is_empty() {
            ul {
                @for step in &plan.steps {
                    li { (step.bound.as_str()) " " (span(step.secs.into())) ": " (step.reason.to_string()) }
                }
            }
        }
        @if !hours.is_empty() {
            p { "The feed asks not to be fetched in " (counted(hours.len() as u64, "hour")) " of the day." }
        }
    }
}
