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
/// "all the recent pings in the last hours": one, because the hours before it are to
/// be archives of their own.
const LONG: Duration = Duration::from_secs(3_600);
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
    let query = Form::from_urlencoded(asked.query.as_bytes()).unwrap_or_default();
    match document(&gateway, span(&query, longest), unit(&query)).await {
        Ok(body) => {
            let mut response = with_type(StatusCode::OK, "text/xml; charset=utf-8", body);
            set(&mut response, header::CACHE_CONTROL, "public, max-age=60");
            as_strangers_words(response)
        }
        Err(err) => out_of_order(&err),
    }
}

async fn document(gateway: &Gateway, span: Duration, unit: Unit) -> Result<String, StoreError> {
    let now = worker::now();
    let lines = gateway.store.changes(now - span, MOST_LINES).await?;
    let count = gateway.store.ping_count().await?;
    Ok(changes(&lines, count, now, unit))
}

/// `?last=SECONDS` asks for less, as Technorati's spider did.
fn span(query: &Form, longest: Duration) -> Duration {
    let last = query.get("last").and_then(|secs| secs.parse().ok());
    last.map_or(longest, |secs| Duration::from_secs(secs).min(longest))
}

/// "The when attribute in the number of minutes since the ping was received." (seed
/// 002) The first description of the format, and programs written to it, count in
/// seconds: they ask with `?when=seconds`.
fn unit(query: &Form) -> Unit {
    match query.get("when") {
        Some("seconds") => Unit::Seconds,
        _ => Unit::Minutes,
    }
}
