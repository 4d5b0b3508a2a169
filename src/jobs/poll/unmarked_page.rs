//! A page that was read as a feed, and states no entries any more, or advertises a feed now.
//!
//! A page without entries may stand in for the one before, or be what a server sends once in a while. Which it
//! is shows in time: such a page is a failure first, and a document when it has been there for some time,
//! because a document stays one, whatever is marked up in it, while anybody is subscribed.
//!
//! * A page with the title or the preferred address of the one before is that page. If its content has
//!   changed, it is sent then, like any change of a document.
//! * A page that asks for a password, where the one before did not, is a login page, and is never stored.
//! * Any other page is sent to nobody.

use chrono::{DateTime, TimeDelta, Utc};

use crate::document_budget::DocumentMemory;
use feedgate_core::poll::Polling;
use feedgate_core::status::Status;
use feedgate_core::store::{DueResource, StoreError};
use feedgate_feed::Body;
use feedgate_feed::documents::PageIdentity;

use super::Poller;
use super::known_as::was_page;
use super::observation::{Failure, Found, NOT_A_FEED, Observation};

/// How long another page must have been in place of one, and how many polls must have found it, until it is
/// no longer taken for one that stands in: as long as a resource must be gone (`schedule/backoff.rs`).
const LASTING: TimeDelta = TimeDelta::hours(48);
const LASTING_POLLS: u32 = 3;

/// What a page is to the page that was read as a feed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Succession {
    /// The same page, with the same content.
    Same,
    /// The same page, with another content.
    Revised,
    /// A page to sign in.
    Login,
    /// Another page.
    Other,
}

impl Poller {
    /// Replaces what was found by a failure if it is a page that stands in for one that was read as a feed.
    pub(super) async fn check_unmarked_page(
        &self,
        due: &DueResource,
        observation: &mut Observation,
    ) -> Result<(), StoreError> {
        let resource = &due.resource;
        let at = observation.at;
        let Found::Other(received) = &mut observation.found else { return Ok(()) };
        if !was_page(resource) {
            return Ok(());
        }
        let former = self.store.body(resource.id).await?.map(|(_, body)| body);
        let Body { content_type, bytes } = &mut received.body;
        let page = Body { content_type: content_type.take(), bytes: std::mem::take(bytes) };
        let Some((page, succession)) = compare(page, former, &received.memory).await else {
            observation.found = Found::Failure(Failure::parser_panicked());
            return Ok(());
        };
        received.body = page;
        let is_lasting = is_lasting(&resource.status, &resource.polling, at);
        let why = match succession {
            Succession::Login => "no longer the page that was a feed: it asks for a password",
            _ if is_lasting => {
                received.revises_page = succession == Succession::Revised;
                return Ok(());
            }
            Succession::Same | Succession::Revised => "the page states no entries any more",
            Succession::Other => "no longer the page that was a feed: it has another title",
        };
        observation.found = Found::Failure(Failure::unusable(NOT_A_FEED, why.to_owned()));
        Ok(())
    }
}

/// Compares a page with the one before, and returns it. If there is no memory now to read the one before, it
/// is not the same. `None` if that panicked.
async fn compare(
    page: Body,
    former: Option<Body>,
    memory: &DocumentMemory,
) -> Option<(Body, Succession)> {
    let identity = |body: &Body| PageIdentity::read(&body.bytes, body.content_type.as_deref());
    let before = match former {
        None => None,
        Some(former) => match memory.admit_beside(&former.bytes).await {
            Ok(memory) => Some(memory.run_blocking(move || identity(&former)).await?),
            Err(_) => None,
        },
    };
    let compare = move || {
        let now = identity(&page);
        (page, succession(&now, before.as_ref()))
    };
    memory.run_blocking(compare).await
}

fn succession(now: &PageIdentity, before: Option<&PageIdentity>) -> Succession {
    let was_login = before.is_some_and(PageIdentity::asks_for_password);
    match before {
        _ if now.asks_for_password() && !was_login => Succession::Login,
        Some(before) if !now.is_same_page(before) => Succession::Other,
        Some(before) if now.has_same_content(before) => Succession::Same,
        Some(_) => Succession::Revised,
        None => Succession::Other,
    }
}

/// Returns whether another page has been in place of the one before for so long that it will stay.
fn is_lasting(status: &Status, polling: &Polling, now: DateTime<Utc>) -> bool {
    let since = polling.failing_since.filter(|_| status.error == NOT_A_FEED);
    since.is_some_and(|since| now >= since + LASTING) && polling.failures >= LASTING_POLLS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(html: &str) -> PageIdentity {
        PageIdentity::read(html.as_bytes(), None)
    }

    #[test]
    fn p52_a_page_without_entries_is_compared_with_the_one_before() {
        let before = page("<title>Ebb</title><p>Low");
        let login = "<title>Ebb</title><form><input type=password></form>";
        #[rustfmt::skip]
        let cases = [
            ("unchanged",                     "<title>Ebb</title><p>Low",      Some(&before),      Succession::Same),
            ("another text",                  "<title>Ebb</title><p>High",     Some(&before),      Succession::Revised),
            ("another title",                 "<title>Sorry</title><p>Soon",   Some(&before),      Succession::Other),
            ("a login page",                  login,                           Some(&before),      Succession::Login),
            ("a login page from the start",   login,                           Some(&page(login)), Succession::Same),
            ("nothing is known",              "<title>Ebb</title><p>Low",      None,               Succession::Other),
        ];
        for (why, html, before, want) in cases {
            assert_eq!(succession(&page(html), before), want, "{why}");
        }
    }

    #[test]
    fn p52_another_page_is_a_document_after_three_polls_and_two_days() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
        let status = |error: &str| Status { error: error.to_owned(), ..Status::default() };
        let failing = |hours: i64, failures: u32| Polling {
            failing_since: Some(now - TimeDelta::hours(hours)),
            failures,
            ..Polling::default()
        };
        assert!(is_lasting(&status(NOT_A_FEED), &failing(48, 3), now));
        assert!(!is_lasting(&status(NOT_A_FEED), &failing(47, 9), now));
        assert!(!is_lasting(&status(NOT_A_FEED), &failing(72, 2), now));
        assert!(!is_lasting(&status("http_status"), &failing(72, 9), now));
        assert!(!is_lasting(&status(""), &Polling::default(), now));
    }
}
