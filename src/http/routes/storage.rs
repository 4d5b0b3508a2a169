//! `/storage/{login}/{name}.xml`: feeds stored for authors who have no server of their own.
//!
//! Anybody may read them, unless the operator says otherwise (`FEEDGATE_ANONYMOUS`). Their author writes them, by HTTP Basic with the account's password or
//! with a token with the scope `publish`: PUT saves and pings, DELETE removes. `If-Match` and
//! `If-None-Match` keep two writers from overwriting each other. There are no cookies, and
//! browsers send a preflight before either method from another site, so a page of another site
//! cannot make anybody write.

use std::sync::Arc;

use http::{Method, StatusCode, header};
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::authoring::{Author, AuthoringRefusal, OwnFile, SubmittedFeed};
use crate::http::kit::anonymous_access::Permission;
use crate::http::kit::auth::{parse_basic, refuse_cross_site};
use crate::http::kit::bearer::parse_bearer;
use crate::http::kit::conditional::is_unchanged;
use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::permissions;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::rejection::unavailable;
use crate::http::kit::reply::{
    empty, not_found, plain_text, sandboxed, set_header, with_content_type,
};
use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use crate::jobs::runner;
use feedgate_core::stored_file::{PathSegment, StoredFile, WriteCondition};

/// After how many seconds a client may repeat a request for which no sign-in was free.
const RETRY_AFTER_BUSY_S: u64 = 2;

/// Returns the routes of this endpoint.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let body_limit_bytes = gateway.publish.quota().file_bytes;
    let endpoint =
        Endpoint { name: "storage", methods: &["GET", "PUT", "DELETE"], body_limit_bytes };
    let file = warp::path!("storage" / String / String)
        .map(|login, name| FilePath { login, name })
        .boxed();
    endpoint.route_with_param(gateway, file, handle)
}

/// The path of a file below `/storage`, before it is checked.
struct FilePath {
    login: String,
    name: String,
}

async fn handle(gateway: Arc<Gateway>, request: Request, path: FilePath) -> Response {
    let path = PathSegment::login(&path.login).ok().zip(PathSegment::file(&path.name));
    if matches!(request.method, Method::GET | Method::HEAD) {
        let Some((login, name)) = path else { return not_found() };
        let entered = permissions::check_by_query(&gateway, &request, Permission::Storage).await;
        if let Err(rejection) = entered {
            return rejection.to_response();
        }
        return match gateway.publish.file(&login, &name).await {
            Ok(Some(file)) => serve(&request, &file),
            Ok(None) => not_found(),
            Err(err) => unavailable(&err),
        };
    }
    let Some((login, name)) = path else {
        let reason = "The path of a file is /storage/LOGIN/NAME.xml, with ASCII letters, digits, \
                      \".\", \"-\" and \"_\".";
        return plain_text(StatusCode::NOT_FOUND, reason);
    };
    match write(&gateway, &request, &login, &name).await {
        Ok(response) => response,
        Err(rejection) => rejection.to_response(),
    }
}

fn serve(request: &Request, file: &StoredFile) -> Response {
    let etag = format!("\"{}\"", file.tag);
    let mut response = if is_unchanged(&request.headers, &etag, file.changed_at) {
        empty(StatusCode::NOT_MODIFIED)
    } else {
        with_content_type(StatusCode::OK, &file.content.media_type, file.content.body.clone())
    };
    set_header(&mut response, header::ETAG, &etag);
    set_header(
        &mut response,
        header::LAST_MODIFIED,
        &httpdate::fmt_http_date(file.changed_at.into()),
    );
    // The file may change at any moment, and revalidation is cheap.
    set_header(&mut response, header::CACHE_CONTROL, "no-cache");
    sandboxed(response)
}

/// The text after the URL of a file whose ping failed.
const PING_FAILED: &str = "\nThe file was saved, but its subscribers could not be notified yet. They \
    will be notified later, or when it is saved again.";

async fn write(
    gateway: &Gateway,
    request: &Request,
    login: &PathSegment,
    name: &PathSegment,
) -> Result<Response, Rejection> {
    let author = author(gateway, request, login).await?;
    if author.login() != login {
        let reason = format!("This folder does not belong to {}.", author.login().as_str());
        return Err(Rejection::new(StatusCode::FORBIDDEN, reason));
    }
    let file = OwnFile { author: &author, name };
    let (condition, now) = (condition(request), runner::now());
    if request.method == Method::DELETE {
        let is_there = gateway.publish.remove(file, &condition, now).await;
        let is_there = is_there.map_err(|refusal| reject_refusal(&refusal))?;
        return Ok(if is_there { empty(StatusCode::NO_CONTENT) } else { not_found() });
    }
    let sent = SubmittedFeed::Bytes(&request.body);
    let saved = gateway.publish.save(file, sent, &condition, now).await;
    let saved = saved.map_err(|refusal| reject_refusal(&refusal))?;
    let status = if saved.is_new { StatusCode::CREATED } else { StatusCode::OK };
    let note = if saved.is_told { "" } else { PING_FAILED };
    let mut response = plain_text(status, &format!("{}{note}", saved.url));
    set_header(&mut response, header::LOCATION, &saved.url);
    set_header(&mut response, header::ETAG, &format!("\"{}\"", saved.tag));
    Ok(response)
}

/// Authenticates the author, who may send a token without a login for the folder of `login`.
async fn author(
    gateway: &Gateway,
    request: &Request,
    login: &PathSegment,
) -> Result<Author, Rejection> {
    gateway.anonymous_rate_limit.admit(request, 1)?;
    refuse_cross_site(request)?;
    let sent = request.header("authorization");
    let bearer = parse_bearer(sent).map(|token| (login.as_str().to_owned(), token.to_owned()));
    let credentials = bearer.or_else(|| parse_basic(sent));
    let (login, password) =
        credentials.ok_or_else(|| reject_refusal(&AuthoringRefusal::WrongPassword))?;
    let author = gateway.publish.sign_in(&login, &password, request.counted_client()).await;
    author.map_err(|refusal| reject_refusal(&refusal))
}

fn condition(request: &Request) -> WriteCondition {
    if request.headers.contains_key(header::IF_MATCH) {
        // An unreadable tag matches no file, so nothing is overwritten.
        let lists = request.headers.get_all(header::IF_MATCH).iter();
        let lists = lists.filter_map(|list| list.to_str().ok());
        let tags = lists.flat_map(|list| list.split(','));
        return WriteCondition::Tagged(
            tags.map(|tag| tag.trim().trim_matches('"').to_owned()).collect(),
        );
    }
    if request.header("if-none-match").trim() == "*" {
        WriteCondition::Absent
    } else {
        WriteCondition::None
    }
}

fn reject_refusal(refusal: &AuthoringRefusal) -> Rejection {
    let status = match refusal {
        AuthoringRefusal::Store(err) => return Rejection::unavailable(err),
        AuthoringRefusal::WrongPassword => StatusCode::UNAUTHORIZED,
        AuthoringRefusal::TooManyAttempts(_) => StatusCode::TOO_MANY_REQUESTS,
        AuthoringRefusal::NoRight
        | AuthoringRefusal::Deactivated
        | AuthoringRefusal::PathSegment(_) => StatusCode::FORBIDDEN,
        AuthoringRefusal::Busy => StatusCode::SERVICE_UNAVAILABLE,
        AuthoringRefusal::Unsound(_) => StatusCode::UNPROCESSABLE_ENTITY,
        AuthoringRefusal::TooLong(_) => StatusCode::PAYLOAD_TOO_LARGE,
        AuthoringRefusal::Full(_) => StatusCode::INSUFFICIENT_STORAGE,
        AuthoringRefusal::Unmet => StatusCode::PRECONDITION_FAILED,
        AuthoringRefusal::Feed(_) | AuthoringRefusal::Random(_) => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
    };
    let rejection = Rejection::new(status, format!("The file was not written: {refusal}."));
    match refusal {
        AuthoringRefusal::Busy => rejection.with_retry_after(RETRY_AFTER_BUSY_S),
        AuthoringRefusal::TooManyAttempts(delay) => rejection.with_retry_after(delay.as_secs() + 1),
        _ => rejection,
    }
}
