//! `feedgate poll URL`: one poll, explained step by step. It needs no store and changes nothing.
//!
//! The poll uses the same fetch, parser, normalizer and scheduler as `serve`, and the same egress
//! guard: private addresses are fetched only if `FEEDGATE_EGRESS_ALLOW_TOPIC_CIDRS` lists them. The
//! schedule is that of a resource which was never polled before, because nothing is read from a
//! store.

mod explanation;
mod json;
mod text;

use std::path::PathBuf;
use std::process::ExitCode;

use chrono::{DateTime, Utc};
use http::HeaderValue;
use http::header::{HeaderName, SET_COOKIE};
use url::Url;

use explanation::FormatExplanation;

use super::terminal::printable;
use super::{Outcome, help, print_line};
use crate::config::Config;
use crate::jobs::poll::{self, KnownAs, ParsedDocument};
use crate::jobs::runner;
use crate::net::{FetchError, FetchRequest, FetchResponse, Fetched, HttpClient};
use feedgate_core::poll::Polling;
use feedgate_core::resource::ResourceKind;
use feedgate_core::schedule::{
    self, PollFinding, PollPlan, PollSetback, ScheduleBounds, ScheduleInput,
};
use feedgate_core::topic::{BadAddress, Topic};

/// Poll a URL once, as if for the first time, and print the requests and responses, what was
/// parsed, and when it would be polled again. Exits with 1 if the fetch failed.
#[derive(Debug, clap::Args)]
#[command(after_long_help = help::POLL.text())]
pub(super) struct PollArgs {
    /// The URL to poll.
    url: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Say of each format why the document was or was not taken as entries, and which feeds a page advertises.
    #[arg(long)]
    explain: bool,
    /// Read settings from this TOML file.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// What the report is made from.
struct Polled<'a> {
    fetched: &'a Fetched,
    /// The parsed document, if one was received.
    read: Option<ParsedDocument>,
    /// Why the document was or was not taken as entries, if that was requested.
    explanation: Option<FormatExplanation>,
    /// The schedule with the earliest time of the next poll.
    plan: PollPlan,
    /// The latest time of the next poll.
    latest: DateTime<Utc>,
}

impl Polled<'_> {
    /// Whether the next fetch may end differently, so that the report shows a schedule.
    fn is_worth_repeating(&self) -> bool {
        use FetchError::{BadUrl, Forbidden, ForbiddenPort};
        let result = &self.fetched.result;
        !matches!(result, Err(BadUrl(_) | Forbidden { .. } | ForbiddenPort { .. }))
    }
}

pub(super) async fn run(args: &PollArgs) -> Outcome {
    if let Err(reason @ BadAddress::NoScheme(_)) = Topic::parse(args.url.as_str()) {
        return Err(reason.into());
    }
    let (config, _) = Config::load(args.config.clone(), &[])?;
    let own = format!("http://{}/", config.listen);
    let public_url = config.public_url.clone().map_or_else(|| Url::parse(&own), Ok)?;
    let fetch = HttpClient::new(config.net(&public_url));

    let request = FetchRequest::unconditional(&args.url);
    let fetched = fetch.get(request).await;
    let now = runner::now();
    let mut polled = read(&fetched, &args.url, &config.bounds(), now);
    if let (true, Ok(FetchResponse::Document(document))) = (args.explain, &fetched.result) {
        let is_part = matches!(&polled.read, Some(read) if explanation::is_part(read));
        polled.explanation = Some(FormatExplanation::new(document, is_part, now));
    }
    print_line(if args.json { json::report(&polled) } else { text::report(&polled) });
    Ok(if fetched.result.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Parses and schedules as `serve` would after the first fetch of a resource.
fn read<'a>(
    fetched: &'a Fetched,
    url: &str,
    bounds: &ScheduleBounds,
    now: DateTime<Utc>,
) -> Polled<'a> {
    let document = match &fetched.result {
        Ok(FetchResponse::Document(document)) => Some(&**document),
        _ => None,
    };
    let fragment = url.split_once('#').map(|(_, fragment)| fragment);
    let fragment = fragment.filter(|fragment| !fragment.is_empty());
    let read = document.map(|document| {
        poll::read_document(&document.body, &document.context(now), fragment, KnownAs::Nothing)
    });
    let plan = |jitter| match document.zip(read.as_ref()) {
        Some((document, read)) => poll::first_plan(document, read, bounds, (now, jitter)),
        None => plan_without_document(&fetched.result, bounds, (now, jitter)),
    };
    let (plan, latest) = (plan(0.0), plan(1.0).next_fetch);
    Polled { fetched, read, explanation: None, plan, latest }
}

/// Returns the schedule after a first fetch that found no document.
fn plan_without_document(
    result: &Result<FetchResponse, FetchError>,
    bounds: &ScheduleBounds,
    (now, jitter): (DateTime<Utc>, f64),
) -> PollPlan {
    let found = match result {
        Err(err) => PollFinding::Failure(PollSetback {
            class: err.class(),
            retry_after_s: match err {
                FetchError::Status { retry_after_s, .. } => *retry_after_s,
                _ => None,
            },
        }),
        Ok(_) => PollFinding::NotModified { hint_s: None },
    };
    let (kind, polling) = (ResourceKind::Unknown, Polling::default());
    let held = ScheduleInput { kind, subscribers: 1, pushed: false, polling };
    schedule::plan(held, &found, bounds, now, jitter)
}

/// The value of a header with secrets masked and control characters replaced.
fn redacted_header(name: &HeaderName, value: &HeaderValue) -> String {
    if value.is_sensitive() || *name == SET_COOKIE {
        return "***".to_owned();
    }
    printable(&String::from_utf8_lossy(value.as_bytes()))
}

/// The beginning of a body, on one line.
fn beginning(body: &[u8]) -> String {
    let start = String::from_utf8_lossy(&body[..body.len().min(240)]);
    let words: Vec<&str> = start.split_whitespace().collect();
    printable(&words.join(" ")).chars().take(72).collect()
}
