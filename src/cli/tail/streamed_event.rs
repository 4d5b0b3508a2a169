//! What the events of a stream contain: which feed a notification is of, and which records it has.

use bytes::Bytes;
use serde_json::Value;

use super::event_stream::ServerEvent;
use crate::http::routes::superfeedr::StreamPosition;
use crate::jobs::deliver::StreamedNotification;
use feedgate_core::record::Seq;
use feedgate_core::resource::ResourceId;
use feedgate_core::subscription::Format;
use feedgate_core::topic::Topic;
use feedgate_protocol::xml;

/// Reads the events of a stream, and remembers how far it was read.
#[derive(Debug)]
pub(super) struct StreamReader {
    /// The topic of the stream; `None` for one of several feeds.
    topic: Option<String>,
    format: Format,
    /// What was handled of each feed.
    handled: StreamPosition,
}

impl StreamReader {
    /// Begins behind the position `from`.
    pub(super) fn new(topic: Option<String>, format: Format, from: Option<&str>) -> StreamReader {
        let handled = from.and_then(StreamPosition::parse).unwrap_or_default();
        StreamReader { topic, format, handled }
    }

    /// The position behind the last event that was handled, if there is one.
    pub(super) fn position(&self) -> Option<String> {
        (!self.handled.0.is_empty()).then(|| self.handled.to_string())
    }

    /// Counts an event as handled.
    pub(super) fn advance(&mut self, event: &ServerEvent) {
        if let Some(position) = StreamPosition::parse(&event.id) {
            self.handled = position;
        }
    }

    /// Returns the notification in an event, or why there is none.
    pub(super) fn notification(&self, event: &ServerEvent) -> Result<StreamedNotification, String> {
        let topic = match &self.topic {
            Some(topic) => topic.clone(),
            None => topic_of(&event.data, self.format).ok_or("the document names no feed")?,
        };
        let topic = Topic::parse(topic).map_err(|err| err.to_string())?;
        let (resource, first, last) = self.records(&event.id).ok_or("the event has no position")?;
        let (format, body) = (self.format, event.data.clone());
        Ok(StreamedNotification { topic, resource, first, last, format, body })
    }

    /// Returns the feed that the position of an event is ahead of, its first record after what was handled, and
    /// its last one. Where several are, the records of the others are for nobody.
    fn records(&self, id: &str) -> Option<(ResourceId, Seq, Seq)> {
        let position = StreamPosition::parse(id)?;
        let is_ahead =
            |(resource, last): &(&ResourceId, &Seq)| self.upto(**resource) != Some(**last);
        let ahead = position.0.iter().find(is_ahead);
        let (resource, last) = ahead.or_else(|| position.0.first_key_value())?;
        // The stream began with the newest entries of a feed of which nothing was handled before.
        let before = self.upto(*resource).filter(|before| before < last);
        let first = before.map_or(*last, |before| Seq(before.0 + 1));
        Some((*resource, first, *last))
    }

    /// Returns the last record of a feed that was handled.
    fn upto(&self, resource: ResourceId) -> Option<Seq> {
        self.handled.0.get(&resource).copied()
    }
}

/// Returns the topic that the status of a document names.
fn topic_of(document: &Bytes, format: Format) -> Option<String> {
    if format == Format::Json {
        let document: Value = serde_json::from_slice(document).ok()?;
        return document["status"]["feed"].as_str().map(str::to_owned);
    }
    // The status is the first element in the feed, and has no elements in elements.
    let text = std::str::from_utf8(document).ok()?;
    let (_, text) = text.split_once("<status ")?;
    let (status, _) = text.split_once("</status>")?;
    let status = xml::read(format!("<status {status}</status>").as_bytes()).ok()?;
    status.attribute("feed").map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: &str, data: &str) -> ServerEvent {
        let (kind, id) = ("notification".to_owned(), id.to_owned());
        ServerEvent { kind, id, data: data.to_owned().into() }
    }

    #[test]
    fn the_records_of_a_notification_follow_from_the_positions() {
        let mut reader = StreamReader::new(None, Format::Json, Some("7.40,9.3"));
        let json = r#"{"status":{"feed":"https://a.test/"},"items":[]}"#;
        #[rustfmt::skip]
        let cases = [
            ("7.42,9.3",      Some((7, 41, 42))),
            ("7.42,9.4",      Some((9, 4, 4))),
            ("7.42,9.4,11.5", Some((11, 5, 5))),
            ("7.42,9.4,11.5", Some((7, 42, 42))),
            ("",              None),
        ];
        for (id, want) in cases {
            let read = reader.notification(&event(id, json)).ok();
            let records = read.map(|read| (read.resource.0, read.first.0, read.last.0));
            assert_eq!(records, want, "{id}");
            reader.advance(&event(id, json));
        }
        assert_eq!(reader.position().as_deref(), Some("7.42,9.4,11.5"));
    }

    #[test]
    fn the_feed_of_a_document_is_found_in_its_status() {
        let json = r#"{"status":{"code":200,"feed":"https://a.test/?b&c"},"items":[]}"#;
        let atom = "<?xml version=\"1.0\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\">\n\
                    <status feed=\"https://a.test/?b&amp;c\" xmlns=\"urn:s\">\n<http code=\"200\">\
                    </http></status>\n<title>&lt;status feed=\"x\"></title></feed>\n";
        for (format, document) in [(Format::Json, json), (Format::Atom, atom)] {
            let topic = topic_of(&document.to_owned().into(), format);
            assert_eq!(topic.as_deref(), Some("https://a.test/?b&c"));
            assert_eq!(topic_of(&Bytes::from_static(b"{}"), format), None);
        }
    }
}
