//! `/openapi.json`: the OpenAPI document of all calls, as it is in `schemas/`, with the address of
//! this gateway and its version; and `/docs`, a page that shows it.

mod page;

use std::sync::Arc;

use serde_json::{Value, json};
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::fixed_document::FixedDocument;
use crate::http::kit::paths;
use crate::http::state::Gateway;

const ENDPOINT: Endpoint = Endpoint { name: "openapi", methods: &["GET"], body_limit_bytes: 1_024 };

const DOCUMENT: &str = include_str!("../../../schemas/openapi.json");

/// Returns the routes of this endpoint.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let text = document(gateway.public_url("").trim_end_matches('/'));
    let document = FixedDocument::new("application/json; charset=utf-8", text);
    let document = document.route(ENDPOINT, gateway, paths::exact("openapi.json"));
    document.or(page::routes(gateway)).unify().boxed()
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
