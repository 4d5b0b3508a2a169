//! Documents of an archive from the web.
//!
//! Whoever names an archive on a command line may reach it, wherever it is. Where its
//! documents and redirects lead is a stranger's word: all that is opened in the guard of
//! the way out are the addresses of the server that was named, only if they are inner ones,
//! and only for what stands under its origin. Where clouds keep their secrets stays closed
//! (rule S7).

use std::mem;
use std::net::IpAddr;
use std::time::Duration;

use http::StatusCode;
use ipnet::IpNet;
use tokio::time::timeout;
use url::{Host, Url};

use crate::config::Config;
use crate::domain::feed::Feed;
use crate::domain::poll::Validators;
use crate::domain::source::Context;
use crate::fetch::{
    Answer, Ask, Fetch, FetchError, Lookup, Purpose, Settings, SystemLookup, is_metadata, is_public,
};
use crate::normalize::normalize;
use crate::parse::{self, NotAFeed};
use crate::worker;

use super::walk::{Page, Pages, Stopped};

/// Reads documents.
pub(super) struct Web {
    settings: Settings,
    /// For the server that was named.
    own: Fetch,
    /// Inner addresses that are opened for it.
    opened: Vec<IpAddr>,
    /// For all others.
    guarded: Fetch,
    start: Url,
}

impl Web {
    /// Reads the archive that begins at `start`.
    pub(super) fn new(config: &Config, start: &Url) -> Result<Web, url::ParseError> {
        let public_url = match &config.public_url {
            Some(url) => url.clone(),
            None => Url::parse(&format!("http://{}/", config.listen))?,
        };
        let mut settings = config.fetch(&public_url);
        // One document is asked for after another, and most stand in a cache.
        settings.host_spacing = Duration::ZERO;
        let guarded = Fetch::new(settings.clone());
        let (own, opened, start) = (guarded.clone(), Vec::new(), start.clone());
        Ok(Web { settings, own, opened, guarded, start })
    }

    /// Opens the way to where the server that was named is now, if that is an inner
    /// address. To be called before documents are read, and again when time has passed.
    pub(super) async fn open(&mut self) -> Result<(), Stopped> {
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
            self.own = Fetch::new(settings);
            self.opened = leads_to;
        }
        Ok(())
    }

    async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, Stopped> {
        let failed = |reason: String| unreadable(&self.start, reason, true);
        match timeout(self.settings.fetch_timeout / 6, SystemLookup.lookup(name)).await {
            Ok(found) => found.map_err(|err| failed(err.to_string())),
            Err(_) => Err(failed("dns: no answer in time".to_owned())),
        }
    }
}

impl Pages for Web {
    async fn get(&mut self, url: &Url) -> Result<Page, Stopped> {
        let fetch = if url.origin() == self.start.origin() { &self.own } else { &self.guarded };
        let validators = Validators::default();
        let ask = Ask { url: url.as_str(), validators: &validators, subscribers: 0, feed_id: None };
        let unreadable = |reason, passing| unreadable(url, reason, passing);
        let document = match fetch.get(ask).await.result {
            Ok(Answer::Document(document)) => document,
            Ok(Answer::NotModified { .. }) => {
                return Err(unreadable("it answered that nothing has changed".to_owned(), true));
            }
            Err(FetchError::Status { status: StatusCode::GONE, .. }) => {
                return Err(Stopped::Dropped(url.clone()));
            }
            Err(err) => return Err(unreadable(err.to_string(), is_passing(&err))),
        };
        let context = Context { received_at: None, ..document.context(worker::now()) };
        read(&document.body, &context).map_err(|err| unreadable(err.to_string(), false))
    }
}

fn unreadable(url: &Url, reason: String, passing: bool) -> Stopped {
    Stopped::Unreadable { url: url.to_string(), reason, passing }
}

/// Reads a document. Each entry goes through the normalizer by itself, because what it is
/// must not depend on its neighbours: beside its update it would get another id (rule N2).
fn read(body: &[u8], context: &Context) -> Result<Page, NotAFeed> {
    let mut head = parse::parse(body, context)?;
    let entries = mem::take(&mut head.entries);
    let alone = |entry| normalize(Feed { entries: vec![entry], ..head.clone() }, context).entries;
    let entries = entries.into_iter().flat_map(alone).collect();
    let feed = normalize(head, context);
    let linked = |rel: &str| {
        let link = feed.links.iter().find(|link| link.rel == rel)?;
        Url::parse(&link.href).ok()
    };
    Ok(Page { entries, prev: linked("prev-archive"), next: linked("next-archive") })
}

/// Whether the server may answer otherwise soon.
fn is_passing(err: &FetchError) -> bool {
    match err {
        FetchError::TimedOut(_) | FetchError::Unreachable { .. } => true,
        FetchError::Status { status, .. } => status.is_server_error() || status.as_u16() == 429,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n7_an_entry_keeps_its_id_beside_its_update() {
        let entry = |id: &str, title: &str| {
            format!("<entry><id>tag:a.test:{id}</id><title>{title}</title></entry>")
        };
        let entries = [entry("1", "higher"), entry("2", "low"), entry("1", "high")].concat();
        let link = "<link rel='prev-archive' href='/documents/1'/>";
        let body = format!("<feed xmlns='http://www.w3.org/2005/Atom'>{link}{entries}</feed>");
        let context = Context::of(Url::parse("https://a.test/recent").unwrap());
        let page = read(body.as_bytes(), &context).unwrap();
        let ids: Vec<_> = page.entries.iter().map(|entry| entry.id.as_str()).collect();
        assert_eq!(ids, ["tag:a.test:1", "tag:a.test:2", "tag:a.test:1"]);
        assert_eq!(page.prev.unwrap().as_str(), "https://a.test/documents/1");
        assert_eq!(page.next, None);
    }
}
