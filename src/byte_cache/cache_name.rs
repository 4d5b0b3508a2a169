//! The caches of documents in memory, and how much each may hold.
//!
//! A [`ByteCache`](super::ByteCache) is created for one of these, so that their sum is the memory that
//! all of them take (`docs/operations.md`, "Memory", which a test compares).

/// A cache, by what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheName {
    /// Archive documents, with a capacity that the operator sets.
    Archives {
        /// `FEEDGATE_ARCHIVE_CACHE_BYTES`.
        capacity_bytes: usize,
    },
    /// Documents of changes: the longest one twice, plain and compressed, with the ends of its lines.
    Changes,
    /// Bodies of notifications, which are sent to many subscribers.
    Notifications,
    /// Documents of which several parts are watched.
    SharedDocuments,
    /// The list of feeds. Like each view, it has room for two of the longest lists: one for everybody,
    /// and one for the operator's networks.
    FeedList,
    /// The statistics.
    Statistics,
    /// The list of subscriptions.
    SubscriptionList,
    /// What is at the addresses that were tried at `/try`: some hundred kilobytes each.
    Previews,
    /// The icons of sites, at most 64 KiB each.
    SiteIcons,
    /// A cache of a test.
    #[cfg(test)]
    OfTest {
        /// Its size.
        capacity_bytes: usize,
    },
}

const MIB: usize = 1 << 20;

impl CacheName {
    /// Returns the number of bytes that the cache may hold.
    pub const fn capacity_bytes(self) -> usize {
        match self {
            CacheName::Archives { capacity_bytes } => capacity_bytes,
            CacheName::Changes => 80 * MIB,
            CacheName::Notifications | CacheName::SharedDocuments => 32 * MIB,
            CacheName::Previews => 8 * MIB,
            CacheName::SiteIcons => 16 * MIB,
            CacheName::FeedList | CacheName::Statistics | CacheName::SubscriptionList => 48 * MIB,
            #[cfg(test)]
            CacheName::OfTest { capacity_bytes } => capacity_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the row of the documentation for a cache, and the cache after it; every cache is reached
    /// from the first, because this function is not compiled with one missing.
    fn row_and_next(cache: CacheName) -> (&'static str, Option<CacheName>) {
        match cache {
            CacheName::Archives { .. } => ("archive documents", Some(CacheName::Changes)),
            CacheName::Changes => ("changes.xml and its hours", Some(CacheName::Notifications)),
            CacheName::Notifications => {
                ("bodies of notifications", Some(CacheName::SharedDocuments))
            }
            CacheName::SharedDocuments => {
                ("documents with several watched parts", Some(CacheName::FeedList))
            }
            CacheName::FeedList => ("the list of feeds", Some(CacheName::Statistics)),
            CacheName::Statistics => ("the statistics", Some(CacheName::SubscriptionList)),
            CacheName::SubscriptionList => ("the list of subscriptions", Some(CacheName::Previews)),
            CacheName::Previews => ("previews", Some(CacheName::SiteIcons)),
            CacheName::SiteIcons => ("icons of sites", None),
            CacheName::OfTest { .. } => ("", None),
        }
    }

    #[test]
    fn h13_the_documentation_adds_up_all_caches() {
        let operations = include_str!("../../docs/operations.md");
        let (mut sum, mut next) = (0, Some(CacheName::Archives { capacity_bytes: 64 * MIB }));
        while let Some(cache) = next {
            let (name, after) = row_and_next(cache);
            let bytes = cache.capacity_bytes();
            let row = format!("| {name} | {} MiB |", bytes / MIB);
            assert!(operations.contains(&row), "docs/operations.md, \"Memory\", lacks: {row}");
            (sum, next) = (sum + bytes, after);
        }
        let total = format!("| **all** | **{} MiB** |", sum / MIB);
        assert!(operations.contains(&total), "docs/operations.md, \"Memory\", lacks: {total}");
    }
}
