//! `/docs`: a page on which people read the OpenAPI document and try its calls. It is Swagger UI, whose
//! files are part of the program, unchanged, with their licence (`swagger-ui/`).
//!
//! The page loads nothing from elsewhere, and its calls go to the gateway that served it, whatever the
//! public URL is.

use std::sync::Arc;

use http::{StatusCode, header};
use maud::{DOCTYPE, html};
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use super::ENDPOINT;
use crate::http::kit::fixed_document::FixedDocument;
use crate::http::kit::html::{ICON_ADDRESS, MEDIA_TYPE, address, restrict};
use crate::http::kit::paths;
use crate::http::kit::reply::{not_found, set_header, with_content_type};
use crate::http::kit::request::Request;
use crate::http::state::Gateway;

/// The `Content-Security-Policy` of the page. Nothing is inline, so that what a document says can be
/// neither a script nor a style. Pictures are those in the stylesheet.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLESHEET: &str = "text/css; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// The files of the page, with their names and media types.
const FILES: [(&str, &str, &[u8]); 7] = [
    ("start.js", SCRIPT, include_bytes!("start.js")),
    ("page.css", STYLESHEET, include_bytes!("page.css")),
    ("swagger-ui-bundle.js", SCRIPT, include_bytes!("swagger-ui/swagger-ui-bundle.js")),
    ("swagger-ui.css", STYLESHEET, include_bytes!("swagger-ui/swagger-ui.css")),
    (
        "swagger-ui-bundle.js.LICENSE.txt",
        TEXT,
        include_bytes!("swagger-ui/swagger-ui-bundle.js.LICENSE.txt"),
    ),
    ("LICENSE", TEXT, include_bytes!("swagger-ui/LICENSE")),
    ("NOTICE", TEXT, include_bytes!("swagger-ui/NOTICE")),
];

/// Returns the routes of the page and of its files.
pub(super) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let page = ENDPOINT
        .route(gateway, paths::exact("docs"), |_, request: Request| async move { page(&request) });
    let file = |(name, media_type, content): (&'static str, &'static str, &'static [u8])| {
        (name, FixedDocument::new(media_type, content))
    };
    let files: Arc<[(&str, FixedDocument)]> = FILES.into_iter().map(file).collect();
    let path = paths::with_segment("docs/{}");
    let files = ENDPOINT.route_with_param(gateway, path, move |_, request, name: String| {
        let files = Arc::clone(&files);
        async move {
            match files.iter().find(|(known, _)| *known == name) {
                Some((_, file)) => file.reply(&request).await,
                None => not_found(),
            }
        }
    });
    page.or(files).unify().boxed()
}

fn page(request: &Request) -> Response {
    let root = if request.path.ends_with('/') { "../" } else { "" };
    let file = |name: &str| address(root, &format!("docs/{name}"));
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "API – feedgate" }
                link rel="icon" href=(*ICON_ADDRESS);
                link rel="stylesheet" href=(file("swagger-ui.css"));
                link rel="stylesheet" href=(file("page.css"));
                script src=(file("swagger-ui-bundle.js")) defer {}
                script src=(file("start.js")) defer {}
            }
            body.swagger-ui {
                nav.top aria-label="Main" {
                    a href=(address(root, "")) { "feedgate" }
                    a href=(address(root, "viewLog")) { "Event log" }
                    a href=(address(root, "console")) { "Console" }
                    a href=(address(root, "openapi.json")) { "openapi.json" }
                }
                main #api {
                    noscript {
                        p.wrapper {
                            "This page needs scripts. "
                            a.link href=(address(root, "openapi.json")) { "The document" }
                            " that it shows does not."
                        }
                    }
                }
            }
        }
    };
    let mut response = with_content_type(StatusCode::OK, MEDIA_TYPE, document.into_string());
    restrict(&mut response, POLICY);
    set_header(&mut response, header::CACHE_CONTROL, "public, max-age=300");
    response
}
