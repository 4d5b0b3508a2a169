//! Subscriptions to logs of this gateway: archives, collections and tracks.
//!
//! The topic of such a log is below the address of the gateway. There is nothing to fetch.
//!
//! A track that everybody may subscribe to is opened when a callback has agreed, immediately before its
//! subscription is stored: what it costs is charged to the network that requested the subscription, and
//! a network has so many open at most. The track of an account is opened before, because its topic is
//! random.

use chrono::{DateTime, Utc};

use super::{QuotaExceeded, SubscriptionRefusal, SubscriptionService, events};
use crate::jobs::collect::unguessable;
use feedgate_core::account::AccountId;
use feedgate_core::intent::{Intent, IntentMode};
use feedgate_core::own_archive::{ArchiveAddress, ArchivedLog, archived_log};
use feedgate_core::query::{EntryFilter, QueryError};
use feedgate_core::resource::{Resource, ResourceKind};
use feedgate_core::store::StoreError;
use feedgate_core::subscription::{Format, SubscriptionRequest};
use feedgate_core::topic::{Callback, Topic};
use feedgate_core::track::{Track, TrackError};

impl SubscriptionService {
    /// Returns the track that the topic of an intent describes, if it does.
    pub(super) fn described_track(
        &self,
        intent: &Intent,
        now: DateTime<Utc>,
    ) -> Result<Option<Track>, SubscriptionRefusal> {
        self.parse_track(&intent.request.topic).transpose().map_err(|err| {
            let why = SubscriptionRefusal::from(err);
            self.event_log.record(events::refused(intent, &why, now));
            why
        })
    }

    /// Checks the filter in the topic of a request to subscribe, if that is the address of a feed of this
    /// gateway.
    pub(super) fn check_filter_of_feed(
        &self,
        intent: &Intent,
        now: DateTime<Utc>,
    ) -> Result<(), SubscriptionRefusal> {
        let address = intent.request.topic.subscribed_as();
        match self.filter_of_feed(address) {
            Some(Err(reason)) if intent.mode == IntentMode::Subscribe => {
                let why = SubscriptionRefusal::BadFilter(reason);
                self.event_log.record(events::refused(intent, &why, now));
                Err(why)
            }
            _ => Ok(()),
        }
    }

    /// Returns the track with this topic, if it is that of a track.
    pub(super) fn track_of(&self, topic: &Topic) -> Option<Track> {
        self.parse_track(topic)?.ok()
    }

    fn parse_track(&self, topic: &Topic) -> Option<Result<Track, TrackError>> {
        Track::from_topic(self.public_url.as_ref()?, topic)
    }

    /// Returns whether a topic is that of a log of this gateway which not everybody may be allowed to
    /// read: an archive or a track, whether there is one or not.
    pub fn is_own_log(&self, topic: &Topic) -> bool {
        let Some(public_url) = &self.public_url else { return false };
        archived_log(public_url, topic).is_some() || self.parse_track(topic).is_some()
    }

    /// Opens the track of the topic of a subscription that is about to be stored. Returns the quota that
    /// this would exceed, if it would.
    pub(super) async fn open_track(
        &self,
        intent: &Intent,
        now: DateTime<Utc>,
    ) -> Result<Option<QuotaExceeded>, StoreError> {
        let SubscriptionRequest { topic, account, registrant, .. } = &intent.request;
        let Some(track) = self.track_of(topic).filter(|_| intent.mode == IntentMode::Subscribe)
        else {
            return Ok(None);
        };
        if let Some(why) = self.exceeded_track_quota(&intent.request).await? {
            return Ok(Some(why));
        }
        let track = self.track_for(track, *account).await?;
        self.store.open_track(&track, *registrant, now).await?;
        Ok(None)
    }

    /// Opens the track to which an account subscribes, and returns its intent for the log of the track.
    pub(super) async fn opened_for_account(
        &self,
        intent: &Intent,
        track: Option<&Track>,
        now: DateTime<Utc>,
    ) -> Result<Option<Intent>, StoreError> {
        let Some(track) = track.filter(|_| intent.mode == IntentMode::Subscribe) else {
            return Ok(None);
        };
        if intent.request.account.is_none() {
            return Ok(None);
        }
        self.open_track(intent, now).await?;
        self.of_own_log(intent, Some(track)).await
    }

    /// Returns the intent for a log of this gateway, if the topic is that of a collection or a track, or the
    /// address of an archive. There is no document to fetch, so the new entries are delivered as
    /// Atom, unless the topic of a track says otherwise.
    pub(super) async fn of_own_log(
        &self,
        intent: &Intent,
        track: Option<&Track>,
    ) -> Result<Option<Intent>, StoreError> {
        let topic = self.resolve_own_log(&intent.request.topic, intent.request.account).await?;
        let found = self.store.find(topic.as_str()).await?;
        let is_collection = found.is_some_and(|resource| resource.kind == ResourceKind::Collection);
        let address = topic.alias().and_then(|alias| Topic::parse(alias).ok());
        let is_archive = address.as_ref().is_some_and(|address| self.is_own_log(address));
        if !is_collection && !is_archive && track.is_none() {
            return Ok(None);
        }
        let format = track.and_then(|track| track.format).unwrap_or(Format::Atom);
        let mut intent = intent.clone();
        if let Some(Ok(filter)) = topic.alias().and_then(|address| self.filter_of_feed(address)) {
            intent.request.filter.get_or_insert(filter);
        }
        intent.request.topic = topic;
        match intent.request.format {
            Format::Raw => intent.request.format = format,
            Format::Fitting if is_archive => intent.request.format = format,
            Format::Fitting | Format::Atom | Format::Json => {}
        }
        Ok(Some(intent))
    }

    /// Returns the filter of the feed of this gateway at an address: who subscribes to it is sent what it
    /// shows.
    fn filter_of_feed(&self, address: &str) -> Option<Result<EntryFilter, QueryError>> {
        let address = ArchiveAddress::parse(self.public_url.as_ref()?, address)?;
        let filter = address.filter.filter(|filter| !filter.trim().is_empty())?;
        Some(EntryFilter::parse(&filter))
    }

    /// Returns the topic to which an account subscribes, or did, when it names `topic`: that of a log
    /// of this gateway, or of a feed which it follows, with the address as its alias. Any other topic is
    /// returned as it is. If a callback is given, the feed is that of its subscription.
    pub async fn resolve(
        &self,
        topic: &Topic,
        account: Option<AccountId>,
        callback: Option<&Callback>,
    ) -> Result<Topic, StoreError> {
        let resolved = self.resolve_own_log(topic, account).await?;
        if resolved.alias().is_some() || self.is_own_log(&resolved) {
            return Ok(resolved);
        }
        self.followed_topic(&resolved, account, callback).await
    }

    /// Returns the topics to which an account may be subscribed under the address `topic`, with whatever
    /// callback: each as [`resolve`](Self::resolve) returns it.
    pub(super) async fn topics_under(
        &self,
        topic: &Topic,
        account: AccountId,
    ) -> Result<Vec<Topic>, StoreError> {
        let resolved = self.resolve_own_log(topic, Some(account)).await?;
        let mut topics = Vec::new();
        if resolved.alias().is_none() && !self.is_own_log(&resolved) {
            topics = self.store.subscribed_under(Some(account), resolved.as_str(), None).await?;
        }
        topics.push(resolved);
        topics.sort_by(|one, other| one.as_str().cmp(other.as_str()));
        topics.dedup();
        Ok(topics)
    }

    /// Returns the topic of the resource whose archive has the address `topic`, or of the track that
    /// it describes, with that address as its alias. Any other topic is returned as it is, and so is
    /// one that has an alias, because it is resolved already.
    ///
    /// The archive of a feed that the subscriber may not read is answered as one that does not exist.
    async fn resolve_own_log(
        &self,
        topic: &Topic,
        account: Option<AccountId>,
    ) -> Result<Topic, StoreError> {
        if topic.alias().is_some() {
            return Ok(topic.clone());
        }
        let public_url = self.public_url.as_ref();
        let resource = match public_url.and_then(|public_url| archived_log(public_url, topic)) {
            Some(ArchivedLog::Resource(id)) => match self.store.get(id).await? {
                Some(resource) => self.may_read(&resource, account).await?.then_some(resource),
                None => None,
            },
            // The topic of a private collection has a random fragment.
            Some(ArchivedLog::Collection(kind)) => {
                let collection = self.store.collection(&kind).await?;
                collection.filter(|collection| collection.topic.fragment().is_none())
            }
            None => None,
        };
        let log = match self.track_of(topic) {
            Some(track) => {
                let track = self.track_for(track, account).await?;
                let found = self.store.find_track(&track.key()).await?;
                // The topic of a track of everybody is known before the track is opened.
                let unopened = account.is_none().then_some(track.topic);
                found.map(|resource| resource.topic).or(unopened)
            }
            None => resource.map(|resource| resource.topic),
        };
        let log = log.filter(|log| log != topic);
        Ok(match log {
            Some(log) => log.with_alias(Some(topic.as_str().to_owned())),
            None => topic.clone(),
        })
    }

    /// Returns the track that an account subscribes to with a topic: its own, which contains entries that
    /// nobody else may find, unless it subscribes to that of everybody since before there were others.
    async fn track_for(
        &self,
        track: Track,
        account: Option<AccountId>,
    ) -> Result<Track, StoreError> {
        let Some(account) = account else { return Ok(track) };
        if let Some(of_all) = self.store.find_track(&track.key()).await?
            && !self.store.subscribed_by(account, &[of_all.id]).await?.is_empty()
        {
            return Ok(track);
        }
        // Nobody else can name the log.
        let topic = unguessable(&track.topic);
        Ok(Track { topic, ..track.of_account(account) })
    }

    /// Returns whether the archive of a resource may be read by an account, or by anybody (`None`).
    pub async fn may_read(
        &self,
        resource: &Resource,
        account: Option<AccountId>,
    ) -> Result<bool, StoreError> {
        match account {
            _ if resource.is_readable() => Ok(true),
            Some(account) if resource.kind != ResourceKind::Collection => {
                let own = self.store.subscribed_by(account, &[resource.id]).await?;
                Ok(!own.is_empty())
            }
            Some(_) | None => Ok(false),
        }
    }
}
