//! `/author`: a page on which a person with an account writes, from any browser.
//!
//! Nobody is signed in: each post carries the password, which the browser may remember.
//! So there is nothing that a page of another site could make use of, and no cookie. What
//! is shown is public: the feed as it is served. There is no script, and none can run.

mod page;

use std::sync::Arc;

use http::{Method, StatusCode, header};
use url::{Url, form_urlencoded};
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::authoring::{Draft, Posted, Refusal};
use crate::http::Gateway;
use crate::http::kit::exchange::{Asked, Door, empty, out_of_order, set};
use crate::http::kit::params::{self, Bodies};
use crate::jobs::runner;
use feedgate_core::ports::StoreError;
use feedgate_core::stored_file::{DEFAULT_NAME, PathSegment};
use feedgate_protocol::form::Form;
use feedgate_protocol::rss;

use page::{Author, Shown};

const DOOR: Door = Door { name: "author", methods: &["GET", "POST"], body_limit_bytes: 64 * 1024 };

/// The routes of this door.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    DOOR.open(gateway, warp::path!("author").boxed(), answer)
}

async fn answer(gateway: Arc<Gateway>, asked: Asked) -> Response {
    let form = match params::read(&asked, Bodies::Forms) {
        Ok(form) => form,
        Err(refused) => return refused.reply(),
    };
    if asked.method != Method::POST {
        return show(&gateway, &form, (StatusCode::OK, None)).await;
    }
    match post(&gateway, &asked, &form).await {
        Ok(posted) => see_other(&form, &posted),
        Err((status, why)) => show(&gateway, &form, (status, Some(why))).await,
    }
}

/// Why a post was not taken: for the browser and for the person.
type Refused = (StatusCode, String);

async fn post(gateway: &Gateway, asked: &Asked, form: &Form) -> Result<Posted, Refused> {
    gateway.strangers.admit(asked, 1).map_err(|much| {
        let refused = params::Refused::from(much);
        (refused.status, refused.why)
    })?;
    let value = |name: &str| form.get(name).map(str::trim).filter(|text| !text.is_empty());
    let draft = draft(&value)?;
    let password = form.get("password").unwrap_or_default();
    let author = gateway.publish.sign_in(value("user").unwrap_or_default(), password).await;
    let author = author.map_err(|refusal| refuse(&refusal))?;
    let name = PathSegment::file(DEFAULT_NAME).ok_or_else(|| refuse(&Refusal::Unmet))?;
    let posted = gateway.publish.post((&author, &name), &draft, runner::now()).await;
    posted.map_err(|refusal| refuse(&refusal))
}

fn draft<'f>(value: &impl Fn(&str) -> Option<&'f str>) -> Result<Draft, Refused> {
    let text = value("text").ok_or((StatusCode::BAD_REQUEST, "Write something first.".into()))?;
    let address = |name: &str, what: &str| match value(name).map(Url::parse) {
        None => Ok(None),
        Some(Ok(url)) if matches!(url.scheme(), "http" | "https") => Ok(Some(url)),
        Some(_) => {
            let why =
                format!("The {what} must be an address that begins with http:// or https://.");
            Err((StatusCode::BAD_REQUEST, why))
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

/// Leads to the page with the post in it, so that it is not sent again by accident. Addresses
/// are relative: a proxy may serve us below a path of its own.
fn see_other(form: &Form, posted: &Posted) -> Response {
    let user = form.get("user").unwrap_or_default().trim();
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("user", user).append_pair("posted", &posted.id);
    query.append_pair("chars", &posted.chars.to_string());
    if !posted.saved.is_told {
        query.append_pair("untold", "1");
    }
    let mut response = empty(StatusCode::SEE_OTHER);
    set(&mut response, header::LOCATION, &format!("author?{}", query.finish()));
    response
}

async fn show(
    gateway: &Gateway,
    form: &Form,
    (status, why): (StatusCode, Option<String>),
) -> Response {
    let user = form.get("user").unwrap_or_default().trim();
    let shown = match shown(gateway, user).await {
        Ok(shown) => shown,
        Err(err) => return out_of_order(&err),
    };
    let author = Author { form, why: why.as_deref(), shown };
    let mut response = author.page().reply(status);
    set(&mut response, header::CACHE_CONTROL, "no-store");
    response
}

/// The feed of this account, if it has one.
async fn shown(gateway: &Gateway, user: &str) -> Result<Option<Shown>, StoreError> {
    let place = PathSegment::login(user).ok().zip(PathSegment::file(DEFAULT_NAME));
    let Some((login, name)) = place else { return Ok(None) };
    let Some(file) = gateway.publish.file(&login, &name).await? else { return Ok(None) };
    // What is stored was sound; the page does without what is not.
    let Ok(checked) = rss::check(&file.content.body) else { return Ok(None) };
    let (title, lines) = rss::lines(&checked.text);
    Ok(Some(Shown { url: gateway.publish.url(&login, &name), title, lines }))
}

fn refuse(refusal: &Refusal) -> Refused {
    let status = match refusal {
        Refusal::WrongPassword | Refusal::NoRight | Refusal::PathSegment(_) => {
            StatusCode::FORBIDDEN
        }
        Refusal::Busy | Refusal::Store(_) | Refusal::Random(_) => StatusCode::SERVICE_UNAVAILABLE,
        Refusal::Unmet => StatusCode::CONFLICT,
        Refusal::Unsound(_) | Refusal::TooLong(_) | Refusal::Full(_) | Refusal::Feed(_) => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
    };
    if let Refusal::Store(err) = refusal {
        tracing::error!(error = err as &dyn std::error::Error, "a post could not be saved");
        return (
            status,
            "Nothing was saved: feedgate is temporarily unavailable, try again later.".into(),
        );
    }
    (status, format!("Nothing was saved: {refusal}."))
}
