//! `/bot` and `/bot-ips.txt`: the operator and the addresses of this poller, for the owner of a
//! server that is polled (rule P35). The address of the page is in the user agent of every fetch.

use std::fmt::Write;
use std::sync::Arc;

use http::{StatusCode, header};
use maud::{Markup, html};
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::html::parts::span;
use crate::http::kit::html::{HtmlPage, Interaction, Place, Width};
use crate::http::kit::paths;
use crate::http::kit::reply::{set_header, with_content_type};
use crate::http::kit::request::Request;
use crate::http::routes::ops::key_directory;
use crate::http::state::{Gateway, HttpSettings};
use crate::jobs::runner;
use crate::net::{REQUEST_TAG, Signer, VALID_FOR};
use feedgate_protocol::message_signatures::SigningKey;

/// The shortest time between two planned polls of a feed, whatever the operator allows: `floor_s` of the schedule.
const SHORTEST_PERIOD_S: u64 = 60;

const ENDPOINT: Endpoint = Endpoint { name: "bot", methods: &["GET"], body_limit_bytes: 1_024 };

/// Returns the routes of this endpoint.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let about = paths::exact("bot");
    let addresses = paths::exact("bot-ips.txt");
    let about = ENDPOINT.route(gateway, about, |gateway, _: Request| async move {
        cacheable(page(&gateway).reply(StatusCode::OK))
    });
    let addresses = ENDPOINT.route(gateway, addresses, |gateway, _: Request| async move {
        let text = addresses_of(&gateway.settings);
        cacheable(with_content_type(StatusCode::OK, "text/plain; charset=utf-8", text))
    });
    about.or(addresses).unify().boxed()
}

fn page(gateway: &Gateway) -> HtmlPage<'static> {
    let (settings, addresses) = (&gateway.settings, gateway.public_url("bot-ips.txt"));
    let signer = gateway.request_signer.signer();
    HtmlPage {
        title: "Why feedgate fetches from your server",
        width: Width::Text,
        interaction: Interaction::None,
        place: Place::public("bot"),
        content: html! {
            (about(settings))
            (how_to_slow_it_down())
            (how_to_stop_it())
            @if let Some(signer) = signer { (how_to_verify_it(&signer)) }
            h2 { "Who runs it" }
            p {
                @match &settings.contact {
                    Some(contact) => { "Contact the operator of this gateway: " (linked(contact)) "." }
                    None => "The operator of this gateway has not published a contact address."
                }
                " Its requests come from " a href=(addresses) { "these addresses" } "."
            }
        },
    }
}

fn about(settings: &HttpSettings) -> Markup {
    let version = env!("CARGO_PKG_VERSION");
    let often = span(settings.min_period.as_secs().max(SHORTEST_PERIOD_S));
    let apart = match settings.host_min_interval {
        apart if apart.subsec_millis() == 0 => span(apart.as_secs()),
        apart => format!("{}\u{a0}ms", apart.as_millis()),
    };
    html! {
        p {
            "feedgate is a feed gateway: it fetches feeds and web pages that somebody has \
             subscribed to, and notifies the subscribers of new entries. For lists of these feeds it also \
             fetches the icon of their site, which a node of this gateway remembers for a day. It fetches \
             nothing else, and does not follow the links in a page."
        }
        p {
            "This is version " (version) ". Its requests carry the user agent "
            code { "feedgate/" (version) " (+…/bot; N subscribers; feed-id=ID)" }
            ", where N is the number of subscriptions to the requested address and ID is a number \
             that identifies this address and does not change."
        }
        h2 { "How often it fetches" }
        p {
            "As often as you publish: on this gateway, between once in " (often) " and a few times a \
             day, and sooner when you announce a change. It sends one request at a time to a server"
            @if !settings.host_min_interval.is_zero() { ", and they begin at least " (apart) " apart" }
            ". They are conditional: if you send "
            code { "ETag" } " or " code { "Last-Modified" }
            ", an unchanged feed costs you no more than a " code { "304 Not Modified" }
            " response."
        }
    }
}

fn how_to_slow_it_down() -> Markup {
    html! {
        h2 { "How to slow it down" }
        ul {
            li {
                "Send " code { "Cache-Control: max-age=SECONDS" } " or " code { "Expires" }
                ". feedgate does not return before that time."
            }
            li {
                "State it in the feed: " code { "ttl" } ", " code { "sy:updatePeriod" } ", "
                code { "skipHours" } " or " code { "skipDays" } "."
            }
            li {
                "For an immediate effect, respond with " code { "429" } " or " code { "503" }
                " and " code { "Retry-After" }
                ". A 429 pauses all requests to your server, and doubles the interval between \
                 requests after that."
            }
            li {
                "Announce new entries by WebSub, rssCloud or a ping: feedgate polls less often \
                 then."
            }
        }
    }
}

fn how_to_stop_it() -> Markup {
    html! {
        h2 { "How to stop it" }
        ul {
            li {
                "For one feed, respond with " code { "410 Gone" }
                ". feedgate repeats the request in growing intervals of up to a day, because such a response \
                 may be a mistake. After three of them in a row, over two days at least, it tells the \
                 subscribers that the feed is gone, and requests it once a month only."
            }
            li {
                "After " code { "403 Forbidden" }
                ", the first interval is an hour. It doubles up to a day, and after thirty days up to a week."
            }
            li {
                "For a whole server, add two lines to your " code { "robots.txt" }
                ", which feedgate reads once a day:"
                pre { code { "User-agent: feedgate\nDisallow: /" } }
                "Rules for " code { "*" }
                " hold for pages and other documents that are not feeds. They do not apply to feeds: a \
                 feed is published for programs that fetch it for a reader who subscribed, and rules \
                 for " code { "*" } " are written against crawlers. This deviates from RFC 9309. An \
                 address is fetched once to find out whether it is a feed."
            }
        }
    }
}

fn how_to_verify_it(signer: &Signer) -> Markup {
    let origin = signer.origin();
    let directory = format!("{origin}/{}", key_directory::PATH);
    let used = signer.current(runner::now()).map(SigningKey::key_id);
    let minutes = VALID_FOR.as_secs() / 60;
    html! {
        h2 { "How to verify it" }
        p {
            "Anybody can send this user agent. The requests of this gateway for feeds and pages, and for "
            code { "robots.txt" } ", are signed: HTTP Message Signatures ("
            a href="https://www.rfc-editor.org/rfc/rfc9421" { "RFC 9421" }
            ") as "
            a href="https://datatracker.ietf.org/doc/draft-ietf-webbotauth-httpsig-protocol/" {
                "Web Bot Auth"
            }
            " profiles them. A firewall that supports Web Bot Auth needs no more than the address of this \
             gateway, " code { (origin) } "."
        }
        p { "To verify a request yourself:" }
        ol {
            li {
                "Its header " code { "Signature-Agent" } " is " code { "sig1=\"" (origin) "\"" }
                ". The public keys are at " a href=(directory) { (directory) } "."
            }
            li {
                code { "Signature-Input" } " names the key (" code { "keyid" } ", the thumbprint of the \
                 key), the algorithm Ed25519, the tag " code { (REQUEST_TAG) } ", a nonce, and the \
                 times between which the signature is valid, " (minutes) " minutes."
            }
            li {
                "What is signed are the name of your server (" code { "@authority" } ") and the address \
                 of this gateway:"
                pre { code {
                    "\"@authority\": www.example.com\n\"signature-agent\";key=\"sig1\": \""
                    (origin) "\"\n\"@signature-params\": "
                    "(\"@authority\" \"signature-agent\";key=\"sig1\");created=…;keyid=\"…\";…"
                } }
            }
        }
        @if let Some(used) = used { p { "The key in use is " code { (used) } ". " (others(signer, used)) } }
        p {
            "Keys are replaced every month. The next one is in the directory two days before it is used."
        }
    }
}

/// Names the published keys beside the one that is used.
fn others(signer: &Signer, used: &str) -> Markup {
    let ids = signer.keys().iter().map(|published| published.key.key_id());
    let ids: Vec<&str> = ids.filter(|id| *id != used).collect();
    html! {
        @if !ids.is_empty() {
            "The key before it, or the next one: "
            @for id in ids { code { (id) } " " }
        }
    }
}

/// Returns a mail address or a web address as a link, any other contact as text.
fn linked(contact: &str) -> Markup {
    let is_mail = contact.contains('@') && !contact.contains(char::is_whitespace);
    html! {
        @if contact.starts_with("https://") || contact.starts_with("http://") {
            a href=(contact) { (contact) }
        } @else if is_mail {
            a href={ "mailto:" (contact) } { (contact) }
        } @else {
            (contact)
        }
    }
}

/// Returns the networks, one a line.
fn addresses_of(settings: &HttpSettings) -> String {
    let mut text = "# The networks that this gateway fetches from.\n".to_owned();
    for network in &settings.bot_addresses {
        // Writing to a String does not fail.
        writeln!(text, "{network}").unwrap_or_default();
    }
    if settings.bot_addresses.is_empty() {
        text.push_str("# The operator has not published any.\n");
    }
    text
}

/// Lets caches keep what changes only with a setting or a new version.
fn cacheable(mut response: Response) -> Response {
    set_header(&mut response, header::CACHE_CONTROL, "public, max-age=3600");
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
            assert_eq!(linked(contact).into_string(), want);
        }
    }
}
