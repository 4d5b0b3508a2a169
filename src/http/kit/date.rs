//! `Date` of all responses.
//!
//! hyper adds one if there is none, but remembers its value until the clock has passed it: after a
//! clock was set back by an hour, its responses come from the future for an hour. Caches and clients
//! then compute wrong ages.

use std::time::SystemTime;

use chrono::{DateTime, Utc};
use http::header::DATE;
use http::{HeaderValue, Response};

/// Returns the response with the time at which it was made, unless it has one.
pub(crate) fn with_date<B>(mut response: Response<B>, now: DateTime<Utc>) -> Response<B> {
    if !response.headers().contains_key(DATE)
        && let Ok(date) = HeaderValue::try_from(httpdate::fmt_http_date(SystemTime::from(now)))
    {
        response.headers_mut().insert(DATE, date);
    }
    response
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn t11_the_date_follows_a_clock_that_was_set_back() {
        let now = DateTime::from_timestamp(784_111_777, 0).unwrap();
        let date = |now| with_date(Response::new(()), now).headers()[DATE].clone();
        assert_eq!(date(now), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(date(now - TimeDelta::hours(1)), "Sun, 06 Nov 1994 07:49:37 GMT");
        let own = Response::builder().header(DATE, "own").body(()).unwrap();
        assert_eq!(with_date(own, now).headers()[DATE], "own");
    }
}
