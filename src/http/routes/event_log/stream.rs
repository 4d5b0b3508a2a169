//! The event log as a stream of server-sent events.
//!
//! Each event carries its number, so that a browser that reconnects can tell where it stopped
//! (`Last-Event-ID`) and misses nothing without being told (`gap`). Events are read from the store, because other nodes record
//! events too. The number of streams is limited, and all of them end at shutdown.

use std::convert::Infallible;
use std::error::Error;
use std::fmt::Write;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{HeaderName, StatusCode, header};
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};
use tracing::warn;
use warp::reply::{Reply, Response};

use super::LogView;
use super::stream_slots::{StreamSlot, StreamSlots};
use crate::http::kit::open_ended::OpenEnded;
use crate::http::kit::rejection::unavailable;
use crate::http::kit::reply::{plain_text, set_header};
use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use feedgate_core::event::EventFilter;
use feedgate_core::store::{EventNumbers, StoreError};

/// The maximum number of events read and sent at once.
const BATCH: usize = 200;
/// How often the store is checked for events of other nodes. Events of this node wake the stream.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// How often a stream checks that the token of its viewer is still valid.
const VALIDITY_INTERVAL: Duration = Duration::from_secs(5);
/// The interval between heartbeats: proxies close silent connections, and a closed connection is
/// noticed only by writing to it.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// The delay after which a browser reconnects.
const RETRY: &str = "retry: 2000\n\n";

/// Returns a stream of the requested events, starting where the client stopped.
pub(super) async fn reply(
    gateway: Arc<Gateway>,
    request: &Request,
    view: LogView,
    streams: &StreamSlots,
) -> Response {
    let Ok(slot) = streams.acquire(request, &view) else {
        let mut full = plain_text(
            StatusCode::SERVICE_UNAVAILABLE,
            "Too many streams are open, please try again later.",
        );
        set_header(&mut full, header::RETRY_AFTER, "60");
        return full;
    };
    let seen = match begin(&gateway, request, &view.wanted).await {
        Ok(seen) => seen,
        Err(err) => return unavailable(&err),
    };
    let (pieces, mut sent) = mpsc::channel(1);
    let written = gateway.event_log.watch();
    let last_sent = Instant::now();
    tokio::spawn(Tail { gateway, view, seen, written, last_sent, pieces, _slot: slot }.run());
    let body = stream::poll_fn(move |cx| sent.poll_recv(cx)).map(Ok::<Bytes, Infallible>);
    let mut response = warp::reply::stream(body).into_response();
    set_header(&mut response, header::CONTENT_TYPE, "text/event-stream; charset=utf-8");
    set_header(&mut response, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    // Buffering proxies would delay the events.
    set_header(&mut response, HeaderName::from_static("x-accel-buffering"), "no");
    response.extensions_mut().insert(OpenEnded);
    response
}

/// Returns the number of the event after which the stream begins.
async fn begin(
    gateway: &Gateway,
    request: &Request,
    wanted: &EventFilter,
) -> Result<i64, StoreError> {
    let last = request.header("last-event-id").parse().ok().filter(|seen| *seen >= 0);
    match last.or(wanted.after) {
        Some(seen) => Ok(seen),
        None => Ok(gateway.store.event_numbers().await?.newest),
    }
}

/// Returns the events after `seen` that are not sent because they are no longer stored, or because there
/// is no event `seen`, and which of it.
fn gap(seen: i64, oldest: i64, newest: i64) -> Option<(RangeInclusive<i64>, &'static str)> {
    if seen > newest {
        return Some((1..=newest, "unknown_position"));
    }
    (oldest > seen + 1).then(|| (seen + 1..=oldest - 1, "not_stored"))
}

/// The task that feeds one stream.
struct Tail {
    gateway: Arc<Gateway>,
    view: LogView,
    /// The number of the last event that was examined.
    seen: i64,
    written: watch::Receiver<i64>,
    /// The time of the last write.
    last_sent: Instant,
    pieces: mpsc::Sender<Bytes>,
    _slot: StreamSlot,
}

impl Tail {
    /// Sends events until the client disconnects or feedgate stops.
    async fn run(mut self) {
        let (stop, reader) = (self.gateway.stop.clone(), self.pieces.clone());
        tokio::select! {
            () = stop.cancelled() => {}
            () = reader.closed() => {}
            () = self.follow() => {}
        }
    }

    async fn follow(&mut self) {
        self.send(RETRY.to_owned()).await;
        let mut checked = Instant::now();
        loop {
            if checked.elapsed() >= VALIDITY_INTERVAL {
                checked = Instant::now();
                match self.view.is_valid(&self.gateway).await {
                    Ok(true) => {}
                    Ok(false) => return,
                    Err(err) => {
                        warn!(error = &err as &dyn Error, "closing an event stream early");
                        return;
                    }
                }
            }
            self.written.mark_unchanged(); // before reading, so that no event in between is missed
            match self.more().await {
                Ok(true) => continue,
                Ok(false) => {}
                Err(err) => {
                    // The browser reconnects, and sends the number at which it stopped.
                    warn!(error = &err as &dyn Error, "closing an event stream early");
                    return;
                }
            }
            if self.last_sent.elapsed() >= HEARTBEAT {
                self.send(": still here\n\n".to_owned()).await;
            }
            // Events of other nodes cause no signal on this node.
            let _ = timeout(CHECK_INTERVAL, self.written.changed()).await;
        }
    }

    /// Sends a batch of new events. Returns whether there may be more.
    async fn more(&mut self) -> Result<bool, StoreError> {
        let EventNumbers { oldest, newest } = self.gateway.store.event_numbers().await?;
        if let Some((gap, reason)) = gap(self.seen, oldest, newest) {
            let data = json!({ "from": gap.start(), "to": gap.end(), "reason": reason });
            self.send(format!("id: {}\nevent: gap\ndata: {data}\n\n", gap.end())).await;
            self.seen = *gap.end();
        }
        if newest <= self.seen {
            return Ok(false);
        }
        let wanted = EventFilter {
            after: Some(self.seen),
            before: None,
            limit: BATCH,
            ..self.view.wanted.clone()
        };
        let page = self.gateway.store.events(&wanted).await?;
        // Events that the filter excludes are not examined again.
        self.seen = page.next.unwrap_or_else(|| newest.max(self.seen));
        if let Some(last) = page.events.last() {
            self.seen = self.seen.max(last.id);
        }
        let is_all = page.next.is_none();
        if page.events.is_empty() {
            return Ok(!is_all);
        }
        let mut piece = String::new();
        for kept in &page.events {
            // JSON contains no line ends, so this is one line. Writing to a String cannot fail.
            let Some(line) = self.view.visible_line(kept) else { continue };
            write!(piece, "id: {}\ndata: {line}\n\n", kept.id).unwrap_or_default();
        }
        if !piece.is_empty() {
            self.send(piece).await;
        }
        Ok(!is_all)
    }

    /// Sends a piece of the stream. A disconnected client is noticed by `run`.
    async fn send(&mut self, piece: String) {
        self.last_sent = Instant::now();
        self.pieces.send(piece.into()).await.unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h17_what_is_not_sent_is_a_gap() {
        assert_eq!(gap(7, 1, 9), None);
        assert_eq!(gap(7, 8, 9), None);
        assert_eq!(gap(9, 10, 9), None, "all has been seen, and nothing is stored");
        assert_eq!(gap(7, 9, 9), Some((8..=8, "not_stored")));
        assert_eq!(gap(7, 10, 9), Some((8..=9, "not_stored")));
        assert_eq!(gap(10, 1, 9), Some((1..=9, "unknown_position")));
    }
}
