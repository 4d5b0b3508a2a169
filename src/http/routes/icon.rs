//! `/favicon.svg` and `/favicon.ico`: the icon of this program. Pages have it in themselves; feed readers, and
//! browsers that show a document without a page, request these addresses.

use std::sync::Arc;

use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::fixed_document::FixedDocument;
use crate::http::kit::html::ICON;
use crate::http::kit::paths;
use crate::http::state::Gateway;

const ENDPOINT: Endpoint = Endpoint { name: "icon", methods: &["GET"], body_limit_bytes: 1_024 };

/// The icon of `html/icon.svg` as pictures of 16 and 32 pixels, for programs that do not read SVG.
const PIXELS: &[u8] = include_bytes!("icon/favicon.ico");

/// Returns the routes of this endpoint.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let drawn = FixedDocument::new("image/svg+xml", ICON);
    let pixels = FixedDocument::new("image/vnd.microsoft.icon", PIXELS);
    let drawn = drawn.route(ENDPOINT, gateway, paths::exact("favicon.svg"));
    drawn.or(pixels.route(ENDPOINT, gateway, paths::exact("favicon.ico"))).unify().boxed()
}
