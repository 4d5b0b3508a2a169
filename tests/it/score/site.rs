//! A publisher with all the habits of publishers: what it serves at which time is a
//! function of the time alone.
//!
//! A site brings out one edition after the other. From each to the next its validators
//! change in another way ([`Edition::at`]), its freshness is told in another form, and on
//! some days it is in trouble ([`SiteFailure::on`]).

use chrono::{DateTime, TimeDelta, Timelike, Utc};

use crate::support::cases;

/// Days of polling.
pub(crate) fn days() -> i64 {
    if cases::is_full() { 1_000 } else { 250 }
}

/// Seconds of a day.
pub(crate) const DAY_S: i64 = 24 * 3_600;
/// Entries in a document.
pub(crate) const WINDOW: i64 = 10;
/// Ways in which validators change from one edition to the next.
const CHANGES: i64 = 8;

/// What kind of publisher a site is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habits {
    /// What its feed is called.
    pub(crate) name: &'static str,
    /// Hours from one edition to the next.
    pub(crate) every_h: i64,
    /// Seconds for which an answer is good.
    pub(crate) fresh_s: i64,
    /// `ttl` of the document in minutes; 0 for none.
    pub(crate) ttl_min: i64,
    /// Hours in which nobody should come.
    pub(crate) skip_hours: &'static [u32],
    /// Whether its feed has moved: for now until three tenths of the days, for good from then on.
    pub(crate) moves: bool,
    /// Whether it is gone for a tenth of the days, from six tenths on.
    pub(crate) goes: bool,
    /// Whether its server says "not modified" to everyone who asks conditionally, for
    /// fifteen days in a hundred.
    pub(crate) sticks: bool,
}

impl Habits {
    /// A site without any of the rarer habits.
    pub(crate) const fn plain(name: &'static str, every_h: i64, fresh_s: i64) -> Habits {
        let skip_hours: &[u32] = &[];
        let (moves, goes, sticks) = (false, false, false);
        Habits { name, every_h, fresh_s, ttl_min: 0, skip_hours, moves, goes, sticks }
    }
}

/// One edition of a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edition {
    /// Its number.
    pub(crate) number: i64,
    /// `ETag`, one character for each byte.
    pub(crate) etag: Option<String>,
    /// `Last-Modified`.
    pub(crate) modified: Option<String>,
    /// The number of its newest entry.
    pub(crate) newest: i64,
}

impl Edition {
    /// The edition that is out `secs` after the beginning.
    pub(crate) fn at(habits: &Habits, start: DateTime<Utc>, secs: i64) -> Edition {
        let every = habits.every_h * 3_600;
        let number = secs / every;
        let date = |number: i64| http_date(start + TimeDelta::seconds(number * every));
        let quoted = || Some(format!("\"v{number}\""));
        let (etag, modified) = match number % CHANGES {
            0 => (quoted(), Some(date(number))),
            // Changed within the same second, as far as its date tells.
            1 => (quoted(), Some(date(number - 1))),
            2 => (None, Some(date(number))),
            3 => (Some(format!("W/\"v{number}\"")), None),
            4 => (None, None),
            // Neither is what it should be, and both are theirs to compare.
            5 => {
                let iso = start + TimeDelta::seconds(number * every);
                (Some(format!("v{number}-gzip")), Some(iso.to_rfc3339()))
            }
            // The same document again, with other validators.
            6 => (quoted(), Some(date(number))),
            _ => {
                let epoch = "Thu, 01 Jan 1970 00:00:00 GMT".to_owned();
                (Some(format!("\"caf\u{e9}-{number}\"")), Some(epoch))
            }
        };
        // Who brings the same document again brings no entry.
        let newest = WINDOW + number - (number + 2) / CHANGES;
        Edition { number, etag, modified, newest }
    }

    /// The document.
    pub(crate) fn body(&self, habits: &Habits) -> String {
        let entries = (self.newest - WINDOW + 1)..=self.newest;
        let entries = entries.map(|n| usize::try_from(n).unwrap());
        let entries: Vec<usize> = entries.collect();
        let feed = crate::support::feeds::rss(habits.name, entries.into_iter());
        let mut hints = String::new();
        if habits.ttl_min > 0 {
            hints += &format!("<ttl>{}</ttl>", habits.ttl_min);
        }
        if !habits.skip_hours.is_empty() {
            let hours = habits.skip_hours.iter().map(|hour| format!("<hour>{hour}</hour>"));
            hints += &format!("<skipHours>{}</skipHours>", hours.collect::<String>());
        }
        feed.replacen("</title>", &format!("</title>{hints}"), 1)
    }
}

/// What is wrong at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SiteFailure {
    /// 429 with seconds in `Retry-After`.
    SlowDown,
    /// 429 with a date in it.
    SlowDownUntil,
    /// 429 without it.
    SlowDownSomehow,
    /// 503 with `Retry-After`.
    Busy,
    /// 500.
    Broken,
    /// A document that breaks off, with validators that must not be kept.
    CutOff,
    /// A page to log in, with such validators.
    Login,
    /// 410.
    Gone,
    /// Whoever asks conditionally is told "not modified".
    Stuck,
}

impl SiteFailure {
    /// What is wrong `secs` after the beginning, if anything is.
    pub(crate) fn on(habits: &Habits, secs: i64) -> Option<SiteFailure> {
        let (day, hour) = (secs / DAY_S, secs % DAY_S / 3_600);
        if habits.goes && (days() * 6 / 10..days() * 7 / 10).contains(&day) {
            return Some(SiteFailure::Gone);
        }
        if habits.sticks && (50..65).contains(&(day % 100)) {
            return Some(SiteFailure::Stuck);
        }
        let in_the_morning = (4..16).contains(&hour);
        match day % 40 {
            7 if in_the_morning => Some(SiteFailure::SlowDown),
            11 if in_the_morning => Some(SiteFailure::CutOff),
            14 if in_the_morning => Some(SiteFailure::SlowDownUntil),
            17 if in_the_morning => Some(SiteFailure::Busy),
            23 if in_the_morning => Some(SiteFailure::Login),
            27 if in_the_morning => Some(SiteFailure::SlowDownSomehow),
            33 => Some(SiteFailure::Broken),
            _ => None,
        }
    }
}

/// How `fresh_s` is told with the answer number `n`, and what it comes to.
pub(crate) fn freshness(fresh_s: i64, n: usize, now: DateTime<Utc>) -> (Vec<String>, Option<i64>) {
    let good = |secs: i64| (vec![format!("Cache-Control: max-age={secs}")], Some(secs));
    match (fresh_s, n % 3) {
        (0, 0) => (Vec::new(), None),
        (0, 1) => (vec!["Cache-Control: no-cache".to_owned()], Some(0)),
        (_, 0) => good(fresh_s),
        (_, 1) => {
            let expires = http_date(now + TimeDelta::seconds(fresh_s));
            (vec![format!("Expires: {expires}")], Some(fresh_s))
        }
        _ => {
            let told = format!("Cache-Control: public, max-age={}", fresh_s + 600);
            (vec![told, "Age: 600".to_owned()], Some(fresh_s))
        }
    }
}

/// The freshness that comes with "not modified": none, less, or far too much.
pub(crate) fn freshness_unmodified(fresh_s: i64, n: usize) -> (Vec<String>, Option<i64>) {
    let secs = match n % 3 {
        _ if fresh_s == 0 => return (Vec::new(), None),
        0 => return (Vec::new(), None),
        1 => fresh_s / 2,
        _ => fresh_s * 10,
    };
    (vec![format!("Cache-Control: max-age={secs}")], Some(secs))
}

/// A time as HTTP writes it.
pub(crate) fn http_date(at: DateTime<Utc>) -> String {
    let at = at.with_nanosecond(0).unwrap();
    httpdate::fmt_http_date(at.into())
}
