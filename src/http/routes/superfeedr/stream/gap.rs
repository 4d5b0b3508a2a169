//! A gap in a stream: records that its client is owed and does not get.
//!
//! A stream never passes over records without saying so. Among server-sent events, a gap is an event
//! of its own; among documents, it is a document without entries.

use serde_json::{Value, json};

use feedgate_core::record::Seq;
use feedgate_core::subscription::Format;
use feedgate_feed::render::atom;

/// The namespace of the element that stands for a gap in a stream of Atom documents.
const NAMESPACE: &str = "urn:feedgate:streams";

/// Records that a stream does not send, numbered as in the ids of its events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StreamGap {
    /// The topic; `None` if it is not known any more.
    pub(super) topic: Option<String>,
    /// The first record.
    pub(super) from: Seq,
    /// The last record; `None` if it is not known.
    pub(super) to: Option<Seq>,
    /// Why they are not sent.
    pub(super) reason: GapReason,
}

/// Why records are not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GapReason {
    /// They are no longer stored: the archive keeps documents for a limited time.
    NotStored,
    /// The resource was deleted with its log, because nobody was subscribed to it.
    Deleted,
    /// The client's position is not one of this log, so it is not known which of them it has.
    UnknownPosition,
}

impl GapReason {
    /// The word that clients read.
    fn as_str(self) -> &'static str {
        match self {
            GapReason::NotStored => "not_stored",
            GapReason::Deleted => "deleted",
            GapReason::UnknownPosition => "unknown_position",
        }
    }
}

impl StreamGap {
    /// Returns the gap as the data of an event.
    pub(super) fn to_json(&self) -> Value {
        json!({
            "topic": self.topic,
            "from": self.from.0,
            "to": self.to.map(|seq| seq.0),
            "reason": self.reason.as_str(),
        })
    }

    /// Returns the gap as a document without entries.
    pub(super) fn to_document(&self, format: Format) -> String {
        if format == Format::Json {
            return json!({ "gap": self.to_json(), "items": [] }).to_string();
        }
        let topic = self.topic.as_deref().unwrap_or(NAMESPACE);
        let mut attributes = vec![("from", self.from.to_string())];
        attributes.extend(self.to.map(|to| ("to", to.to_string())));
        attributes.push(("reason", self.reason.as_str().to_owned()));
        atom::notice(topic, NAMESPACE, "gap", &attributes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_written_in_the_format_of_the_stream() {
        let gap = StreamGap {
            topic: Some("https://a.test/?b&c".to_owned()),
            from: Seq(2),
            to: Some(Seq(12)),
            reason: GapReason::NotStored,
        };
        let json = r#"{"topic":"https://a.test/?b&c","from":2,"to":12,"reason":"not_stored"}"#;
        assert_eq!(gap.to_json().to_string(), json);
        assert_eq!(gap.to_document(Format::Json), format!("{{\"gap\":{json},\"items\":[]}}"));
        let document = gap.to_document(Format::Atom);
        assert!(document.contains("<id>https://a.test/?b&amp;c</id>"), "{document}");
        let element = "<gap xmlns=\"urn:feedgate:streams\" from=\"2\" to=\"12\" \
                       reason=\"not_stored\"/>";
        assert!(document.contains(element), "{document}");
    }
}
