//! The path of the public URL, which a gateway has that shares its host with other sites:
//! `https://example.org/feedgate/`.
//!
//! Whatever is handed out begins with this path. A request may name it or not: a proxy that passes it
//! on needs no rewriting, and clients beside the gateway, such as health checks, need not know it.
//! Endpoints see paths without it.

use http::uri::PathAndQuery;
use http::{StatusCode, Uri, header};
use url::Url;
use warp::reply::Response;

use crate::http::kit::reply::{empty, set_header};

/// The path of the public URL, with a slash at its start and none at its end; empty at the root.
#[derive(Clone, Debug, Default)]
pub(crate) struct PublicPath(String);

impl PublicPath {
    /// Returns the path of a public URL.
    pub(crate) fn new(public_url: &Url) -> PublicPath {
        PublicPath(public_url.path().trim_end_matches('/').to_owned())
    }

    /// Removes this path from the target of a request, once. Returns a redirect for a request that
    /// names the path without its last slash, because relative links would leave it.
    pub(crate) fn remove_from<B>(&self, request: &mut http::Request<B>) -> Option<Response> {
        if self.0.is_empty() {
            return None;
        }
        let target = request.uri().path_and_query()?.as_str();
        let rest = target.strip_prefix(&self.0)?;
        if rest.is_empty() || rest.starts_with('?') {
            let mut response = empty(StatusCode::PERMANENT_REDIRECT);
            set_header(&mut response, header::LOCATION, &format!("{}/{rest}", self.0));
            return Some(response);
        }
        if rest.starts_with('/') {
            let path = PathAndQuery::try_from(rest).ok()?;
            let mut parts = request.uri().clone().into_parts();
            parts.path_and_query = Some(path);
            *request.uri_mut() = Uri::from_parts(parts).ok()?;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_see_paths_without_that_of_the_public_url() {
        #[rustfmt::skip]
        let cases = [
            ("https://gate.test/",       "/feeds/1?a=/g/",         "/feeds/1?a=/g/"),
            ("https://gate.test/g/",     "/g/feeds/1?count=2",     "/feeds/1?count=2"),
            ("https://gate.test/g/",     "/g/",                    "/"),
            ("https://gate.test/g/",     "/g/?hub.mode=list",      "/?hub.mode=list"),
            ("https://gate.test/g/",     "/feeds/1",               "/feeds/1"),
            ("https://gate.test/g/",     "/gfeeds/1",              "/gfeeds/1"),
            ("https://gate.test/g/",     "/g/g/feeds/1",           "/g/feeds/1"),
            ("https://gate.test/feeds/", "/feeds/feeds/1/recent",  "/feeds/1/recent"),
            ("https://gate.test/a/b/",   "/a/b/c%20d",             "/c%20d"),
            ("https://gate.test/a/b/",   "/a/c",                   "/a/c"),
            ("https://gate.test/g/",     "http://gate.test/g/hub", "http://gate.test/hub"),
        ];
        for (public_url, requested, want) in cases {
            let path = PublicPath::new(&Url::parse(public_url).unwrap());
            let mut request = http::Request::get(requested).body(()).unwrap();
            assert!(path.remove_from(&mut request).is_none(), "{requested}");
            assert_eq!(request.uri().to_string(), want, "{public_url} {requested}");
        }
    }

    #[test]
    fn the_path_without_its_last_slash_leads_to_the_one_with_it() {
        let path = PublicPath::new(&Url::parse("https://gate.test/g/").unwrap());
        for (requested, want) in [("/g", "/g/"), ("/g?a=b", "/g/?a=b")] {
            let mut request = http::Request::get(requested).body(()).unwrap();
            let response = path.remove_from(&mut request).unwrap();
            assert_eq!(response.status(), StatusCode::PERMANENT_REDIRECT);
            assert_eq!(response.headers()[header::LOCATION], want);
        }
    }
}
