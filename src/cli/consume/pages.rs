//! Documents of an archive from the web.
//!
//! Whoever names an archive on a command line may reach it, wherever it is; where its
//! documents lead is a stranger's word, so other hosts are reached under the guard of the
//! way out.

use std::time::Duration;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use url::Url;

use crate::config::Config;
use crate::domain::feed::Feed;
use crate::domain::poll::Validators;
use crate::domain::source::Context;
use crate::fetch::{Answer, Ask, Fetch, FetchError};
use crate::normalized::normalize;
use crate::worker;

use super::walk::{Page, Pages, Stopped};

/// Reads documents.
pub(super) struct Web {
    /// For the server that was named.
    own: Fetch,
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
        let everywhere: [IpNet; 2] = [Ipv4Net::default().into(), Ipv6Net::default().into()];
        settings.allow_topics = everywhere.to_vec();
        Ok(Web { own: Fetch::new(settings), guarded, start: start.clone() })
    }
}

impl Pages for Web {
    async fn get(&mut self, url: &Url) -> Result<Page, Stopped> {
        let fetch = if url.origin() == self.start.origin() { &self.own } else { &self.guarded };
        let validators = Validators::default();
        let ask = Ask { url: url.as_str(), validators: &validators, subscribers: 0, feed_id: None };
        let unreadable =
            |reason: String, passing| Stopped::Unreadable { url: url.to_string(), reason, passing };
        let document = match fetch.get(ask).await.result {
            Ok(Answer::Document(document)) => document,
            Ok(Answer::NotModified { .. }) => {
                return Err(unreadable("it answered that nothing has changed".to_owned(), true));
            }
            Err(err) => return Err(unreadable(err.to_string(), is_passing(&err))),
        };
        let context = Context { received_at: None, ..document.context(worker::now()) };
        let read = normalize(&document.body, &context);
        let feed = read.map_err(|err| unreadable(err.to_string(), false))?;
        Ok(page(feed.feed()))
    }
}

fn page(feed: &Feed) -> Page {
    let linked = |rel: &str| {
        let link = feed.links.iter().find(|link| link.rel == rel)?;
        Url::parse(&link.href).ok()
    };
    Page {
        entries: feed.entries.clone(),
        prev: linked("prev-archive"),
        next: linked("next-archive"),
    }
}

/// Whether the server may answer otherwise soon.
fn is_passing(err: &FetchError) -> bool {
    match err {
        FetchError::TimedOut(_) | FetchError::Unreachable { .. } => true,
        FetchError::Status { status, .. } => status.is_server_error() || status.as_u16() == 429,
        _ => false,
    }
}
