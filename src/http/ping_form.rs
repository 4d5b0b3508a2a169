//! `/pingSiteForm`: a weblog's ping as a plain request, answered with a page for people
//! (seed 002, "HTTP Ping").
//!
//! Blogging tools that cannot speak XML-RPC send it, and forms on web pages. `rssUrl`
//! names the feed where `url` is the home page, as blo.gs had it.

use std::sync::Arc;

use http::StatusCode;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use super::Gateway;
use super::exchange::{Asked, Door, with_type};
use super::params::{self, Bodies};
use super::rpc;
use super::rsscloud::PINGED;
use crate::wire::xml::escaped;

const DOOR: Door =
    Door { name: "ping_form", methods: &["GET", "POST"], body_limit_bytes: 64 * 1024 };

/// The routes of this door.
pub(super) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let form = warp::path!("pingSiteForm").boxed();
    DOOR.open(gateway, form, answer)
}

async fn answer(gateway: Arc<Gateway>, asked: Asked) -> Response {
    match take(&gateway, &asked).await {
        Ok(()) => page(StatusCode::OK, PINGED),
        Err((status, why)) => page(status, &why),
    }
}

async fn take(gateway: &Gateway, asked: &Asked) -> Result<(), (StatusCode, String)> {
    let form = params::read(asked, Bodies::Any).map_err(|refused| (refused.status, refused.why))?;
    let text = |name| form.get(name).unwrap_or_default().to_owned();
    let ping = [text("name"), text("url"), text("rssUrl")];
    rpc::weblog_ping(gateway, asked, ping).await.map_err(|why| (StatusCode::BAD_REQUEST, why))
}

fn page(status: StatusCode, sentence: &str) -> Response {
    let sentence = escaped(sentence);
    let body = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">\
         <title>Ping</title></head>\n<body><p>{sentence}</p></body>\n</html>\n"
    );
    with_type(status, "text/html; charset=utf-8", body)
}
