//! Who may see a resource: the one predicate that every endpoint, list and log asks (rules S48, S56).
//!
//! Two things decide. What strangers subscribe to, everybody may see and find: they receive it in any
//! case, unless a name that looks public leads inside a private network. What only accounts subscribe to belongs to them if its topic contains credentials or its
//! documents come from inside a private network; otherwise it can be read by everybody who knows its
//! address, but is listed nowhere, because the address itself may be the secret.

use crate::address_rules::is_inner;
use crate::topic::Topic;

/// Where the documents of a resource came from, as observed by the connections that fetched them.
///
/// It only ever rises: what was once read inside a private network stays in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SourceNetwork {
    /// Nothing was fetched yet.
    #[default]
    Unknown,
    /// All documents came from the public internet.
    Public,
    /// A request led to an address that is not public, which the operator allowed.
    Inner,
}

impl SourceNetwork {
    /// Returns the number in the store.
    pub fn as_number(self) -> i64 {
        match self {
            SourceNetwork::Unknown => 0,
            SourceNetwork::Public => 1,
            SourceNetwork::Inner => 2,
        }
    }

    /// Returns the value with this number in the store.
    pub fn from_number(number: i64) -> SourceNetwork {
        match number {
            0 => SourceNetwork::Unknown,
            1 => SourceNetwork::Public,
            // A number of a later version is not shown.
            _ => SourceNetwork::Inner,
        }
    }
}

/// Who may see a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Visibility {
    /// The accounts that subscribe to it.
    Private,
    /// Everybody who knows its topic or its number; it is in no list.
    Unlisted,
    /// Everybody, and lists contain it.
    Listed,
}

/// Which resources lists contain, as the operator decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListedTopics {
    /// Those that strangers subscribe to.
    #[default]
    Open,
    /// Those that only accounts subscribe to as well, unless they are private.
    OfAccounts,
}

/// What is known of a resource that decides who may see it, besides its topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exposure {
    /// Where its documents came from.
    pub source_network: SourceNetwork,
    /// Whether there is a subscription that no account owns.
    pub is_open: bool,
}

impl Exposure {
    /// Returns whether those without an account who subscribe to a resource with this topic are sent its
    /// contents. What comes from inside a private network is for accounts, whatever its name; if the topic
    /// itself names a private host, whoever subscribed to it was allowed to.
    pub fn is_sent_without_account(self, topic: &Topic) -> bool {
        self.source_network != SourceNetwork::Inner || is_inner(&topic.fetch_url())
    }

    /// Returns who may see a resource with this topic.
    pub fn visibility(self, topic: &Topic, listed: ListedTopics) -> Visibility {
        match self {
            _ if !topic.is_public() => Visibility::Private,
            Exposure { is_open: true, .. } if self.is_sent_without_account(topic) => {
                Visibility::Listed
            }
            Exposure { source_network: SourceNetwork::Unknown | SourceNetwork::Inner, .. } => {
                Visibility::Private
            }
            Exposure { source_network: SourceNetwork::Public, .. } => match listed {
                ListedTopics::Open => Visibility::Unlisted,
                ListedTopics::OfAccounts => Visibility::Listed,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h04_h09_who_subscribes_and_where_it_lies_decide_who_may_see_a_resource() {
        use Visibility::{Listed, Private, Unlisted};
        let (open, secret) = ("https://a.test/feed", "https://a.test/feed?token=1");
        let inside = "http://10.0.0.7/feed";
        #[rustfmt::skip]
        let cases = [
            // topic, reach,        strangers, by default, with the lists of accounts
            (open,   SourceNetwork::Public,  true,  Listed,   Listed),
            (open,   SourceNetwork::Public,  false, Unlisted, Listed),
            (open,   SourceNetwork::Unknown, true,  Listed,   Listed),
            (open,   SourceNetwork::Unknown, false, Private,  Private),
            (open,   SourceNetwork::Inner,   true,  Private,  Private),
            (inside, SourceNetwork::Inner,   true,  Listed,   Listed),
            (inside, SourceNetwork::Inner,   false, Private,  Private),
            (open,   SourceNetwork::Inner,   false, Private,  Private),
            (secret, SourceNetwork::Public,  true,  Private,  Private),
            (secret, SourceNetwork::Public,  false, Private,  Private),
        ];
        for (topic, source_network, is_open, by_default, of_accounts) in cases {
            let (topic, exposure) =
                (Topic::parse(topic).unwrap(), Exposure { source_network, is_open });
            let visibility = |listed| exposure.visibility(&topic, listed);
            assert_eq!(visibility(ListedTopics::Open), by_default, "{topic} {exposure:?}");
            assert_eq!(visibility(ListedTopics::OfAccounts), of_accounts, "{topic} {exposure:?}");
        }
    }

    #[test]
    fn a_reach_is_read_back_and_never_falls() {
        for source_network in [SourceNetwork::Unknown, SourceNetwork::Public, SourceNetwork::Inner]
        {
            assert_eq!(SourceNetwork::from_number(source_network.as_number()), source_network);
        }
        assert_eq!(SourceNetwork::from_number(9), SourceNetwork::Inner, "of a later version");
        assert!(
            SourceNetwork::Unknown < SourceNetwork::Public
                && SourceNetwork::Public < SourceNetwork::Inner
        );
    }
}
