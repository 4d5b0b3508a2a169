//! What a client may see of what is watched: topics at inner addresses are shown to the operator's
//! networks only (rule S55), and those that only accounts subscribe to are in no list (rule S56).

use url::Url;

use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use crate::net;
use feedgate_core::event::{Event, EventViewer};
use feedgate_core::redaction;
use feedgate_core::resource::{Resource, ResourceKind};
use feedgate_core::store::WatchedResource;
use feedgate_core::topic::Topic;
use feedgate_core::visibility::{Exposure, ListedTopics, SourceNetwork, Visibility};

/// The data that a client may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ViewerAccess {
    /// Public data only.
    Public,
    /// Inner addresses as well, for the operator.
    OperatorNetwork,
}

impl ViewerAccess {
    /// Returns the access of the client that sent `request`.
    pub(crate) fn of_request(gateway: &Gateway, request: &Request) -> ViewerAccess {
        match request.is_from(&gateway.settings.metrics_networks) {
            true => ViewerAccess::OperatorNetwork,
            false => ViewerAccess::Public,
        }
    }

    /// Returns whether a list may contain a watched resource: lists contain it, and its documents do not
    /// come from inside a private network, or the viewer is in the operator's.
    pub(crate) fn lists(self, watched: &WatchedResource, listed: ListedTopics) -> bool {
        self.lists_topic(&watched.topic, watched.exposure, listed)
    }

    /// Returns whether a page about one resource may be shown to somebody who knows its address: the same
    /// as whether lists contain it.
    pub(crate) fn shows(self, resource: &Resource, listed: ListedTopics) -> bool {
        let Resource { kind, topic, exposure, .. } = resource;
        *kind != ResourceKind::Collection && self.lists_topic(topic, *exposure, listed)
    }

    fn lists_topic(self, topic: &Topic, exposure: Exposure, listed: ListedTopics) -> bool {
        let is_near = self == ViewerAccess::OperatorNetwork
            || exposure.source_network != SourceNetwork::Inner;
        is_near
            && exposure.visibility(topic, listed) == Visibility::Listed
            && self.sees(topic.as_str())
    }

    /// Returns whether a topic or a site at this address may be shown.
    pub(crate) fn sees(self, address: &str) -> bool {
        Url::parse(address).is_ok_and(|url| {
            let is_near = self == ViewerAccess::OperatorNetwork || !net::is_inner(&url);
            is_near && redaction::is_public(&url) && matches!(url.scheme(), "http" | "https")
        })
    }

    /// Returns whether a viewer may see an event: topics at inner addresses are for their owners and the operator
    /// only (rule S55), and so are subscriptions of accounts and feeds that only accounts subscribe to (rule S56).
    pub(crate) fn sees_event(self, viewer: EventViewer, event: &Event) -> bool {
        let is_operator = self == ViewerAccess::OperatorNetwork;
        viewer.owns(event)
            || ((is_operator || viewer.knows_of(event)) && self.sees_host_of(&event.feed))
    }

    /// Returns whether a text that may be the address of a topic may be shown: it does not name an
    /// inner address, or the viewer is in the operator's networks. A text that is not an address names
    /// none.
    pub(crate) fn sees_host_of(self, text: &str) -> bool {
        self == ViewerAccess::OperatorNetwork
            || !Url::parse(text.trim()).is_ok_and(|url| url.has_host() && net::is_inner(&url))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s55_inner_addresses_are_seen_inside_and_credentials_nowhere() {
        #[rustfmt::skip]
        let cases = [
            ("https://a.test/feed",           true,  true),
            ("https://a.test/feed?page=2",    true,  true),
            ("http://10.0.0.7/feed",          false, true),
            ("http://intranet/feed",          false, true),
            ("https://a.test/feed?token=abc", false, false),
            ("https://me:pw@a.test/feed",     false, false),
            ("javascript:alert(1)",           false, false),
            ("no address",                    false, false),
        ];
        for (address, everybody, inside) in cases {
            assert_eq!(ViewerAccess::Public.sees(address), everybody, "{address}");
            assert_eq!(ViewerAccess::OperatorNetwork.sees(address), inside, "{address}, inside");
        }
    }

    #[test]
    fn t11_a_text_that_names_no_inner_address_is_seen_by_everybody() {
        #[rustfmt::skip]
        let cases = [
            ("https://a.test/feed?token=abc", true),
            ("a title, and no address",       true),
            ("",                              true),
            ("http://10.0.0.7/feed",          false),
            (" http://intranet/feed",         false),
            ("ftp://printer.local/",          false),
            ("HTTP://[fd00::7]/",             false),
        ];
        for (text, want) in cases {
            assert_eq!(ViewerAccess::Public.sees_host_of(text), want, "{text}");
            assert!(ViewerAccess::OperatorNetwork.sees_host_of(text), "{text}");
        }
    }
}
