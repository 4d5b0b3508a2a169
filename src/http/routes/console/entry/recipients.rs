//! Whom an entry was sent to, and when: the subscriptions of the account, or all for administrators.

use chrono::{DateTime, Utc};
use maud::{Markup, html};

use crate::http::kit::html::parts::{Tone, badge, relative_time, web_address};
use crate::http::kit::rejection::Rejection;
use crate::http::routes::console::attempts;
use crate::http::routes::console::feed::{SUBSCRIPTIONS, subscribed};
use crate::http::routes::console::subscription_state::{SECTION, next_step, to_path};
use crate::http::routes::console::visit::Visit;
use feedgate_core::attempt::StoredAttempt;
use feedgate_core::record::{Record, RecordKind, Seq};
use feedgate_core::resource::Resource;
use feedgate_core::store::{ListedSubscription, OwedRange, StoreError};
use feedgate_core::subscription::{Format, Updates};

/// The most attempts that are listed of a subscription.
const ATTEMPTS: usize = 3;

/// The first subscriptions to the feed, and what became of an entry for each.
pub(super) struct Recipients(Vec<(ListedSubscription, Fate)>);

/// What became of an entry for a subscription.
enum Fate {
    /// Attempts to send the entry, newest first.
    Attempted(Vec<StoredAttempt>),
    /// The entry was sent, and the attempts are no longer stored.
    Sent,
    /// The entry waits to be sent.
    Owed,
    /// Why the entry is not sent.
    NotFor(&'static str),
}

impl Recipients {
    /// Finds what was sent of a record.
    pub(super) async fn read(
        visit: &Visit,
        resource: &Resource,
        record: &Record,
    ) -> Result<Recipients, Rejection> {
        let mut recipients = Vec::new();
        for listed in subscribed(visit, resource).await? {
            let fate = fate(visit, &listed, record).await;
            let fate = fate.map_err(|err| Rejection::unavailable(&err))?;
            recipients.push((listed, fate));
        }
        Ok(Recipients(recipients))
    }

    /// Returns the table.
    pub(super) fn table(&self, visit: &Visit, resource: &Resource, now: DateTime<Utc>) -> Markup {
        html! {
            table.records {
                thead { tr { th scope="col" { "Callback" } th scope="col" { "Sent" } } }
                tbody {
                    @for alike in self.0.chunk_by(|(_, one), (_, next)| one.is_alike(next)) {
                        tr {
                            td data-name="" {
                                @for (n, (listed, _)) in alike.iter().enumerate() {
                                    @let path = format!("{SECTION}/{}", to_path(listed.subscription.id));
                                    @if n > 0 { br; }
                                    a href=(visit.address(&path)) {
                                        (web_address(listed.subscription.callback.as_str()))
                                    }
                                }
                            }
                            td data-name="" {
                                @if let Some((listed, fate)) = alike.first() {
                                    (fate.description(visit, listed, now))
                                }
                            }
                        }
                    }
                    @if self.0.is_empty() { tr { td colspan="2" { "There is no subscription." } } }
                }
            }
            @if self.0.len() == SUBSCRIPTIONS {
                p { a href=(visit.address(&format!("{SECTION}?feed={}", resource.id))) {
                    "All subscriptions of this feed"
                } }
            }
        }
    }
}

async fn fate(
    visit: &Visit,
    listed: &ListedSubscription,
    record: &Record,
) -> Result<Fate, StoreError> {
    let (store, subscription, seq) = (&visit.gateway.store, &listed.subscription, record.seq);
    if subscription.callback.is_null_device() {
        return Ok(Fate::NotFor("without a callback, nothing is sent"));
    }
    if subscription.format == Format::Raw {
        return Ok(Fate::NotFor("the document is sent instead of its entries"));
    }
    let matcher = subscription.filter.as_ref().and_then(|filter| filter.matcher().ok());
    if matcher.is_some_and(|matcher| !matcher.matches(&listed.resource, record)) {
        return Ok(Fate::NotFor("it does not match the filter"));
    }
    let attempts = store.attempts_to_send(subscription.id, seq, ATTEMPTS).await?;
    if !attempts.is_empty() {
        return Ok(Fate::Attempted(attempts));
    }
    if listed.begun_after >= seq {
        return Ok(Fate::NotFor("it was received before the subscription was made"));
    }
    let (after, least) = (Seq(seq.0 - 1), subscription.updates.least());
    let range = OwedRange { after, upto: seq, least, limit: 1, max_bytes: usize::MAX };
    Ok(match store.owed(listed.resource.id, &range).await?.is_empty() {
        true => Fate::NotFor(why_not_owed(record.kind, subscription.updates)),
        false if subscription.cursor >= seq => Fate::Sent,
        false => Fate::Owed,
    })
}

/// Returns why a record is not for a subscription that receives these updates.
fn why_not_owed(kind: RecordKind, updates: Updates) -> &'static str {
    match (kind, updates) {
        (RecordKind::Old, _) => "it was old already when it was received",
        (RecordKind::Update, Updates::Never) => {
            "it is an update, and the subscription receives new entries only"
        }
        (RecordKind::Update, Updates::Fresh) => {
            "it is an update, and the subscription receives only those that the publisher declares as new"
        }
        (RecordKind::Update, Updates::Always) => "it is an update that nobody is sent",
        (RecordKind::New | RecordKind::Deleted, _) => {
            "the subscription does not receive such changes"
        }
    }
}

impl Fate {
    /// Returns whether the entry was not sent to another subscription for the same reason.
    fn is_alike(&self, other: &Fate) -> bool {
        matches!((self, other), (Fate::NotFor(one), Fate::NotFor(two)) if one == two)
    }

    fn description(
        &self,
        visit: &Visit,
        listed: &ListedSubscription,
        now: DateTime<Utc>,
    ) -> Markup {
        html! {
            @match self {
                Fate::Attempted(stored) => {
                    @for (n, stored) in stored.iter().enumerate() {
                        @if n > 0 { br; }
                        (attempts::verdict(&stored.attempt)) " "
                        a href=(visit.address(&attempts::address(stored))) {
                            (relative_time(stored.attempt.at, now))
                        }
                    }
                }
                Fate::Sent => { (badge(Tone::Good, "delivered")) " the attempt is no longer stored" }
                Fate::Owed => { (badge(Tone::Neutral, "pending")) " " (next_step(listed, now)) }
                Fate::NotFor(reason) => span.soft { "not sent: " (reason) },
            }
        }
    }
}
