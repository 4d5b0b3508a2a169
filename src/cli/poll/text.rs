//! The report of `feedgate poll` as text for people.

use std::fmt::Write;

use chrono::SecondsFormat;
use http::HeaderMap;

use super::{Polled, beginning, printable, redacted_header};
use crate::jobs::poll::ParsedDocument;
use crate::net::{FetchError, FetchResponse, FetchedDocument, Hop};
use feedgate_core::poll::Polling;
use feedgate_feed::NotAFeed;
use feedgate_feed::documents::DocumentContent;
use feedgate_feed::model::Feed;
use feedgate_feed::repair;

/// The most entries, or repairs, that are listed.
const MOST_LISTED: usize = 10;

const DAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// The report on a poll as text.
pub(super) fn report(polled: &Polled<'_>) -> String {
    let mut out = String::new();
    for hop in &polled.fetched.hops {
        write_hop(hop, &mut out);
    }
    let took = polled.fetched.took.as_millis();
    match &polled.fetched.result {
        Ok(FetchResponse::Document(document)) => body(polled, document, &mut out),
        Ok(FetchResponse::NotModified { .. }) => line(&mut out, "response", "not modified"),
        Err(err) => failed(err, &mut out),
    }
    line(&mut out, "took", &format!("{took} ms"));
    match &polled.read {
        Some(ParsedDocument::Feed(feed)) => understood(feed, &mut out),
        Some(ParsedDocument::Other(content, why)) => other(content, why.as_ref(), &mut out),
        Some(ParsedDocument::NotAFeed(why)) => {
            line(&mut out, "feed", &format!("none: {}", printable(&why.to_string())));
        }
        Some(ParsedDocument::FragmentNotFound(why) | ParsedDocument::NotMapped(why)) => {
            line(&mut out, "part", &format!("none: {}", printable(why)))
        }
        None => {}
    }
    if let Some(explanation) = &polled.explanation {
        explanation.write(&mut out);
    }
    if polled.is_worth_repeating() {
        schedule(polled, &mut out);
    } else {
        line(&mut out, "next", "no retry will help until the URL or the settings are corrected");
    }
    out.trim_end().to_owned()
}

fn write_hop(hop: &Hop, out: &mut String) {
    let _ = writeln!(out, "GET {}", printable(hop.url.as_str()));
    let addresses: Vec<_> = hop.addresses.iter().map(ToString::to_string).collect();
    if !addresses.is_empty() {
        let _ = writeln!(out, "  at {}", addresses.join(", "));
    }
    headers('>', &hop.request, out);
    if let (Some(version), Some(status)) = (hop.version, hop.status) {
        let _ = writeln!(out, "  < {version:?} {status} after {} ms", hop.took.as_millis());
    }
    headers('<', &hop.response, out);
    if let Some(failure) = &hop.failure {
        let _ = writeln!(out, "  ! {}", printable(failure));
    }
    out.push('\n');
}

fn headers(direction: char, headers: &HeaderMap, out: &mut String) {
    for (name, value) in headers {
        let _ = writeln!(out, "  {direction} {name}: {}", redacted_header(name, value));
    }
}

fn body(polled: &Polled<'_>, document: &FetchedDocument, out: &mut String) {
    let (wire, decoded) = (polled.fetched.wire_bytes, document.body.len());
    let size = format!("{wire} bytes received, {decoded} decoded");
    line(out, "body", &size);
    line(out, "begins", &beginning(&document.body));
    if let Some(mut place) = polled.fetched.moved_to().cloned() {
        place.set_password(None).ok();
        line(out, "moved", &format!("permanently, to {place}"));
    }
    let held = (document.validators.etag.is_some(), document.validators.last_modified.is_some());
    let purpose = "with the next request, so that an unchanged body is not sent again";
    let validators = match held {
        (true, true) => format!("ETag and Last-Modified are sent {purpose}"),
        (true, false) => format!("the ETag is sent {purpose}"),
        (false, true) => format!("Last-Modified is sent {purpose}"),
        (false, false) => "none; every poll fetches the whole body".to_owned(),
    };
    line(out, "validators", &validators);
}

fn failed(err: &FetchError, out: &mut String) {
    line(out, "failed", &format!("{}: {}", err.code(), printable(&err.to_string())));
    if let FetchError::Forbidden { .. } = err {
        let setting = "FEEDGATE_EGRESS_ALLOW_TOPIC_CIDRS";
        line(out, "help", &format!("if this is your own network, add it to {setting}"));
    }
}

fn understood(feed: &Feed, out: &mut String) {
    let title = feed.title.as_ref().map_or("", |title| title.value.as_str());
    let entries = feed.entries.len();
    line(
        out,
        "feed",
        &format!("{}, {entries} entries, titled \"{}\"", feed.format, printable(title)),
    );
    if let Some(place) = &feed.moved_to {
        line(out, "moved", &format!("according to the document, to \"{}\"", printable(place)));
    }
    let notice =
        "the first poll sends no notifications; later polls send the entries that are new since";
    line(out, "notified", notice);
    for entry in feed.entries.iter().take(MOST_LISTED) {
        let title = entry.title.as_ref().map_or("(no title)", |title| title.value.as_str());
        let date = entry.published.or(entry.updated);
        let date = date.map_or("no date".to_owned(), |date| date.to_rfc3339());
        line(out, "entry", &format!("{date}  {}", printable(title)));
    }
    rest(entries, "entry", out);
    for (label, found) in repair::by_kind(&feed.repairs) {
        for repair in found.iter().take(MOST_LISTED) {
            line(out, label, &format!("{}: {}", repair.code, printable(&repair.detail)));
        }
        rest(found.len(), label, out);
    }
}

/// Describes a document that is not a feed, or a fragment of one, and lists the feeds that a page
/// links to.
fn other(content: &DocumentContent, why: Option<&NotAFeed>, out: &mut String) {
    if let Some(why) = why {
        line(out, "feed", &format!("none: {}", printable(&why.to_string())));
    }
    if let Some(part) = &content.part {
        let mime = part.content_type.as_deref().unwrap_or_default();
        line(out, "part", &format!("{} bytes of {}", part.bytes.len(), printable(mime)));
        line(out, "begins", &beginning(&part.bytes));
    }
    for offer in &content.feeds {
        let about = [offer.mime.as_str(), offer.title.as_str()];
        let about: Vec<&str> = about.into_iter().filter(|text| !text.is_empty()).collect();
        line(out, "offers", &printable(&format!("{}  {}", offer.href, about.join(", "))));
    }
}

fn schedule(polled: &Polled<'_>, out: &mut String) {
    let Polling { hints, entries_per_hour, .. } = &polled.plan.polling;
    let [headers, ttl, syndication] = hints.floors(*entries_per_hour);
    let floors = [
        ("the headers declare it fresh for", hints.headers_s, headers),
        ("ttl requests", hints.ttl_s, ttl),
        ("sy:updatePeriod requests", hints.syndication_s, syndication),
    ];
    for (what, secs, counted) in floors {
        let ignored = if counted.secs < secs {
            "; ignored, because the feed publishes more often"
        } else {
            ""
        };
        if secs > 0 {
            line(out, "hint", &format!("{what} {secs} s{ignored}"));
        }
    }
    if !hints.skip_hours.is_empty() {
        let hours: Vec<_> = hints.skip_hours.iter().map(ToString::to_string).collect();
        line(out, "hint", &format!("skipHours: {} (GMT)", hours.join(", ")));
    }
    if !hints.skip_days.is_empty() {
        let name = |day: &u8| DAYS.get(usize::from(*day)).copied().unwrap_or("no day");
        let days: Vec<_> = hints.skip_days.iter().map(name).collect();
        line(out, "hint", &format!("skipDays: {} (GMT)", days.join(", ")));
    }
    for step in &polled.plan.steps {
        line(out, step.bound.as_str(), &format!("{}: {}", span(step.secs), step.reason));
    }
    let period = polled.plan.period;
    let secs = period.as_secs();
    line(out, "period", &format!("{secs} s ({}): {}", span(secs), period.reason()));
    let time = |at: chrono::DateTime<chrono::Utc>| at.to_rfc3339_opts(SecondsFormat::Secs, true);
    let (first, last) = (polled.plan.next_fetch, polled.latest);
    let spread = match (&polled.fetched.result, period.is_promised()) {
        (Err(_), _) => {
            "at a random time, so that resources that failed together are not retried together"
        }
        (Ok(_), true) => "at a random time, so that polls are spread evenly",
        (Ok(_), false) => "the second poll is at a random time in the first period",
    };
    line(out, "next", &format!("between {} and {}: {spread}", time(first), time(last)));
}

/// Formats a duration for people.
fn span(secs: u32) -> String {
    match secs {
        0..120 => format!("{secs} s"),
        120..7_200 => format!("{} min", (secs + 30) / 60),
        7_200..172_800 => format!("{:.1} h", f64::from(secs) / 3_600.0),
        _ => format!("{:.1} days", f64::from(secs) / 86_400.0),
    }
}

fn rest(count: usize, name: &str, out: &mut String) {
    if count > MOST_LISTED {
        line(out, name, &format!("and {} more", count - MOST_LISTED));
    }
}

fn line(out: &mut String, name: &str, text: &str) {
    let _ = writeln!(out, "{name:<11} {text}");
}
