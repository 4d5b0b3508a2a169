//! Subscriptions to logs of this gateway: archives, collections and tracks.
//!
//! The topic of such a log is below the address of the gateway. There is nothing to fetch.

use chrono::{DateTime, Utc};

use super::{SubscriptionRefusal, SubscriptionService, events};
use crate::jobs::collect::unguessable;
use feedgate_core::account::AccountId;
use feedgate_core::intent::{Intent, IntentMode};
use feedgate_core::own_archive::{ArchivedLog, archived_log};
use feedgate_core::resource::{Resource, ResourceKind};
use feedgate_core::store::StoreError;
use feedgate_core::subscription::Format;
use feedgate_core::topic::Topic;
use feedgate_core::track::Track;

impl SubscriptionService {
    /// Returns the track that the topic describes, if it does. A track that is subscribed to is
    /// opened, unless the subscription is refused.
    pub(super) async fn opened_track(
        &self,
        intent: &Intent,
        now: DateTime<Utc>,
    ) -> Result<Option<Track>, SubscriptionRefusal> {
        let Some(public_url) = &self.public_url else { return Ok(None) };
        let Some(track) = Track::from_topic(public_url, &intent.request.topic) else {
            return Ok(None);
        };
        let track = track.map_err(SubscriptionRefusal::from);
        let checked = match intent.mode {
            IntentMode::Subscribe => {
                track.and_then(|track| self.check(&intent.request, true).map(|()| track))
            }
            IntentMode::Unsubscribe => track,
        };
        match checked {
            Ok(track) => {
                if intent.mode == IntentMode::Subscribe {
                    let opened = self.track_for(track.clone(), intent.request.account).await?;
                    self.store.open_track(&opened, now).await?;
                }
                Ok(Some(track))
            }
            Err(why) => {
                self.event_log.record(events::refused(intent, &why, now));
                Err(why)
            }
        }
    }

    /// Returns the intent for a log of this gateway, if the topic is a collection or a track, or the
    /// address of an archive. There is no document to fetch, so the new entries are delivered as
    /// Atom, unless the topic of a track says otherwise.
    pub(super) async fn of_collection(
        &self,
        intent: &Intent,
        track: Option<&Track>,
    ) -> Result<Option<Intent>, StoreError> {
        let topic = self.resolve(&intent.request.topic, intent.request.account).await?;
        let found = self.store.find(topic.as_str()).await?;
        let is_collection = found.is_some_and(|resource| resource.kind == ResourceKind::Collection);
        let is_archive = topic.alias().is_some();
        if !is_collection && !is_archive {
            return Ok(None);
        }
        let format = track.and_then(|track| track.format).unwrap_or(Format::Atom);
        let mut intent = intent.clone();
        intent.request.topic = topic;
        match intent.request.format {
            Format::Raw => intent.request.format = format,
            Format::Fitting if is_archive => intent.request.format = format,
            Format::Fitting | Format::Atom | Format::Json => {}
        }
        Ok(Some(intent))
    }

    /// Returns the topic of the resource whose archive has the address `topic`, or of the track that
    /// it describes, with that address as its alias. Any other topic is returned as it is, and so is
    /// one that has an alias, because it is resolved already.
    ///
    /// The archive of a feed that the subscriber may not read is answered as one that does not exist.
    pub async fn resolve(
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
        let track = public_url.and_then(|public_url| Track::from_topic(public_url, topic));
        let resource = match track {
            Some(Ok(track)) => {
                let track = self.track_for(track, account).await?;
                self.store.find_track(&track.key()).await?
            }
            Some(Err(_)) | None => resource,
        };
        let log = resource.map(|resource| resource.topic).filter(|log| log != topic);
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
