//! `/storage/{login}/{name}.xml`: feeds kept for authors who have no server of their own.
//!
//! Anybody reads them. Their author writes them, by HTTP Basic with the account's password
//! or with a token of the publish right: PUT saves and pings, DELETE removes. `If-Match` and
//! `If-None-Match` keep two writers from undoing each other. No cookie is involved, and
//! browsers ask before they send either method for another site, so nobody can be tricked
//! into writing.

use std::sync::Arc;

use http::{Method, StatusCode, header};
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::authoring::{Author, Refusal, Sent};
use crate::http::Gateway;
use crate::http::kit::basic_auth::credentials;
use crate::http::kit::conditional::is_unchanged;
use crate::http::kit::exchange::{
    Asked, Door, as_strangers_words, empty, nothing_here, out_of_order, plain, set, with_type,
};
use crate::http::kit::params::Refused;
use crate::jobs::runner;
use feedgate_core::stored_file::{PathSegment, StoredFile, WriteCondition};

/// The routes of this door.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let body_limit_bytes = gateway.publish.quota().file_bytes;
    let door = Door { name: "storage", methods: &["GET", "PUT", "DELETE"], body_limit_bytes };
    let file = warp::path!("storage" / String / String).map(|login, name| (login, name)).boxed();
    door.open_with(gateway, file, answer)
}

async fn answer(gateway: Arc<Gateway>, asked: Asked, (login, name): (String, String)) -> Response {
    let place = PathSegment::login(&login).ok().zip(PathSegment::file(&name));
    if matches!(asked.method, Method::GET | Method::HEAD) {
        let Some((login, name)) = place else { return nothing_here() };
        return match gateway.publish.file(&login, &name).await {
            Ok(Some(file)) => serve(&asked, &file),
            Ok(None) => nothing_here(),
            Err(err) => out_of_order(&err),
        };
    }
    let Some((login, name)) = place else {
        let why = "A file is /storage/LOGIN/NAME.xml, of letters and digits of ASCII, \".\", \
                   \"-\" and \"_\".";
        return plain(StatusCode::NOT_FOUND, why);
    };
    match write(&gateway, &asked, &login, &name).await {
        Ok(response) => response,
        Err(Wrong::Refused(refused)) => refused.reply(),
        Err(Wrong::Refusal(refusal)) => refuse(&refusal),
    }
}

fn serve(asked: &Asked, file: &StoredFile) -> Response {
    let etag = format!("\"{}\"", file.tag);
    let mut response = if is_unchanged(&asked.headers, &etag, file.changed_at) {
        empty(StatusCode::NOT_MODIFIED)
    } else {
        with_type(StatusCode::OK, &file.content.media_type, file.content.body.clone())
    };
    set(&mut response, header::ETAG, &etag);
    set(&mut response, header::LAST_MODIFIED, &httpdate::fmt_http_date(file.changed_at.into()));
    // It may change at any moment, and asking again costs little.
    set(&mut response, header::CACHE_CONTROL, "no-cache");
    as_strangers_words(response)
}

/// What is said behind the address of a file that could not be pinged.
const UNTOLD: &str = "\nThe file is saved, but nobody could be told of it now. Those who watch it are \
    told later, or when it is saved once more.";

/// Why nothing was written.
enum Wrong {
    Refused(Refused),
    Refusal(Refusal),
}

impl From<Refusal> for Wrong {
    fn from(refusal: Refusal) -> Wrong {
        Wrong::Refusal(refusal)
    }
}

async fn write(
    gateway: &Gateway,
    asked: &Asked,
    login: &PathSegment,
    name: &PathSegment,
) -> Result<Response, Wrong> {
    let author = author(gateway, asked).await?;
    if author.login() != login {
        let why = format!("This is not the folder of {}.", author.login().as_str());
        return Err(Wrong::Refused(Refused::new(StatusCode::FORBIDDEN, why)));
    }
    let (condition, now) = (condition(asked), runner::now());
    if asked.method == Method::DELETE {
        let is_there = gateway.publish.remove(&author, name, &condition, now).await?;
        return Ok(if is_there { empty(StatusCode::NO_CONTENT) } else { nothing_here() });
    }
    let sent = Sent::Bytes(&asked.body);
    let saved = gateway.publish.save((&author, name), sent, &condition, now).await?;
    let status = if saved.is_new { StatusCode::CREATED } else { StatusCode::OK };
    let untold = if saved.is_told { "" } else { UNTOLD };
    let mut response = plain(status, &format!("{}{untold}", saved.url));
    set(&mut response, header::LOCATION, &saved.url);
    set(&mut response, header::ETAG, &format!("\"{}\"", saved.tag));
    Ok(response)
}

async fn author(gateway: &Gateway, asked: &Asked) -> Result<Author, Wrong> {
    gateway.strangers.admit(asked, 1).map_err(|much| Wrong::Refused(much.into()))?;
    let given = credentials(asked.header("authorization"));
    let (login, password) = given.ok_or(Refusal::WrongPassword)?;
    Ok(gateway.publish.sign_in(&login, &password).await?)
}

fn condition(asked: &Asked) -> WriteCondition {
    if asked.headers.contains_key(header::IF_MATCH) {
        // What cannot be read as a tag is none that the file has: nothing is overwritten.
        let lists = asked.headers.get_all(header::IF_MATCH).iter();
        let lists = lists.filter_map(|list| list.to_str().ok());
        let tags = lists.flat_map(|list| list.split(','));
        return WriteCondition::Tagged(
            tags.map(|tag| tag.trim().trim_matches('"').to_owned()).collect(),
        );
    }
    if asked.header("if-none-match").trim() == "*" {
        WriteCondition::Absent
    } else {
        WriteCondition::None
    }
}

fn refuse(refusal: &Refusal) -> Response {
    let status = match refusal {
        Refusal::Store(err) => return out_of_order(err),
        Refusal::WrongPassword => StatusCode::UNAUTHORIZED,
        Refusal::NoRight | Refusal::PathSegment(_) => StatusCode::FORBIDDEN,
        Refusal::Busy => StatusCode::SERVICE_UNAVAILABLE,
        Refusal::Unsound(_) => StatusCode::UNPROCESSABLE_ENTITY,
        Refusal::TooLong(_) => StatusCode::PAYLOAD_TOO_LARGE,
        Refusal::Full(_) => StatusCode::INSUFFICIENT_STORAGE,
        Refusal::Unmet => StatusCode::PRECONDITION_FAILED,
        Refusal::Feed(_) | Refusal::Random(_) => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let mut response = plain(status, &format!("The file was not written: {refusal}."));
    if matches!(refusal, Refusal::Busy) {
        set(&mut response, header::RETRY_AFTER, "2");
    }
    response
}
