//! Fetches the documents of an archive.
//!
//! The user names the archive on the command line, so it may be at a private address. Its links and
//! redirects are written by somebody else: the guard allows, besides public addresses, only the
//! private addresses of the named server, and only for URLs of its origin. The metadata services of
//! cloud providers stay blocked (S7).

use std::mem;
use std::net::IpAddr;
use std::time::Duration;

use http::StatusCode;
use ipnet::IpNet;
use tokio::time::timeout;
use url::{Host, Url};

use crate::config::Config;
use crate::http::routes::archive::render::Order;
use crate::jobs::runner;
use crate::net::{
    FetchError, FetchRequest, FetchResponse, HttpClient, Lookup, NetworkSettings, Purpose,
    SystemLookup, is_metadata, is_public,
};
use feedgate_core::change_detection::Deletion;
use feedgate_feed::Context;
use feedgate_feed::model::Feed;
use feedgate_feed::parse::{self, NotAFeed};
use feedgate_feed::passes;

use super::item::{self, ArchiveItem};
use super::walk::{ArchivePage, PageSource, Stopped};

/// Fetches documents.
pub struct Web {
    settings: NetworkSettings,
    /// The client for the named server.
    own: HttpClient,
    /// The private addresses of the named server that are allowed.
    opened: Vec<IpAddr>,
    /// The client for all other servers.
    guarded: HttpClient,
    /// The URL of the recent document as the user named it, perhaps with credentials.
    start: Url,
    order: Order,
}

impl Web {
    /// A source for the archive whose recent document is at `start`. `order` is the order of the
    /// entries in each document.
    pub fn new(config: &Config, start: &Url, order: Order) -> Result<Web, url::ParseError> {
        let public_url = match &config.public_url {
            Some(url) => url.clone(),
            None => Url::parse(&format!("http://{}/", config.listen))?,
        };
        let mut settings = config.net(&public_url);
        // Documents are fetched one after the other, and most are served by a cache.
        settings.host_spacing = Duration::ZERO;
        let guarded = HttpClient::new(settings.clone());
        let (own, opened, start) = (guarded.clone(), Vec::new(), start.clone());
        Ok(Web { settings, own, opened, guarded, start, order })
    }

    /// Returns the URL of the recent document, without credentials.
    pub fn recent(&self) -> Url {
        with_credentials_of(None, &self.start)
    }

    /// Allows the current private addresses of the named server, if it has any. Must be called
    /// before documents are read, and again when time has passed.
    pub async fn open(&mut self) -> Result<(), Stopped> {
        let mut leads_to = match self.start.host() {
            Some(Host::Ipv4(ip)) => vec![IpAddr::V4(ip)],
            Some(Host::Ipv6(ip)) => vec![IpAddr::V6(ip)],
            Some(Host::Domain(name)) => self.addresses(name).await?,
            None => Vec::new(),
        };
        let is_refused = self.guarded.refuses(&self.start, Purpose::Topic).is_some();
        if !is_refused && leads_to.iter().all(|ip| is_public(*ip)) {
            leads_to.clear();
        }
        leads_to.retain(|ip| !is_metadata(*ip));
        leads_to.sort_unstable();
        if leads_to != self.opened {
            let mut settings = self.settings.clone();
            settings.allow_topics.extend(leads_to.iter().map(|ip| IpNet::from(ip.to_canonical())));
            self.own = HttpClient::new(settings);
            self.opened = leads_to;
        }
        Ok(())
    }

    async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, Stopped> {
        let failed = |reason: String| unreadable(&self.start, reason, true);
        match timeout(self.settings.fetch_timeout / 6, SystemLookup::new(1).lookup(name)).await {
            Ok(found) => found.map_err(|err| failed(err.to_string())),
            Err(_) => Err(failed("dns: the lookup timed out".to_owned())),
        }
    }
}

impl PageSource for Web {
    async fn get(&mut self, url: &Url) -> Result<ArchivePage, Stopped> {
        // The credentials are for the named server, whichever of its documents a link leads to.
        let (fetch, owner) = match url.origin() == self.start.origin() {
            true => (&self.own, Some(&self.start)),
            false => (&self.guarded, None),
        };
        let address = with_credentials_of(owner, url);
        let ask = FetchRequest::unconditional(address.as_str());
        let unreadable = |reason, passing| unreadable(url, reason, passing);
        let document = match fetch.get(ask).await.result {
            Ok(FetchResponse::Document(document)) => document,
            Ok(FetchResponse::NotModified { .. }) => {
                return Err(unreadable(
                    "the server responded with 304, although no validators were sent".to_owned(),
                    true,
                ));
            }
            // Many servers respond with 404 to requests for documents that they have deleted.
            Err(FetchError::Status {
                status: StatusCode::GONE | StatusCode::NOT_FOUND, ..
            }) => {
                return Err(Stopped::Dropped(url.clone()));
            }
            Err(err) => return Err(unreadable(err.to_string(), is_passing(&err))),
        };
        let context = Context { received_at: None, ..document.context(runner::now()) };
        let read = read(&document.body, &context, self.order);
        read.map_err(|err| unreadable(err.to_string(), false))
    }
}

/// Returns `url` with the credentials in `owner` instead of its own.
fn with_credentials_of(owner: Option<&Url>, url: &Url) -> Url {
    let mut url = url.clone();
    // These calls fail only for URLs without a host, which have no credentials either.
    url.set_username(owner.map_or("", Url::username)).ok();
    url.set_password(owner.and_then(Url::password)).ok();
    url
}

fn unreadable(url: &Url, reason: String, passing: bool) -> Stopped {
    Stopped::Unreadable { url: with_credentials_of(None, url).into(), reason, passing }
}

/// Reads a document. Each entry is normalized by itself, because the result must not depend on its
/// neighbours: beside its update, an entry would get another id (N2).
fn read(body: &[u8], context: &Context, order: Order) -> Result<ArchivePage, NotAFeed> {
    let mut head = parse::parse(body, context)?;
    let entries = mem::take(&mut head.entries);
    let mut deletions = deletions(&mut head).into_iter().peekable();
    let mut items = Vec::with_capacity(entries.len());
    for (place, entry) in entries.into_iter().enumerate() {
        while let Some((_, deletion)) = deletions.next_if(|(before, _)| *before <= place) {
            items.push(ArchiveItem::Deleted(deletion));
        }
        let hash = item::hash(&entry);
        let alone = passes::run(Feed { entries: vec![entry], ..head.clone() }, context).entries;
        let alone = alone.into_iter().map(Box::new);
        items.extend(alone.map(|entry| ArchiveItem::Entry { entry, hash: hash.clone() }));
    }
    items.extend(deletions.map(|(_, deletion)| ArchiveItem::Deleted(deletion)));
    if order == Order::OldestFirst {
        items.reverse();
    }
    let feed = passes::run(head, context);
    let mut links = feed.links.iter().filter(|link| link.rel == "prev-archive");
    Ok(ArchivePage { items, prev: links.find_map(|link| Url::parse(&link.href).ok()) })
}

/// Removes the deletions from `head`, each with the number of entries before it. A deletion whose
/// position is unknown counts as the newest item.
fn deletions(head: &mut Feed) -> Vec<(usize, Box<Deletion>)> {
    let (gone, kept): (Vec<_>, Vec<_>) =
        mem::take(&mut head.extensions).into_iter().partition(Deletion::is);
    head.extensions = kept;
    let mut places = mem::take(&mut head.taken_back);
    if places.len() != gone.len() {
        places = vec![0; gone.len()];
    }
    let gone = gone.iter().filter_map(Deletion::from_element).map(Box::new);
    places.into_iter().zip(gone).collect()
}

/// Whether a retry may soon succeed.
fn is_passing(err: &FetchError) -> bool {
    match err {
        FetchError::TimedOut(_) | FetchError::Unreachable { .. } | FetchError::HostBusy(_) => true,
        FetchError::Status { status, .. } => status.is_server_error() || status.as_u16() == 429,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: &str = "http://purl.org/atompub/tombstones/1.0";

    /// The ids in a document with these entries, and where its links lead.
    fn page(links: &str, entries: &str, order: Order) -> (Vec<String>, Option<String>) {
        let body = format!("<feed xmlns='http://www.w3.org/2005/Atom'>{links}{entries}</feed>");
        let context = Context::new(Url::parse("https://a.test/recent").unwrap());
        let page = read(body.as_bytes(), &context, order).unwrap();
        let id_of = |item: &ArchiveItem| match item {
            ArchiveItem::Entry { entry, .. } => entry.id.clone(),
            ArchiveItem::Deleted(gone) => format!("-{}", gone.entry_id),
        };
        (page.items.iter().map(id_of).collect(), page.prev.map(String::from))
    }

    fn entry(id: &str, title: &str) -> String {
        format!("<entry><id>tag:a.test:{id}</id><title>{title}</title></entry>")
    }

    #[test]
    fn n7_an_entry_keeps_its_id_beside_its_update() {
        let entries = [entry("1", "higher"), entry("2", "low"), entry("1", "high")].concat();
        let link = "<link rel='prev-archive' href='/documents/1'/>";
        let (ids, prev) = page(link, &entries, Order::NewestFirst);
        assert_eq!(ids, ["tag:a.test:1", "tag:a.test:2", "tag:a.test:1"]);
        assert_eq!(prev.as_deref(), Some("https://a.test/documents/1"));
        let (ids, prev) = page("", &entries, Order::NewestFirst);
        assert_eq!((ids.len(), prev), (3, None));
    }

    #[test]
    fn n8_what_was_taken_back_stands_where_it_stood() {
        let gone = |id: &str| format!("<at:deleted-entry xmlns:at='{AT}' ref='tag:a.test:{id}'/>");
        let entries = [gone("9"), entry("3", "c"), entry("2", "b"), gone("1"), entry("1", "a")];
        let (ids, _) = page("", &entries.concat(), Order::NewestFirst);
        assert_eq!(
            ids,
            ["-tag:a.test:9", "tag:a.test:3", "tag:a.test:2", "-tag:a.test:1", "tag:a.test:1"]
        );
        let (mut other, _) = page("", &entries.concat(), Order::OldestFirst);
        other.reverse();
        assert_eq!(other, ids);
        let (ids, _) = page("", &(gone("2") + &gone("1")), Order::NewestFirst);
        assert_eq!(ids, ["-tag:a.test:2", "-tag:a.test:1"]);
    }
}
