//! `/changes.xml` and `/shortChanges.xml`: who changed lately (seed 002, "Retrieving
//! Pings").

use std::sync::Arc;
use std::time::Duration;

use http::{StatusCode, header};
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use super::Gateway;
use super::exchange::{Asked, Door, as_strangers_words, out_of_order, set, with_type};
use crate::render::changes::{Unit, changes};
use crate::store::StoreError;
use crate::wire::form::Form;
use crate::worker;

const DOOR: Door = Door { name: "changes", methods: &["GET"], body_limit_bytes: 1_024 };
/// "all the recent pings in the last hours": three, as weblogs.com had it.
const LONG: Duration = Duration::from_secs(3 * 3_600);
/// "all the recent pings in the last 5 minutes".
const SHORT: Duration = Duration::from_secs(5 * 60);
/// The most lines of one document; what is older than the last of them is left out.
const MOST_LINES: usize = 10_000;

/// The routes of this door.
pub(super) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let long = warp::path!("changes.xml").boxed();
    let short = warp::path!("shortChanges.xml").boxed();
    let long = DOOR.open(gateway, long, |gateway, asked| answer(gateway, asked, LONG));
    let short = DOOR.open(gateway, short, |gateway, asked| answer(gateway, asked, SHORT));
    long.or(short).unify().boxed()
}

async fn answer(gateway: Arc<Gateway>, asked: Asked, longest: Duration) -> Response {
    match document(&gateway, span(&asked, longest)).await {
        Ok(body) => {
            let mut response = with_type(StatusCode::OK, "text/xml; charset=utf-8", body);
            set(&mut response, header::CACHE_CONTROL, "public, max-age=60");
            as_strangers_words(response)
        }
        Err(err) => out_of_order(&err),
    }
}

async fn document(gateway: &Gateway, span: Duration) -> Result<String, StoreError> {
    let now = worker::now();
    let lines = gateway.store.changes(now - span, MOST_LINES).await?;
    let count = gateway.store.ping_count().await?;
    // Seed 002 says minutes; those who computed with it, and the first description of
    // the format, say seconds (reference, "The seeds themselves disagree").
    Ok(changes(&lines, count, now, Unit::Seconds))
}

/// `?last=SECONDS` asks for less, as Technorati's spider did.
fn span(asked: &Asked, longest: Duration) -> Duration {
    let query = Form::from_urlencoded(asked.query.as_bytes()).unwrap_or_default();
    let last = query.get("last").and_then(|secs| secs.parse().ok());
    last.map_or(longest, |secs| Duration::from_secs(secs).min(longest))
}
