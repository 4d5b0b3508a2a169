//! How a client waits for entries: `wait` and `Accept`.

use std::time::Duration;

use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use feedgate_protocol::form::Form;

/// How long a client waits for the next entry at most: less than the minute after which proxies
/// take a silent connection for dead.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(50);

/// How a client waits for entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// It does not: it is answered at once.
    No,
    /// For the first entry.
    Poll,
    /// For all entries.
    Stream(Framing),
}

/// The form of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// Server-sent events (HTML, `#server-sent-events`).
    Events,
    /// Documents, each followed by a line end.
    Documents,
}

impl Framing {
    /// Returns a piece that carries nothing: a comment, or white space between two documents. The
    /// comment is one line, because some clients take an empty line behind it for an event.
    pub(super) fn heartbeat(self) -> &'static [u8] {
        match self {
            Framing::Events => b": keep-alive\n",
            Framing::Documents => b"\n",
        }
    }
}

impl Wait {
    /// Reads `wait` and `Accept`.
    pub(super) fn from_request(request: &Request, form: &Form) -> Result<Wait, Rejection> {
        let accept = request.header("accept").to_ascii_lowercase();
        let accepts_events = accept.contains("text/event-stream");
        let framing = if accepts_events { Framing::Events } else { Framing::Documents };
        match form.get("wait").unwrap_or_default() {
            "" if accepts_events => Ok(Wait::Stream(framing)),
            "" => Ok(Wait::No),
            "poll" => Ok(Wait::Poll),
            "stream" => Ok(Wait::Stream(framing)),
            other => {
                let reason = format!("wait must be poll or stream, not {other}.");
                Err(Rejection::unprocessable(reason))
            }
        }
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
