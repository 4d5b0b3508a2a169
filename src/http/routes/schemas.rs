//! `/schemas/…`: the schemas of what feedgate sends, as they are in `schemas/`: JSON Schema of
//! notifications in JSON, of alerts and of JSON feeds, and RELAX NG of its XML documents.

use std::sync::Arc;

use http::{StatusCode, header};
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::paths;
use crate::http::kit::reply::{not_found, set_header, with_content_type};
use crate::http::kit::request::Request;
use crate::http::state::Gateway;

const ENDPOINT: Endpoint = Endpoint { name: "schemas", methods: &["GET"], body_limit_bytes: 1_024 };

/// The media type of JSON Schema (draft 2020-12, `#section-14`).
const JSON_SCHEMA: &str = "application/schema+json";
/// RELAX NG has no media type of its own.
const RELAX_NG: &str = "application/xml";

/// A schema that is served.
struct Schema {
    name: &'static str,
    media_type: &'static str,
    text: &'static str,
}

const SCHEMAS: [Schema; 6] = [
    Schema {
        name: "notification.schema.json",
        media_type: JSON_SCHEMA,
        text: include_str!("../../../schemas/notification.schema.json"),
    },
    Schema {
        name: "alert.schema.json",
        media_type: JSON_SCHEMA,
        text: include_str!("../../../schemas/alert.schema.json"),
    },
    Schema {
        name: "json-feed.schema.json",
        media_type: JSON_SCHEMA,
        text: include_str!("../../../schemas/json-feed.schema.json"),
    },
    Schema {
        name: "atom.rng",
        media_type: RELAX_NG,
        text: include_str!("../../../schemas/atom.rng"),
    },
    Schema {
        name: "changes.rng",
        media_type: RELAX_NG,
        text: include_str!("../../../schemas/changes.rng"),
    },
    Schema {
        name: "opml.rng",
        media_type: RELAX_NG,
        text: include_str!("../../../schemas/opml.rng"),
    },
];

/// Returns the routes of this endpoint.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let path = paths::with_segment("schemas/{}");
    ENDPOINT.route_with_param(gateway, path, |_, _: Request, name| async move { reply(&name) })
}

fn reply(name: &str) -> Response {
    let Some(schema) = SCHEMAS.iter().find(|schema| schema.name == name) else {
        return not_found();
    };
    let mut response = with_content_type(StatusCode::OK, schema.media_type, schema.text);
    set_header(&mut response, header::CACHE_CONTROL, "public, max-age=3600");
    response
}
