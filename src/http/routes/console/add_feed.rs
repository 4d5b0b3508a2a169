//! Adding a feed: a preview of what is at a URL, then a subscription to it. Nothing is stored before
//! the form of the preview is sent.

mod preview;

use http::StatusCode;
use maud::{Markup, html};
use url::form_urlencoded;
use warp::reply::Response;

use super::feeds::SECTION;
use super::new_subscription::{
    NewSubscription, SubscribeResult, credentials_field, describe_refusal, fields, find,
    follow_checkbox, more_fields,
};
use super::subscribed;
use super::visit::Visit;
use crate::http::kit::auth;
use crate::http::kit::html::Width;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::typed_address::parse_topic;
use crate::http::routes::try_page::failure::TryFailure;
use crate::net::FetchError;
use crate::subscriptions::{FirstFetchWait, NoPreview, PreviewOwner};
use feedgate_core::account::Scope;
use feedgate_core::topic::Topic;
use feedgate_protocol::Protocol;

/// The address of the page.
const PATH: &str = "console/feeds/add";

/// Returns the page: the form, and the preview of the URL in the query.
pub(super) async fn page(visit: &Visit) -> Result<Response, Rejection> {
    auth::require(visit.access()?, Scope::Subscribe)?;
    if visit.value("url").is_empty() {
        return Ok(form_page(visit, StatusCode::OK, introduction(visit)));
    }
    let topic = match parse_topic(visit.value("url")) {
        Ok(topic) => topic,
        Err(reason) => return Ok(refuse(visit, &reason)),
    };
    // A link on another site may fill in the form, but not make this gateway send a request.
    if visit.request.header("sec-fetch-site") == "cross-site" {
        let note = html! {
            p role="status" {
                "Another site filled in this form. Check the address, then request the preview."
            }
        };
        return Ok(form_page(visit, StatusCode::OK, note));
    }
    let owner = PreviewOwner::Account(visit.access()?.account);
    let found = visit.gateway.subscribe.preview(&topic, owner).await;
    let (status, content) = match found {
        Ok(found) => (StatusCode::OK, preview::preview(visit, &topic, &found).await?),
        Err(why) => describe_failure(visit, &topic, &why),
    };
    Ok(form_page(visit, status, content))
}

/// Subscribes to the feed of the form.
pub(super) async fn act(visit: &Visit) -> Result<Response, Rejection> {
    let request = match NewSubscription::read(visit)? {
        Ok(request) => request,
        Err(reason) => return Ok(refuse_subscription(visit, &reason)),
    };
    let topic = match parse_topic(visit.value("url")) {
        Ok(topic) => topic,
        Err(reason) => return Ok(refuse(visit, &reason)),
    };
    let (gateway, account) = (&visit.gateway, visit.access()?.account);
    match request.subscribe(gateway, account, &topic, FirstFetchWait::Moment).await? {
        SubscribeResult::Subscribed => {}
        SubscribeResult::Existing(held) => {
            return Ok(visit.see_other(&format!("{SECTION}/{}?done=existing", held.resource.id)));
        }
        SubscribeResult::Refused(reason) => return Ok(refuse_subscription(visit, &reason)),
    }
    let made = find(gateway, account, &topic, Some(request.callback())).await?;
    let made = made.into_iter().find(|held| held.subscription.protocol == Protocol::WebSub);
    let made = made.ok_or_else(|| {
        Rejection::new(StatusCode::NOT_FOUND, "The subscription was ended meanwhile.")
    })?;
    if request.callback().is_null_device() {
        return Ok(visit.see_other(&format!("{SECTION}/{}?done=subscribed", made.resource.id)));
    }
    Ok(subscribed::page(visit, &made, request.new_secret()))
}

/// Returns the address of this page with the preview of a URL.
fn preview_link(visit: &Visit, url: &str) -> String {
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("url", url).finish();
    visit.address(&format!("{PATH}?{query}"))
}

fn form_page(visit: &Visit, status: StatusCode, content: Markup) -> Response {
    let content = html! {
        form.filter method="get" action=(visit.address(PATH)) {
            label { "Address of a feed or a page "
                input name="url" inputmode="url" required maxlength=(Topic::LONGEST_BYTES)
                    placeholder="https://example.com/" value=(visit.value("url"));
            }
            button.primary type="submit" { "Preview" }
        }
        (content)
    };
    visit.page_with(status, ("Add a feed", SECTION, Width::Text), content)
}

fn introduction(visit: &Visit) -> Markup {
    html! {
        p {
            "Paste the address of a feed, or of a page that has one. What is there is shown before anything is \
             stored. To add many feeds, " a href=(visit.address("console/opml")) { "import a list in OPML" } "."
        }
    }
}

fn refuse(visit: &Visit, reason: &str) -> Response {
    form_page(visit, StatusCode::UNPROCESSABLE_ENTITY, html! { p role="alert" { (reason) } })
}

/// Returns the form that subscribes, with the reason why that was refused.
fn refuse_subscription(visit: &Visit, reason: &str) -> Response {
    let content = html! {
        p role="alert" { (reason) }
        (subscription_form(visit, visit.value("url"), "Subscribe", follow_field(visit)))
    };
    form_page(visit, StatusCode::UNPROCESSABLE_ENTITY, content)
}

/// Returns the field that says whether a document is followed of which nothing is known.
fn follow_field(visit: &Visit) -> Markup {
    follow_checkbox(
        visit,
        "Follow it: if this is a page, subscribe to the feed that it advertises; if it is a list of feeds in \
         OPML, subscribe to these as well",
        false,
    )
}

/// Returns the form that subscribes to the topic `url`, with a further field.
fn subscription_form(visit: &Visit, url: &str, heading: &str, further: Markup) -> Markup {
    html! {
        h2 { (heading) }
        form.stacked method="post" action=(visit.address(PATH)) {
            (visit.csrf_field())
            input type="hidden" name="url" value=(url);
            (further)
            (fields(visit))
            (more_fields(visit, html! {
                (credentials_field(
                    "feed",
                    "Cookie: session=0123456789",
                    "for the feed",
                    "The feed is then fetched for you alone. ",
                ))
                label {
                    input type="checkbox" name="backfill" value="true"
                        checked[visit.form.is_set("backfill")];
                    " Load the history as well, if the feed has an archive"
                }
            }))
            button.primary type="submit" { "Subscribe" }
        }
    }
}

/// Returns why there is no preview. A feed whose server fails now may be subscribed to all the same.
fn describe_failure(visit: &Visit, topic: &Topic, why: &NoPreview) -> (StatusCode, Markup) {
    let (status, reason, may_subscribe) = match why {
        NoPreview::RateLimited { retry_in } => {
            let wait_s = retry_in.as_secs();
            let reason = format!("Too many previews, please try again in {wait_s} s.");
            (StatusCode::TOO_MANY_REQUESTS, reason, false)
        }
        NoPreview::Refused(refusal) => {
            (StatusCode::UNPROCESSABLE_ENTITY, describe_refusal(refusal), false)
        }
        // Where no server answers, nothing can be told from a mistake in the address.
        NoPreview::Failed(FetchError::Unreachable { .. }) => {
            return (StatusCode::OK, TryFailure::of_preview(why, topic).section());
        }
        why => (StatusCode::OK, format!("There is no preview: {why}."), true),
    };
    let content = html! {
        p role="alert" { (reason) }
        @if may_subscribe {
            details {
                summary { "Subscribe without a preview" }
                p { "The address is fetched again later." }
                (subscription_form(visit, topic.as_str(), "Subscribe", follow_field(visit)))
            }
        }
    };
    (status, content)
}
