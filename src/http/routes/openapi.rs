//! `/openapi.json`: the OpenAPI document of all calls, as it is in `schemas/`, with the address of
//! this gateway and its version.

use std::sync::Arc;

use http::{StatusCode, header};
use serde_json::{Value, json};
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::reply::{set_header, with_content_type};
use crate::http::kit::request::Request;
use crate::http::state::Gateway;

const ENDPOINT: Endpoint = Endpoint { name: "openapi", methods: &["GET"], body_limit_bytes: 1_024 };

const DOCUMENT: &str = include_str!("../../../schemas/openapi.json");

/// Returns the route of this endpoint.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let text: Arc<str> = document(gateway.public_url("").trim_end_matches('/')).into();
    ENDPOINT.route(gateway, warp::path!("openapi.json").boxed(), move |_, _: Request| {
        let text = Arc::clone(&text);
        async move { reply(&text) }
    })
}

fn reply(text: &str) -> Response {
    let mut response =
        with_content_type(StatusCode::OK, "application/json; charset=utf-8", text.to_owned());
    set_header(&mut response, header::CACHE_CONTROL, "public, max-age=3600");
    response
}

/// Returns the document of a gateway with this public URL.
fn document(public_url: &str) -> String {
    let mut document: Value =
        serde_json::from_str(DOCUMENT).expect("schemas/openapi.json is JSON, which a test parses");
    document["servers"] = json!([{ "url": public_url }]);
    document["info"]["version"] = env!("CARGO_PKG_VERSION").into();
    document.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_the_address_of_the_gateway() {
        let document: Value = serde_json::from_str(&document("https://gate.example/x")).unwrap();
        assert_eq!(document["servers"], json!([{ "url": "https://gate.example/x" }]));
        assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
    }
}
