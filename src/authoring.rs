//! The authoring service: signs authors in, checks and stores their feeds, and announces changes.
//!
//! Several endpoints save feeds (REST, XML-RPC, SOAP, the authoring page); all call this service.
//! Invariants: authors write only to their own storage, stored documents are well-formed XML, a
//! document is stored before its change is announced, and changes are announced by a ping.

mod enclosure;
mod login_attempts;
mod post;
mod sign_in;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tracing::error;
use url::Url;

use crate::net::HttpClient;
use crate::subscriptions::SubscriptionService;
use feedgate_core::ping::{Ping, PingSource, WeblogChange};
use feedgate_core::store::StoreError;
use feedgate_core::stored_file::{
    BadPathSegment, FileContent, FileLocation, FileToSave, PathSegment, Quota, SaveOutcome,
    StoredFile, WriteCondition,
};
use feedgate_feed::Context;
use feedgate_feed::model::Text;
use feedgate_feed::normalize;
use feedgate_protocol::rss::{self, BadFeed, DocumentFault};
use feedgate_store::Store;

pub use enclosure::inspect_enclosure;
pub use post::{Draft, Posted, new_id};
pub use sign_in::hash_password;

use sign_in::SignIn;

/// The settings of the authoring service.
#[derive(Clone, Debug)]
pub struct AuthoringSettings {
    /// The public URL of this gateway, which the addresses of files begin with.
    pub public_url: Url,
    /// The storage quota of one account.
    pub quota: Quota,
    /// The minimum interval between two fetches of one resource that are caused by pings.
    pub ping_spacing: Duration,
}

/// Stores feeds for their authors.
pub struct AuthoringService {
    store: Arc<Store>,
    subscribe: Arc<SubscriptionService>,
    fetch: HttpClient,
    sign_in: SignIn,
    settings: AuthoringSettings,
}

/// An author who has signed in. Only [`AuthoringService::sign_in`] creates one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    login: PathSegment,
}

impl Author {
    /// Returns the login of the author.
    pub fn login(&self) -> &PathSegment {
        &self.login
    }
}

/// A file in the storage of an author who has signed in.
#[derive(Clone, Copy, Debug)]
pub struct OwnFile<'a> {
    /// The owner.
    pub author: &'a Author,
    /// The name of the file.
    pub name: &'a PathSegment,
}

/// A feed as submitted for storage.
#[derive(Clone, Copy, Debug)]
pub enum SubmittedFeed<'s> {
    /// Text, already decoded by the protocol.
    Text(&'s str),
    /// Bytes, whose encoding is declared in the document.
    Bytes(&'s [u8]),
}

/// A saved file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedFeed {
    /// The public address.
    pub url: String,
    /// Whether the file was created.
    pub is_new: bool,
    /// The entity tag, without quotes.
    pub tag: String,
    /// Whether the announcement of the change succeeded. If it failed, subscribers are notified
    /// after the next poll, or when the file is saved again.
    pub is_told: bool,
}

/// The reason why a request of an author was refused.
#[derive(Debug, thiserror::Error)]
pub enum AuthoringRefusal {
    /// The login or the password is wrong; which of the two is not disclosed.
    #[error("the username or the password is wrong")]
    WrongPassword,
    /// Too many passwords were wrong, and the next one is not checked before this time has passed.
    #[error("too many attempts to sign in have failed, please try again in {} s", .0.as_secs() + 1)]
    TooManyAttempts(Duration),
    /// The token that was sent as password lacks the required scope.
    #[error("this token does not have the scope publish")]
    NoRight,
    /// The account is deactivated.
    #[error("this account is deactivated, please contact the operator")]
    Deactivated,
    /// Too many sign-ins are in progress.
    #[error("too many sign-ins are in progress, please try again in a moment")]
    Busy,
    /// The login is not a valid path segment.
    #[error(transparent)]
    PathSegment(#[from] BadPathSegment),
    /// The document is not well-formed.
    #[error("the document is not valid: {0}")]
    Unsound(#[from] DocumentFault),
    /// The document is too long; holds the limit in bytes.
    #[error("the feed is longer than {0} bytes")]
    TooLong(usize),
    /// The storage quota of the account is exhausted.
    #[error("the storage quota is exceeded: the account may have {} files with {} bytes in total", .0.files, .0.bytes)]
    Full(Quota),
    /// The file has changed since the author read it (a failed precondition).
    #[error("the file has changed, or does not meet the condition of the request")]
    Unmet,
    /// The post cannot be added to the feed.
    #[error(transparent)]
    Feed(#[from] BadFeed),
    /// The system provides no random numbers, so no id can be generated.
    #[error("the system provides no random numbers: {0}")]
    Random(getrandom::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AuthoringRefusal {
    /// Returns a stable code, listed in `docs/errors.md`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::TooManyAttempts(_) => "too_many_attempts",
            Self::WrongPassword => "wrong_password",
            Self::NoRight => "no_right",
            Self::Deactivated => "account_deactivated",
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
    /// Creates the service.
    pub fn new(
        store: Arc<Store>,
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

    /// Returns the storage quota of one account.
    pub fn quota(&self) -> Quota {
        self.settings.quota
    }

    /// Signs in an author by login and password, or by login and a token in place of the password.
    /// `client` is who sends them, for the limit of failed attempts.
    pub async fn sign_in(
        &self,
        login: &str,
        password: &str,
        client: Option<IpAddr>,
    ) -> Result<Author, AuthoringRefusal> {
        self.sign_in.author(login, password, client).await
    }

    /// Saves a file of an author, then pings it. The result is a success even if the ping fails,
    /// because the file is stored.
    pub async fn save(
        &self,
        file: OwnFile<'_>,
        sent: SubmittedFeed<'_>,
        condition: &WriteCondition,
        now: DateTime<Utc>,
    ) -> Result<SavedFeed, AuthoringRefusal> {
        let content = self.content(sent)?;
        let quota = self.settings.quota;
        let location = FileLocation { login: &file.author.login, name: file.name };
        let to_save = FileToSave { location, content: &content, condition, quota };
        let kept = self.store.save_file(to_save, now).await?;
        match kept {
            SaveOutcome::Made | SaveOutcome::Replaced | SaveOutcome::Same => {}
            SaveOutcome::Full => return Err(AuthoringRefusal::Full(quota)),
            SaveOutcome::Unmet => return Err(AuthoringRefusal::Unmet),
            SaveOutcome::NoAccount => return Err(AuthoringRefusal::WrongPassword),
        }
        let url = self.url(&file.author.login, file.name);
        let changed_feed = Some(&content.body[..]).filter(|_| kept != SaveOutcome::Same);
        let is_told = self.announce(&url, changed_feed, now).await;
        Ok(SavedFeed { url, is_new: kept == SaveOutcome::Made, tag: content.tag(), is_told })
    }

    /// Pings a stored feed, and forwards the ping to the ping targets if its content is given as
    /// `changed_feed`. Returns whether both succeeded.
    async fn announce(&self, url: &str, changed_feed: Option<&[u8]>, now: DateTime<Utc>) -> bool {
        let announced = async {
            // The ping is sent even if nothing changed, because the previous one may have been
            // lost.
            self.ping(url, now).await?;
            match changed_feed {
                Some(feed) => self.forward_ping(url, feed, now).await,
                None => Ok(()),
            }
        };
        let announced = announced.await;
        if let Err(err) = &announced {
            let cause: &dyn std::error::Error = err;
            error!(
                error = cause,
                feed = url,
                "the subscribers of a changed stored feed were not notified"
            );
        }
        announced.is_ok()
    }

    /// Removes a file of an author. Returns `false` if there is none.
    pub async fn remove(
        &self,
        file: OwnFile<'_>,
        condition: &WriteCondition,
        now: DateTime<Utc>,
    ) -> Result<bool, AuthoringRefusal> {
        let location = FileLocation { login: &file.author.login, name: file.name };
        match self.store.remove_file(location, condition).await? {
            None => Ok(false),
            Some(false) => Err(AuthoringRefusal::Unmet),
            Some(true) => {
                self.announce(&self.url(&file.author.login, file.name), None, now).await;
                Ok(true)
            }
        }
    }

    /// Returns a file, for any reader.
    pub async fn file(
        &self,
        login: &PathSegment,
        name: &PathSegment,
    ) -> Result<Option<StoredFile>, StoreError> {
        self.store.file(login, name).await
    }

    /// Returns the public address of a file.
    pub fn url(&self, login: &PathSegment, name: &PathSegment) -> String {
        let public = self.settings.public_url.as_str().trim_end_matches('/');
        format!("{public}/storage/{}/{}", login.as_str(), name.as_str())
    }

    async fn ping(&self, url: &str, now: DateTime<Utc>) -> Result<(), StoreError> {
        let (name, url) = (String::new(), url.to_owned());
        let ping = Ping { at: now, source: PingSource::RssCloud, name, url, feed_url: None };
        self.subscribe.ping(&ping, self.settings.ping_spacing).await.map(drop)
    }

    /// Forwards a ping for a feed without subscriptions here to the ping targets. A feed with
    /// subscriptions is forwarded by the poll that the ping causes.
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

    /// Checks a submitted feed and returns the content to store.
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
        // Any other encoding is declared in the document.
        let charset = if checked.is_utf8 { "; charset=utf-8" } else { "" };
        Ok(FileContent { media_type: format!("{media_type}{charset}"), body: bytes.to_vec() })
    }
}

impl std::fmt::Debug for AuthoringService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthoringService").field("settings", &self.settings).finish_non_exhaustive()
    }
}
