//! The page that people in a browser see where there is nothing: it leads on. Programs are sent a sentence.

use http::{StatusCode, header};
use maud::html;
use url::form_urlencoded;
use warp::reply::Response;

use crate::http::kit::html::{HtmlPage, Interaction, Place, Reader, Width, address};
use crate::http::kit::public_pages;
use crate::http::kit::reply::{not_found, set_header};
use crate::http::state::Gateway;
use feedgate_core::redaction;

/// The title of a page where there is nothing.
pub(crate) const TITLE: &str = "Page not found";

/// The most slashes in the path of a page after the first: every link of the page repeats the way to the root.
const MAX_FOLDERS: usize = 16;
/// The maximum length of a path on the page, in characters.
const PATH_CHARS: usize = 200;

/// Returns the page in response to a request for a path where there is nothing.
pub(crate) fn page(gateway: &Gateway, path: &str) -> Response {
    let folders = path.matches('/').count().saturating_sub(1);
    if folders > MAX_FOLDERS {
        return not_found();
    }
    let root = "../".repeat(folders);
    let path = redaction::line(path, PATH_CHARS);
    let query = |name, value: &str| {
        form_urlencoded::Serializer::new(String::new()).append_pair(name, value).finish()
    };
    let (feeds, events) = (query("q", &path), query("feed", path.trim_start_matches('/')));
    let content = html! {
        p { "This gateway has no page at " code { (path) } "." }
        @if let Some(similar) = public_pages::similar(gateway, &path) {
            p { "Did you mean " a href=(address(&root, similar)) { "/" (similar) } "?" }
        }
        p {
            "If you look for a feed, "
            a href=(address(&root, &format!("viewLog?{events}"))) { "search the event log" }
            " or, with an account, "
            a href=(address(&root, &format!("console/feeds?{feeds}"))) { "your feeds" } "."
        }
        h2 { "What is here" }
        (public_pages::list(gateway, &root))
    };
    let place = Place { root: &root, section: "404", reader: Reader::Anybody, alternate: None };
    let (title, width, interaction) = (TITLE, Width::Text, Interaction::None);
    let page = HtmlPage { title, width, interaction, place, content };
    let mut response = page.reply(StatusCode::NOT_FOUND);
    // Programs are sent another response at the same address.
    set_header(&mut response, header::CACHE_CONTROL, "private, no-store");
    response
}
