//! `/changes.xml`, `/shortChanges.xml` and `/YYYY/MM/DD/HH.xml`: the weblogs that changed recently,
//! and those that changed in an earlier hour (seed 002, "Retrieving Pings").
//!
//! A document is rendered once for all clients, until a change is listed, and for a minute at most.
//! No document is longer than what is cached. The document of a completed hour never changes. No client
//! waits for a document to be rendered that already has it, or requests only its headers (HEAD).
//! Weblogs and feeds at inner addresses are listed for the operator's networks only (rule S55).

mod answer;
mod cache;
mod edition;
mod page;
pub mod render;
mod rendered;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use warp::filters::BoxedFilter;
use warp::reply::Response;
use warp::{Filter, Rejection};

use crate::http::kit::anonymous_access::Permission;
use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::params;
use crate::http::kit::paths;
use crate::http::kit::permissions;
use crate::http::kit::rejection::unavailable;
use crate::http::kit::reply::not_found;
use crate::http::kit::request::Request;
use crate::http::kit::viewer_access::ViewerAccess;
use crate::http::state::Gateway;
use crate::jobs::runner;
use feedgate_core::ping::{HOUR, TimeUnit, start_of_hour};
use feedgate_core::store::StoreError;
use feedgate_protocol::form::Form;

use answer::{Caching, RequestedPart};
use cache::{ChangesCache, CoveredTime, RequestedDocument};
use edition::{Edition, Lines};

const ENDPOINT: Endpoint = Endpoint { name: "changes", methods: &["GET"], body_limit_bytes: 1_024 };
/// The time that `/changes.xml` covers: "all the recent pings in the last hours". One hour, because
/// earlier hours have documents of their own.
const LONG: Duration = Duration::from_secs(3_600);
/// The time that `/shortChanges.xml` covers: "all the recent pings in the last 5 minutes".
const SHORT: Duration = Duration::from_secs(5 * 60);

/// Returns the routes of this endpoint.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let cache = Arc::new(ChangesCache::default());
    let long = paths::exact("changes.xml").map(|| LONG);
    let short = paths::exact("shortChanges.xml").map(|| SHORT);
    let for_recent = Arc::clone(&cache);
    let recent = long.or(short).unify().boxed();
    let recent = ENDPOINT.route_with_param(gateway, recent, move |gateway, request, longest| {
        recent_changes(gateway, request, longest, Arc::clone(&for_recent))
    });
    let hour = warp::path!(String / String / String / String).and_then(
        |year: String, month: String, day: String, file: String| async move {
            // Paths of other shapes belong to other endpoints.
            hour_named(&[year, month, day, file]).ok_or_else(warp::reject::not_found)
                as Result<Option<DateTime<Utc>>, Rejection>
        },
    );
    let hour = ENDPOINT.route_with_param(gateway, hour.boxed(), move |gateway, request, begins| {
        changes_of(gateway, request, begins, Arc::clone(&cache))
    });
    recent.or(hour).unify().boxed()
}

async fn recent_changes(
    gateway: Arc<Gateway>,
    request: Request,
    longest: Duration,
    cache: Arc<ChangesCache>,
) -> Response {
    if let Some(rejected) = reject_anonymous(&gateway, &request).await {
        return rejected;
    }
    let query = params::read_query(&request);
    let unit = unit(&query).unwrap_or(gateway.settings.changes_unit);
    let access = ViewerAccess::of_request(&gateway, &request);
    let time = CoveredTime::Last(longest.as_secs());
    let document = RequestedDocument::Open(time, unit, access);
    let requested = RequestedPart { document, span: span(&query, longest) };
    let reply = answer::reply(&cache, &gateway, &request, requested, Caching::Minute).await;
    permissions::keep_private(&gateway, reply)
}

async fn changes_of(
    gateway: Arc<Gateway>,
    request: Request,
    begins: Option<DateTime<Utc>>,
    cache: Arc<ChangesCache>,
) -> Response {
    if let Some(rejected) = reject_anonymous(&gateway, &request).await {
        return rejected;
    }
    let Some(begins) = begins else { return not_found() };
    let query = params::read_query(&request);
    let access = ViewerAccess::of_request(&gateway, &request);
    match hour(&gateway, begins, unit(&query), access).await {
        Ok(Some((document, caching))) => {
            let requested = RequestedPart { document, span: None };
            let reply = answer::reply(&cache, &gateway, &request, requested, caching).await;
            permissions::keep_private(&gateway, reply)
        }
        Ok(None) => not_found(),
        Err(err) => unavailable(&err),
    }
}

/// Returns the reply to a caller without an account, if the operator shows views to accounts only.
async fn reject_anonymous(gateway: &Gateway, request: &Request) -> Option<Response> {
    let entered = permissions::check_by_query(gateway, request, Permission::Views).await;
    entered.err().map(|rejection| rejection.to_response())
}

/// Returns the document of an hour; `None` if the hour has not begun, or nothing is stored of it.
async fn hour(
    gateway: &Gateway,
    begins: DateTime<Utc>,
    unit: Option<TimeUnit>,
    access: ViewerAccess,
) -> Result<Option<(RequestedDocument, Caching)>, StoreError> {
    let now = runner::now();
    if begins > now {
        return Ok(None);
    }
    if let Some(kept) = gateway.store.hour(begins).await? {
        let edition = Edition {
            lines: Lines::Kept { begins, parts: kept.parts },
            updated: begins + HOUR,
            count: kept.count,
            unit: unit.unwrap_or(kept.unit),
            access,
        };
        return Ok(Some((RequestedDocument::Closed(edition), Caching::Forever)));
    }
    // An hour without a stored document is listed from the pings. There is nothing before the
    // oldest open hour.
    let open = gateway.store.open_hour().await?;
    if begins != start_of_hour(now) && open.is_none_or(|open| begins < open) {
        return Ok(None);
    }
    let unit = unit.unwrap_or(gateway.settings.changes_unit);
    let requested = RequestedDocument::Open(CoveredTime::Hour(begins), unit, access);
    Ok(Some((requested, Caching::Minute)))
}

/// Returns the requested time span if it is shorter than the longest: `?last=SECONDS` asks for less,
/// as Technorati's spider did.
fn span(query: &Form, longest: Duration) -> Option<TimeDelta> {
    let last: u64 = query.get("last").and_then(|secs| secs.parse().ok())?;
    (last < longest.as_secs()).then(|| TimeDelta::seconds(last as i64))
}

/// Returns the requested unit of `when`.
fn unit(query: &Form) -> Option<TimeUnit> {
    query.get("when").and_then(TimeUnit::from_word)
}

/// Parses the hour of `2007/01/13/19.xml`, in UTC. Returns `None` if the path has another shape,
/// and `Some(None)` if there is no such hour.
fn hour_named(path: &[String; 4]) -> Option<Option<DateTime<Utc>>> {
    let digits = |text: &str, many: usize| {
        let are_digits = text.len() == many && text.bytes().all(|b| b.is_ascii_digit());
        if are_digits { text.parse::<u32>().ok() } else { None }
    };
    let [year, month, day, file] = path;
    let hour = digits(file.strip_suffix(".xml")?, 2)?;
    let (year, month, day) = (digits(year, 4)?, digits(month, 2)?, digits(day, 2)?);
    let date = i32::try_from(year).ok().and_then(|y| NaiveDate::from_ymd_opt(y, month, day));
    Some(date.and_then(|date| date.and_hms_opt(hour, 0, 0)).map(|at| at.and_utc()))
}

/// Returns the start and end of the time that a document covers at `now`, and the time of its last
/// update.
fn stretch(time: CoveredTime, now: DateTime<Utc>) -> (DateTime<Utc>, DateTime<Utc>, DateTime<Utc>) {
    match time {
        // The clock of another node may be a little ahead.
        CoveredTime::Last(secs) => {
            (now - TimeDelta::seconds(secs as i64), now + TimeDelta::minutes(1), now)
        }
        CoveredTime::Hour(begins) => (begins, begins + HOUR, now.min(begins + HOUR)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_is_named_by_its_date_and_the_clock() {
        let at = |text: &str| Some(DateTime::parse_from_rfc3339(text).unwrap().to_utc());
        #[rustfmt::skip]
        let cases = [
            ("2007/01/13/19.xml", Some(at("2007-01-13T19:00:00Z"))),
            ("2007/01/01/00.xml", Some(at("2007-01-01T00:00:00Z"))),
            ("2007/13/01/00.xml", Some(None)),
            ("2007/02/29/00.xml", Some(None)),
            ("2007/01/01/24.xml", Some(None)),
            ("2007/1/13/19.xml",  None),
            ("2007/01/13/19",     None),
            ("2007/01/13/1a.xml", None),
            ("feeds/7/documents/3", None),
        ];
        for (path, want) in cases {
            let parts: Vec<String> = path.split('/').map(str::to_owned).collect();
            assert_eq!(hour_named(&parts.try_into().unwrap()), want, "{path}");
        }
    }

    #[test]
    fn last_asks_for_less_and_never_for_more() {
        #[rustfmt::skip]
        let cases = [
            ("", None), ("last=60", Some(60)), ("last=0", Some(0)), ("last=300", None),
            ("last=9999", None), ("last=x", None), ("last=-1", None),
        ];
        for (query, want) in cases {
            let query = Form::from_urlencoded(query.as_bytes()).unwrap();
            assert_eq!(span(&query, SHORT), want.map(TimeDelta::seconds));
        }
    }
}
