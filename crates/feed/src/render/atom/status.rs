//! Superfeedr's status element (seed 003, "Schema & Data Formats").
//!
//! The element is the first child of the feed and makes its namespace the default one, because
//! clients look up `status`, `http` and `next_fetch` by these unprefixed names.

use chrono::{DateTime, SecondsFormat, Utc};

use crate::render::StatusReport;

use super::super::xml::{push_attribute, push_element, push_end, push_text};

/// Superfeedr's namespace.
const NAMESPACE: &str = "http://superfeedr.com/xmpp-pubsub-ext";

/// Appends the status of the resource that is subscribed to as `topic`. Unknown values are left
/// out.
pub(super) fn push_status(out: &mut String, topic: &str, status: StatusReport<'_>) {
    out.push_str("<status");
    push_attribute(out, "feed", topic);
    push_attribute(out, "xmlns", NAMESPACE);
    out.push_str(">\n<http");
    push_attribute(out, "code", &status.http_code.to_string());
    out.push('>');
    push_text(out, status.http_message);
    push_end(out, "http");
    push_date(out, "next_fetch", status.next_fetch);
    push_element(out, "period", &status.period_s.to_string());
    if !status.period_reason.is_empty() {
        push_element(out, "period_reason", status.period_reason);
    }
    push_date(out, "last_fetch", status.last_fetch);
    push_date(out, "last_parse", status.last_parse);
    push_date(out, "last_maintenance_at", Some(status.last_maintenance_at));
    let entries = status.entries_count_since_last_maintenance.to_string();
    push_element(out, "entries_count_since_last_maintenance", &entries);
    push_element(out, "velocity", &status.velocity.to_string());
    push_element(out, "popularity", &number(status.popularity));
    if let Some(rank) = status.porn_rank {
        push_element(out, "porn_rank", &number(rank));
    }
    push_element(out, "bozo_rank", &number(status.bozo_rank));
    if status.generated_ids {
        push_element(out, "generated_ids", "true");
    }
    push_element(out, "title", status.title);
    push_end(out, "status");
}

/// Appends the attribute that marks a document as a digest (row S-14) to the start tag `start`, with a
/// prefix that it does not declare.
pub(super) fn push_digest(out: &mut String, start: &str) {
    let is_free = |prefix: &String| !start.contains(&format!(" xmlns:{prefix}="));
    let mut prefixes = (1..).map(|number| match number {
        1 => "superfeedr".to_owned(),
        number => format!("superfeedr{number}"),
    });
    if let Some(prefix) = prefixes.find(is_free) {
        push_attribute(out, &format!("xmlns:{prefix}"), NAMESPACE);
        push_attribute(out, &format!("{prefix}:digest"), "true");
    }
}

fn push_date(out: &mut String, name: &str, at: Option<DateTime<Utc>>) {
    if let Some(at) = at {
        push_element(out, name, &at.to_rfc3339_opts(SecondsFormat::Secs, true));
    }
}

/// Formats a float as clients expect it: always with a decimal point, never with an exponent.
fn number(number: f64) -> String {
    let number = if number.is_finite() { number } else { 0.0 };
    let written = format!("{:.6}", number);
    let short = written.trim_end_matches('0');
    if short.ends_with('.') { format!("{short}0") } else { short.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Row S-14.
    #[test]
    fn a_digest_is_marked_with_a_prefix_of_its_own() {
        #[rustfmt::skip]
        let cases = [
            ("<feed",                             " xmlns:superfeedr=\"http://superfeedr.com/xmpp-pubsub-ext\" superfeedr:digest=\"true\""),
            ("<feed xmlns:superfeedr=\"urn:x\"", " xmlns:superfeedr2=\"http://superfeedr.com/xmpp-pubsub-ext\" superfeedr2:digest=\"true\""),
        ];
        for (start, want) in cases {
            let mut out = String::new();
            push_digest(&mut out, start);
            assert_eq!(out, want, "{start}");
        }
    }

    #[test]
    fn floats_have_a_point_and_no_exponent() {
        for (value, want) in
            [(0.0, "0.0"), (0.25, "0.25"), (1e9, "1000000000.0"), (f64::NAN, "0.0"), (1e-9, "0.0")]
        {
            assert_eq!(number(value), want, "{value}");
        }
    }
}
