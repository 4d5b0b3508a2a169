//! `/author`: a page on which the owner of an account writes posts in a browser.
//!
//! There are no sessions and no cookies: each post carries the password, which the browser may
//! remember, so pages of other sites cannot act for the author. The page shows only public content:
//! the feed as it is served. It contains no script, and its security policy allows none.

mod page;

use std::sync::Arc;

use http::{Method, StatusCode, header};
use url::{Url, form_urlencoded};
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::authoring::{AuthoringRefusal, Draft, OwnFile, Posted};
use crate::http::kit::anonymous_access::Permission;
use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::params::{self, BodyFormats};
use crate::http::kit::paths;
use crate::http::kit::rejection::{Rejection, unavailable};
use crate::http::kit::reply::{empty, set_header};
use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use crate::jobs::runner;
use feedgate_core::store::StoreError;
use feedgate_core::stored_file::{DEFAULT_NAME, PathSegment};
use feedgate_protocol::form::Form;
use feedgate_protocol::rss;

use page::{AuthorFeed, AuthorPage};

const ENDPOINT: Endpoint =
    Endpoint { name: "author", methods: &["GET", "POST"], body_limit_bytes: 64 * 1024 };

/// Returns the routes of this endpoint.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    ENDPOINT.route(gateway, paths::exact("author"), respond)
}

async fn respond(gateway: Arc<Gateway>, request: Request) -> Response {
    let form = match params::read(&request, BodyFormats::Forms) {
        Ok(form) => form,
        Err(rejection) => return rejection.to_response(),
    };
    if request.method != Method::POST {
        return show(&gateway, &form, StatusCode::OK, None).await;
    }
    match post(&gateway, &request, &form).await {
        Ok(posted) => see_other(&form, &posted),
        Err(rejection) => {
            let reason = rejection.reason().to_owned();
            show(&gateway, &form, rejection.status(), Some(reason)).await
        }
    }
}

async fn post(gateway: &Gateway, request: &Request, form: &Form) -> Result<Posted, Rejection> {
    gateway.anonymous_rate_limit.admit(request, 1)?;
    let value = |name: &str| form.get(name).map(str::trim).filter(|text| !text.is_empty());
    let draft = draft(&value)?;
    let password = form.get("password").unwrap_or_default();
    let login = value("user").unwrap_or_default();
    let author = gateway.publish.sign_in(login, password, request.counted_client()).await;
    let author = author.map_err(|refusal| reject_refusal(&refusal))?;
    let name =
        PathSegment::file(DEFAULT_NAME).ok_or_else(|| reject_refusal(&AuthoringRefusal::Unmet))?;
    let posted =
        gateway.publish.post(OwnFile { author: &author, name: &name }, &draft, runner::now()).await;
    posted.map_err(|refusal| reject_refusal(&refusal))
}

fn draft<'f>(value: &impl Fn(&str) -> Option<&'f str>) -> Result<Draft, Rejection> {
    let text = value("text").ok_or_else(|| Rejection::bad_request("The text is empty."))?;
    let address = |name: &str, what: &str| match value(name).map(Url::parse) {
        None => Ok(None),
        Some(Ok(url)) if matches!(url.scheme(), "http" | "https") => Ok(Some(url)),
        Some(_) => {
            let reason = format!("The {what} must be a URL that begins with http:// or https://.");
            Err(Rejection::bad_request(reason))
        }
    };
    let categories = value("category").unwrap_or_default().split(',').map(str::trim);
    Ok(Draft {
        text: text.to_owned(),
        title: value("title").map(str::to_owned),
        link: address("link", "link")?,
        categories: categories.filter(|name| !name.is_empty()).map(str::to_owned).collect(),
        enclosure: address("enclosure", "picture or recording")?,
        parent: value("parent").map(str::to_owned),
    })
}

/// Redirects to the page with the new post, so that reloading does not send it again. The address
/// is relative, because a proxy may serve this gateway below a path.
fn see_other(form: &Form, posted: &Posted) -> Response {
    let user = form.get("user").unwrap_or_default().trim();
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("user", user).append_pair("posted", &posted.id);
    query.append_pair("chars", &posted.chars.to_string());
    if !posted.saved.is_told {
        query.append_pair("untold", "1");
    }
    let mut response = empty(StatusCode::SEE_OTHER);
    set_header(&mut response, header::LOCATION, &format!("author?{}", query.finish()));
    response
}

async fn show(
    gateway: &Gateway,
    form: &Form,
    status: StatusCode,
    reason: Option<String>,
) -> Response {
    let user = form.get("user").unwrap_or_default().trim();
    let feed = match load_feed(gateway, user).await {
        Ok(feed) => feed,
        Err(err) => return unavailable(&err),
    };
    let author = AuthorPage { form, why: reason.as_deref(), feed };
    let mut response = author.page().reply(status);
    set_header(&mut response, header::CACHE_CONTROL, "no-store");
    response
}

/// Returns the feed of an account, if it has one and anybody may read it.
async fn load_feed(gateway: &Gateway, user: &str) -> Result<Option<AuthorFeed>, StoreError> {
    if !gateway.settings.anonymous.allows(Permission::Storage) {
        return Ok(None);
    }
    let place = PathSegment::login(user).ok().zip(PathSegment::file(DEFAULT_NAME));
    let Some((login, name)) = place else { return Ok(None) };
    let Some(file) = gateway.publish.file(&login, &name).await? else { return Ok(None) };
    // Stored documents are well-formed; the page is displayed even if one is not.
    let Ok(checked) = rss::check(&file.content.body) else { return Ok(None) };
    let (title, lines) = rss::lines(&checked.text);
    Ok(Some(AuthorFeed { url: gateway.publish.url(&login, &name), title, lines }))
}

fn reject_refusal(refusal: &AuthoringRefusal) -> Rejection {
    let status = match refusal {
        AuthoringRefusal::WrongPassword
        | AuthoringRefusal::NoRight
        | AuthoringRefusal::Deactivated
        | AuthoringRefusal::PathSegment(_) => StatusCode::FORBIDDEN,
        AuthoringRefusal::TooManyAttempts(_) => StatusCode::TOO_MANY_REQUESTS,
        AuthoringRefusal::Busy | AuthoringRefusal::Store(_) | AuthoringRefusal::Random(_) => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        AuthoringRefusal::Unmet => StatusCode::CONFLICT,
        AuthoringRefusal::Unsound(_)
        | AuthoringRefusal::TooLong(_)
        | AuthoringRefusal::Full(_)
        | AuthoringRefusal::Feed(_) => StatusCode::UNPROCESSABLE_ENTITY,
    };
    match refusal {
        AuthoringRefusal::Store(err) => {
            Rejection::unavailable(err).prefixed("The post was not saved: ")
        }
        refusal => Rejection::new(status, format!("The post was not saved: {refusal}.")),
    }
}
