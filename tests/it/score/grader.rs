//! The publisher's side of the score test: serves a site, and judges every request by
//! what was said to this client before.
//!
//! It knows nothing of how feedgate works. A fault is a request for the whole document
//! without reason, a validator that was never given or is not the newest, a request
//! sooner than allowed, and whatever else a publisher would mind.

use std::collections::HashMap;

use chrono::{DateTime, TimeDelta, Timelike, Utc};

use super::site::{self, DAY_S, Edition, Habits, SiteFailure, http_date};
use crate::support::origin::{Request, Step, answer};

/// The shortest period that the operator of this gateway allows, in seconds.
pub(crate) const MIN_PERIOD_S: i64 = 300;
/// A server that cannot say "not modified" is asked this much less often (rule P54).
const WITHOUT_VALIDATORS_S: i64 = 3 * MIN_PERIOD_S;
/// Without a whole document for so long, one may be asked for (rule P9).
const WHOLE_AFTER_S: i64 = 8 * DAY_S;
/// A 429 that says nothing more means ten minutes (rule P26).
const SLOW_DOWN_S: i64 = 600;
/// What is gone is asked once a month, give or take a fifth.
const GONE_S: i64 = 24 * DAY_S;

/// Serves a site and keeps the score.
pub(crate) struct Grader {
    habits: Habits,
    start: DateTime<Utc>,
    now_s: i64,
    /// The validators of the newest usable answer of each path.
    given: HashMap<String, (Option<String>, Option<String>)>,
    /// When the feed was last asked for; whole, though it could have been otherwise; and
    /// when it last came whole.
    requested_s: Option<i64>,
    doubted_s: Option<i64>,
    whole_s: Option<i64>,
    /// Seconds for which the last answers are good.
    fresh_s: i64,
    /// Nobody should come before.
    not_before_s: i64,
    gone: usize,
    robots_s: Option<i64>,
    /// What came of it.
    pub(crate) score: Score,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Score {
    /// Requests for the feed.
    pub(crate) polls: usize,
    /// Answers of 304.
    pub(crate) unmodified: usize,
    /// Usable documents that were sent whole.
    pub(crate) whole: usize,
    /// The longest time without a request, in seconds.
    pub(crate) longest_s: i64,
    /// The newest entry that was sent, and how many were.
    pub(crate) newest: i64,
    pub(crate) entries: i64,
    /// What a publisher would mind.
    pub(crate) faults: Vec<String>,
}

impl Grader {
    /// Opens a site at `start`.
    pub(crate) fn open(habits: Habits, start: DateTime<Utc>) -> Grader {
        Grader {
            habits,
            start,
            now_s: 0,
            given: HashMap::new(),
            requested_s: None,
            doubted_s: None,
            whole_s: None,
            fresh_s: 0,
            not_before_s: 0,
            gone: 0,
            robots_s: None,
            score: Score::default(),
        }
    }

    /// Sets its clock.
    pub(crate) fn set(&mut self, now: DateTime<Utc>) {
        self.now_s = (now - self.start).num_seconds();
    }

    /// Answers a request and judges it.
    pub(crate) fn answer(&mut self, request: &Request) -> Step {
        self.check_manners(request);
        let path = request.target().to_owned();
        let for_good = self.now_s >= site::days() * 3 / 10 * DAY_S;
        match path.as_str() {
            "/robots.txt" => {
                self.check_robots();
                answer("404 Not Found", &[], "")
            }
            "/feed" if self.habits.moves => {
                if request.header("if-none-match").or(request.header("if-modified-since")).is_some()
                {
                    self.fault("validators of another URL");
                }
                let status = if for_good { "301 Moved Permanently" } else { "302 Found" };
                answer(status, &["Location: /real"], "")
            }
            "/feed" | "/real" => {
                self.check_time();
                self.serve(request, &path)
            }
            _ => {
                self.fault(&format!("{path}, which nobody told of"));
                answer("404 Not Found", &[], "")
            }
        }
    }

    fn fault(&mut self, what: &str) {
        let (day, hour) = (self.now_s / DAY_S, self.now_s % DAY_S / 3_600);
        self.score.faults.push(format!("{}, day {day}, {hour} h: {what}", self.habits.name));
    }

    fn now(&self) -> DateTime<Utc> {
        self.start + TimeDelta::seconds(self.now_s)
    }

    /// What is wrong with a request at any time.
    fn check_manners(&mut self, request: &Request) {
        if !request.head.starts_with("GET ") {
            self.fault("not a GET");
        }
        for name in ["cookie", "referer", "cache-control", "pragma", "authorization"] {
            if request.header(name).is_some() {
                self.fault(&format!("a header that nobody asked for: {name}"));
            }
        }
        let robots = request.target() == "/robots.txt";
        let agent = request.header("user-agent").unwrap_or_default();
        if !agent.starts_with("feedgate/") || !(robots || agent.contains("; 1 subscribers")) {
            self.fault(&format!("does not say who asks for how many: {agent}"));
        }
        let codings = request.header("accept-encoding").unwrap_or_default();
        if !robots && !codings.contains("gzip") {
            self.fault("wants everything uncompressed");
        }
    }

    fn check_robots(&mut self) {
        if self.robots_s.is_some_and(|requested_s| self.now_s < requested_s + DAY_S) {
            self.fault("robots.txt twice a day");
        }
        self.robots_s = Some(self.now_s);
    }

    /// Whether it may be asked now.
    fn check_time(&mut self) {
        let last_s = self.requested_s.replace(self.now_s);
        self.score.polls += 1;
        if self.habits.skip_hours.contains(&self.now().hour()) {
            self.fault("in an hour in which nobody should come");
        }
        let Some(last_s) = last_s else { return };
        let waited_s = self.now_s - last_s;
        self.score.longest_s = self.score.longest_s.max(waited_s);
        let ttl_s = self.habits.ttl_min * 60;
        let least_s = [MIN_PERIOD_S, self.fresh_s, ttl_s, self.not_before_s - last_s];
        let least_s = least_s.into_iter().max().unwrap_or_default();
        if waited_s < least_s {
            self.fault(&format!("after {waited_s} s, not {least_s} s"));
        }
    }

    fn serve(&mut self, request: &Request, path: &str) -> Step {
        let failure = SiteFailure::on(&self.habits, self.now_s);
        let edition = Edition::at(&self.habits, self.start, self.now_s);
        let matches = match request.header("if-none-match") {
            Some(tag) => edition.etag.as_deref() == Some(tag),
            None => {
                let since = request.header("if-modified-since");
                since.is_some() && since == edition.modified.as_deref()
            }
        };
        let conditional = self.check_validators(request, path);
        match failure {
            Some(SiteFailure::Stuck) if conditional => self.unmodified(&edition),
            Some(SiteFailure::Stuck) | None if matches => self.unmodified(&edition),
            Some(SiteFailure::Stuck) | None => self.whole(&edition, path),
            Some(failure) => self.failure(failure),
        }
    }

    /// Whether the request is conditional; and whether it should be, and by what.
    fn check_validators(&mut self, request: &Request, path: &str) -> bool {
        let sent = (request.header("if-none-match"), request.header("if-modified-since"));
        let given = self.given.get(path).cloned().unwrap_or_default();
        let owed = (given.0.as_deref(), given.1.as_deref());
        if sent == (None, None) && owed != (None, None) {
            // All that can excuse this is that nothing was sent for a long time.
            let long_s = self.now_s - self.whole_s.unwrap_or(self.now_s);
            let lately = self.doubted_s.is_some_and(|doubted_s| self.now_s < doubted_s + DAY_S);
            if long_s < WHOLE_AFTER_S || lately {
                self.fault("unconditional without reason");
            }
            self.doubted_s = Some(self.now_s);
        } else if sent != owed {
            self.fault(&format!("validators {sent:?}, but it was given {owed:?}"));
        }
        sent != (None, None)
    }

    fn unmodified(&mut self, edition: &Edition) -> Step {
        self.score.unmodified += 1;
        self.gone = 0;
        let polls = self.score.polls;
        let (mut headers, told) = site::freshness_unmodified(self.habits.fresh_s, polls);
        self.fresh_s = self.fresh_s.min(told.unwrap_or(self.fresh_s));
        headers.extend(edition.etag.iter().map(|tag| format!("ETag: {tag}")));
        self.step("304 Not Modified", headers, Some(""))
    }

    fn whole(&mut self, edition: &Edition, path: &str) -> Step {
        self.score.whole += 1;
        let before = self.score.newest.max(edition.newest - site::WINDOW);
        self.score.entries += edition.newest - before;
        self.score.newest = edition.newest;
        self.gone = 0;
        let polls = self.score.polls;
        let (mut headers, told) = site::freshness(self.habits.fresh_s, polls, self.now());
        self.fresh_s = told.unwrap_or(0);
        headers.extend(edition.etag.iter().map(|tag| format!("ETag: {tag}")));
        headers.extend(edition.modified.iter().map(|date| format!("Last-Modified: {date}")));
        headers.push("Set-Cookie: visitor=7".to_owned());
        let mut given = (edition.etag.clone(), edition.modified.clone());
        let changed_s = edition.number * self.habits.every_h * 3_600;
        if given.0.is_none() && self.now_s - changed_s < 2 {
            given.1 = None; // it may change once more within its second
        }
        if given == (None, None) {
            self.not_before_s = self.now_s + WITHOUT_VALIDATORS_S;
        }
        self.given.insert(path.to_owned(), given);
        self.whole_s = Some(self.now_s);
        let body = edition.body(&self.habits);
        self.step("200 OK", headers, Some(&body))
    }

    fn failure(&mut self, failure: SiteFailure) -> Step {
        let mut wait = |secs| self.not_before_s = self.now_s + secs;
        let never = || {
            let never_kept =
                ["ETag: \"not yours\"", "Last-Modified: Sat, 07 Sep 2002 00:00:01 GMT"];
            never_kept.map(str::to_owned).to_vec()
        };
        match failure {
            SiteFailure::SlowDown => {
                wait(7_200);
                self.step("429 Too Many Requests", vec!["Retry-After: 7200".into()], Some(""))
            }
            SiteFailure::SlowDownUntil => {
                wait(10_800);
                let until = http_date(self.now() + TimeDelta::seconds(10_800));
                self.step("429 Too Many Requests", vec![format!("Retry-After: {until}")], Some(""))
            }
            SiteFailure::SlowDownSomehow => {
                wait(SLOW_DOWN_S);
                self.step("429 Too Many Requests", Vec::new(), Some(""))
            }
            SiteFailure::Busy => {
                wait(3_600);
                self.step("503 Service Unavailable", vec!["Retry-After: 3600".into()], Some(""))
            }
            SiteFailure::Gone => {
                self.gone += 1;
                if self.gone > 4 {
                    wait(GONE_S);
                }
                self.step("410 Gone", Vec::new(), Some(""))
            }
            SiteFailure::CutOff => self.step("200 OK", never(), None),
            SiteFailure::Login => {
                let mut headers = never();
                headers.push("Content-Type: text/html".to_owned());
                let page = "<!doctype html><title>Log in</title><form></form>";
                self.step("200 OK", headers, Some(page))
            }
            SiteFailure::Broken | SiteFailure::Stuck => {
                self.step("500 Internal Server Error", Vec::new(), Some(""))
            }
        }
    }

    /// An answer with the time of this site; one without a body breaks off.
    fn step(&self, status: &str, mut headers: Vec<String>, body: Option<&str>) -> Step {
        headers.push(format!("Date: {}", http_date(self.now())));
        let length = body.map_or(10_000, str::len);
        headers.push(format!("Content-Length: {length}"));
        let lines: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
        // Each character of a validator stands for a byte.
        let head = format!("HTTP/1.1 {status}\r\n{lines}\r\n");
        let mut bytes: Vec<u8> = head.chars().map(|c| u8::try_from(c).unwrap()).collect();
        bytes.extend_from_slice(body.unwrap_or("<rss><channel><item>").as_bytes());
        if body.is_some() { Step::Send(bytes) } else { Step::SendAndClose(bytes) }
    }
}
