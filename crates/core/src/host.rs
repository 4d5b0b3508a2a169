//! The rate limits of a publisher's server, or of a group of servers that are limited together
//! ([`host_groups`](super::host_groups)): how long no requests are sent to it, and at which
//! interval afterwards.
//!
//! All functions are pure; the results are stored, so that all nodes use the same.

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};

use super::host_groups::LONGEST_SPACING;
use super::resource_id::ResourceId;

/// After 429 without `Retry-After`, no requests are sent to the server for this long (P26) …
const SLOW_DOWN: Duration = Duration::from_secs(600);
/// … doubled each time, up to this.
const LONGEST_SLOW_DOWN: Duration = Duration::from_secs(6 * 3_600);
/// The pause of a server that fails without a request for one: short, because it may be well again soon, and
/// anybody may cause the polls that find that it fails.
const OUTAGE_PAUSE: Duration = Duration::from_secs(60);
/// The maximum `Retry-After` of a server that is followed (P25).
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(24 * 3_600);
/// Refusals within this time are counted together (P27).
pub const TOGETHER: Duration = Duration::from_secs(600);
/// The number of refused URLs from which a refusal concerns the whole server (P27).
const SEVERAL: u32 = 3;
/// Refusals within this time count towards a block by the server …
pub const BLOCK_WITHIN: Duration = Duration::from_secs(24 * 3_600);
/// … which takes this many URLs refused with the same status code.
const BLOCKED: u32 = 5;
/// The first learned interval between requests.
const FIRST_SPACING: Duration = Duration::from_secs(1);
/// The share of a learned interval that remains after an hour without a 429 (P28).
const KEPT_PER_HOUR: f64 = 0.9;

/// The state of one group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Until when no requests are sent to the group.
    pub cool_until: Option<DateTime<Utc>>,
    /// The interval between requests learned at the last 429; zero if there was none.
    pub spacing: Duration,
    /// The time of the last 429.
    pub slowed_at: Option<DateTime<Utc>>,
    /// The number of consecutive 429 without a successful response in between.
    pub slow_downs: u32,
}

/// A group that is left alone for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PausedHost {
    /// The name of the group.
    pub group: String,
    /// Until when no requests are sent to it.
    pub until: DateTime<Utc>,
    /// The number of pauses since a request last succeeded.
    pub pauses: u32,
}

/// Whether a request that a redirect leads to a group may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestAdmission {
    /// It may be sent now, and counts towards the interval of the group.
    Admitted,
    /// The group has no time for it before this.
    NotBefore(DateTime<Utc>),
    /// No requests are sent to the group before this.
    Paused(DateTime<Utc>),
}

/// The refusal of one URL of a group: 401, 403, 429 or 503.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRefusal {
    /// The group.
    pub group: String,
    /// The resource whose URL was refused.
    pub resource: ResourceId,
    /// Whether the group has answered requests for the resource well before. Otherwise anybody could name
    /// URLs of a group that require a password, and have all of its resources paused.
    pub was_read: bool,
    /// The time of the response.
    pub at: DateTime<Utc>,
    /// The status code.
    pub http_code: u16,
    /// The `Retry-After` of the response in seconds; 0 counts as none.
    pub retry_after_s: Option<u32>,
}

/// The numbers of different URLs of the group that were refused recently, including this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusalEvidence {
    /// URLs refused with 429 or 503 within [`TOGETHER`].
    pub busy: u32,
    /// URLs refused with 403 within [`TOGETHER`], since the last successful response.
    pub forbidden: u32,
    /// URLs refused with the same status code within [`BLOCK_WITHIN`], since the last successful
    /// response.
    pub alike: u32,
}

/// The consequences for the whole group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostBackoff {
    /// The new state of the group.
    pub host: Host,
    /// Until when no requests are sent, and the reason in a sentence.
    pub leave_alone: (DateTime<Utc>, String),
    /// Whether the group refuses all requests of this gateway, so that no single resource is the
    /// cause.
    pub is_block: bool,
}

impl Host {
    /// The interval between the starts of two fetches at `now`: the learned one, less a tenth for
    /// each hour since, but at least `least` (P28).
    pub fn spacing_at(&self, least: Duration, now: DateTime<Utc>) -> Duration {
        let Some(slowed_at) = self.slowed_at else { return least };
        let hours = (now - slowed_at).num_hours().clamp(0, 10_000) as i32;
        self.spacing.mul_f64(KEPT_PER_HOUR.powi(hours)).max(least)
    }

    /// Returns the consequences of a refusal for the whole group; `None` if it concerns its URL
    /// only. `least` is the configured interval of the group.
    pub fn refused(
        &self,
        refused: &HostRefusal,
        seen: RefusalEvidence,
        least: Duration,
    ) -> Option<HostBackoff> {
        let is_block = is_block(refused, seen);
        let is_busy = refused.http_code == 503 && seen.busy >= SEVERAL;
        let is_slow_down = refused.http_code == 429
            || is_block
            || (refused.http_code == 403 && seen.forbidden >= SEVERAL);
        if !is_slow_down && !is_busy {
            return None;
        }
        // A refusal with `Retry-After: 0` is treated as one without the header (P26).
        let retry_after = refused.retry_after_s.filter(|secs| *secs > 0);
        let retry_after = retry_after.map(|secs| Duration::from_secs(secs.into()));
        // The response to a request from before the pause says nothing about the pause, however many such
        // responses there are.
        if self.cool_until.is_some_and(|until| until > refused.at) {
            return Some(self.refused_in_pause(refused, seen, retry_after));
        }
        if !is_slow_down && retry_after.is_none() {
            let until = refused.at + OUTAGE_PAUSE;
            let why = why(refused, seen, is_block, until);
            let host = Host { cool_until: Some(until), ..*self };
            return Some(HostBackoff { host, leave_alone: (until, why), is_block });
        }
        let doubled = SLOW_DOWN * 2_u32.pow(self.slow_downs.min(10));
        let pause = retry_after.unwrap_or(doubled.min(LONGEST_SLOW_DOWN)).min(LONGEST_RETRY_AFTER);
        let until = refused.at + pause;
        let spacing = self.spacing_at(least, refused.at).max(FIRST_SPACING) * 2;
        let host = Host {
            cool_until: Some(until),
            spacing: spacing.min(LONGEST_SPACING.max(least)),
            slowed_at: Some(refused.at),
            slow_downs: self.slow_downs.saturating_add(1),
        };
        let why = why(refused, seen, is_block, until);
        Some(HostBackoff { host, leave_alone: (until, why), is_block })
    }

    /// Returns the consequences of a refusal during a pause, which its `Retry-After` may lengthen.
    fn refused_in_pause(
        &self,
        refused: &HostRefusal,
        seen: RefusalEvidence,
        retry_after: Option<Duration>,
    ) -> HostBackoff {
        let is_block = is_block(refused, seen);
        let requested = refused.at + retry_after.unwrap_or_default().min(LONGEST_RETRY_AFTER);
        let until = requested.max(self.cool_until.unwrap_or(requested));
        let why = why(refused, seen, is_block, until);
        let host = Host { cool_until: Some(until), ..*self };
        HostBackoff { host, leave_alone: (until, why), is_block }
    }
}

/// Returns whether the group refuses all requests of this gateway.
fn is_block(refused: &HostRefusal, seen: RefusalEvidence) -> bool {
    matches!(refused.http_code, 401 | 403) && seen.alike >= BLOCKED
}

/// Explains why no requests are sent to a group, for the status of its resources.
fn why(
    refused: &HostRefusal,
    seen: RefusalEvidence,
    is_block: bool,
    until: DateTime<Utc>,
) -> String {
    let name = refused.group.trim_end_matches(":443").trim_end_matches(":80");
    let code = refused.http_code;
    let until = until.to_rfc3339_opts(SecondsFormat::Secs, true);
    match code {
        _ if is_block => {
            format!(
                "the server {name} refuses all requests ({code} for {} URLs); the next request is at {until}",
                seen.alike
            )
        }
        429 => format!("the server {name} requested a pause of all requests until {until}"),
        _ => {
            let urls = if code == 403 { seen.forbidden } else { seen.busy };
            format!(
                "the server {name} refused {urls} URLs ({code}); no requests are sent to it until {until}"
            )
        }
    }
}

/// Returns when the `n`th resource that waited for the group is polled: one after the other, so
/// that they do not all send requests together again (P27).
pub fn resume_at(until: DateTime<Utc>, n: usize, spacing: Duration) -> DateTime<Utc> {
    let steps = spacing.max(FIRST_SPACING).saturating_mul(u32::try_from(n).unwrap_or(u32::MAX));
    until + TimeDelta::from_std(steps.min(LONGEST_RETRY_AFTER)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(secs)
    }

    fn refused(http_code: u16, retry_after_s: Option<u32>) -> HostRefusal {
        let (group, resource) = ("a.test:443".to_owned(), ResourceId(1));
        HostRefusal { group, resource, was_read: true, at: at(0), http_code, retry_after_s }
    }

    #[test]
    fn p27_who_is_left_alone_and_for_how_long() {
        let least = Duration::from_secs(1);
        let seen = |busy, forbidden, alike| RefusalEvidence { busy, forbidden, alike };
        let again = |slow_downs| Host { slow_downs, ..Host::default() };
        let cooling = Host { cool_until: Some(at(9_000)), ..Host::default() };
        #[rustfmt::skip]
        let cases = [
            ("429: the group",                        again(0), refused(429, Some(60)),     seen(1, 0, 1), Some(60)),
            ("p25 for a day at most",                 again(0), refused(429, Some(u32::MAX)), seen(1, 0, 1), Some(86_400)),
            ("p26 429 without a time: ten minutes",   again(0), refused(429, None),         seen(1, 0, 1), Some(600)),
            ("p26 and with none: no less",            again(1), refused(429, Some(0)),      seen(1, 0, 1), Some(1_200)),
            ("p26 doubling",                          again(3), refused(429, None),         seen(1, 0, 1), Some(4_800)),
            ("p26 up to six hours",                   again(9), refused(429, None),         seen(1, 0, 1), Some(21_600)),
            ("an earlier end shortens nothing",       cooling,  refused(429, Some(60)),     seen(1, 0, 1), Some(9_000)),
            ("503: the URL only",                     again(0), refused(503, Some(60)),     seen(2, 0, 1), None),
            ("503 for three URLs: the group",         again(0), refused(503, Some(120)),    seen(3, 0, 1), Some(120)),
            ("h02 without a time, for a minute",      again(3), refused(503, None),         seen(3, 0, 1), Some(60)),
            ("403: the URL only",                     again(0), refused(403, None),         seen(0, 2, 2), None),
            ("403 for three URLs: as a 429",          again(0), refused(403, None),         seen(0, 3, 3), Some(600)),
            ("401 for four",                          again(0), refused(401, None),         seen(0, 0, 4), None),
            ("401 for five: a block",                 again(0), refused(401, None),         seen(0, 0, 5), Some(600)),
            ("anything else",                         again(0), refused(500, None),         seen(9, 9, 9), None),
        ];
        for (why, host, refused, seen, want) in cases {
            let verdict = host.refused(&refused, seen, least);
            let until = verdict.as_ref().map(|verdict| verdict.leave_alone.0.timestamp());
            assert_eq!(until, want, "{why}");
            assert_eq!(verdict.is_some_and(|v| v.is_block), seen.alike == 5, "{why}");
        }
    }

    #[test]
    fn p28_a_slow_down_doubles_the_pause_and_clean_hours_shrink_it() {
        let least = Duration::from_millis(500);
        let mut host = Host::default();
        let mut pauses = Vec::new();
        for n in 0..8 {
            let refused = HostRefusal { at: at(n), ..refused(429, Some(1)) };
            host = host.refused(&refused, RefusalEvidence::default(), least).unwrap().host;
            pauses.push(host.spacing.as_secs());
        }
        assert_eq!(pauses, [2, 4, 8, 16, 32, 60, 60, 60]);
        let after = |hours: i64| host.spacing_at(least, at(7 + hours * 3_600)).as_millis();
        assert_eq!([after(0), after(1), after(2), after(100)], [60_000, 54_000, 48_600, 500]);
        let reddit = Duration::from_secs(60);
        let slower =
            Host::default().refused(&refused(429, None), RefusalEvidence::default(), reddit);
        assert_eq!(slower.unwrap().host.spacing, reddit, "never less than its own");
    }

    #[test]
    fn h02_p26_refusals_of_requests_from_before_a_pause_do_not_lengthen_it() {
        let least = Duration::from_secs(1);
        let seen = RefusalEvidence::default();
        let first = Host::default().refused(&refused(429, None), seen, least).unwrap().host;
        let mut host = first;
        for second in 0..9 {
            let refused = HostRefusal { at: at(second), ..refused(429, None) };
            host = host.refused(&refused, seen, least).unwrap().host;
        }
        assert_eq!(host, first, "nine more that were on their way");
        let longer = host.refused(&refused(429, Some(900)), seen, least).unwrap().host;
        assert_eq!(longer, Host { cool_until: Some(at(900)), ..first }, "it asks for more time");
        let after = HostRefusal { at: at(900), ..refused(429, None) };
        assert_eq!(longer.refused(&after, seen, least).unwrap().host.slow_downs, 2);
    }

    #[test]
    fn p27_those_who_waited_resume_one_by_one() {
        let resume = |n| resume_at(at(100), n, Duration::from_secs(4)).timestamp();
        assert_eq!([resume(0), resume(1), resume(10)], [100, 104, 140]);
        assert_eq!(resume(usize::MAX), 100 + 86_400, "within a day");
    }

    #[test]
    fn the_reason_names_the_server_and_the_end() {
        let verdict =
            Host::default().refused(&refused(429, None), RefusalEvidence::default(), FIRST_SPACING);
        let (_, why) = verdict.unwrap().leave_alone;
        assert_eq!(
            why,
            "the server a.test requested a pause of all requests until 1970-01-01T00:10:00Z"
        );
    }
}
