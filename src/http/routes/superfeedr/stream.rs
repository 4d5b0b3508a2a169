//! Streams of `hub.mode=retrieve`: the newest entries, and then each notification as it is composed
//! for subscriptions, over a connection that stays open.
//!
//! A stream is either server-sent events, one document each, or documents one after the other. The
//! id of an event is the position in all logs of the stream, so a client that reconnects with
//! `Last-Event-ID`, to any node, misses nothing without being told (`gap`). A stream holds one document
//! at a time and reads the next when the client has taken it, so a slow client needs no memory.

mod gap;
mod position;
mod resumption;
mod scope;

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::select_all;
use futures_util::stream::{self, Stream};
use http::{HeaderName, StatusCode, header};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use warp::reply::{Reply, Response};

use super::address;
use super::api_reply::ApiReply;
use super::combined;
use super::entries_document::EntriesDocument;
use super::params;
use super::retrieve;
use super::wait::Framing;
use crate::http::kit::auth::Credentials;
use crate::http::kit::open_ended::OpenEnded;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::reply::{sandboxed, set_header};
use crate::http::kit::request::Request;
use crate::http::kit::slots::{HeldSlot, NoSlot};
use crate::http::state::Gateway;
use crate::jobs::deliver::{ComposedRange, LogGap, LogRange};
use feedgate_core::account::{Access, AccountId};
use feedgate_core::query::EntryFilter;
use feedgate_core::record::{Audience, Seq};
use feedgate_core::resource::{Resource, ResourceId};
use feedgate_core::store::StoreError;
use feedgate_core::subscription::{Format, Updates};
use feedgate_protocol::form::Form;

use gap::{GapReason, StreamGap};
use position::StreamPosition;
use resumption::{Resumption, resume};
use scope::{SelectedLog, StreamScope};

/// The interval between heartbeats: proxies close silent connections, and a closed connection is
/// noticed only by writing to it.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How often the token and the subscriptions of a stream are checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(60);
/// The number of seconds after which a client repeats a request that found too many streams open.
const RETRY_AFTER_S: u64 = 60;
/// The delay after which a client reconnects that this node disconnects at shutdown, in
/// milliseconds: another node may accept it at once.
const RECONNECT_MS: u64 = 1_000;

/// Answers with a stream of the selected logs. It begins behind the event whose id the client sends
/// as `Last-Event-ID`, or behind the entry `after`, or else with the newest entries.
pub(super) async fn reply(
    gateway: &Arc<Gateway>,
    request: &Request,
    form: &Form,
    access: &Access,
    framing: Framing,
) -> Result<ApiReply, Rejection> {
    let format = match params::format(request, form)? {
        Some(Format::Raw) => {
            let reason = "A stream has the format atom or json, not raw.";
            return Err(Rejection::unprocessable(reason));
        }
        Some(format) => format,
        None if framing == Framing::Events => Format::Json,
        None => Format::Atom,
    };
    let filter = params::filter(form)?;
    let slot = gateway.streams.acquire(access.account).map_err(|why| match why {
        NoSlot::AllHeld => Rejection::overloaded(
            "Too many streams are open, please try again later.",
            RETRY_AFTER_S,
        ),
        NoSlot::TooManyHeld => Rejection::too_many_streams(RETRY_AFTER_S),
    })?;
    let credentials = Credentials::read(request, form)?;
    let scope = StreamScope { form: form.clone(), credentials };
    let logs = scope.logs(gateway, access).await?;
    let mut entries = EntryStream::new(gateway, (scope, slot), (framing, format), filter);
    entries.begin(logs, request).await?;
    Ok(ApiReply::Response(response(entries.into_response(), framing, format)))
}

/// Adds the headers of a stream.
fn response(mut response: Response, framing: Framing, format: Format) -> Response {
    let content_type = match (framing, format) {
        (Framing::Events, _) => "text/event-stream; charset=utf-8",
        (Framing::Documents, Format::Json) => "application/json; charset=utf-8",
        (Framing::Documents, _) => "application/atom+xml",
    };
    set_header(&mut response, header::CONTENT_TYPE, content_type);
    set_header(&mut response, header::CACHE_CONTROL, "private, no-store");
    set_header(&mut response, header::VARY, "Accept, Authorization");
    // Buffering proxies would delay the entries.
    set_header(&mut response, HeaderName::from_static("x-accel-buffering"), "no");
    response.extensions_mut().insert(OpenEnded);
    sandboxed(response)
}

/// A log of a stream.
struct StreamedLog {
    topic: String,
    /// The last record that was sent.
    sent: Seq,
    head: watch::Receiver<Seq>,
}

/// A stream of entries, which is read piece by piece.
struct EntryStream {
    gateway: Arc<Gateway>,
    scope: StreamScope,
    framing: Framing,
    format: Format,
    /// Which entries are sent (row Q-5); `None`: all.
    filter: Option<EntryFilter>,
    logs: BTreeMap<ResourceId, StreamedLog>,
    /// The pieces that come next.
    pending: VecDeque<Bytes>,
    is_ended: bool,
    next_heartbeat: Instant,
    next_check: Instant,
    _slot: HeldSlot<AccountId>,
}

impl EntryStream {
    fn new(
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
            logs: BTreeMap::new(),
            pending: VecDeque::new(),
            is_ended: false,
            next_heartbeat: now + HEARTBEAT,
            next_check: now + CHECK_INTERVAL,
            _slot: slot,
        }
    }

    /// Follows the logs from where the client stopped.
    async fn begin(
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
            self.follow(&log.resource, sent);
        }
        for gap in &resumed.gaps {
            self.push_gap(gap);
        }
        if !resumed.is_position {
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
            self.follow(resource, after);
            return Ok(());
        }
        let document = match single {
            Some(resource) => {
                let records = retrieve::records(&gateway, &form, resource).await?;
                let format = Some(self.format);
                let (combined_head, records, etag) = (None, &*records, "");
                let document = EntriesDocument {
                    resource,
                    combined_head,
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

    /// Follows the log of a resource behind `sent`.
    fn follow(&mut self, resource: &Resource, sent: Seq) {
        let head = self.gateway.heads.follow(resource.id, resource.head);
        let topic = resource.topic.as_str().to_owned();
        self.logs.insert(resource.id, StreamedLog { topic, sent, head });
    }

    fn into_response(self) -> Response {
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
        let grown = self.logs.iter().find(|(_, log)| *log.head.borrow() > log.sent);
        if let Some(id) = grown.map(|(id, _)| *id) {
            return Box::pin(self.send_next(id)).await;
        }
        let stop = self.gateway.stop.clone();
        let next_heartbeat = self.next_heartbeat;
        tokio::select! {
            () = stop.cancelled() => self.end(),
            () = growth(&mut self.logs) => {}
            () = sleep_until(next_heartbeat) => {
                if Instant::now() >= self.next_check {
                    Box::pin(self.check()).await;
                }
                if !self.is_ended {
                    self.pending.push_back(Bytes::from_static(self.framing.heartbeat()));
                }
            }
        }
        Ok(())
    }

    /// Adds the next notification of a log that has grown.
    async fn send_next(&mut self, id: ResourceId) -> Result<(), StoreError> {
        let Some(log) = self.logs.get_mut(&id) else { return Ok(()) };
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
        if let Some(log) = self.logs.get_mut(&id) {
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
                let id = self.position();
                format!("id: {id}\nevent: gap\ndata: {}\n\n", gap.to_json()).into()
            }
        });
    }

    fn position(&self) -> StreamPosition {
        StreamPosition(self.logs.iter().map(|(id, log)| (*id, log.sent)).collect())
    }

    /// Adds a document, framed. The document itself is shared by all streams that send it.
    fn push(&mut self, document: Bytes) {
        match self.framing {
            Framing::Documents => self.pending.extend([document, Bytes::from_static(b"\n")]),
            Framing::Events => {
                let id = self.position();
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

    /// Ends the stream if its client may not read it any more. Otherwise logs are followed that it
    /// subscribed to since, from where its subscription began, and the others no more.
    async fn check(&mut self) {
        self.next_check = Instant::now() + CHECK_INTERVAL;
        match self.scope.select(&self.gateway).await {
            Ok(selected) => {
                self.logs.retain(|id, _| selected.contains_key(id));
                for (id, SelectedLog { resource, begun_after }) in selected {
                    if !self.logs.contains_key(&id) {
                        self.follow(&resource, begun_after);
                    }
                }
            }
            Err(rejection) if rejection.status() == StatusCode::SERVICE_UNAVAILABLE => {}
            Err(_) => self.is_ended = true,
        }
    }

    /// Ends the stream at shutdown.
    fn end(&mut self) {
        self.is_ended = true;
        if self.framing == Framing::Events {
            self.pending.push_back(format!("retry: {RECONNECT_MS}\n\n").into());
        }
    }
}

impl Framing {
    /// Returns a piece that carries nothing: a comment, or white space between two documents. The
    /// comment is one line, because some clients take an empty line behind it for an event.
    fn heartbeat(self) -> &'static [u8] {
        match self {
            Framing::Events => b": keep-alive\n",
            Framing::Documents => b"\n",
        }
    }
}

/// Returns the audience of the records of a stream: that of a subscription without options.
fn least_audience() -> Audience {
    Updates::default().least()
}

/// Returns when one of the logs has grown.
async fn growth(logs: &mut BTreeMap<ResourceId, StreamedLog>) {
    if logs.is_empty() {
        return std::future::pending().await;
    }
    let changes = logs.values_mut().map(|log| Box::pin(log.head.changed()));
    if select_all(changes).await.0.is_err() {
        std::future::pending().await // the watch has ended, and with it the node
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Row R-14.
    #[test]
    fn a_heartbeat_of_events_is_one_comment_and_no_empty_line() {
        let heartbeat = std::str::from_utf8(Framing::Events.heartbeat()).unwrap();
        assert!(heartbeat.starts_with(':') && heartbeat.ends_with('\n'), "{heartbeat:?}");
        assert_eq!(heartbeat.lines().count(), 1);
        assert!(!heartbeat.contains("\n\n"), "{heartbeat:?}");
    }
}
