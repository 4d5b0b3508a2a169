//! What `feedgate listen` prints of a notification: its headers and its body, below its line.
//!
//! What senders wrote is printed without control characters, so that no sender can control the
//! terminal (S42). JSON escapes them.

use http::HeaderMap;
use serde_json::{Map, Value, json};

use crate::cli::event_printer::EventPrinter;
use crate::cli::print_line;
use crate::cli::terminal::printable;

use super::callback::ReceivedNotification;
use super::signatures::SignatureVerdicts;

/// The longest part of a body that is printed for people. JSON has the whole body.
const PRINTED_CHARS: usize = 4_000;

/// What the first line of a notification says.
#[derive(Clone, Copy, Debug)]
pub(super) struct NotificationSummary<'a> {
    pub(super) event: &'a str,
    pub(super) topic: &'a str,
    pub(super) detail: &'a str,
}

/// Prints a notification with its headers and its body.
pub(super) fn print_notification(
    printer: EventPrinter,
    received: &ReceivedNotification,
    verdicts: SignatureVerdicts,
    summary: NotificationSummary<'_>,
) {
    let NotificationSummary { event, topic, detail } = summary;
    let body = String::from_utf8_lossy(&received.body);
    if printer.is_json {
        let details = json!({
            "signatures": verdicts.to_json(),
            "headers": headers_as_json(&received.headers),
            "body": body,
        });
        return printer.print_with(event, topic, detail, details);
    }
    printer.print(event, topic, detail);
    for (name, value) in &received.headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        print_line(format!("    {name}: {}", printable(&value)));
    }
    let printed: String = body.chars().take(PRINTED_CHARS).collect();
    for line in printed.lines() {
        print_line(format!("    | {}", printable(line)));
    }
    if printed.len() < body.len() {
        print_line(format!("    | ... {} bytes in all", received.body.len()));
    }
}

/// Returns the headers as an object. Values of a header that occurs several times are joined by
/// commas.
fn headers_as_json(headers: &HeaderMap) -> Value {
    let names = headers.keys().map(|name| {
        let values = headers.get_all(name).iter();
        let values: Vec<_> =
            values.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
        (name.as_str().to_owned(), Value::String(values.join(", ")))
    });
    Value::Object(names.collect::<Map<String, Value>>())
}

/// An error with its causes, in one line.
pub(super) fn reason(err: &dyn std::error::Error) -> String {
    let mut text = err.to_string();
    let mut cause = err.source();
    while let Some(err) = cause {
        text.push_str(&format!(": {err}"));
        cause = err.source();
    }
    text
}
