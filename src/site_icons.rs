//! The icons of the sites of feeds, for the lists of the console.
//!
//! What always holds:
//!
//! * Nothing is stored, and nothing is fetched before somebody looks at a list.
//! * However many look, one address gets one request a day from a node, as far as the memory for icons suffices:
//!   also that there is no icon is remembered.
//! * The publisher of a feed names the address of its icon, so that leads to public addresses only. Nobody else
//!   learns of a feed that is not public: its icon is fetched from the origin of the feed, or not at all.
//! * What is no picture of a few kinds, judging by its first bytes, is no icon.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, timeout};
use url::{Position, Url};

use crate::byte_cache::{ByteCache, ByteSize, CacheName};
use crate::document_budget::GatewayBusy;
use crate::fair_shares::FairShares;
use crate::net::site_icon::IconResponse;
use crate::net::{HttpClient, is_inner};
use feedgate_core::account::AccountId;
use feedgate_core::redaction;
use feedgate_core::resource::{Resource, ResourceKind};
use feedgate_core::store::StoreError;
use feedgate_core::stored_entry::read_records;
use feedgate_core::visibility::SourceNetwork;
use feedgate_store::Store;

/// How long it is remembered what a site sent.
const FRESH_FOR: Duration = Duration::from_secs(24 * 3_600);
/// The concurrent fetches, of which an account has half, and two have half and a quarter.
const FETCHES: u64 = 16;
/// How long a fetch waits for those of the same account, and reading a feed for memory.
const WAIT: Duration = Duration::from_millis(500);
/// The longest address of an icon in bytes: what the cache counts for an entry includes it.
const LONGEST_ADDRESS_BYTES: usize = 400;
/// Where the icon of a site is if nothing says so (HTML, `#rel-icon`).
const USUAL_PLACE: &str = "/favicon.ico";

/// Finds and remembers the icons of sites.
pub(crate) struct SiteIcons {
    store: Arc<Store>,
    client: HttpClient,
    cache: ByteCache<IconAddress, CachedIcon>,
    fetches: FairShares<AccountId>,
}

/// The icon of a site.
#[derive(Clone, Debug)]
pub(crate) struct SiteIcon {
    pub(crate) media_type: &'static str,
    pub(crate) bytes: Bytes,
}

/// Why it is not known now whether a site has an icon.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnknownIcon {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// This gateway, or the server, has too much to do.
    #[error(transparent)]
    Busy(#[from] GatewayBusy),
}

/// Where an icon is fetched, and how.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct IconAddress {
    url: Url,
    /// Whether the feed is not public, so that only its own server may be asked.
    is_confined: bool,
    /// Whether the feed is inside a private network, so that its icon may be there.
    is_inside: bool,
}

/// What a site sent.
#[derive(Clone, Debug)]
struct CachedIcon {
    icon: Option<SiteIcon>,
    fetched_at: Instant,
}

impl ByteSize for CachedIcon {
    fn byte_size(&self) -> usize {
        self.icon.as_ref().map_or(0, |icon| icon.bytes.len())
    }
}

impl SiteIcons {
    /// Creates the icons of a node, none of which is known.
    pub(crate) fn new(store: Arc<Store>, client: HttpClient) -> SiteIcons {
        let cache = ByteCache::new(CacheName::SiteIcons);
        SiteIcons { store, client, cache, fetches: FairShares::new(FETCHES) }
    }

    /// Returns the icon of the site of a feed for `account`, which may see the feed; `None` if there is none.
    pub(crate) async fn icon(
        &self,
        feed: &Resource,
        account: AccountId,
    ) -> Result<Option<SiteIcon>, UnknownIcon> {
        let Some(address) = self.address(feed).await? else { return Ok(None) };
        let is_fresh = |held: &CachedIcon| held.fetched_at + FRESH_FOR > Instant::now();
        let fetched = self.cache.get_or_make(&address, is_fresh, self.fetch(&address, account));
        Ok(fetched.await?.icon)
    }

    /// Returns the address of the icon of a feed, judging by what is stored of the feed.
    async fn address(&self, feed: &Resource) -> Result<Option<IconAddress>, UnknownIcon> {
        if feed.kind == ResourceKind::Collection {
            return Ok(None);
        }
        let memory = self.client.documents().admit(feed.feed_head.as_bytes(), WAIT).await?;
        let stored = feed.clone();
        let read = move || {
            let read = read_records(&stored, &[]);
            [read.site_url(), read.icon]
        };
        let [site, named] = memory.run_blocking(read).await.unwrap_or_default();
        let own = Url::parse(&feed.fetch_url).unwrap_or_else(|_| feed.topic.fetch_url());
        let is_inside = is_inner(&feed.topic.fetch_url())
            || is_inner(&own)
            || feed.exposure.source_network == SourceNetwork::Inner;
        let is_confined = is_inside || !feed.topic.is_public() || !redaction::is_public(&own);
        let url = icon_url(&own, is_confined, [named.as_deref(), site.as_deref()]);
        Ok(url.map(|url| IconAddress { url, is_confined, is_inside }))
    }

    async fn fetch(
        &self,
        address: &IconAddress,
        account: AccountId,
    ) -> Result<CachedIcon, UnknownIcon> {
        let share = timeout(WAIT, self.fetches.enter(account, 1)).await;
        let _share = share.map_err(|_| GatewayBusy::for_now())?;
        let IconAddress { url, is_confined, is_inside } = address;
        let response = match self.is_disallowed(url).await? {
            true => IconResponse::None,
            false if *is_inside => self.client.site_icon(url, *is_confined).await,
            false => self.client.public_topics_only().site_icon(url, *is_confined).await,
        };
        let icon = match response {
            IconResponse::Body(bytes) => {
                media_type(&bytes).map(|media_type| SiteIcon { media_type, bytes })
            }
            IconResponse::None => None,
            IconResponse::Busy => return Err(GatewayBusy::for_now().into()),
        };
        Ok(CachedIcon { icon, fetched_at: Instant::now() })
    }

    /// Returns whether a server disallows the address to feedgate by name. Its `robots.txt` is not fetched for
    /// that; if feeds of the server are polled, it is stored.
    async fn is_disallowed(&self, url: &Url) -> Result<bool, StoreError> {
        let stored = self.store.robots(&url.origin().ascii_serialization()).await?;
        let path = &url[Position::BeforePath..Position::AfterQuery];
        Ok(stored.is_some_and(|(robots, _)| !robots.allows_feed(path)))
    }
}

/// Returns the address of the icon of the feed at `own`: what the feed names, or the usual place at the site that
/// it names, or at its own server. A confined one is at the origin of the feed.
fn icon_url(own: &Url, is_confined: bool, [icon, site]: [Option<&str>; 2]) -> Option<Url> {
    let icon = icon.and_then(|icon| Url::parse(icon).ok());
    let site = site.and_then(|site| Url::parse(site).ok());
    let usual_place = |url: &Url| url.join(USUAL_PLACE).ok();
    let places = [icon, site.as_ref().and_then(usual_place), usual_place(own)];
    let mut places = places.into_iter().flatten().map(|mut url| {
        // Credentials can be removed from all URLs with a host, and others are not fetched.
        url.set_username("").ok();
        url.set_password(None).ok();
        url.set_fragment(None);
        url
    });
    let is_fetched = |url: &Url| {
        matches!(url.scheme(), "http" | "https")
            && url.as_str().len() <= LONGEST_ADDRESS_BYTES
            && (!is_confined || url.origin() == own.origin())
    };
    places.find(is_fetched)
}

/// Returns the media type of a picture, judging by its first bytes. SVG is none, because it may contain scripts.
fn media_type(bytes: &[u8]) -> Option<&'static str> {
    const BEGINNINGS: [(&[u8], &str); 5] = [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\x00\x00\x01\x00", "image/x-icon"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
        (b"\xff\xd8\xff", "image/jpeg"),
    ];
    let is_webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP".as_slice());
    let found = BEGINNINGS.iter().find(|(beginning, _)| bytes.starts_with(beginning));
    found.map(|(_, media_type)| *media_type).or(is_webp.then_some("image/webp"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c04_the_icon_is_what_the_feed_names_or_at_the_usual_place() {
        let long = format!("https://a.test/{}", "x".repeat(LONGEST_ADDRESS_BYTES));
        let (own, site) = ("https://u:p@a.test/feed?x=1", Some("https://b.test/blog/"));
        let (of_own, of_site) = ("https://a.test/favicon.ico", "https://b.test/favicon.ico");
        let at = |path| Some(path);
        #[rustfmt::skip]
        let cases = [
            (false, at("https://c.test/i.png#x"),     site, "https://c.test/i.png"),
            (false, at("https://u:p@c.test/i.png"),   None, "https://c.test/i.png"),
            (false, at("data:image/png;base64,AA=="), site, of_site),
            (false, at(long.as_str()),                None, of_own),
            (false, None,                             site, of_site),
            (false, None,                             None, of_own),
            (true,  at("https://c.test/i.png"),       site, of_own),
            (true,  at("https://a.test/i.png"),       site, "https://a.test/i.png"),
            (true,  at("http://a.test/i.png"),        None, of_own),
        ];
        let own = Url::parse(own).unwrap();
        for (is_confined, icon, site, want) in cases {
            let found = icon_url(&own, is_confined, [icon, site]);
            assert_eq!(found.unwrap().as_str(), want, "{icon:?} {site:?}");
        }
    }

    #[test]
    fn c04_the_first_bytes_tell_what_a_picture_is() {
        #[rustfmt::skip]
        let cases: [(&[u8], Option<&str>); 9] = [
            (b"\x89PNG\r\n\x1a\n\0",  Some("image/png")),
            (b"\x00\x00\x01\x00\x01", Some("image/x-icon")),
            (b"GIF89a\x01",            Some("image/gif")),
            (b"\xff\xd8\xff\xe0",      Some("image/jpeg")),
            (b"RIFF\x24\0\0\0WEBPVP8", Some("image/webp")),
            (b"RIFF\x24\0\0\0WAVE",    None),
            (b"<svg xmlns='http://www.w3.org/2000/svg'/>", None),
            (b"<!DOCTYPE html>",        None),
            (b"",                       None),
        ];
        for (bytes, want) in cases {
            assert_eq!(media_type(bytes), want, "{bytes:?}");
        }
    }
}
