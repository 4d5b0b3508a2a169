//! `/errors/…`: what a code of an error means, and what to do. The `type` of a problem document (RFC 9457)
//! leads here. The texts are those of `docs/errors.md`.

use std::sync::Arc;

use http::{StatusCode, header};
use maud::{Markup, html};
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::html::parts::crumbs;
use crate::http::kit::html::{HtmlPage, Interaction, Place, Reader, Width};
use crate::http::kit::paths;
use crate::http::kit::reply::{not_found, set_header};
use crate::http::kit::request::Request;
use crate::http::state::Gateway;

const ENDPOINT: Endpoint = Endpoint { name: "errors", methods: &["GET"], body_limit_bytes: 1_024 };

const DOCUMENT: &str = include_str!("../../../docs/errors.md");

/// Returns the route of this endpoint.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let path = paths::with_segment("errors/{}");
    ENDPOINT.route_with_param(gateway, path, |_, _: Request, code| async move { reply(&code) })
}

fn reply(code: &str) -> Response {
    let explanations: Vec<Explanation> = explanations(code).collect();
    if explanations.is_empty() {
        return not_found();
    }
    let page = HtmlPage {
        title: code,
        width: Width::Text,
        interaction: Interaction::None,
        place: Place { root: "../", section: "", reader: Reader::Anybody, alternate: None },
        content: html! {
            (crumbs([("API", "../docs".to_owned())].into_iter()))
            @for Explanation { section, cause, advice } in explanations {
                h2 { (section) }
                p { (prose(cause)) }
                p { strong { "What to do: " } (prose(advice)) }
            }
        },
    };
    let mut response = page.reply(StatusCode::OK);
    set_header(&mut response, header::CACHE_CONTROL, "public, max-age=3600");
    response
}

/// What the page of errors says about a code, in one of its sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Explanation {
    section: &'static str,
    cause: &'static str,
    advice: &'static str,
}

/// Returns the rows of the page whose first cell has this code.
fn explanations(code: &str) -> impl Iterator<Item = Explanation> {
    let quoted = format!("`{code}`");
    let is_code = !code.is_empty() && code.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let mut section = "";
    DOCUMENT.lines().filter_map(move |line| {
        if let Some(headline) = line.strip_prefix("## ") {
            section = headline;
        }
        let row = line.strip_prefix("| ")?.strip_suffix(" |")?;
        let mut cells = row.splitn(3, " | ");
        let (codes, cause, advice) = (cells.next()?, cells.next()?, cells.next()?);
        let is_meant = is_code && codes.split(", ").any(|held| held == quoted);
        is_meant.then_some(Explanation { section, cause, advice })
    })
}

/// Returns a cell of the page as text: code between backticks, and links by their words.
fn prose(cell: &str) -> Markup {
    let text = without_links(cell);
    html! {
        @for (n, part) in text.split('`').enumerate() {
            @if n % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

fn without_links(cell: &str) -> String {
    let (mut text, mut rest) = (String::new(), cell);
    while let Some((before, after)) = rest.split_once("](") {
        text.push_str(&before.replace('[', ""));
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a02_each_code_of_the_page_is_explained() {
        let codes =
            ["bad_callback", "batch_too_large", "rate_limited", "unknown_field", "bad_cursor"];
        for code in codes {
            let found = explanations(code).next().unwrap_or_else(|| panic!("{code}"));
            assert!(!found.section.is_empty() && !found.cause.is_empty(), "{found:?}");
        }
        for unknown in ["", "no_such_code", "code", "`", "bad_callback`"] {
            assert_eq!(explanations(unknown).next(), None, "{unknown}");
        }
    }

    #[test]
    fn a02_links_of_the_page_are_shown_by_their_words() {
        assert_eq!(
            without_links("A [batch](delivery.md#many) has, see [x](y)."),
            "A batch has, see x."
        );
        assert_eq!(prose("a `b` c").into_string(), "a <code>b</code> c");
    }
}
