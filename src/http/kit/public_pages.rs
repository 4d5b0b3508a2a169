//! The pages for everybody, as other pages list them.

use maud::{Markup, html};

use crate::http::kit::anonymous_access::Permission;
use crate::http::kit::html::address;
use crate::http::state::Gateway;

/// A page for everybody: its address from the root of the gateway, and what it is for.
type PublicPage = (&'static str, &'static str);

const PAGES: [PublicPage; 7] = [
    ("docs", "All calls, to read and to try"),
    ("openapi.json", "All calls, as an OpenAPI document"),
    ("viewLog", "What happened lately, and why some of it failed"),
    ("changes.xml", "Recent changes for programs"),
    ("pingSiteForm", "Report that a site has changed"),
    ("author", "Write a post"),
    ("bot", "Why feedgate fetches from your server"),
];
/// Those that `FEEDGATE_PUBLIC_VIEWS` is for.
const VIEWS: [PublicPage; 3] = [
    ("feed-health", "For publishers: how your feed is polled"),
    ("stats", "Statistics"),
    ("feeds.opml", "All feeds, as OPML"),
];
/// The one that `try` in `FEEDGATE_ANONYMOUS` is for.
const TRY: PublicPage = ("try", "What is at an address");

/// The characters of a path that say enough to suggest a page.
const ENOUGH_CHARS: usize = 3;

/// Returns the pages of a gateway.
fn pages(gateway: &Gateway) -> impl Iterator<Item = PublicPage> {
    let may_try = gateway.settings.anonymous.allows(Permission::Try);
    let views = VIEWS.into_iter().filter(|_| gateway.shows_public_views());
    may_try.then_some(TRY).into_iter().chain(PAGES).chain(views)
}

/// Returns the pages as a list; `root` is the way to the root of the gateway.
pub(crate) fn list(gateway: &Gateway, root: &str) -> Markup {
    html! {
        ul.links {
            @for (path, name) in pages(gateway) {
                li { a href=(address(root, path)) { (name) } " " small { "/" (path) } }
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
    let mut known = pages(gateway).map(|(path, _)| path).chain(["console"]);
    known.find(|known| wanted.len() >= ENOUGH_CHARS && is_similar(known))
}
