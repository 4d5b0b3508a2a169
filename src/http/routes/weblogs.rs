//! `/pingSiteForm`: a weblog's ping as a plain request, answered with a page for people (seed 002,
//! "HTTP Ping").
//!
//! Blogging tools without XML-RPC send such a request, and so do forms on web pages; without
//! parameters the reply is such a form. `rssUrl` names the feed if `url` is the home page, and
//! `direct` requests plain text, as on blo.gs. HEAD is no ping: link checkers send it.

pub(crate) mod ping;

use std::sync::Arc;

use http::{Method, StatusCode};
use maud::{Markup, html};
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::html::{HtmlPage, Interaction, Place, Width};
use crate::http::kit::params::{self, BodyFormats};
use crate::http::kit::paths;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::reply::with_content_type;
use crate::http::kit::request::Request;
use crate::http::routes::rsscloud::pings::PINGED;
use crate::http::state::Gateway;
use feedgate_core::redaction;
use feedgate_protocol::form::Form;

use ping::{WeblogPing, checked_name_and_url, take_weblog_ping};

const ENDPOINT: Endpoint =
    Endpoint { name: "ping_form", methods: &["GET", "POST"], body_limit_bytes: 64 * 1024 };
/// The reply to `direct`: old clients look for these words.
const DIRECT_REPLY: &str = "Thanks for the ping";

/// The longest value that stays in the form, in bytes.
const LONGEST_VALUE: usize = 2_048;

/// Returns the routes of this endpoint.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let form = paths::exact("pingSiteForm");
    ENDPOINT.route(gateway, form, handle)
}

async fn handle(gateway: Arc<Gateway>, request: Request) -> Response {
    if request.method == Method::HEAD {
        return page(StatusCode::OK, "Ping", ping_form(&Form::default()));
    }
    let form = match params::read(&request, BodyFormats::Any) {
        Ok(form) if form.is_empty() => return page(StatusCode::OK, "Ping", ping_form(&form)),
        Ok(form) => form,
        Err(rejection) => return reject(&rejection, &Form::default(), false),
    };
    let is_direct = form.get("direct").is_some_and(|direct| !matches!(direct.trim(), "" | "0"));
    match take_ping(&gateway, &request, &form).await {
        Ok(()) if is_direct => with_content_type(StatusCode::OK, TEXT, DIRECT_REPLY),
        Ok(()) => page(StatusCode::OK, "Ping accepted", accepted(&form)),
        Err(rejection) => reject(&rejection, &form, is_direct),
    }
}

async fn take_ping(gateway: &Gateway, request: &Request, form: &Form) -> Result<(), Rejection> {
    let text = |names: &[&str]| {
        let given = names.iter().find_map(|name| form.get(name));
        given.unwrap_or_default().to_owned()
    };
    let ping = WeblogPing {
        name: text(&["name"]),
        url: text(&["url"]),
        changed_page: text(&["changesURL", "changesUrl", "checkUrl"]),
        feed: text(&["rssUrl", "rssURL"]),
    };
    take_weblog_ping(gateway, request, ping).await
}

const TEXT: &str = "text/plain; charset=utf-8";

fn accepted(form: &Form) -> Markup {
    let given = |name| form.get(name).unwrap_or_default().trim();
    let taken = checked_name_and_url(given("name").to_owned(), given("url").to_owned());
    let (name, url) = taken.unwrap_or_default();
    let facts = [("Site", name.as_str()), ("Address", &url), ("Feed", given("rssUrl"))];
    html! {
        p role="status" { (PINGED) }
        dl.facts {
            @for (name, value) in facts.into_iter().filter(|(_, value)| !value.is_empty()) {
                dt { (name) } dd { (redaction::line(value, LONGEST_VALUE)) }
            }
        }
        p {
            "It is in the list of changed sites now. If this gateway has subscribers of its feed, the feed is \
             fetched at once, and they are sent what is new."
        }
        p.actions {
            a.button href="changes.xml" { "What changed lately" }
            a.button href="pingSiteForm" { "Report another change" }
        }
    }
}

/// Returns the form, with what was typed before.
fn ping_form(typed: &Form) -> Markup {
    let value =
        |name| typed.get(name).filter(|value| value.len() <= LONGEST_VALUE).unwrap_or_default();
    html! {
        p { "Tell this gateway that a site has changed." }
        form.stacked method="get" action="pingSiteForm" {
            label for="name" { "Name " small { "(optional)" } }
            input id="name" name="name" type="text" maxlength="1024" value=(value("name"));
            label for="url" { "URL of the site" }
            input id="url" name="url" type="url" required value=(value("url"));
            label for="rssUrl" { "URL of its feed " small { "(optional)" } }
            input id="rssUrl" name="rssUrl" type="url" value=(value("rssUrl"));
            button.primary type="submit" { "Send ping" }
        }
    }
}

fn reject(rejection: &Rejection, typed: &Form, is_direct: bool) -> Response {
    let again = html! { p role="alert" { (rejection.reason()) } (ping_form(typed)) };
    let reply = match is_direct {
        true => with_content_type(rejection.status(), TEXT, rejection.reason().to_owned()),
        false => page(rejection.status(), "Ping rejected", again),
    };
    rejection.set_retry_after(reply)
}

fn page(status: StatusCode, title: &str, content: Markup) -> Response {
    let (width, interaction, place) = (Width::Text, Interaction::Forms, Place::public(""));
    HtmlPage { title, width, interaction, place, content }.reply(status)
}
