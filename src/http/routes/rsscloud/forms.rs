//! `/pleaseNotifyForm` and `/pingForm`: pages with the forms of rssCloud, for people who try it in a
//! browser.

use std::sync::Arc;

use http::StatusCode;
use maud::{Markup, html};
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::html::{HtmlPage, Interaction, Place, Width};
use crate::http::kit::paths;
use crate::http::state::Gateway;

const ENDPOINT: Endpoint =
    Endpoint { name: "rsscloud_forms", methods: &["GET"], body_limit_bytes: 1_024 };

/// A field of a form.
struct Field {
    name: &'static str,
    kind: &'static str,
    label: &'static str,
    value: &'static str,
    is_required: bool,
}

const fn required(name: &'static str, kind: &'static str, label: &'static str) -> Field {
    Field { name, kind, label, value: "", is_required: true }
}

const fn optional(name: &'static str, kind: &'static str, label: &'static str) -> Field {
    Field { name, kind, label, value: "", is_required: false }
}

const REGISTRATION: &[Field] = &[
    required("url1", "url", "URL of the feed"),
    optional("domain", "text", "Domain of the handler, unless it is at your address"),
    Field { value: "80", ..required("port", "number", "Port of the handler") },
    Field { value: "/", ..required("path", "text", "Path of the handler") },
    Field { value: "http-post", ..required("protocol", "text", PROTOCOL) },
    optional("notifyProcedure", "text", "Procedure of the handler, for xml-rpc and soap"),
];
const PROTOCOL: &str = "Protocol: http-post, https-post, xml-rpc or soap";
const PING: &[Field] = &[required("url", "url", "URL of the feed that has changed")];

/// Returns the routes of the pages.
pub(super) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let register = paths::exact("pleaseNotifyForm");
    let register = ENDPOINT.route(gateway, register, |_, _| {
        let content = form("pleaseNotify", REGISTRATION, "Register");
        std::future::ready(page("Get notified when a feed changes", content))
    });
    let ping = ENDPOINT.route(gateway, paths::exact("pingForm"), |_, _| {
        std::future::ready(page("Report that a feed has changed", form("ping", PING, "Ping")))
    });
    register.or(ping).unify().boxed()
}

fn page(title: &str, content: Markup) -> Response {
    let (width, interaction, place) = (Width::Text, Interaction::Forms, Place::public(""));
    HtmlPage { title, width, interaction, place, content }.reply(StatusCode::OK)
}

fn form(action: &str, fields: &[Field], button: &str) -> Markup {
    html! {
        form.stacked method="post" action=(action) {
            @for field in fields {
                label for=(field.name) {
                    (field.label) @if !field.is_required { " " small { "(optional)" } }
                }
                input id=(field.name) name=(field.name) type=(field.kind) value=(field.value)
                    required[field.is_required];
            }
            button.primary type="submit" { (button) }
        }
    }
}
