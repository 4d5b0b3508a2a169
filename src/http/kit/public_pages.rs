//! The pages for everybody, as other pages list them.

use maud::{Markup, html};

use crate::http::kit::anonymous_access::Permission;
use crate::http::kit::html::address;
use crate::http::state::Gateway;

/// A page for everybody: its address from the root of the gateway, and what it is for.
type PublicPage = (&'static str, &'static str);

/// The pages, by whom they are for.
const GROUPS: [(&str, &[PublicPage]); 3] = [
    (
        "For readers and subscribers",
        &[
            (TRY, "What is at an address"),
            ("viewLog", "What happened lately, and why some of it failed"),
            ("feeds.opml", "All feeds, as OPML"),
            ("stats", "Statistics"),
        ],
    ),
    (
        "For publishers",
        &[
            ("feed-health", "How your feed is polled"),
            ("pingSiteForm", "Report that a site has changed"),
            ("author", "Write a post"),
            ("bot", "Why feedgate fetches from your server"),
        ],
    ),
    (
        "For programs",
        &[
            ("docs", "All calls, to read and to try"),
            ("openapi.json", "All calls, as an OpenAPI document"),
            ("changes.xml", "Recent changes"),
        ],
    ),
];
/// The pages that `FEEDGATE_PUBLIC_VIEWS` permits.
const VIEWS: [&str; 3] = ["feed-health", "stats", "feeds.opml"];
/// The page that `try` in `FEEDGATE_ANONYMOUS` permits.
const TRY: &str = "try";

/// The characters of a path that say enough to suggest a page.
const ENOUGH_CHARS: usize = 3;

/// Returns whether a gateway has a page.
fn is_served(gateway: &Gateway, path: &str) -> bool {
    match path {
        TRY => gateway.settings.anonymous.allows(Permission::Try),
        path => !VIEWS.contains(&path) || gateway.shows_public_views(),
    }
}

/// Returns the pages as lists below the headings of their groups; `root` is the way to the root of the gateway.
pub(crate) fn list(gateway: &Gateway, root: &str) -> Markup {
    html! {
        @for (group, pages) in GROUPS {
            h3 { (group) }
            ul.links {
                @for (path, name) in pages.iter().filter(|(path, _)| is_served(gateway, path)) {
                    li { a href=(address(root, path)) { (name) } " " small { "/" (path) } }
                }
            }
        }
    }
}

/// Returns the address of the page that somebody may have meant who requested `path`: in other letters, or a
/// part of its address.
pub(crate) fn similar(gateway: &Gateway, path: &str) -> Option<&'static str> {
    let wanted = path.trim_matches('/').to_ascii_lowercase();
    let is_similar = |known: &str| {
        let known = known.to_ascii_lowercase();
        known.contains(&wanted) || wanted.starts_with(&known)
    };
    let pages = GROUPS.iter().flat_map(|(_, pages)| *pages).map(|(path, _)| *path);
    let mut known = pages.filter(|path| is_served(gateway, path)).chain(["console"]);
    known.find(|known| wanted.len() >= ENOUGH_CHARS && is_similar(known))
}
