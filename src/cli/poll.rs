//! `feedgate poll URL`: one poll, told step by step. It needs no store and changes
//! nothing anywhere.
//!
//! What is shown goes through the same fetch, parser, normalizer and scheduler as a poll
//! of `serve`, the guard of the way out included: an operator at a terminal reaches inner
//! addresses only if `FEEDGATE_EGRESS_ALLOW_TOPIC_CIDRS` lists them.

mod json;
mod text;

use std::path::PathBuf;
use std::process::ExitCode;

use chrono::{DateTime, Utc};
use http::HeaderValue;
use http::header::{HeaderName, SET_COOKIE};
use url::Url;

use super::{Outcome, say};
use crate::config::Config;
use crate::domain::asked::Asked;
use crate::domain::feed::{Feed, Hints};
use crate::domain::poll::Validators;
use crate::domain::resource::Kind;
use crate::domain::schedule::{self, Period, Signals};
use crate::fetch::{Answer, Ask, Document, Fetch, FetchError, Fetched};
use crate::normalize;
use crate::parse::{self, NotAFeed};
use crate::worker;

/// Fetch a URL once and tell what happened on the way, what was understood, and when it
/// would be fetched again. Ends with 1 if the fetch failed.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// What to poll.
    url: String,
    /// Tell it in JSON.
    #[arg(long)]
    json: bool,
    /// Read settings from this TOML file.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Everything there is to tell.
struct Polled<'a> {
    fetched: &'a Fetched,
    /// The document as a feed, or why it is none; nothing if there is no document.
    read: Option<Result<Feed, NotAFeed>>,
    asked: Asked,
    /// New entries per hour, by the dates in the document.
    per_hour: f64,
    period: Period,
    /// The next fetch, at the earliest and at the latest.
    next: (DateTime<Utc>, DateTime<Utc>),
}

impl Polled<'_> {
    /// Whether the next fetch may end otherwise, so that there is a schedule to tell.
    fn is_worth_repeating(&self) -> bool {
        use FetchError::{BadUrl, Forbidden, ForbiddenPort};
        let result = &self.fetched.result;
        !matches!(result, Err(BadUrl(_) | Forbidden { .. } | ForbiddenPort { .. }))
    }
}

pub(super) async fn run(args: &Args) -> Outcome {
    let (config, _) = Config::load(args.config.clone(), &[])?;
    let own = format!("http://{}/", config.listen);
    let public_url = config.public_url.clone().map_or_else(|| Url::parse(&own), Ok)?;
    let fetch = Fetch::new(config.fetch(&public_url));

    let validators = Validators::default();
    let ask = Ask { url: &args.url, validators: &validators, subscribers: 0, feed_id: None };
    let fetched = fetch.get(ask).await;
    let polled = read(&fetched, config.min_period_s, worker::now());
    say(if args.json { json::tell(&polled) } else { text::tell(&polled) });
    Ok(if fetched.result.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What `serve` would make of the first fetch of a resource.
fn read(fetched: &Fetched, floor_s: u32, now: DateTime<Utc>) -> Polled<'_> {
    let document = match &fetched.result {
        Ok(Answer::Document(document)) => Some(&**document),
        _ => None,
    };
    let read = document.map(|document| feed(document, now));
    let feed = read.as_ref().and_then(|read| read.as_ref().ok());
    let hints = feed.map_or_else(Hints::default, |feed| feed.hints.clone());
    let asked = Asked::of(document.map_or(0, |document| document.hint_s), &hints);
    let per_hour = match (feed, document) {
        (None, None) => schedule::UNREACHED_PER_HOUR,
        (feed, _) => {
            let entries = feed.iter().flat_map(|feed| &feed.entries);
            let dates = entries.filter_map(|entry| entry.published.or(entry.updated));
            schedule::first_rate(dates.map(|date| date.to_utc()), now)
        }
    };
    let signals = Signals {
        per_hour,
        asked: asked.floor(per_hour),
        failures: u32::from(fetched.result.is_err()),
        failing_s: 0,
        retry_after_s: match &fetched.result {
            Err(FetchError::Status { retry_after_s, .. }) => retry_after_s.unwrap_or(0),
            _ => 0,
        },
        floor_s,
    };
    let kind = match (&read, feed) {
        (None, _) => Kind::Unknown,
        (Some(_), Some(_)) => Kind::Feed,
        (Some(_), None) => Kind::Other,
    };
    let period = Period::after(kind, &signals);
    let next = (asked.next(period, now, 0.0), asked.next(period, now, 1.0));
    Polled { fetched, read, asked, per_hour, period, next }
}

fn feed(document: &Document, now: DateTime<Utc>) -> Result<Feed, NotAFeed> {
    let context = document.context(now);
    let feed = parse::parse(&document.body, &context)?;
    Ok(normalize::normalize(feed, &context))
}

/// A header as it may be shown: secrets masked, and nothing that a terminal would obey.
fn shown(name: &HeaderName, value: &HeaderValue) -> String {
    if value.is_sensitive() || *name == SET_COOKIE {
        return "***".to_owned();
    }
    tame(&String::from_utf8_lossy(value.as_bytes()))
}

/// Text of strangers without control characters (rule S42).
fn tame(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// How a body begins, in one line.
fn beginning(body: &[u8]) -> String {
    let start = String::from_utf8_lossy(&body[..body.len().min(240)]);
    let words: Vec<&str> = start.split_whitespace().collect();
    tame(&words.join(" ")).chars().take(72).collect()
}
