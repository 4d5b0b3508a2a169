//! The format of server-sent events (HTML, `#parsing-an-event-stream`). Data is read to the byte, because
//! it is signed.

use bytes::Bytes;

/// The longest event that is read: a document of 100 entries has a few megabytes.
const LONGEST_EVENT_BYTES: usize = 64 * 1024 * 1024;

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServerEvent {
    /// The type.
    pub(super) kind: String,
    /// The id of this event, or of the last one that had one.
    pub(super) id: String,
    /// The data, whose lines are joined by line feeds.
    pub(super) data: Bytes,
}

/// A stream has an event that is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stream has an event of more than {LONGEST_EVENT_BYTES} bytes")]
pub(super) struct EventTooLong;

/// Reads events from the pieces of a stream.
#[derive(Debug, Default)]
pub(super) struct EventParser {
    line: Vec<u8>,
    /// Whether the last byte was a carriage return, behind which a line feed is part of the same line end.
    is_after_return: bool,
    kind: String,
    id: String,
    data: Vec<u8>,
    has_data: bool,
}

impl EventParser {
    /// Reads the next piece. Returns the events that end in it.
    pub(super) fn read(&mut self, piece: &[u8]) -> Result<Vec<ServerEvent>, EventTooLong> {
        let mut events = Vec::new();
        let mut rest = piece;
        if std::mem::take(&mut self.is_after_return) && rest.first() == Some(&b'\n') {
            rest = &rest[1..];
        }
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.line.extend_from_slice(&rest[..end]);
            let is_return = rest[end] == b'\r';
            rest = &rest[end + 1..];
            match (is_return, rest.first()) {
                (true, Some(b'\n')) => rest = &rest[1..],
                (true, None) => self.is_after_return = true,
                _ => {}
            }
            events.extend(self.end_line());
        }
        self.line.extend_from_slice(rest);
        match self.line.len() + self.data.len() > LONGEST_EVENT_BYTES {
            true => Err(EventTooLong),
            false => Ok(events),
        }
    }

    /// Reads a complete line. Returns the event that it ends.
    fn end_line(&mut self) -> Option<ServerEvent> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            return self.end_event();
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let text = || String::from_utf8_lossy(value).into_owned();
        match &line[..colon] {
            b"event" => self.kind = text(),
            b"id" if !value.contains(&0) => self.id = text(),
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
                self.has_data = true;
            }
            _ => {} // a comment, or a field that is not needed
        }
        None
    }

    fn end_event(&mut self) -> Option<ServerEvent> {
        let (kind, data) = (std::mem::take(&mut self.kind), std::mem::take(&mut self.data));
        let has_data = std::mem::take(&mut self.has_data);
        has_data.then(|| ServerEvent { kind, id: self.id.clone(), data: data.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, id: &str, data: &str) -> ServerEvent {
        let (kind, id) = (kind.to_owned(), id.to_owned());
        ServerEvent { kind, id, data: data.to_owned().into() }
    }

    #[test]
    fn events_are_read_whatever_the_pieces_and_line_ends_are() {
        let stream = ": keep-alive\nid: 7.1\nevent: notification\ndata: {\"a\":1}\n\n\
                      id: 7.2\nevent: notification\ndata: <feed>\ndata:  x\ndata: \n\n\
                      retry: 1000\n\nid\nevent: gap\ndata:{}\n\ndata: never ended\n";
        let want = [
            event("notification", "7.1", "{\"a\":1}"),
            event("notification", "7.2", "<feed>\n x\n"),
            event("gap", "", "{}"),
        ];
        for line_end in ["\n", "\r", "\r\n"] {
            let stream = stream.replace('\n', line_end);
            for length in [1, 2, 3, 7, stream.len()] {
                let mut parser = EventParser::default();
                let read = |piece: &[u8]| parser.read(piece).unwrap();
                let events: Vec<_> = stream.as_bytes().chunks(length).flat_map(read).collect();
                assert_eq!(events, want, "{line_end:?} in pieces of {length}");
            }
        }
    }

    #[test]
    fn an_event_that_never_ends_takes_a_bounded_amount_of_memory() {
        let mut parser = EventParser::default();
        let piece = vec![b'x'; 1 << 20];
        let read = (0..100).find_map(|_| parser.read(&piece).err());
        assert_eq!(read, Some(EventTooLong));
    }
}
