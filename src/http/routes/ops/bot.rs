//! `/bot` and `/bot-ips.txt`: who polls, for the owner of a server that is polled (rule P35).
//! The address of the page stands in the user agent of every fetch.

use std::fmt::Write;
use std::sync::Arc;

use http::{StatusCode, header};
use quick_xml::escape::escape;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::http::kit::exchange::{Asked, Door, set, with_type};
use crate::http::{Gateway, Settings};

const DOOR: Door = Door { name: "bot", methods: &["GET"], body_limit_bytes: 1_024 };

/// What the page says, but for the contact and where the addresses are.
const PAGE: &str = include_str!("bot.html");

/// The routes of this door.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let page = warp::path!("bot").boxed();
    let addresses = warp::path!("bot-ips.txt").boxed();
    let page = DOOR.open(gateway, page, |gateway, _: Asked| async move {
        let html = page_for(&gateway.settings, &gateway.address("bot-ips.txt"));
        kept(with_type(StatusCode::OK, "text/html; charset=utf-8", html))
    });
    let addresses = DOOR.open(gateway, addresses, |gateway, _: Asked| async move {
        let text = addresses_of(&gateway.settings);
        kept(with_type(StatusCode::OK, "text/plain; charset=utf-8", text))
    });
    page.or(addresses).unify().boxed()
}

fn page_for(settings: &Settings, addresses: &str) -> String {
    let contact = match &settings.contact {
        Some(contact) => format!("Write to the operator of this gateway: {}.", linked(contact)),
        None => "The operator of this gateway has not named an address to write to.".to_owned(),
    };
    PAGE.replace("{version}", env!("CARGO_PKG_VERSION"))
        .replace("{addresses}", &escape(addresses))
        .replace("{contact}", &contact)
}

/// A mail address or a web address as a link, anything else as it is.
fn linked(contact: &str) -> String {
    let shown = escape(contact);
    if contact.starts_with("https://") || contact.starts_with("http://") {
        format!("<a href=\"{shown}\">{shown}</a>")
    } else if contact.contains('@') && !contact.contains(char::is_whitespace) {
        format!("<a href=\"mailto:{shown}\">{shown}</a>")
    } else {
        shown.into_owned()
    }
}

/// One network a line.
fn addresses_of(settings: &Settings) -> String {
    let mut text = "# Where the fetches of this gateway come from.\n".to_owned();
    for network in &settings.bot_addresses {
        // Writing to a String does not fail.
        writeln!(text, "{network}").unwrap_or_default();
    }
    if settings.bot_addresses.is_empty() {
        text.push_str("# Its operator has not published any.\n");
    }
    text
}

fn kept(mut response: Response) -> Response {
    set(&mut response, header::CACHE_CONTROL, "public, max-age=3600");
    set(
        &mut response,
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; style-src 'unsafe-inline'",
    );
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contact_is_shown_as_what_it_is() {
        let cases = [
            ("ops@example.org", "<a href=\"mailto:ops@example.org\">ops@example.org</a>"),
            (
                "https://example.org/?a&b",
                "<a href=\"https://example.org/?a&amp;b\">https://example.org/?a&amp;b</a>",
            ),
            ("<script>", "&lt;script&gt;"),
        ];
        for (contact, want) in cases {
            assert_eq!(linked(contact), want);
        }
    }
}
