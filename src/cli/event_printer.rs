//! The output of `feedgate listen` and `feedgate tail`: lines for people, or with `--json` one object per
//! event.
//!
//! What servers and senders wrote is printed without control characters, so that none of them can
//! control the terminal (S42). JSON escapes them.

use chrono::SecondsFormat;
use serde_json::{Value, json};

use super::print_line;
use super::terminal::printable;
use crate::jobs::runner;

/// Prints events.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventPrinter {
    pub(super) is_json: bool,
}

impl EventPrinter {
    /// Prints what happened to the subscription to a topic.
    pub(super) fn print(self, event: &str, topic: &str, detail: &str) {
        self.print_with(event, topic, detail, json!({}));
    }

    /// Prints the same, with further fields of the object.
    pub(super) fn print_with(self, event: &str, topic: &str, detail: &str, fields: Value) {
        let at = runner::now().to_rfc3339_opts(SecondsFormat::Secs, true);
        if !self.is_json {
            let line = format!("{at}  {event:<10} {topic}  {detail}");
            return print_line(printable(&line).trim_end());
        }
        let mut object = json!({ "at": at, "event": event, "topic": topic, "detail": detail });
        if let (Some(object), Value::Object(fields)) = (object.as_object_mut(), fields) {
            object.extend(fields);
        }
        print_line(object.to_string());
    }
}
