//! A stream of entries while it is open. What it sends next is read when its client has taken the last.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, Stream};
use http::StatusCode;
use tokio::time::{Instant, sleep_until};
use warp::reply::{Reply, Response};

use super::gap::{GapReason, StreamGap};
use super::resumption::{Resumption, resume};
use super::scope::{SelectedLog, StreamScope};
use super::streamed_logs::StreamedLogs;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use crate::http::kit::slots::HeldSlot;
use crate::http::routes::superfeedr::entries_document::EntriesDocument;
use crate::http::routes::superfeedr::entries_format::EntriesFormat;
use crate::http::routes::superfeedr::wait::Framing;
use crate::http::routes::superfeedr::{address, combined, params, retrieve};
use crate::http::state::Gateway;
use crate::jobs::deliver::{ComposedRange, LogGap, LogRange};
use feedgate_core::account::AccountId;
use feedgate_core::query::EntryFilter;
use feedgate_core::record::Audience;
use feedgate_core::resource::{Resource, ResourceId};
use feedgate_core::store::StoreError;
use feedgate_core::subscription::{Format, Updates};

/// The interval between heartbeats: proxies close silent connections, and a closed connection is
/// noticed only by writing to it.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How often the token of a stream is checked.
const TOKEN_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// How often the logs of a stream are selected again.
const SELECTION_INTERVAL: Duration = Duration::from_secs(60);
/// The delay after which a client reconnects that this node disconnects at shutdown, in
/// milliseconds: another node may accept it at once.
const RECONNECT_MS: u64 = 1_000;

/// A stream of entries, which is read piece by piece.
pub(super) struct EntryStream {
    gateway: Arc<Gateway>,
    scope: StreamScope,
    framing: Framing,
    format: Format,
    /// Which entries are sent (row Q-5); `None`: all.
    filter: Option<EntryFilter>,
    logs: StreamedLogs,
    /// The pieces that come next.
    pending: VecDeque<Bytes>,
    is_ended: bool,
    next_heartbeat: Instant,
    next_token_check: Instant,
    next_selection: Instant,
    _slot: HeldSlot<AccountId>,
}

impl EntryStream {
    pub(super) fn new(
        gateway: &Arc<Gateway>,
        (scope, slot): (StreamScope, HeldSlot<AccountId>),
        (framing, format): (Framing, Format),
        filter: Option<EntryFilter>,
    ) -> EntryStream {
        let now = Instant::now();
        EntryStream {
            gateway: Arc::clone(gateway),
            scope,
            framing,
            format,
            filter,
            logs: StreamedLogs::new(Arc::clone(&gateway.heads)),
            pending: VecDeque::new(),
            is_ended: false,
            next_heartbeat: now + HEARTBEAT,
            next_token_check: now + TOKEN_CHECK_INTERVAL,
            next_selection: now + SELECTION_INTERVAL,
            _slot: slot,
        }
    }

    /// Follows the logs from where the client stopped.
    pub(super) async fn begin(
        &mut self,
        logs: BTreeMap<ResourceId, SelectedLog>,
        request: &Request,
    ) -> Result<(), Rejection> {
        let ids =
            [request.header("last-event-id"), self.scope.form.get("lastEventId").unwrap_or("")];
        let resumed = match ids.into_iter().find(|id| !id.trim().is_empty()) {
            Some(id) => resume(&self.gateway.store, &logs, id).await,
            None => Ok(Resumption::default()),
        };
        let resumed = resumed.map_err(|err| Rejection::unavailable(&err))?;
        for (id, log) in &logs {
            let sent = resumed.sent.get(id).copied().unwrap_or(log.resource.head);
            self.logs.follow(&log.resource, sent);
        }
        for gap in &resumed.gaps {
            self.push_gap(gap);
        }
        if !resumed.is_position && params::has_no_beginning(&self.scope.form) {
            self.push_position();
        } else if !resumed.is_position {
            let address = address::of_document(&self.gateway, request, &self.scope.form);
            let resources = logs.into_iter().map(|(id, log)| (id, log.resource)).collect();
            self.begin_with_entries(&resources, &address).await?;
        }
        Ok(())
    }

    /// Begins with the newest entries, or behind the entry `after`.
    async fn begin_with_entries(
        &mut self,
        resources: &BTreeMap<ResourceId, Resource>,
        address: &str,
    ) -> Result<(), Rejection> {
        let (gateway, form) = (Arc::clone(&self.gateway), self.scope.form.clone());
        let single = resources.values().next().filter(|_| !self.scope.is_combined());
        if let Some(resource) = single
            && let Some(after) = retrieve::seq(&gateway, &form, resource, "after").await?
        {
            self.logs.follow(resource, after);
            return Ok(());
        }
        let document = match single {
            Some(resource) => {
                let records = retrieve::records(&gateway, &form, resource).await?;
                let format = Some(EntriesFormat::Notification(self.format));
                let (combined_head, records, etag) = (None, &*records, "");
                let document = EntriesDocument {
                    resource,
                    combined_head,
                    is_own_feed: address::is_of_own_feed(&gateway, &form, resource),
                    records,
                    etag,
                    format,
                    is_sanitized: form.is_set("sanitize"),
                    address,
                    next: None,
                };
                (!records.is_empty()).then(|| document.body(&gateway))
            }
            None => combined::document(&gateway, &form, resources, (self.format, address)).await?,
        };
        if let Some(document) = document {
            self.push(document.into());
        }
        Ok(())
    }

    pub(super) fn into_response(self) -> Response {
        let pieces = stream::unfold(self, |mut entries| async move {
            let piece = entries.next().await?;
            Some((Ok::<Bytes, Infallible>(piece), entries))
        });
        // A body must be `Sync`, which a mutex makes of what is only `Send`. It is never locked.
        let mut pieces = Mutex::new(Box::pin(pieces));
        warp::reply::stream(stream::poll_fn(move |cx| {
            pieces.get_mut().unwrap_or_else(PoisonError::into_inner).as_mut().poll_next(cx)
        }))
        .into_response()
    }

    /// Returns the next piece of the stream, or `None` if it ends.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(piece) = self.pending.pop_front() {
                self.next_heartbeat = Instant::now() + HEARTBEAT;
                return Some(piece);
            }
            if self.is_ended {
                return None;
            }
            if let Err(err) = self.fill().await {
                // The client reconnects, and sends the id of the last event that it received.
                tracing::warn!(error = &err as &dyn Error, "closing a stream of entries early");
                self.is_ended = true;
            }
        }
    }

    /// Adds the next notification or a heartbeat, when there is one. What is only needed for a moment
    /// is on the heap, because the future of a stream has room for all of it while the stream waits.
    async fn fill(&mut self) -> Result<(), StoreError> {
        if self.gateway.stop.is_cancelled() {
            self.end();
            return Ok(());
        }
        // Checked first: a stream that always has something to send is never idle.
        let now = Instant::now();
        if now >= self.next_token_check {
            Box::pin(self.check(now)).await;
            if self.is_ended {
                return Ok(());
            }
        }
        if let Some(id) = self.logs.next_grown() {
            return Box::pin(self.send_next(id)).await;
        }
        let stop = self.gateway.stop.clone();
        let next_heartbeat = self.next_heartbeat;
        tokio::select! {
            () = stop.cancelled() => self.end(),
            () = self.logs.growth() => {}
            () = sleep_until(next_heartbeat) => {
                self.pending.push_back(Bytes::from_static(self.framing.heartbeat()));
            }
        }
        Ok(())
    }

    /// Adds the next notification of a log that has grown.
    async fn send_next(&mut self, id: ResourceId) -> Result<(), StoreError> {
        let Some(log) = self.logs.get_mut(id) else { return Ok(()) };
        let range = LogRange {
            resource: id,
            topic: log.topic.clone(),
            after: log.sent,
            upto: *log.head.borrow_and_update(),
            least: least_audience(),
            format: self.format,
            is_sanitized: self.scope.form.is_set("sanitize"),
            filter: self.filter.clone(),
        };
        let ComposedRange { body, last, gap } = self.gateway.composer.compose_range(range).await?;
        if let Some(LogGap { from, to }) = gap {
            log.sent = to;
            let (topic, to) = (Some(log.topic.clone()), Some(to));
            self.push_gap(&StreamGap { topic, from, to, reason: GapReason::NotStored });
        }
        if let Some(log) = self.logs.get_mut(id) {
            log.sent = last;
        }
        if let Some(body) = body {
            self.push(body);
        }
        Ok(())
    }

    /// Adds a gap. Its id is the position behind it, so that a client is told of it once.
    fn push_gap(&mut self, gap: &StreamGap) {
        self.pending.push_back(match self.framing {
            Framing::Documents => format!("{}\n", gap.to_document(self.format)).into(),
            Framing::Events => {
                let id = self.logs.position();
                format!("id: {id}\nevent: gap\ndata: {}\n\n", gap.to_json()).into()
            }
        });
    }

    /// Adds the position at which the stream begins, for a client that is sent no entries with it.
    fn push_position(&mut self) {
        if self.framing == Framing::Events {
            let id = self.logs.position();
            self.pending.push_back(format!("id: {id}\nevent: position\ndata: {{}}\n\n").into());
        }
    }

    /// Adds a document, framed. The document itself is shared by all streams that send it.
    fn push(&mut self, document: Bytes) {
        match self.framing {
            Framing::Documents => self.pending.extend([document, Bytes::from_static(b"\n")]),
            Framing::Events => {
                let id = self.logs.position();
                self.pending.push_back(format!("id: {id}\nevent: notification\ndata: ").into());
                self.pending.push_back(match document.contains(&b'\n') {
                    // Each line of the data has a field of its own.
                    true => String::from_utf8_lossy(&document).replace('\n', "\ndata: ").into(),
                    false => document,
                });
                self.pending.push_back(Bytes::from_static(b"\n\n"));
            }
        }
    }

    /// Ends the stream if its token is no longer valid, and selects its logs again when that is due.
    async fn check(&mut self, now: Instant) {
        self.next_token_check = now + TOKEN_CHECK_INTERVAL;
        if now >= self.next_selection {
            self.next_selection = now + SELECTION_INTERVAL;
            return self.select().await; // which authenticates the client, too
        }
        // A store that cannot be read says nothing about the token.
        if let Ok(false) = self.scope.credentials.are_valid(&self.gateway).await {
            self.is_ended = true;
        }
    }

    /// Follows logs that the client has subscribed to since, from where its subscription began, and no
    /// longer those whose subscriptions have ended.
    async fn select(&mut self) {
        match self.scope.select(&self.gateway).await {
            Ok(selected) => self.logs.change_to(selected),
            Err(rejection) if is_temporary(rejection.status()) => {}
            Err(_) => self.is_ended = true,
        }
    }

    /// Ends the stream at shutdown.
    fn end(&mut self) {
        self.is_ended = true;
        if self.framing == Framing::Events {
            // No empty line follows, for which httpx-sse would return an event without data.
            self.pending.push_back(format!("retry: {RECONNECT_MS}\n").into());
        }
    }
}

/// Returns whether a refusal says nothing about the rights of the client: the store cannot be read now, or
/// the account sends too many requests.
fn is_temporary(status: StatusCode) -> bool {
    matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS)
}

/// Returns the audience of the records of a stream: that of a subscription without options.
fn least_audience() -> Audience {
    Updates::default().least()
}
