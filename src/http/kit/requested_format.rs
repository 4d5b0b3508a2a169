//! The format in which a feed is requested.

use http::HeaderMap;
use http::header::ACCEPT;

use crate::http::kit::content_coding::weight;
use crate::http::kit::params;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use feedgate_core::document_format::DocumentFormat;

/// Returns the format that the address names, else that of the parameter `format`, else the one that
/// `Accept` prefers.
pub(crate) fn requested_format(
    request: &Request,
    of_address: Option<DocumentFormat>,
) -> Result<DocumentFormat, Rejection> {
    let query = params::read_query(request);
    match (of_address, query.get("format")) {
        (Some(format), _) => Ok(format),
        (None, Some(word)) => DocumentFormat::from_word(word).ok_or_else(|| {
            Rejection::bad_request(format!("format must be atom, rss or json-feed, not {word}."))
        }),
        (None, None) => Ok(accepted_format(&request.headers)),
    }
}

/// Returns the format that `Accept` prefers (RFC 9110 `#field.accept`). Whoever likes several equally
/// well, or names none, gets Atom, as do all clients that accept everything.
pub(crate) fn accepted_format(headers: &HeaderMap) -> DocumentFormat {
    let lists = headers.get_all(ACCEPT).iter().filter_map(|list| list.to_str().ok());
    let (mut atom, mut rss, mut json_feed) = (None, 0, 0);
    let (mut all, mut applications) = (None, None);
    for range in lists.flat_map(|list| list.split(',')) {
        let (name, parameters) = range.split_once(';').unwrap_or((range, ""));
        let weight = weight(parameters);
        match name.trim().to_ascii_lowercase().as_str() {
            "application/atom+xml" => atom = atom.max(Some(weight)),
            "application/rss+xml" => rss = rss.max(weight),
            "application/feed+json" | "application/json" => json_feed = json_feed.max(weight),
            "application/*" => applications = applications.max(Some(weight)),
            "*/*" | "*" => all = all.max(Some(weight)),
            _ => {}
        }
    }
    let atom = atom.or(applications).or(all).unwrap_or_default();
    if rss > atom && rss >= json_feed {
        DocumentFormat::Rss
    } else if json_feed > atom {
        DocumentFormat::JsonFeed
    } else {
        DocumentFormat::Atom
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a03_the_format_is_the_one_that_accept_prefers_to_atom() {
        use DocumentFormat::{Atom, JsonFeed, Rss};
        #[rustfmt::skip]
        let cases = [
            ("",                                                    Atom),
            ("*/*",                                                 Atom),
            ("application/json, text/plain, */*",                   Atom),
            ("application/rss+xml, */*",                            Atom),
            ("application/atom+xml, application/rss+xml;q=0.9",     Atom),
            ("application/rss+xml, application/atom+xml",           Atom),
            ("application/xml, application/atom+xml, application/rss+xml, application/rdf+xml, application/feed+json, text/html, */*;q=0.9", Atom),
            ("application/rss+xml;q=0",                             Atom),
            ("application/rss+xml",                                 Rss),
            ("Application/RSS+XML; charset=utf-8, text/xml",        Rss),
            ("application/rss+xml, application/feed+json",          Rss),
            ("application/rss+xml, */*;q=0.8",                      Rss),
            ("application/atom+xml;q=0.5, application/rss+xml;q=.6", Rss),
            ("application/atom+xml;q=0, application/rss+xml, */*",  Rss),
            ("application/rss+xml, application/*;q=0.2, */*",       Rss),
            ("application/feed+json, application/json;q=0.9",       JsonFeed),
            ("application/json",                                    JsonFeed),
            ("application/feed+json, application/rss+xml;q=0.4, */*;q=0.1", JsonFeed),
        ];
        for (accept, want) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().unwrap());
            assert_eq!(accepted_format(&headers), want, "{accept}");
        }
    }
}
