//! The icon of the site of a feed, which the script of the lists displays.

use http::{StatusCode, header};
use warp::reply::Response;

use super::feed;
use super::visit::Visit;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::reply::{empty, sandboxed, set_header, with_content_type};
use crate::site_icons::UnknownIcon;

/// How long a browser stores the icon, or that there is none: a day, as this node does.
const CACHE_POLICY: &str = "private, max-age=86400";

/// Returns the icon of the feed with this number, or nothing if there is none: that is no error. Only who may see the feed learns whether there is one.
pub(super) async fn serve(visit: &Visit, id: &str) -> Result<Response, Rejection> {
    let feed = feed::find(visit, id).await?;
    let found = visit.gateway.site_icons.icon(&feed, visit.access()?.account).await;
    let found = found.map_err(|why| match why {
        UnknownIcon::Store(err) => Rejection::unavailable(&err),
        UnknownIcon::Busy(busy) => Rejection::busy(busy),
    })?;
    let mut response = match found {
        Some(icon) => sandboxed(with_content_type(StatusCode::OK, icon.media_type, icon.bytes)),
        None => empty(StatusCode::NO_CONTENT),
    };
    set_header(&mut response, header::CACHE_CONTROL, CACHE_POLICY);
    Ok(response)
}
