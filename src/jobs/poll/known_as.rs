//! What a resource was known as, which decides what its next document may be.

use feedgate_core::resource::{Resource, ResourceKind};
use feedgate_feed::NotAFeed;
use feedgate_feed::model::{Feed, FeedFormat};

/// What a resource was known as before its document was fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownAs {
    /// Nothing, or nothing to which anybody is subscribed.
    Nothing,
    /// A feed. A document that is not a feed is no document of it.
    Feed {
        /// Whether it may have been a list of something else in JSON all along.
        may_be_another_list: bool,
        /// Whether it was a sitemap, which an index of sitemaps may replace.
        is_sitemap: bool,
        /// Whether it was read from what a page states, which the page may cease to state.
        is_page: bool,
    },
    /// A document that somebody is subscribed to. A page stays one, whatever is marked up in it.
    Document,
}

impl KnownAs {
    /// Returns what is known of a resource.
    pub(super) fn from_resource(resource: &Resource) -> KnownAs {
        match resource.kind {
            ResourceKind::Feed => KnownAs::Feed {
                may_be_another_list: resource.may_be_another_list(),
                is_sitemap: resource.polling.format == FeedFormat::Sitemap.as_str(),
                is_page: was_page(resource),
            },
            _ if resource.is_known_document() && !resource.is_read_anew() => KnownAs::Document,
            _ => KnownAs::Nothing,
        }
    }

    /// Returns whether a document that is not a feed is no document of the resource, given why it is none.
    pub(super) fn refuses(self, why: &NotAFeed) -> bool {
        match self {
            // Which page it is now, `unmarked_page.rs` finds out.
            KnownAs::Feed { is_page: true, .. } => *why == NotAFeed::Empty,
            KnownAs::Feed { may_be_another_list, is_sitemap, .. } => {
                let is_expected = (may_be_another_list && *why == NotAFeed::OTHER_LIST)
                    || (is_sitemap && *why == NotAFeed::SITEMAP_INDEX);
                !is_expected
            }
            KnownAs::Nothing | KnownAs::Document => false,
        }
    }
}

/// Returns whether a feed consists of entries marked up in a page, at the address of a feed that did not: they
/// are not its entries (rule P52).
pub(super) fn is_page_for_feed(feed: &Feed, resource: &Resource) -> bool {
    feed.format.is_page() && resource.kind == ResourceKind::Feed && !was_page(resource)
}

/// Returns whether a resource is known as a feed that a page states.
pub(super) fn was_page(resource: &Resource) -> bool {
    let before = resource.polling.format.parse::<FeedFormat>();
    resource.kind == ResourceKind::Feed && before.is_ok_and(FeedFormat::is_page)
}
