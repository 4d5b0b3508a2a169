//! What it takes to keep a feed for its author: who they are, whether it is sound, where
//! it goes, and that those who watch it are told.
//!
//! Several doors save (REST, XML-RPC, SOAP, the page for authors); all do it here. What
//! holds: nobody writes where they have not signed in, what is kept is sound XML, it is
//! kept before anybody is told of it, and it is told by a ping like any other.

mod enclosure;
mod post;
mod sign_in;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tracing::error;
use url::Url;

use crate::net::HttpClient;
use crate::subscriptions::SubscriptionService;
use feedgate_core::ping::{Ping, PingSource, WeblogChange};
use feedgate_core::ports::{Store, StoreError};
use feedgate_core::stored_file::{
    BadPathSegment, FileContent, PathSegment, Quota, SaveOutcome, StoredFile, WriteCondition,
};
use feedgate_feed::Context;
use feedgate_feed::model::Text;
use feedgate_feed::normalize;
use feedgate_protocol::rss::{self, BadFeed, DocumentFault};

pub use enclosure::inspect_enclosure;
pub use post::{Draft, Posted, new_id};
pub use sign_in::hash_password;

use sign_in::SignIn;

/// What the operator decides.
#[derive(Clone, Debug)]
pub struct AuthoringSettings {
    /// The address others know us by: what the addresses of files begin with.
    pub public_url: Url,
    /// How much one account may store.
    pub quota: Quota,
    /// Between two fetches of one resource because of pings.
    pub ping_spacing: Duration,
}

/// Keeps feeds for their authors.
pub struct AuthoringService {
    store: Arc<dyn Store>,
    subscribe: Arc<SubscriptionService>,
    fetch: HttpClient,
    sign_in: SignIn,
    settings: AuthoringSettings,
}

/// Somebody who has signed in; made nowhere else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    login: PathSegment,
}

impl Author {
    /// What they signed in with.
    pub fn login(&self) -> &PathSegment {
        &self.login
    }
}

/// What somebody sent to be kept.
#[derive(Clone, Copy, Debug)]
pub enum SubmittedFeed<'s> {
    /// A text, decoded by the protocol it came in.
    Text(&'s str),
    /// Bytes, which say themselves what they are.
    Bytes(&'s [u8]),
}

/// A file that was saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedFeed {
    /// Its public address.
    pub url: String,
    /// Whether there was none of its name before.
    pub is_new: bool,
    /// Its entity tag, without quotes.
    pub tag: String,
    /// Whether it is made sure that those who watch it are told. Where that failed they are
    /// told with the next poll, or when it is saved once more.
    pub is_told: bool,
}

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum AuthoringRefusal {
    /// Nobody has this login with this password: which of the two is wrong is not said.
    #[error("the username or the password is wrong")]
    WrongPassword,
    /// A token that was sent as the password does not allow this.
    #[error("this token does not have the publish right")]
    NoRight,
    /// Too many are signing in.
    #[error("too many are signing in, please try again in a moment")]
    Busy,
    /// The login cannot stand in an address.
    #[error(transparent)]
    PathSegment(#[from] BadPathSegment),
    /// The document is not sound.
    #[error("the XML is not sound: {0}")]
    Unsound(#[from] DocumentFault),
    /// The document is too long.
    #[error("the feed is longer than {0} bytes")]
    TooLong(usize),
    /// The account has no room for it.
    #[error("the account has no room for this: it may have {} files of {} bytes in all", .0.files, .0.bytes)]
    Full(Quota),
    /// The file is not the one that its author has seen.
    #[error("the file has changed meanwhile, or is not as demanded")]
    Unmet,
    /// The post cannot go into the feed.
    #[error(transparent)]
    Feed(#[from] BadFeed),
    /// The system gives no random numbers, so that nothing can get an id.
    #[error("the system gives no random numbers: {0}")]
    Random(getrandom::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AuthoringRefusal {
    /// A word for programs, listed in `docs/errors.md`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::WrongPassword => "wrong_password",
            Self::NoRight => "no_right",
            Self::Busy => "busy",
            Self::PathSegment(_) => "bad_login",
            Self::Unsound(_) => "unsound_xml",
            Self::TooLong(_) => "file_too_long",
            Self::Full(_) => "quota_reached",
            Self::Unmet => "file_changed",
            Self::Feed(err) => err.code(),
            Self::Random(_) => "no_randomness",
            Self::Store(err) => err.code(),
        }
    }
}

impl AuthoringService {
    /// Puts it together.
    pub fn new(
        store: Arc<dyn Store>,
        subscribe: Arc<SubscriptionService>,
        fetch: HttpClient,
        settings: AuthoringSettings,
    ) -> AuthoringService {
        AuthoringService {
            sign_in: SignIn::new(Arc::clone(&store)),
            store,
            subscribe,
            fetch,
            settings,
        }
    }

    /// How much one account may store.
    pub fn quota(&self) -> Quota {
        self.settings.quota
    }

    /// Who has this login and this password, or this token for a password.
    pub async fn sign_in(&self, login: &str, password: &str) -> Result<Author, AuthoringRefusal> {
        self.sign_in.author(login, password).await
    }

    /// Keeps a file of an author, and pings it. What is kept is saved, even if it cannot be
    /// pinged then.
    pub async fn save(
        &self,
        (author, name): (&Author, &PathSegment),
        sent: SubmittedFeed<'_>,
        condition: &WriteCondition,
        now: DateTime<Utc>,
    ) -> Result<SavedFeed, AuthoringRefusal> {
        let content = self.content(sent)?;
        let (place, quota) = ((&author.login, name), self.settings.quota);
        let kept = self.store.save_file(place, &content, (condition, quota), now).await?;
        match kept {
            SaveOutcome::Made | SaveOutcome::Replaced | SaveOutcome::Same => {}
            SaveOutcome::Full => return Err(AuthoringRefusal::Full(quota)),
            SaveOutcome::Unmet => return Err(AuthoringRefusal::Unmet),
            SaveOutcome::NoAccount => return Err(AuthoringRefusal::WrongPassword),
        }
        let url = self.url(&author.login, name);
        let changed_feed = Some(&content.body[..]).filter(|_| kept != SaveOutcome::Same);
        let is_told = self.announce(&url, changed_feed, now).await;
        Ok(SavedFeed { url, is_new: kept == SaveOutcome::Made, tag: content.tag(), is_told })
    }

    /// Pings the stored feed, and forwards the ping if the feed changed; `false` if the ping could
    /// not be stored.
    async fn announce(&self, url: &str, changed_feed: Option<&[u8]>, now: DateTime<Utc>) -> bool {
        let announced = async {
            // Also where nothing changed: the ping before this may have been lost.
            self.ping(url, now).await?;
            match changed_feed {
                Some(feed) => self.forward_ping(url, feed, now).await,
                None => Ok(()),
            }
        };
        let announced = announced.await;
        if let Err(err) = &announced {
            let cause: &dyn std::error::Error = err;
            error!(error = cause, feed = url, "a stored feed has changed, but could not be pinged");
        }
        announced.is_ok()
    }

    /// Removes a file of an author; `false` if there is none.
    pub async fn remove(
        &self,
        author: &Author,
        name: &PathSegment,
        condition: &WriteCondition,
        now: DateTime<Utc>,
    ) -> Result<bool, AuthoringRefusal> {
        match self.store.remove_file((&author.login, name), condition).await? {
            None => Ok(false),
            Some(false) => Err(AuthoringRefusal::Unmet),
            Some(true) => {
                self.announce(&self.url(&author.login, name), None, now).await;
                Ok(true)
            }
        }
    }

    /// A file, for anybody.
    pub async fn file(
        &self,
        login: &PathSegment,
        name: &PathSegment,
    ) -> Result<Option<StoredFile>, StoreError> {
        self.store.file(login, name).await
    }

    /// The public address of a file.
    pub fn url(&self, login: &PathSegment, name: &PathSegment) -> String {
        let public = self.settings.public_url.as_str().trim_end_matches('/');
        format!("{public}/storage/{}/{}", login.as_str(), name.as_str())
    }

    async fn ping(&self, url: &str, now: DateTime<Utc>) -> Result<(), StoreError> {
        let (name, url) = (String::new(), url.to_owned());
        let ping = Ping { at: now, source: PingSource::RssCloud, name, url, feed_url: None };
        self.subscribe.ping(&ping, self.settings.ping_spacing).await.map(drop)
    }

    /// Has ping sinks told of a feed that nobody watches here. Where somebody does, the
    /// poll that the ping leads to tells them.
    async fn forward_ping(
        &self,
        url: &str,
        feed: &[u8],
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let known = self.store.find(url).await?;
        let Ok(address) = Url::parse(url) else { return Ok(()) };
        let Ok(feed) = normalize(feed, &Context::new(address)) else { return Ok(()) };
        if known.is_some_and(|resource| resource.subscribers > 0) {
            return Ok(());
        }
        let feed = feed.feed();
        let weblog = WeblogChange {
            at: now,
            name: feed.title.as_ref().map(Text::to_plain).unwrap_or_default(),
            url: feed.site_url().unwrap_or_else(|| url.to_owned()),
            feed_url: Some(url.to_owned()),
        };
        self.store.forward_ping(&weblog).await
    }

    /// What is kept of what was sent, if it is sound.
    fn content(&self, sent: SubmittedFeed<'_>) -> Result<FileContent, AuthoringRefusal> {
        let text;
        let bytes = match sent {
            SubmittedFeed::Bytes(bytes) => bytes,
            SubmittedFeed::Text(sent) => {
                text = rss::as_utf8(sent);
                text.as_bytes()
            }
        };
        let most = self.settings.quota.file_bytes;
        if bytes.len() > most {
            return Err(AuthoringRefusal::TooLong(most));
        }
        let checked = rss::check(bytes)?;
        let media_type = checked.kind.media_type();
        // Any other encoding stands in the document itself.
        let charset = if checked.is_utf8 { "; charset=utf-8" } else { "" };
        Ok(FileContent { media_type: format!("{media_type}{charset}"), body: bytes.to_vec() })
    }
}

impl std::fmt::Debug for AuthoringService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthoringService").field("settings", &self.settings).finish_non_exhaustive()
    }
}
