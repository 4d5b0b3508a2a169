//! The frame of every HTML page: one layout, one stylesheet, one security policy.
//!
//! Pages are written with maud (`docs/contributing/adr/0005-html-in-rust.md`). Whatever is put into a page is
//! escaped, unless its type is [`Markup`], which only `html!` makes. No page has an inline script
//! or an event handler; a page that needs a script names one that is served here. Addresses in
//! pages are relative, because a proxy may serve this gateway below a path.

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
const STYLESHEET: &str = include_str!("html/style.css");

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
    /// The page may send forms, and run the script at this address, which may connect to this gateway.
    Script(&'static str),
}

impl Interaction {
    /// Returns the `Content-Security-Policy` of a page: nothing is loaded, sent, run or framed but
    /// what it needs.
    pub(crate) fn policy(self) -> String {
        let more = match self {
            Interaction::None => "form-action 'none'",
            Interaction::Forms => "form-action 'self'",
            Interaction::Script(_) => "script-src 'self'; connect-src 'self'; form-action 'self'",
        };
        format!(
            "default-src 'none'; style-src 'sha256-{}'; img-src data:; {more}; base-uri 'none'; \
             frame-ancestors 'none'",
            *STYLESHEET_HASH
        )
    }

    fn script(self) -> Option<&'static str> {
        match self {
            Interaction::None | Interaction::Forms => None,
            Interaction::Script(address) => Some(address),
        }
    }
}

impl HtmlPage<'_> {
    /// Returns the whole document.
    pub(crate) fn document(&self) -> String {
        let HtmlPage { title, width, interaction, content } = self;
        let document = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (title) " – feedgate" }
                    // Without an icon, browsers request /favicon.ico.
                    link rel="icon" href="data:,";
                    style { (PreEscaped(STYLESHEET)) }
                    @if let Some(address) = interaction.script() {
                        script src=(address) defer {}
                    }
                }
                body {
                    main.wide[*width == Width::Table] {
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

/// Adds a page's policy to the reply that carries it. The target of a link does not learn from
/// which page the request came, because the query of the page may name a feed or a callback.
pub(crate) fn restrict(response: &mut Response, policy: &str) {
    set_header(response, header::CONTENT_SECURITY_POLICY, policy);
    set_header(response, header::REFERRER_POLICY, "no-referrer");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(interaction: Interaction) -> HtmlPage<'static> {
        let content = html! { p { "<script>alert(1)</script>" } };
        HtmlPage { title: "A < B", width: Width::Text, interaction, content }
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
        let document = page(Interaction::Script("live.js")).document();
        let (_, style) = document.split_once("<style>").unwrap();
        let (style, _) = style.split_once("</style>").unwrap();
        let hash = STANDARD.encode(Sha256::digest(style));
        assert!(document.contains("<script src=\"live.js\" defer></script>"), "{document}");
        #[rustfmt::skip]
        let cases = [
            (Interaction::None,              "form-action 'none'", false),
            (Interaction::Forms,             "form-action 'self'", false),
            (Interaction::Script("live.js"), "form-action 'self'", true),
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
}
