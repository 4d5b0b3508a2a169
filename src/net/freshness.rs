//! Freshness hints in response headers, as pure functions.
//!
//! A freshness hint is a lower bound of the poll period, never a request to poll sooner (rule P13).
//! `received` is the time of the response by the local clock; it is used only if the server did not
//! send its own time, so that a wrong clock on either side does no harm (rules P12, P47).

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::{AGE, CACHE_CONTROL, DATE, EXPIRES, HeaderName, LAST_MODIFIED, RETRY_AFTER};

/// The maximum freshness that is honoured, in seconds. Servers are often misconfigured, and other
/// hubs wait a day at most (rules P13, P25).
const LONGEST_S: u64 = 24 * 3_600;

/// Returns the number of seconds for which the response is fresh; `None` if its headers do not say.
///
/// `no-cache` and `no-store` give 0: they allow polling at any time, but do not request it.
pub fn hint_s(headers: &HeaderMap, received: SystemTime) -> Option<u32> {
    let directives = directives(headers);
    let value = |name: &str| directives.iter().find(|(held, _)| held == name).map(|(_, v)| v);
    if value("no-cache").is_some() || value("no-store").is_some() {
        return Some(0);
    }
    // feedgate is a shared cache, so `s-maxage` takes precedence.
    let max_age = ["s-maxage", "max-age"].iter().find_map(|name| value(name)?.parse::<u64>().ok());
    if let Some(max_age) = max_age {
        let age = text(headers, AGE).and_then(|age| age.parse().ok()).unwrap_or(0);
        return Some(capped(max_age.saturating_sub(age)));
    }
    if let Some(expires) = text(headers, EXPIRES) {
        // An invalid date, especially "0", means "already expired" (RFC 9111 `#field.expires`).
        let at = httpdate::parse_http_date(expires).ok();
        let left = at.and_then(|at| at.duration_since(server_time(headers, received)).ok());
        return Some(capped(left.unwrap_or_default().as_secs()));
    }
    value("must-revalidate").map(|_| 0)
}

/// Returns the number of seconds for which the server asks not to be contacted, from either form of
/// `Retry-After`; 0 for a time in the past (rules P24, P25).
pub fn retry_after_s(headers: &HeaderMap, received: SystemTime) -> Option<u32> {
    let value = text(headers, RETRY_AFTER)?;
    if let Ok(seconds) = value.parse::<i64>() {
        return Some(capped(u64::try_from(seconds).unwrap_or(0)));
    }
    let at = httpdate::parse_http_date(value).ok()?;
    let left = at.duration_since(server_time(headers, received)).unwrap_or_default();
    Some(capped(left.as_secs()))
}

/// Returns whether `Last-Modified` lies so far in the future that the server would answer "not
/// modified" for years (rule P9).
pub fn is_from_the_future(headers: &HeaderMap, received: SystemTime) -> bool {
    let Some(modified) = text(headers, LAST_MODIFIED) else { return false };
    let Ok(modified) = httpdate::parse_http_date(modified) else { return false };
    modified > server_time(headers, received) + Duration::from_secs(24 * 3_600)
}

/// Returns how far the clock of the server is ahead of ours, in seconds. Less than a minute is the time
/// that responses take, and more than a day is no clock.
pub fn clock_ahead_s(headers: &HeaderMap, received: SystemTime) -> i64 {
    let Some(date) = text(headers, DATE).and_then(|date| httpdate::parse_http_date(date).ok())
    else {
        return 0;
    };
    // A cache sends the date at which it received the response.
    let age = text(headers, AGE).and_then(|age| age.parse().ok()).unwrap_or(0);
    let date = date + Duration::from_secs(age.min(LONGEST_S));
    let (ahead, behind) = (date.duration_since(received), received.duration_since(date));
    let seconds = |apart: Duration| i64::try_from(apart.as_secs()).unwrap_or(i64::MAX);
    let ahead = ahead.map_or_else(|_| -behind.map_or(0, seconds), seconds);
    if (60..=LONGEST_S).contains(&ahead.unsigned_abs()) { ahead } else { 0 }
}

fn server_time(headers: &HeaderMap, received: SystemTime) -> SystemTime {
    let date = text(headers, DATE).and_then(|date| httpdate::parse_http_date(date).ok());
    date.unwrap_or(received)
}

fn capped(seconds: u64) -> u32 {
    u32::try_from(seconds.min(LONGEST_S)).unwrap_or(u32::MAX)
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// Returns the directives of all `Cache-Control` headers, with values unquoted.
fn directives(headers: &HeaderMap) -> Vec<(String, String)> {
    let lines = headers.get_all(CACHE_CONTROL).iter().filter_map(|line| line.to_str().ok());
    let directives = lines.flat_map(|line| line.split(','));
    directives
        .map(|directive| {
            let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
            (name.trim().to_ascii_lowercase(), value.trim().trim_matches('"').to_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    type Lines = [(&'static str, &'static str)];

    const NOON: &str = "Sun, 06 Nov 1994 12:00:00 GMT";

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let lines = lines.iter().map(|(name, value)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        });
        lines.collect()
    }

    fn noon() -> SystemTime {
        httpdate::parse_http_date(NOON).unwrap()
    }

    #[test]
    fn p12_the_sources_of_a_hint() {
        #[rustfmt::skip]
        let cases: [(&str, &Lines, Option<u32>); 17] = [
            ("nothing said",               &[],                                                              None),
            ("max-age",                    &[("cache-control", "public, max-age=600")],                      Some(600)),
            ("less the age",               &[("cache-control", "max-age=600"), ("age", "100")],              Some(500)),
            ("never below nothing",        &[("cache-control", "max-age=600"), ("age", "1000")],             Some(0)),
            ("shared caches first",        &[("cache-control", "max-age=60, s-maxage=900")],                 Some(900)),
            ("quoted",                     &[("cache-control", "Max-Age=\"30\"")],                           Some(30)),
            ("no-cache asks for nothing",  &[("cache-control", "no-cache, max-age=600")],                    Some(0)),
            ("no-store neither",           &[("cache-control", "no-store")],                                 Some(0)),
            ("must-revalidate neither",    &[("cache-control", "must-revalidate")],                          Some(0)),
            ("but it denies no max-age",   &[("cache-control", "max-age=60, must-revalidate")],              Some(60)),
            ("Expires by the server's clock", &[("expires", "Sun, 06 Nov 1994 12:10:00 GMT"), ("date", NOON)], Some(600)),
            ("Expires by ours",            &[("expires", "Sun, 06 Nov 1994 12:05:00 GMT")],                  Some(300)),
            ("Expires in the past",        &[("expires", "Sun, 06 Nov 1994 11:00:00 GMT"), ("date", NOON)],  Some(0)),
            ("Expires that is no date",    &[("expires", "0")],                                              Some(0)),
            ("max-age goes before Expires", &[("cache-control", "max-age=5"), ("expires", "Sun, 06 Nov 1994 13:00:00 GMT")], Some(5)),
            ("p13 a day at most",          &[("cache-control", "max-age=31536000")],                         Some(86_400)),
            ("nonsense",                   &[("cache-control", "max-age=soon")],                             None),
        ];
        for (why, lines, want) in cases {
            assert_eq!(hint_s(&headers(lines), noon()), want, "{why}: {lines:?}");
        }
    }

    #[test]
    fn p24_retry_after_in_both_forms() {
        #[rustfmt::skip]
        let cases = [
            ("seconds",         "120",                             Some(120)),
            ("negative",        "-5",                              Some(0)),
            ("p25 capped",      "316800",                          Some(86_400)),
            ("a date",          "Sun, 06 Nov 1994 12:01:00 GMT",   Some(60)),
            ("an old date",     "Sunday, 06-Nov-94 12:01:00 GMT",  Some(60)),
            ("a C date",        "Sun Nov  6 12:01:00 1994",        Some(60)),
            ("p25 in the past", "Sun, 06 Nov 1994 11:00:00 GMT",   Some(0)),
            ("nonsense",        "later",                           None),
        ];
        for (why, value, want) in cases {
            let headers = headers(&[("retry-after", value), ("date", NOON)]);
            assert_eq!(retry_after_s(&headers, SystemTime::UNIX_EPOCH), want, "{why}");
        }
        assert_eq!(retry_after_s(&HeaderMap::new(), noon()), None);
    }

    #[test]
    fn p47_the_clock_of_a_server_is_compared_with_ours() {
        #[rustfmt::skip]
        let cases: [(&str, &Lines, i64); 7] = [
            ("no date",                   &[],                                                              0),
            ("the same time",             &[("date", NOON)],                                                0),
            ("as long as a response takes", &[("date", "Sun, 06 Nov 1994 11:59:01 GMT")],                   0),
            ("an hour behind",            &[("date", "Sun, 06 Nov 1994 11:00:00 GMT")],                     -3_600),
            ("an hour ahead",             &[("date", "Sun, 06 Nov 1994 13:00:00 GMT")],                     3_600),
            ("from a cache",              &[("date", "Sun, 06 Nov 1994 11:00:00 GMT"), ("age", "3600")],    0),
            ("no clock",                  &[("date", "Sun, 06 Nov 1990 12:00:00 GMT")],                     0),
        ];
        for (why, lines, want) in cases {
            assert_eq!(clock_ahead_s(&headers(lines), noon()), want, "{why}");
        }
    }

    #[test]
    fn p09_a_date_in_the_far_future_is_noticed() {
        for (modified, want) in [
            ("Mon, 07 Nov 1994 11:00:00 GMT", false),
            ("Mon, 07 Nov 1994 13:00:00 GMT", true),
            ("whenever", false),
        ] {
            let headers = headers(&[("last-modified", modified)]);
            assert_eq!(is_from_the_future(&headers, noon()), want, "{modified}");
        }
    }
}
