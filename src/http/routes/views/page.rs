//! `/stats` for people: the numbers, and the feeds with the most subscribers. It needs no
//! script, and what strangers wrote is only text in it.

use std::fmt::Write;

use chrono::SecondsFormat;

use super::TITLE_CHARS;
use super::stats::{PROTOCOLS, Tally, WINDOW_DAYS};
use crate::http::kit::template::fill;
use feedgate_core::ports::WatchedResource;
use feedgate_core::redaction;
use feedgate_protocol::xml::escaped;

const PAGE: &str = include_str!("stats.html");
/// The style of the log page, and nothing else.
pub(super) const POLICY: &str = "default-src 'none'; style-src 'self'; img-src data:; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The page.
pub(super) fn html(tally: &Tally) -> String {
    let at = tally.at.to_rfc3339_opts(SecondsFormat::Secs, true);
    let values = [
        ("{at}", format!("<time datetime=\"{at}\">{at}</time>")),
        ("{numbers}", numbers(tally)),
        ("{feeds}", feeds(tally)),
    ];
    fill(PAGE, &values)
}

fn numbers(tally: &Tally) -> String {
    let mut rows = String::new();
    let mut push = |name: &str, number: String| {
        // Writing to a String does not fail.
        let row = format_args!("<tr><th scope=\"row\">{name}</th><td>{number}</td></tr>\n");
        rows.write_fmt(row).unwrap_or_default();
    };
    push("Feeds with subscribers", grouped(tally.watched));
    push(&format!("… changed in the last {WINDOW_DAYS} days"), grouped(tally.changed));
    push("… failing", grouped(tally.gauges.failing));
    push("Subscriptions", grouped(tally.subscriptions()));
    for (protocol, many) in PROTOCOLS.iter().zip(tally.by_protocol) {
        push(&format!("… by {protocol}"), grouped(many));
    }
    push("… of accounts", grouped(tally.subscriptions() - tally.open));
    push("… whose last delivery failed", grouped(tally.failing));
    push("Hosts of subscribers", grouped(tally.aggregators));
    push("Pings in the last hour", grouped(tally.pings.0));
    push("Pings ever", grouped(tally.pings.1));
    push("Deliveries by this node", grouped(tally.deliveries.0));
    push("… that failed", grouped(tally.deliveries.1));
    push("This node has been running for", span(tally.uptime_s()));
    rows
}

fn feeds(tally: &Tally) -> String {
    if tally.top.is_empty() {
        return "<tr><td colspan=\"3\">No feeds are listed yet.</td></tr>\n".to_owned();
    }
    tally.top.iter().map(feed).collect()
}

fn feed(watched: &WatchedResource) -> String {
    let title = redaction::line(&watched.title, TITLE_CHARS);
    let text = if title.is_empty() { &watched.topic } else { &title };
    let changed = watched.changed_at.map_or_else(String::new, |at| {
        let at = at.to_rfc3339_opts(SecondsFormat::Secs, true);
        format!("<time datetime=\"{at}\">{}</time>", at.replace('T', " ").trim_end_matches('Z'))
    });
    format!(
        "<tr><td data-name=\"Feed\"><a href=\"{}\" rel=\"nofollow\">{}</a></td>\
         <td data-name=\"Subscribers\">{}</td><td data-name=\"Changed\">{changed}</td></tr>\n",
        escaped(&watched.topic),
        escaped(text),
        grouped(watched.subscribers.into()),
    )
}

/// `1 234 567`
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            grouped.push('\u{a0}');
        }
        grouped.push(digit);
    }
    grouped
}

/// `3 d 4 h`, in the two largest units.
fn span(secs: u64) -> String {
    let units = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    let first = units.iter().position(|(unit, _)| secs >= *unit).unwrap_or(units.len() - 1);
    let mut left = secs;
    let parts = units[first..].iter().take(2).map(|(unit, name)| {
        let many = left / unit;
        left %= unit;
        format!("{many}\u{a0}{name}")
    });
    parts.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        for (number, want) in [(0, "0"), (999, "999"), (1_000, "1 000"), (1_234_567, "1 234 567")] {
            assert_eq!(grouped(number).replace('\u{a0}', " "), want);
        }
        #[rustfmt::skip]
        let cases = [
            (0, "0 s"), (61, "1 min 1 s"), (7_199, "1 h 59 min"), (90_000, "1 d 1 h"),
        ];
        for (secs, want) in cases {
            assert_eq!(span(secs).replace('\u{a0}', " "), want);
        }
    }
}
