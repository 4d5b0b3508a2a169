//! The page after a callback was subscribed: its secret, a test of the callback, programs that receive, and what
//! comes next.

use http::StatusCode;
use maud::{Markup, html};
use warp::reply::Response;

use super::feed_state::title;
use super::feeds::SECTION as FEEDS;
use super::receivers::{Receiver, receivers};
use super::subscription_action::Action;
use super::subscription_state::{SECTION, to_path};
use super::visit::Visit;
use crate::http::kit::html::Width;
use crate::http::kit::html::parts::copyable;
use crate::http::kit::shell::quoted;
use feedgate_core::account::Scope;
use feedgate_core::signing::Secret;
use feedgate_core::store::ListedSubscription;
use feedgate_core::subscription::Format;

/// The part of the page that reports on what was sent.
const REPORT: &str = "report";

/// Returns the page. `new_secret` was made here, and is displayed this one time.
pub(super) fn page(
    visit: &Visit,
    listed: &ListedSubscription,
    new_secret: Option<&Secret>,
) -> Response {
    let topic = listed.subscription.topic.redacted();
    let content = html! {
        p role="status" { "The subscription to " (topic) " is stored." }
        (secret(new_secret))
        h2 { "Receive it" }
        (programs(visit, listed, new_secret))
        (trial(visit, listed))
        h2 { "Next steps" }
        (next_steps(visit, listed))
    };
    visit.page_with(StatusCode::OK, ("Subscribed", FEEDS, Width::Text), content)
}

fn secret(new_secret: Option<&Secret>) -> Markup {
    html! {
        div.card {
            @match new_secret {
                Some(secret) => {
                    p { "Notifications are signed with this secret, which is displayed only now:" }
                    (copyable(secret.expose()))
                }
                None => p { "Notifications are signed with the secret that you entered." },
            }
        }
    }
}

/// Returns the programs of each language, and the variables that they read, among them the secret.
fn programs(visit: &Visit, listed: &ListedSubscription, new_secret: Option<&Secret>) -> Markup {
    let subscription = &listed.subscription;
    let topic = &subscription.topic;
    let feed = match topic.redacted() == topic.subscribed_as() {
        true => topic.redacted(),
        false => "THE-ADDRESS-OF-THE-FEED",
    };
    let gate = visit.gateway.public_url("");
    let variables = [
        ("GATE", gate.trim_end_matches('/')),
        ("FEED", feed),
        ("CALLBACK", subscription.callback.as_str()),
        ("SECRET", new_secret.map_or("THE-SECRET", Secret::expose)),
        ("TOKEN", "YOUR-TOKEN"),
    ];
    let lines = variables.map(|(name, value)| format!("export {name}={}\n", quoted(value)));
    html! {
        p {
            "These programs listen on port 3000 for " code { "/webhook" } ", verify what arrives and \
             print its entries. They find their settings, also the secret, in these variables:"
        }
        (copyable(&lines.concat()))
        p.soft {
            "Each program renews this subscription when it starts, and receives JSON."
            @if subscription.format != Format::Json {
                " The format that you have chosen is replaced then."
            }
        }
        @for receiver in receivers() { (program(&receiver)) }
    }
}

fn program(receiver: &Receiver) -> Markup {
    html! {
        details {
            summary { (receiver.language) }
            @for (name, text) in &receiver.files {
                p { code { (name) } }
                (copyable(text))
            }
            p { "Install and run it:" }
            (copyable(&receiver.commands))
        }
    }
}

/// Returns the form that sends a test and an entry. With scripts, its result is displayed on this page, otherwise
/// in another one, so that the secret stays.
fn trial(visit: &Visit, listed: &ListedSubscription) -> Markup {
    let path = format!("{SECTION}/{}", to_path(listed.subscription.id));
    let label = |action| match action {
        Action::Replay => "Send the newest entry",
        _ => "Send a test now",
    };
    let offered = [Action::Test, Action::Replay].into_iter();
    let offered = offered.filter(|action| visit.allows(action.scope()));
    html! {
        @if may_open(visit) {
            h2 { "See it arrive" }
            form.inline method="post" action=(visit.address(&path)) target="_blank" data-report=(REPORT) {
                (visit.csrf_field())
                input type="hidden" name="count" value="1";
                @for action in offered {
                    button type="submit" name="action" value=(action.as_str()) { (label(action)) }
                }
            }
            p id=(REPORT) role="status" {}
        }
    }
}

fn next_steps(visit: &Visit, listed: &ListedSubscription) -> Markup {
    let subscription = format!("{SECTION}/{}", to_path(listed.subscription.id));
    let feed = format!("{FEEDS}/{}", listed.resource.id);
    html! {
        ul {
            @if may_open(visit) {
                li { a href=(visit.address(&feed)) { "Read the feed " (title(&listed.resource)) } }
                li { a href=(visit.address(&subscription)) {
                    "Watch the deliveries, pause, replay, or rotate the secret"
                } }
            }
            li { a href=(visit.address("docs")) { "Do the same by the API" } }
            li {
                "Receive on a machine that the gateway does not reach: "
                code { "feedgate tail --forward-to http://127.0.0.1:3000/webhook" }
            }
        }
    }
}

/// Returns whether the token of the session may open the pages of the subscription and of the feed.
fn may_open(visit: &Visit) -> bool {
    visit.is_admin() || visit.allows(Scope::List)
}
