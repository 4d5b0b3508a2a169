//! Fetches a resource and reads its current content.
//!
//! Nothing is stored or scheduled here.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::document_budget::GatewayBusy;
use crate::fetch_traces::TracedRequest;
use crate::net::{
    ClaimedGroup, FetchError, FetchRequest, FetchResponse, Fetched, FetchedDocument, HttpClient,
    Patience, ResourceLocation,
};
use feedgate_core::poll::{Trigger, Validators};
use feedgate_core::store::DueResource;
use feedgate_core::visibility::SourceNetwork;

use super::group_turn::GroupTurn;
use super::observation::{Failure, Found, Observation, ServerVisit};
use super::put_off::{Busy, PutOff};
use super::read_document::{PollResponse, read};
use super::redirects;
use super::shared_documents::{DocumentSource, SharedDocuments};

/// How many documents that point to another document are followed: as many as HTTP redirects (rule
/// P18).
const MAX_MOVES: usize = 5;

/// The source of documents, and how long a poll may wait for them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    pub(super) client: &'a HttpClient,
    pub(super) shared_documents: &'a SharedDocuments,
    pub(super) patience: Patience,
    /// The turn of the host group of the resource.
    pub(super) turn: &'a GroupTurn,
}

impl Source<'_> {
    /// Fetches and parses a due resource, or takes its document from the shared-document cache.
    pub(super) async fn fetch_and_parse(
        self,
        due: &DueResource,
        now: DateTime<Utc>,
    ) -> Result<Observation, PutOff> {
        let guard = match self.shared_documents.find_or_fetch(due, now).await {
            DocumentSource::Fetch(guard) => guard,
            DocumentSource::Shared { fetched_at, document, source_network } => {
                let shared = (document, source_network);
                return self.read_shared(due, shared, fetched_at).await;
            }
        };
        let polling = &due.resource.polling;
        let (url, unconditional) = (&due.resource.fetch_url, Validators::default());
        let (mut doubted, mut has_begun) = (polling.is_recheck_due || polling.is_stuck(now), false);
        // A new subscriber may get entries of a page that others watched as a document.
        let is_read_anew = self.patience == Patience::FirstFetch && due.resource.is_read_anew();
        let is_unconditional = doubted || is_read_anew;
        let validators = if is_unconditional { &unconditional } else { &polling.validators };
        let (mut requests, mut visits) = (Vec::new(), Vec::new());
        let mut fetched = self.get(due, url, validators).await;
        let mut source_network = fetched.source_network();
        if is_doubtful(&fetched, due, now) {
            (doubted, has_begun) = (true, true);
            requests = TracedRequest::from_hops(&fetched.hops);
            visits.extend(ServerVisit::from_hops(&fetched.hops));
            fetched = self.continued().get(due, url, &unconditional).await;
            source_network = source_network.max(fetched.source_network());
        }
        match &fetched.result {
            Ok(FetchResponse::Document(document)) => guard.share(document, source_network, now),
            Ok(FetchResponse::NotModified { .. }) => guard.confirm(&polling.validators, now),
            Err(_) => guard.give_up(),
        }
        let fetched = not_put_off(fetched, has_begun)?;
        requests.extend(TracedRequest::from_hops(&fetched.hops));
        visits.extend(ServerVisit::from_hops(&fetched.hops));
        let observation = Observation {
            at: now,
            took: fetched.took,
            wire_bytes: fetched.wire_bytes,
            requests,
            visits,
            doubted,
            location: fetched.location,
            source_network,
            found: self.read(fetched.result, due, now).await.map_err(PutOff::begun)?,
        };
        self.continued().follow_moves(due, observation).await
    }

    /// Reads a document that was fetched for another resource.
    async fn read_shared(
        self,
        due: &DueResource,
        (document, source_network): (Box<FetchedDocument>, SourceNetwork),
        at: DateTime<Utc>,
    ) -> Result<Observation, PutOff> {
        let (response, source_network) = self.check_shared(document, source_network);
        let found = self.read(response, due, at).await.map_err(PutOff::unbegun)?;
        Ok(Observation {
            at,
            took: Duration::ZERO,
            wire_bytes: 0,
            requests: Vec::new(),
            visits: Vec::new(),
            doubted: false,
            location: ResourceLocation::Unknown,
            source_network,
            found,
        })
    }

    /// Refuses a document from inside a private network to a poll that may not read there itself.
    fn check_shared(
        self,
        document: Box<FetchedDocument>,
        source_network: SourceNetwork,
    ) -> (Result<FetchResponse, FetchError>, SourceNetwork) {
        if source_network == SourceNetwork::Inner && self.client.reaches_public_topics_only() {
            let host = document.url.host_str().unwrap_or_default().to_owned();
            return (Err(FetchError::Forbidden { host }), SourceNetwork::Unknown);
        }
        (Ok(FetchResponse::Document(document)), source_network)
    }

    /// Follows documents that only state that the feed is at another address.
    async fn follow_moves(
        self,
        due: &DueResource,
        mut observation: Observation,
    ) -> Result<Observation, PutOff> {
        for _ in 0..MAX_MOVES {
            let Found::Feed { feed, .. } = &observation.found else { break };
            let Some(target) = feed.moved_to.clone().filter(|target| !target.is_empty()) else {
                break;
            };
            // The memory of this document is not needed any more, and the next needs some.
            observation.found = Found::NotModified { hint_s: None };
            let fetched = self.get(due, &target, &due.resource.polling.validators).await;
            let fetched = not_put_off(fetched, true)?;
            observation.took += fetched.took;
            observation.source_network = observation.source_network.max(fetched.source_network());
            observation.requests.extend(TracedRequest::from_hops(&fetched.hops));
            observation.visits.extend(ServerVisit::from_hops(&fetched.hops));
            observation.wire_bytes += fetched.wire_bytes;
            observation.location =
                redirects::location_after_move(observation.location, &target, fetched.location);
            let found = self.read(fetched.result, due, observation.at).await;
            observation.found = found.map_err(PutOff::begun)?;
        }
        if matches!(&observation.found, Found::Feed { feed, .. } if feed.moved_to.is_some()) {
            observation.found = Found::Failure(Failure::gone());
        }
        Ok(observation)
    }

    /// Returns the source for further requests of a poll that has begun. Only the first request of a first
    /// fetch is sent without a pause: a document decides how many follow.
    pub(super) fn continued(self) -> Self {
        let patience = match self.patience {
            Patience::Background | Patience::Continued => Patience::Continued,
            Patience::FirstFetch | Patience::Interactive => Patience::Interactive,
        };
        Source { patience, ..self }
    }

    async fn read(
        self,
        response: Result<FetchResponse, FetchError>,
        due: &DueResource,
        now: DateTime<Utc>,
    ) -> Result<Found, GatewayBusy> {
        let unpacked = match &response {
            Ok(FetchResponse::Document(document)) => self.client.unpack(document).await,
            Ok(FetchResponse::NotModified { .. }) | Err(_) => None,
        };
        let unpacked = match unpacked.transpose() {
            Ok(unpacked) => unpacked,
            Err(FetchError::GatewayBusy(busy)) => return Err(busy),
            // A file of another kind, which is watched as it is.
            Err(_) => None,
        };
        let documents = self.client.documents();
        read(PollResponse { response, unpacked, documents }, due, now).await
    }

    pub(super) async fn get(
        self,
        due: &DueResource,
        url: &str,
        validators: &Validators,
    ) -> Fetched {
        let (subscribers, feed_id) = (due.resource.subscribers, Some(due.resource.id.0));
        let request = FetchRequest { url, validators, subscribers, feed_id };
        let give_back = || self.turn.give_back();
        let claimed = ClaimedGroup { url: &due.resource.fetch_url, give_back: &give_back };
        self.client.get_claimed(request, self.patience, claimed).await
    }
}

/// Returns an error if the fetch was put off because a host or this gateway was busy, or a host is paused.
/// `has_begun` states whether the poll had sent a request before this fetch.
pub(super) fn not_put_off(fetched: Fetched, has_begun: bool) -> Result<Fetched, PutOff> {
    let busy = match fetched.result {
        Err(FetchError::HostBusy(busy)) => Busy::Host(busy),
        Err(FetchError::HostPaused { host, until }) => Busy::Paused { host, until },
        Err(FetchError::GatewayBusy(busy)) => Busy::Gateway(busy),
        _ => return Ok(fetched),
    };
    Err(PutOff { busy, has_begun: has_begun || !fetched.hops.is_empty() })
}

/// Returns whether the publisher reported a change of the resource while its server, which has denied
/// a change before, responds that there was none.
fn is_doubtful(fetched: &Fetched, due: &DueResource, now: DateTime<Utc>) -> bool {
    let polling = &due.resource.polling;
    due.trigger == Trigger::Ping
        && matches!(fetched.result, Ok(FetchResponse::NotModified { .. }))
        && polling.denies_changes(now)
        && polling.may_doubt(now)
}
