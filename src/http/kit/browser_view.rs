//! The page that a browser gets where programs get a feed or a list: when it is sent, and what all of
//! these pages have in common.
//!
//! A program must never be sent the page. So the page is sent only if `Accept` clearly prefers HTML, no
//! cache may store it, and the document for programs varies by `Accept`. `?as=xml` is the address of the
//! document for everybody.

use http::{HeaderMap, StatusCode, header};
use maud::{Markup, Render, html};
use warp::reply::Response;

use crate::http::kit::html::{HtmlPage, Interaction, Place, Reader, Width, address};
use crate::http::kit::reply::set_header;
use crate::http::kit::request::Request;

/// The parameter that requests the document for programs.
const AS_XML: &str = "as=xml";

/// Returns whether a request is sent the page: `Accept` prefers HTML to everything that a feed could
/// be, and names no format of feeds, and the query does not request the document.
///
/// Browsers name HTML, XHTML and, with a lower weight, XML. Readers that name HTML beside Atom look for
/// feeds. The HTTP client of Java names HTML and no XHTML by default.
pub(crate) fn is_preferred(headers: &HeaderMap, query: &str) -> bool {
    let (mut html, mut names_xhtml, mut others) = (0.0_f32, false, 0.0_f32);
    let lists = headers.get_all(header::ACCEPT).iter().filter_map(|list| list.to_str().ok());
    for range in lists.flat_map(|list| list.split(',')) {
        let (name, weight) = weighted(range);
        match name.as_str() {
            "text/html" => html = html.max(weight),
            "application/xhtml+xml" => names_xhtml |= weight > 0.0,
            "application/xml" | "text/xml" | "application/*" | "*/*" | "*" => {
                others = others.max(weight);
            }
            _ if is_feed_format(&name) && weight > 0.0 => return false,
            _ => {}
        }
    }
    let is_document = query.split('&').any(|pair| pair == AS_XML);
    !is_document && html > others && (names_xhtml || others == 0.0)
}

/// Splits a range of `Accept` into the media type in lower case and its weight (RFC 9110
/// `#field.accept`).
fn weighted(range: &str) -> (String, f32) {
    let (name, parameters) = range.split_once(';').unwrap_or((range, ""));
    let mut parameters = parameters.split(';').filter_map(|parameter| parameter.split_once('='));
    let weight = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("q"));
    let weight = weight.and_then(|(_, weight)| weight.trim().parse::<f32>().ok()).unwrap_or(1.0);
    (name.trim().to_ascii_lowercase(), weight)
}

fn is_feed_format(name: &str) -> bool {
    ["+xml", "opml", "json", "rss", "atom", "rdf"].iter().any(|part| name.contains(part))
        && !name.starts_with("image/")
}

/// Says in `Vary` that another document is sent to browsers.
pub(crate) fn vary_by_accept(response: &mut Response) {
    let vary = response.headers().get(header::VARY).and_then(|value| value.to_str().ok());
    let vary = vary.map_or_else(|| "Accept".to_owned(), |vary| format!("Accept, {vary}"));
    set_header(response, header::VARY, &vary);
}

/// A page in the place of a document for programs.
pub(crate) struct BrowserView<'p> {
    /// The title.
    pub(crate) title: &'p str,
    /// The media type of the document for programs.
    pub(crate) media_type: &'p str,
    /// The public address of the document.
    pub(crate) url: &'p str,
    /// Further links of the response, in the syntax of `Link`; may be empty.
    pub(crate) links: &'p str,
    /// The content below the address.
    pub(crate) content: Markup,
}

impl BrowserView<'_> {
    /// Returns the page in response to a request.
    pub(crate) fn reply(&self, request: &Request) -> Response {
        let BrowserView { title, media_type, url, links, content } = self;
        let root = "../".repeat(request.path.matches('/').count().saturating_sub(1));
        let document = match request.query.as_str() {
            "" => format!("?{AS_XML}"),
            query => format!("?{query}&{AS_XML}"),
        };
        let content = html! {
            p.head { a.button href=(document) { "Show the source" } }
            label { "Address"
                input.address type="text" readonly value=(url) spellcheck="false";
            }
            (content)
            p.actions {
                a.button href=(address(&root, "")) { "About this gateway" }
                a.button href=(address(&root, "docs")) { "Description of the API" }
            }
        };
        let reader = Reader::Anybody;
        let alternate = Some((*media_type, document.as_str()));
        let place = Place { root: &root, section: "feeds", reader, alternate };
        let interaction = Interaction::None;
        let page = HtmlPage { title, width: Width::Text, interaction, place, content };
        let mut response = page.reply(StatusCode::OK);
        let mut link = format!("<{document}>; rel=\"alternate\"; type=\"{media_type}\"");
        if !links.is_empty() {
            link = format!("{links}, {link}");
        }
        set_header(&mut response, header::LINK, &link);
        set_header(&mut response, header::CACHE_CONTROL, "private, no-store");
        vary_by_accept(&mut response);
        response
    }
}

/// Returns how to be notified of the changes of a topic.
pub(crate) fn how_to_subscribe(hub: &str, please_notify: &str) -> Markup {
    html! {
        h2 { "Subscribe" }
        p {
            "This is a feed. Copy its address into a feed reader, or have a program notified when it \
             changes:"
        }
        dl.facts {
            dt { "WebSub hub" } dd { code { (hub) } }
            dt { "rssCloud" } dd { code { (please_notify) } }
        }
    }
}

/// Returns a link to an address that others wrote, or only its text if it does not lead to the web.
pub(crate) fn web_link(href: &str, text: impl Render) -> Markup {
    let is_web = ["https://", "http://"].iter().any(|scheme| href.starts_with(scheme));
    html! {
        @if is_web { a href=(href) rel="nofollow noopener" { (text) } } @else { (text) }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_who_clearly_prefers_html_is_sent_the_page() {
        const FIREFOX: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        #[rustfmt::skip]
        let cases = [
            ("Firefox",      FIREFOX, true),
            ("Chromium",     "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7", true),
            ("older Firefox", "text/html,application/xhtml+xml,application/xml;q=0.9,image/svg+xml,image/*,*/*;q=0.8", true),
            ("Lynx",         "text/html, text/plain, text/sgml, text/css, application/xhtml+xml, */*;q=0.01", true),
            ("HTML only",    "text/html", true),
            ("upper case",   "Text/HTML", true),
            ("nothing",      "", false),
            ("curl",         "*/*", false),
            ("Atom",         "application/atom+xml", false),
            ("Java",         "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", false),
            ("Miniflux",     "application/xml, application/atom+xml, application/rss+xml, application/rdf+xml, application/feed+json, text/html, */*;q=0.9", false),
            ("SimplePie",    "application/atom+xml, application/rss+xml, application/rdf+xml;q=0.9, application/xml;q=0.8, text/xml;q=0.8, text/html;q=0.7, unknown/unknown;q=0.1, application/unknown;q=0.1, */*;q=0.1", false),
            ("both",         "text/html, application/atom+xml;q=0.1", false),
            ("both, browser", "text/html,application/xhtml+xml,application/rss+xml,*/*;q=0.8", false),
            ("OPML",         "text/html,application/xhtml+xml,text/x-opml", false),
            ("equal",        "text/html, application/xhtml+xml, */*", false),
            ("refused",      "text/html;q=0", false),
            ("XML first",    "application/xml, text/html;q=0.9, application/xhtml+xml", false),
        ];
        for (name, accepted, want) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_static(accepted));
            assert_eq!(is_preferred(&headers, "count=3"), want, "{name}: {accepted}");
            assert!(!is_preferred(&headers, "count=3&as=xml"), "{name} requests the document");
        }
        assert!(!is_preferred(&HeaderMap::new(), ""));
    }

    #[test]
    fn links_lead_to_the_web_only() {
        assert_eq!(web_link("javascript:alert(1)", "a<b").into_string(), "a&lt;b");
        assert!(web_link("https://a.test/", "a").into_string().starts_with("<a href="));
    }
}
