//! Where the rows of events lead: to the page of the event, and to that of its feed.

use std::collections::{BTreeSet, HashMap};

use maud::{Markup, html};

use crate::http::kit::html::address;
use crate::http::routes::event_words;
use crate::http::state::Gateway;
use feedgate_core::event::{Event, EventViewer, StoredEvent};
use feedgate_core::resource::ResourceId;
use feedgate_core::store::StoreError;

/// The folder of the pages of events.
const EVENTS: &str = "console/events";

/// The links of the events on a page.
pub(crate) struct EventLinks {
    /// The way to the root of the gateway; `None` if the reader may open no page of an event.
    root: Option<String>,
    /// The feeds that the reader may see, by their addresses.
    feeds: HashMap<String, ResourceId>,
}

impl EventLinks {
    /// Finds the feeds of the events on a page of the console whose way to the root is `root`. Those who are
    /// not signed in are led nowhere.
    pub(crate) async fn read(
        gateway: &Gateway,
        reader: EventViewer,
        root: &str,
        events: &[StoredEvent],
    ) -> Result<EventLinks, StoreError> {
        let account = match reader {
            EventViewer::Anonymous => return Ok(EventLinks { root: None, feeds: HashMap::new() }),
            EventViewer::Account(account) => Some(account),
            EventViewer::Admin => None,
        };
        let addresses: BTreeSet<&String> = events.iter().map(|kept| &kept.event.feed).collect();
        let addresses = addresses.into_iter().filter(|feed| !feed.is_empty()).cloned().collect();
        let feeds = gateway.store.named_feeds(account, addresses).await?;
        Ok(EventLinks { root: Some(root.to_owned()), feeds })
    }

    /// Returns the folder of the pages of events, for the script that adds rows.
    pub(crate) fn folder(&self) -> Option<String> {
        self.root.as_ref().map(|root| address(root, &format!("{EVENTS}/")))
    }

    /// Returns the feed of an event, if the reader may see it.
    pub(crate) fn feed_of(&self, event: &Event) -> Option<ResourceId> {
        self.feeds.get(&event.feed).copied()
    }

    /// Returns what happened, with the link to the page of the event.
    pub(crate) fn event(&self, StoredEvent { id, event }: &StoredEvent) -> Markup {
        let words = event_words::described(event);
        html! {
            @match &self.root {
                Some(root) => a href=(address(root, &format!("{EVENTS}/{id}"))) { (words) },
                None => (words),
            }
        }
    }

    /// Returns a name of the feed of an event, with the link to its page.
    pub(crate) fn feed(&self, event: &Event, name: Markup) -> Markup {
        html! {
            @match self.root.as_ref().zip(self.feed_of(event)) {
                Some((root, id)) => {
                    a href=(address(root, &format!("console/feeds/{id}"))) { (name) }
                }
                None => (name),
            }
        }
    }
}
