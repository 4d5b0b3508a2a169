//! The report of `feedgate poll` as JSON for programs. Fields may be added; existing fields keep
//! their meaning.

use chrono::SecondsFormat;
use http::HeaderMap;
use serde_json::{Value, json};

use super::{Polled, beginning, redacted_header};
use crate::jobs::poll::ParsedDocument;
use crate::net::{FetchResponse, Fetched, FetchedDocument, Hop};
use feedgate_core::schedule::PeriodBound;
use feedgate_feed::NotAFeed;
use feedgate_feed::documents::DocumentContent;
use feedgate_feed::model::Feed;
use feedgate_feed::repair::{self, Repair};

/// The report on a poll as indented JSON.
pub(super) fn report(polled: &Polled<'_>) -> String {
    let fetched = polled.fetched;
    let result = match &fetched.result {
        Ok(FetchResponse::Document(document)) => json!({ "document": body(fetched, document) }),
        Ok(FetchResponse::NotModified { hint_s }) => {
            json!({ "not_modified": { "hint_s": hint_s } })
        }
        Err(err) => json!({ "error": { "code": err.code(), "message": err.to_string() } }),
    };
    let mut report = json!({
        "hops": fetched.hops.iter().map(hop_json).collect::<Vec<_>>(),
        "took_ms": fetched.took.as_millis() as u64,
        "wire_bytes": fetched.wire_bytes,
        "result": result,
        "feed": polled.read.as_ref().map(|read| match read {
            ParsedDocument::Feed(feed) => understood(feed),
            ParsedDocument::Other(content, why) => other(content, why.as_ref()),
            ParsedDocument::NotAFeed(why) => json!({ "error": why.to_string() }),
            ParsedDocument::FragmentNotFound(why) | ParsedDocument::NotMapped(why) => json!({ "error": why }),
        }),
        "schedule": polled.is_worth_repeating().then(|| schedule(polled)),
    });
    if let Some(explanation) = &polled.explanation {
        report["explanation"] = explanation.to_json();
    }
    format!("{report:#}")
}

fn hop_json(hop: &Hop) -> Value {
    json!({
        "url": hop.url.as_str(),
        "addresses": hop.addresses,
        "request": headers(&hop.request),
        "version": hop.version.map(|version| format!("{version:?}")),
        "status": hop.status.map(|status| status.as_u16()),
        "response": headers(&hop.response),
        "took_ms": hop.took.as_millis() as u64,
        "failure": hop.failure,
    })
}

fn headers(headers: &HeaderMap) -> Value {
    headers
        .iter()
        .map(|(name, value)| json!([name.as_str(), redacted_header(name, value)]))
        .collect()
}

fn body(fetched: &Fetched, document: &FetchedDocument) -> Value {
    json!({
        "url": document.url.as_str(),
        "moved_to": fetched.moved_to().cloned().map(|mut place| {
            place.set_password(None).ok();
            place.to_string()
        }),
        "bytes": document.body.len(),
        "begins": beginning(&document.body),
        "conditional": !document.validators.is_empty(),
    })
}

fn understood(feed: &Feed) -> Value {
    let title = |text: &Option<feedgate_feed::model::Text>| text.as_ref().map(|t| t.value.clone());
    let entries = feed.entries.iter().map(|entry| {
        let date = entry.published.or(entry.updated);
        json!({
            "id": entry.id,
            "title": title(&entry.title),
            "date": date.map(|date| date.to_rfc3339()),
        })
    });
    let [repairs, adaptations] = repair::by_kind(&feed.repairs).map(|(_, found)| -> Vec<Value> {
        let told =
            |repair: &Repair| json!({ "code": repair.code.as_str(), "detail": repair.detail });
        found.into_iter().map(told).collect()
    });
    json!({
        "format": feed.format.as_str(),
        "title": title(&feed.title),
        "moved_to": feed.moved_to,
        "entries": entries.collect::<Vec<_>>(),
        "repairs": repairs,
        "adaptations": adaptations,
    })
}

/// Describes a document that is not a feed, or a fragment of one, and the feeds that a page links
/// to.
fn other(content: &DocumentContent, why: Option<&NotAFeed>) -> Value {
    let part = content.part.as_ref().map(|part| {
        json!({
            "content_type": part.content_type,
            "bytes": part.bytes.len(),
            "begins": beginning(&part.bytes),
        })
    });
    let kind = content.kind;
    json!({
        "error": why.map(ToString::to_string).unwrap_or_else(|| format!("a part of {kind}")),
        "part": part,
        "offers": content.feeds,
    })
}

fn schedule(polled: &Polled<'_>) -> Value {
    let time = |at: chrono::DateTime<chrono::Utc>| at.to_rfc3339_opts(SecondsFormat::Secs, true);
    let plan = &polled.plan;
    let steps = plan.steps.iter().map(|step| {
        let bound = match step.bound {
            PeriodBound::Wanted => "wanted",
            PeriodBound::AtMost => "at_most",
            PeriodBound::AtLeast => "at_least",
        };
        let (code, reason) = (step.reason.word(), step.reason.to_string());
        json!({ "bound": bound, "secs": step.secs, "code": code, "reason": reason })
    });
    json!({
        "hints": plan.polling.hints,
        "entries_per_hour": plan.polling.entries_per_hour,
        "steps": steps.collect::<Vec<_>>(),
        "period_s": plan.period.as_secs(),
        "code": plan.period.reason().word(),
        "reason": plan.period.reason().to_string(),
        "next_earliest": time(plan.next_fetch),
        "next_latest": time(polled.latest),
    })
}
