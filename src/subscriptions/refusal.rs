//! The reasons why a subscription request is refused.

use feedgate_core::own_document::OwnDocument;
use feedgate_core::query::QueryError;
use feedgate_core::store::StoreError;
use feedgate_core::track::TrackError;
use feedgate_feed::documents::InvalidFragment;

use super::{NotFollowed, NotValidated, NotVerified, QuotaExceeded};
use crate::document_budget::GatewayBusy;
use crate::net::{FetchError, Purpose};

/// The reason why a subscription request was not carried out. The texts are those of the event log.
/// Endpoints have sentences of their own for their clients, and quote these texts in a few of them.
#[derive(Debug, thiserror::Error)]
pub enum SubscriptionRefusal {
    /// The callback did not agree.
    #[error("the callback did not confirm the request")]
    NotVerified(#[source] NotVerified),
    /// The publisher of the topic did not allow the subscription.
    #[error(transparent)]
    NotValidated(#[from] NotValidated),
    /// The address of the topic or the callback may not be requested.
    #[error("requests to this address are not allowed")]
    Forbidden(Purpose, #[source] FetchError),
    /// The callback is an address of this gateway.
    #[error("the callback is an address of this gateway")]
    OwnCallback,
    /// The topic is a document of this gateway that is no log.
    #[error("the topic is a document of this gateway that is not sent to subscribers")]
    OwnDocument(OwnDocument),
    /// The fragment of the topic cannot select a part of any resource.
    #[error("the fragment of the topic cannot be used")]
    BadPart(#[source] InvalidFragment),
    /// The topic is that of a track, and its query cannot be used.
    #[error("the query of the track cannot be used")]
    BadTrack(#[from] TrackError),
    /// The topic is a feed of this gateway, and the filter in its address cannot be used.
    #[error("the filter in the address of the feed cannot be used")]
    BadFilter(#[source] QueryError),
    /// The feed of the page at the topic was requested, and is not subscribed to.
    #[error(transparent)]
    NotFollowed(#[from] NotFollowed),
    /// Headers are named for a feed that cannot have any.
    #[error(
        "headers are not sent for a URL that has credentials, is too long, or is one of this gateway"
    )]
    FeedHeaders,
    /// The account or the host of the callback has as many subscriptions as it may have.
    #[error(transparent)]
    QuotaExceeded(QuotaExceeded),
    /// The resource cannot be read.
    #[error("there was an error reading the resource at URL {0}")]
    Unreadable(String),
    /// Domain, port and path do not form an address.
    #[error("domain, port and path do not form a valid URL")]
    NoHandler,
    /// A later request for the same subscription arrived before the callback had agreed.
    #[error("a newer request for the same subscription has replaced this one")]
    Superseded,
    /// An unsubscription without a callback matches no subscription.
    #[error("there is no subscription to this topic")]
    NoSubscription,
    /// An unsubscription without a callback matches several subscriptions; holds their number.
    #[error("there are {0} subscriptions to this topic; specify the callback")]
    Several(u64),
    /// This gateway has no memory for the resource now, or too many other fetches.
    #[error(transparent)]
    Busy(#[from] GatewayBusy),
    /// The store failed.
    #[error("the database failed")]
    Store(#[from] StoreError),
}

impl From<NotVerified> for SubscriptionRefusal {
    fn from(why: NotVerified) -> SubscriptionRefusal {
        match why {
            NotVerified::Unreachable(FetchError::GatewayBusy(busy)) => busy.into(),
            why => SubscriptionRefusal::NotVerified(why),
        }
    }
}

impl SubscriptionRefusal {
    /// Returns a stable code for logs and metrics, listed in `docs/errors.md`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotVerified(why) => why.code(),
            Self::NotValidated(why) => why.code(),
            Self::Forbidden(_, why) => why.code(),
            Self::OwnCallback => "own_callback",
            Self::OwnDocument(_) => "own_document",
            Self::BadPart(_) => "bad_fragment",
            Self::BadTrack(_) | Self::BadFilter(_) => "bad_query",
            Self::NotFollowed(why) => why.code(),
            Self::FeedHeaders => "bad_feed_headers",
            Self::QuotaExceeded(why) => why.code(),
            Self::Unreadable(_) => "unreadable_resource",
            Self::NoHandler => "bad_handler",
            Self::Superseded => "superseded",
            Self::NoSubscription => "no_subscription",
            Self::Several(_) => "several_subscriptions",
            Self::Busy(_) => "gateway_busy",
            Self::Store(err) => err.code(),
        }
    }
}
