//! The layout of every HTML page: one header, one stylesheet, one security policy.
//!
//! Pages are written with maud (`docs/contributing/adr/0005-html-in-rust.md`). Whatever is put into a page is
//! escaped, unless its type is [`Markup`], which only `html!` makes. No page has an inline script
//! or an event handler; a page that needs scripts names those that are served here. Addresses in
//! pages are relative, because a proxy may serve this gateway below a path.

pub(crate) mod chart;
pub(crate) mod frame;
pub(crate) mod parts;
pub(crate) mod time_chart;

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{StatusCode, header};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};
use warp::reply::Response;

use crate::http::kit::reply::{set_header, with_content_type};

/// The media type of every page.
pub(crate) const MEDIA_TYPE: &str = "text/html; charset=utf-8";

/// The stylesheet of every page. It is part of each document, so that a page is one response and
/// needs no address for its style.
const STYLESHEET: &str =
    concat!(include_str!("html/style.css"), include_str!("html/time_chart.css"));

/// The icon of this program, as SVG: a gate, whose arches are the waves of a feed.
pub(crate) const ICON: &str = include_str!("html/icon.svg");

/// The address of the icon in pages, which have it in themselves as they have their style: the security
/// policy allows no pictures of this gateway, because a page shows what others wrote.
pub(crate) static ICON_ADDRESS: LazyLock<String> =
    LazyLock::new(|| format!("data:image/svg+xml;base64,{}", STANDARD.encode(ICON)));

/// How the security policy names the stylesheet. A browser applies this style and no other, also
/// where somebody else's text got into a page as markup.
static STYLESHEET_HASH: LazyLock<String> =
    LazyLock::new(|| STANDARD.encode(Sha256::digest(STYLESHEET.as_bytes())));

/// A page.
pub(crate) struct HtmlPage<'p> {
    /// The heading of the page, and its title beside the name of the program.
    pub(crate) title: &'p str,
    /// The maximum width of the page.
    pub(crate) width: Width,
    /// The permissions of the page in a browser.
    pub(crate) interaction: Interaction,
    /// Where the page is, and who reads it.
    pub(crate) place: Place<'p>,
    /// The content below the heading.
    pub(crate) content: Markup,
}

/// The maximum width of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// The width for text.
    Text,
    /// The width for tables with several columns.
    Table,
}

/// The permissions of a page in a browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interaction {
    /// The page sends nothing.
    None,
    /// The page may send forms to this gateway.
    Forms,
    /// The page may send forms, and run the scripts at these addresses, which begin at the root of
    /// this gateway and may connect to it.
    Scripts(&'static [&'static str]),
    /// The same; without scripts, browsers load the page again every two seconds.
    RefreshedScripts(&'static [&'static str]),
}

/// Where a page is, and who reads it: what the header shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'p> {
    /// The way from the page to the root of the gateway: `../` for each folder that it is in.
    pub(crate) root: &'p str,
    /// The address, from the root, of the entry of the navigation that the page belongs to; may be
    /// empty.
    pub(crate) section: &'p str,
    /// Who reads the page.
    pub(crate) reader: Reader<'p>,
    /// The media type and address of the same content for programs, which readers discover.
    pub(crate) alternate: Option<(&'p str, &'p str)>,
}

/// The reader of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reader<'p> {
    /// Anybody.
    Anybody,
    /// Somebody who is signed in to the console.
    Account {
        /// The login.
        login: &'p str,
        /// Whether the token of the session may see feeds and subscriptions.
        may_list: bool,
        /// The token that proves that a form was sent by a page of the console (S38).
        csrf_token: &'p str,
    },
}

impl Place<'_> {
    /// The place of a public page at the root of the gateway.
    pub(crate) fn public(section: &str) -> Place<'_> {
        Place { root: "", section, reader: Reader::Anybody, alternate: None }
    }
}

/// An entry of the navigation.
struct Section {
    /// The address from the root.
    path: &'static str,
    name: &'static str,
    /// The icon, as the path of an SVG of 16 by 16 units; may be empty.
    icon: &'static str,
    /// Whether its pages are for tokens that may see feeds and subscriptions.
    needs_list: bool,
}

const fn section(path: &'static str, name: &'static str, icon: &'static str) -> Section {
    Section { path, name, icon, needs_list: false }
}

const fn list(path: &'static str, name: &'static str, icon: &'static str) -> Section {
    Section { path, name, icon, needs_list: true }
}

/// The navigation of everybody.
const PUBLIC_SECTIONS: &[Section] = &[
    section("docs", "API", ""),
    section("viewLog", "Event log", ""),
    section("console", "Sign in", ""),
];
/// The navigation of the console.
const CONSOLE_SECTIONS: &[Section] = &[
    list("console", "Overview", "M2 2h5v5H2zM9 2h5v5H9zM2 9h5v5H2zM9 9h5v5H9z"),
    list("console/feeds", "Feeds", "M3 13h.01M3 8a5 5 0 0 1 5 5M3 3a10 10 0 0 1 10 10"),
    list("console/subscriptions", "Subscriptions", "M8 2v9M5 8l3 3 3-3M2 11v3h12v-3"),
    list("console/live", "Live", "M1 8h3l2-5 4 10 2-5h3"),
    section("viewLog", "Event log", "M2 4h12M2 8h12M2 12h8"),
    section(
        "console/accounts",
        "Accounts",
        "M8 8a3 3 0 1 0 0-6 3 3 0 0 0 0 6M2.5 14a5.5 5.5 0 0 1 11 0",
    ),
];

impl Interaction {
    /// Returns the `Content-Security-Policy` of a page: nothing is loaded, sent, run or framed but
    /// what it needs.
    pub(crate) fn policy(self) -> String {
        let more = match self {
            Interaction::None => "form-action 'none'",
            Interaction::Forms => "form-action 'self'",
            Interaction::Scripts(_) | Interaction::RefreshedScripts(_) => {
                "script-src 'self'; connect-src 'self'; form-action 'self'; frame-src 'self'"
            }
        };
        format!(
            "default-src 'none'; style-src 'sha256-{}'; img-src data:; {more}; base-uri 'none'; \
             frame-ancestors 'none'",
            *STYLESHEET_HASH
        )
    }

    fn scripts(self) -> &'static [&'static str] {
        match self {
            Interaction::None | Interaction::Forms => &[],
            Interaction::Scripts(addresses) | Interaction::RefreshedScripts(addresses) => addresses,
        }
    }
}

impl HtmlPage<'_> {
    /// Returns the whole document.
    pub(crate) fn document(&self) -> String {
        let HtmlPage { title, width, interaction, place, content } = self;
        let document = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (title) " – feedgate" }
                    link rel="icon" href=(*ICON_ADDRESS);
                    @if let Some((media_type, href)) = place.alternate {
                        link rel="alternate" type=(media_type) href=(href);
                    }
                    @if let Interaction::RefreshedScripts(_) = interaction {
                        noscript { meta http-equiv="refresh" content="2"; }
                    }
                    style { (PreEscaped(STYLESHEET)) }
                    @for address in interaction.scripts() {
                        script src=(format!("{}{address}", place.root)) defer {}
                    }
                }
                body class=[matches!(place.reader, Reader::Account { .. }).then_some("app")] {
                    a.skip href="#content" { "Skip to the content" }
                    (header(place))
                    main #content .wide[*width == Width::Table] tabindex="-1" {
                        h1 { (title) }
                        (content)
                    }
                }
            }
        };
        document.into_string()
    }

    /// Returns the document as a reply that a browser treats as its policy says.
    pub(crate) fn reply(&self, status: StatusCode) -> Response {
        let mut response = with_content_type(status, MEDIA_TYPE, self.document());
        restrict(&mut response, &self.interaction.policy());
        response
    }
}

fn header(place: &Place<'_>) -> Markup {
    let Place { root, section, reader, .. } = place;
    let (sections, may_list) = match reader {
        Reader::Anybody => (PUBLIC_SECTIONS, false),
        Reader::Account { may_list, .. } => (CONSOLE_SECTIONS, *may_list),
    };
    let offered = sections.iter().filter(|section| may_list || !section.needs_list);
    html! {
        header.top {
            a.brand href=(address(root, "")) { (PreEscaped(ICON)) "feedgate" }
            nav aria-label="Main" {
                @for Section { path, name, icon, .. } in offered {
                    a href=(address(root, path)) aria-current=[(path == section).then_some("page")] {
                        @if !icon.is_empty() {
                            svg viewBox="0 0 16 16" aria-hidden="true" { path d=(icon) {} }
                        }
                        (name)
                    }
                }
            }
            @if let Reader::Account { login, csrf_token, .. } = reader {
                form.account method="post" action=(address(root, "console/sign-out")) {
                    input type="hidden" name="csrf_token" value=(csrf_token);
                    span { (login) }
                    button.quiet type="submit" { "Sign out" }
                }
            }
        }
    }
}

/// Returns the relative address of `path`, which begins at the root of the gateway.
pub(crate) fn address(root: &str, path: &str) -> String {
    match (root, path) {
        ("", "") => "./".to_owned(),
        _ => format!("{root}{path}"),
    }
}

/// Adds a page's policy to the reply that carries it. The target of a link does not learn from
/// which page the request came, because the query of the page may name a feed or a callback.
pub(crate) fn restrict(response: &mut Response, policy: &str) {
    set_header(response, header::CONTENT_SECURITY_POLICY, policy);
    // Other sites are told nothing. With `no-referrer`, browsers would send `Origin: null` with the forms
    // of these pages (Fetch, `#append-a-request-origin-header`), which are refused like those of others.
    set_header(response, header::REFERRER_POLICY, "same-origin");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(interaction: Interaction) -> HtmlPage<'static> {
        let content = html! { p { "<script>alert(1)</script>" } };
        let place = Place::public("");
        HtmlPage { title: "A < B", width: Width::Text, interaction, place, content }
    }

    #[test]
    fn text_is_escaped_wherever_it_stands() {
        let document = page(Interaction::None).document();
        assert!(document.starts_with("<!DOCTYPE html><html lang=\"en\">"), "{document}");
        assert!(document.contains("<title>A &lt; B – feedgate</title>"), "{document}");
        assert!(document.contains("<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>"), "{document}");
    }

    #[test]
    fn the_policy_allows_the_style_that_is_in_the_document_and_what_the_page_needs() {
        let document = page(Interaction::Scripts(&["live.js"])).document();
        let (_, style) = document.split_once("<style>").unwrap();
        let (style, _) = style.split_once("</style>").unwrap();
        let hash = STANDARD.encode(Sha256::digest(style));
        assert!(document.contains("<script src=\"live.js\" defer></script>"), "{document}");
        #[rustfmt::skip]
        let cases = [
            (Interaction::None,                  "form-action 'none'", false),
            (Interaction::Forms,                 "form-action 'self'", false),
            (Interaction::Scripts(&["live.js"]), "form-action 'self'", true),
        ];
        for (interaction, forms, runs) in cases {
            let policy = interaction.policy();
            assert!(policy.starts_with("default-src 'none'; "), "{policy}");
            assert!(policy.contains(&format!("style-src 'sha256-{hash}'; ")), "{policy}");
            assert!(policy.contains(forms) && policy.contains("frame-ancestors 'none'"));
            assert_eq!(policy.contains("script-src 'self'"), runs, "{policy}");
            assert!(!policy.contains("unsafe"), "{policy}");
        }
    }

    #[test]
    fn links_lead_to_the_root_from_any_folder() {
        let in_folder = |root| {
            let reader = Reader::Account { login: "ada", may_list: true, csrf_token: "c" };
            let place = Place { root, section: "console/feeds", reader, alternate: None };
            let interaction = Interaction::Scripts(&["console/page.js"]);
            let content = html! {};
            HtmlPage { title: "Feeds", width: Width::Table, interaction, place, content }.document()
        };
        let document = in_folder("../");
        assert!(document.contains("href=\"../console/feeds\" aria-current=\"page\""), "{document}");
        assert!(document.contains("src=\"../console/page.js\""), "{document}");
        assert!(page(Interaction::None).document().contains("class=\"brand\" href=\"./\""));
    }

    #[test]
    fn the_stylesheet_is_short_enough_to_be_part_of_every_page() {
        assert!(STYLESHEET.len() < 24_000, "{} bytes: serve it by itself", STYLESHEET.len());
    }
}
