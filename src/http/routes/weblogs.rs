//! `/pingSiteForm`: a weblog's ping as a plain request, answered with a page for people
//! (seed 002, "HTTP Ping").
//!
//! Blogging tools that cannot speak XML-RPC send it, and forms on web pages; without
//! parameters it is such a form. `rssUrl` names the feed where `url` is the home page, and
//! `direct` asks for plain text, as blo.gs had it. HEAD pings nobody: whoever looks whether a
//! link leads anywhere tells nothing by it.

use std::sync::Arc;

use http::{Method, StatusCode, header};
use maud::{Markup, html};
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::http::Gateway;
use crate::http::kit::exchange::{Asked, Door, set, with_type};
use crate::http::kit::html::{Interaction, Page, Width};
use crate::http::kit::params::{self, Bodies, Refused};
use crate::http::routes::rpc;
use crate::http::routes::rsscloud::PINGED;
use feedgate_protocol::form::Form;

const DOOR: Door =
    Door { name: "ping_form", methods: &["GET", "POST"], body_limit_bytes: 64 * 1024 };
/// What `direct` is answered with; old clients look for these words.
const DIRECT: &str = "Thanks for the ping";

/// The routes of this door.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let form = warp::path!("pingSiteForm").boxed();
    DOOR.open(gateway, form, answer)
}

async fn answer(gateway: Arc<Gateway>, asked: Asked) -> Response {
    if asked.method == Method::HEAD {
        return page(StatusCode::OK, "Ping", empty_form());
    }
    let form = match params::read(&asked, Bodies::Any) {
        Ok(form) if form.is_empty() => return page(StatusCode::OK, "Ping", empty_form()),
        Ok(form) => form,
        Err(refused) => return refusal(&refused, false),
    };
    let is_direct = form.get("direct").is_some_and(|direct| !matches!(direct.trim(), "" | "0"));
    match take(&gateway, &asked, &form).await {
        Ok(()) if is_direct => with_type(StatusCode::OK, TEXT, DIRECT),
        Ok(()) => page(StatusCode::OK, "Ping accepted", html! { p { (PINGED) } }),
        Err(refused) => refusal(&refused, is_direct),
    }
}

async fn take(gateway: &Gateway, asked: &Asked, form: &Form) -> Result<(), Refused> {
    let text = |names: &[&str]| {
        let given = names.iter().find_map(|name| form.get(name));
        given.unwrap_or_default().to_owned()
    };
    let changed = text(&["changesURL", "changesUrl", "checkUrl"]);
    let ping = [text(&["name"]), text(&["url"]), changed, text(&["rssUrl", "rssURL"])];
    rpc::weblog_ping(gateway, asked, ping).await
}

const TEXT: &str = "text/plain; charset=utf-8";

fn empty_form() -> Markup {
    html! {
        p { "Tell this gateway that a weblog has changed." }
        form method="get" action="pingSiteForm" {
            label for="name" { "Name " small { "(optional)" } }
            input id="name" name="name" type="text" maxlength="1024";
            label for="url" { "URL of the weblog" }
            input id="url" name="url" type="url" required;
            label for="rssUrl" { "URL of its feed " small { "(optional)" } }
            input id="rssUrl" name="rssUrl" type="url";
            button type="submit" { "Send ping" }
        }
    }
}

fn refusal(refused: &Refused, is_direct: bool) -> Response {
    let mut response = match is_direct {
        true => with_type(refused.status, TEXT, refused.why.clone()),
        false => page(refused.status, "Ping rejected", html! { p { (refused.why) } }),
    };
    if let Some(wait_s) = refused.retry_after_s {
        set(&mut response, header::RETRY_AFTER, &wait_s.to_string());
    }
    response
}

fn page(status: StatusCode, title: &str, content: Markup) -> Response {
    let interaction = Interaction::Forms;
    Page { title, width: Width::Text, interaction, content }.reply(status)
}
