//! The origins of the feeds: they serve what is published, answer badly as they are told, and count.
//!
//! A feed keeps its entries, each with a date of its own: of many that appear together after a pause, only
//! those with a new date are sent (rule N5).

use std::fmt::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::support::feeds::entry_id;
use crate::support::origin::{Origin, Request, Step, answer, head};
use feedgate::jobs::runner;

/// The addresses of the origins that answer badly at times: a feed is at one of them by its number.
const HOSTS: [&str; 3] = ["127.0.1.1", "127.0.1.2", "127.0.1.3"];
/// The origin of the other feeds.
const SOUND: &str = "127.0.1.4";
/// The origin to which others redirect, and which refuses everything.
const REFUSING: &str = "127.0.1.9";
/// How many entries a feed lists that lists fewer than it has: more than appear while it answers badly.
const FEW: usize = 60;
/// How old an entry is when it is published: more than clocks are set back, because a date in the future is
/// not believed.
const BEFORE: TimeDelta = TimeDelta::hours(7);
/// The pause between two bytes of an answer that drips.
const DRIP: Duration = Duration::from_millis(50);

/// How the origin of a feed answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Answers {
    /// With the feed, newest entries first.
    #[default]
    Well,
    /// With this status.
    Failing(u16),
    /// Never.
    Hanging,
    /// With headers that do not end.
    Dripping,
    /// With half of the document.
    Broken,
    /// With a redirect to a server that refuses the request.
    Redirecting,
    /// With the oldest entries first.
    OldestFirst,
    /// With the newest entries only.
    Shrunk,
    /// With a feed without entries.
    Empty,
}

#[derive(Default)]
struct Feed {
    dates: Vec<DateTime<Utc>>,
    answers: Answers,
}

/// The origins of all feeds.
pub(super) struct Origins {
    hosts: Vec<Origin>,
    sound: Origin,
    _refusing: Origin,
    /// How many feeds are answered badly at times; the numbers of the others are higher.
    at_risk: usize,
    feeds: Arc<Vec<Mutex<Feed>>>,
}

impl Origins {
    /// Starts the origins of so many feeds that are answered badly at times, and of others.
    pub(super) async fn start(at_risk: usize, others: usize) -> Origins {
        let feeds = (0..at_risk + others).map(|_| Mutex::default()).collect();
        let feeds: Arc<Vec<Mutex<Feed>>> = Arc::new(feeds);
        let refusing =
            Origin::playing_at(REFUSING, |_: &Request| answer("404 Not Found", &[], "")).await;
        let origin = async |ip| {
            let (held, elsewhere) = (Arc::clone(&feeds), refusing.url(""));
            let play = move |request: &Request| match number(request.target()) {
                Some(feed) => held[feed].lock().unwrap().play(feed, &elsewhere),
                None => answer("404 Not Found", &[], ""),
            };
            Origin::playing_at(ip, play).await
        };
        let mut hosts = Vec::new();
        for ip in HOSTS {
            hosts.push(origin(ip).await);
        }
        let sound = origin(SOUND).await;
        Origins { hosts, sound, _refusing: refusing, at_risk, feeds }
    }

    pub(super) fn topic(&self, feed: usize) -> String {
        let host = if feed < self.at_risk { &self.hosts[feed % HOSTS.len()] } else { &self.sound };
        host.url(&format!("/{}.xml", name(feed)))
    }

    /// Publishes the next entry of a feed.
    pub(super) fn publish(&self, feed: usize) {
        let mut feed = self.feeds[feed].lock().unwrap();
        let next = feed.dates.last().map(|last| *last + TimeDelta::milliseconds(1));
        let date = (runner::now() - BEFORE).max(next.unwrap_or_default());
        feed.dates.push(date);
    }

    /// Changes how a feed is served from now on.
    pub(super) fn set(&self, feed: usize, answers: Answers) {
        self.feeds[feed].lock().unwrap().answers = answers;
    }

    /// How many entries of a feed were published.
    pub(super) fn count(&self, feed: usize) -> usize {
        self.feeds[feed].lock().unwrap().dates.len()
    }

    /// The ids of the entries of a feed after the first `since`.
    pub(super) fn entries(&self, feed: usize, since: usize) -> Vec<String> {
        (since + 1..=self.count(feed)).map(|n| entry_id(&name(feed), n)).collect()
    }
}

impl Feed {
    fn play(&self, feed: usize, elsewhere: &str) -> Step {
        let all: Vec<_> = (1..).zip(&self.dates).collect();
        let few = &all[all.len().saturating_sub(FEW)..];
        let newest_first = |some: &[_]| atom(feed, some.iter().rev().copied());
        match self.answers {
            Answers::Well => document(&newest_first(&all)),
            Answers::Failing(code) => answer(&format!("{code} No"), &[], ""),
            Answers::Hanging => Step::Hang,
            Answers::Dripping => Step::Drip(head("200 OK", &[])[..12].to_vec(), DRIP),
            Answers::Broken => match document(&newest_first(&all)) {
                Step::Send(mut bytes) => {
                    bytes.truncate(bytes.len() / 2);
                    Step::SendAndClose(bytes)
                }
                step => step,
            },
            Answers::Redirecting => {
                let location = format!("Location: {elsewhere}/refused");
                answer("302 Found", &[&location], "")
            }
            Answers::OldestFirst => document(&atom(feed, all.iter().copied())),
            Answers::Shrunk => document(&newest_first(few)),
            Answers::Empty => document(&newest_first(&[])),
        }
    }
}

fn document(body: &str) -> Step {
    answer("200 OK", &["Content-Type: application/atom+xml"], body)
}

/// An Atom feed with these entries.
fn atom<'a>(feed: usize, entries: impl Iterator<Item = (usize, &'a DateTime<Utc>)>) -> String {
    let title = name(feed);
    let mut atom = format!(
        "<feed xmlns=\"http://www.w3.org/2005/Atom\"><id>urn:{title}</id><title>{title}</title>\n"
    );
    for (n, date) in entries {
        let (id, date) = (entry_id(&title, n), date.to_rfc3339());
        writeln!(
            atom,
            "<entry><id>{id}</id><title>Entry {n}</title><updated>{date}</updated>\
             <published>{date}</published></entry>"
        )
        .unwrap();
    }
    atom + "</feed>\n"
}

pub(super) fn name(feed: usize) -> String {
    format!("feed{feed}")
}

/// The number of the feed at a path.
fn number(target: &str) -> Option<usize> {
    target.strip_prefix("/feed")?.strip_suffix(".xml")?.parse().ok()
}
