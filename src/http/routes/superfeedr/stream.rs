//! Streams of `hub.mode=retrieve`: the newest entries, and then each notification as it is composed
//! for subscriptions, over a connection that stays open.
//!
//! A stream is either server-sent events, one document each, or documents one after the other. The
//! id of an event is the position in all logs of the stream, so a client that reconnects with
//! `Last-Event-ID`, to any node, misses nothing without being told (`gap`). A stream holds one document
//! at a time and reads the next when the client has taken it, so a slow client needs no memory.

mod entry_stream;
mod gap;
mod position;
mod resumption;
mod scope;
mod streamed_logs;

use std::sync::Arc;

use http::{HeaderName, header};
use warp::reply::Response;

use super::params;
use super::wait::Framing;
use crate::http::kit::auth::Credentials;
use crate::http::kit::open_ended::OpenEnded;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::reply::{sandboxed, set_header};
use crate::http::kit::request::Request;
use crate::http::kit::slots::NoSlot;
use crate::http::state::Gateway;
use feedgate_core::account::Access;
use feedgate_core::subscription::Format;
use feedgate_protocol::form::Form;

use entry_stream::EntryStream;
pub(crate) use position::StreamPosition;
use scope::StreamScope;

/// The number of seconds after which a client repeats a request that found too many streams open.
const RETRY_AFTER_S: u64 = 60;

/// Answers with a stream of server-sent events, as [`reply`] does.
pub(crate) async fn events(
    gateway: &Arc<Gateway>,
    request: &Request,
    form: &Form,
    access: &Access,
) -> Result<Response, Rejection> {
    reply(gateway, request, form, access, Framing::Events).await
}

/// Answers with a stream of the selected logs. It begins behind the event whose id the client sends
/// as `Last-Event-ID`, or behind the entry `after`, or else with the newest entries.
pub(super) async fn reply(
    gateway: &Arc<Gateway>,
    request: &Request,
    form: &Form,
    access: &Access,
    framing: Framing,
) -> Result<Response, Rejection> {
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
    Ok(response(entries.into_response(), framing, format))
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
