//! Superfeedr's API: who asks has an account, parameters come from anywhere, and the
//! answer tells what became of the wish.

use std::error::Error;

use http::{Method, StatusCode};
use serde_json::{Value, json};
use tracing::error;
use warp::reply::Response;

use super::{auth, list, page, publish, retrieve, subscribe};
use crate::http::Gateway;
use crate::http::kit::exchange::{Asked, empty, with_type};
use crate::http::kit::jsonp;
use crate::http::kit::params::{self, Bodies, Refused};
use feedgate_core::account::{Access, Scope};
use feedgate_core::intent::IntentMode;
use feedgate_protocol::form::Form;

/// What a mode answers.
pub(super) enum Answer {
    /// Nothing but a status code.
    Done(StatusCode),
    /// JSON, which may be wrapped for a script.
    Json(Value),
    /// Anything else.
    Reply(Response),
}

/// Answers whatever is asked at `/`.
pub(super) async fn answer(gateway: &Gateway, asked: &Asked) -> Response {
    let form = match params::read(asked, Bodies::Any) {
        Ok(form) => form,
        Err(refused) => return refused.reply(),
    };
    if form.is_empty() && matches!(asked.method, Method::GET | Method::HEAD) {
        return page(gateway);
    }
    let function = jsonp::function(&form);
    match (carry_out(gateway, asked, &form).await, function) {
        (Ok(Answer::Done(status)), _) => empty(status),
        (Ok(Answer::Json(value)), Some(function)) => jsonp::answer(function, &value),
        (Ok(Answer::Json(value)), None) => {
            with_type(StatusCode::OK, "application/json; charset=utf-8", value.to_string())
        }
        (Ok(Answer::Reply(response)), _) => response,
        (Err(refused), Some(function)) => jsonp::error(function, &refused),
        (Err(refused), None) => refused.reply(),
    }
}

async fn carry_out(gateway: &Gateway, asked: &Asked, form: &Form) -> Result<Answer, Refused> {
    let mode = form.get("hub.mode").unwrap_or_default().to_ascii_lowercase();
    if mode == "publish" {
        publish::publish(gateway, asked, form).await?;
        return Ok(Answer::Done(StatusCode::NO_CONTENT)); // whatever was named (row P-2)
    }
    let known = ["subscribe", "unsubscribe", "list", "retrieve", "replay", "authenticate"];
    if !known.contains(&mode.as_str()) {
        let mode = if mode.is_empty() { "(none)" } else { &mode };
        return Err(unprocessable(format!(
            "{mode} is not a supported mode {}|publish",
            known.join("|")
        )));
    }
    let access = auth::access(gateway, asked, form).await?;
    match mode.as_str() {
        "subscribe" => {
            auth::demand(&access, Scope::Subscribe)?;
            subscribe::carry_out(gateway, asked, form, &access, IntentMode::Subscribe).await
        }
        "unsubscribe" => {
            auth::demand(&access, Scope::Unsubscribe)?;
            subscribe::carry_out(gateway, asked, form, &access, IntentMode::Unsubscribe).await
        }
        "list" => {
            auth::demand(&access, Scope::List)?;
            list::list(gateway, form, &access).await.map(Answer::Json)
        }
        "retrieve" => {
            auth::demand(&access, Scope::Retrieve)?;
            retrieve::retrieve(gateway, asked, form, &access).await
        }
        "replay" => {
            auth::demand(&access, Scope::Retrieve)?;
            subscribe::replay(gateway, form, &access).await
        }
        _ => Ok(authenticate(form, &access)),
    }
}

/// Whether a token is good, and what for (rows ).
fn authenticate(form: &Form, access: &Access) -> Answer {
    if !form.is_set("rights") {
        return Answer::Done(StatusCode::NO_CONTENT);
    }
    let rights = [Scope::Subscribe, Scope::Unsubscribe, Scope::List, Scope::Retrieve];
    let held = rights.map(|right| (right.as_str().to_owned(), json!(access.rights.allow(right))));
    Answer::Json(Value::Object(held.into_iter().collect()))
}

/// A request that was understood and cannot be carried out, in a sentence.
pub(super) fn unprocessable(why: impl Into<String>) -> Refused {
    Refused::new(StatusCode::UNPROCESSABLE_ENTITY, why)
}

/// The number that a parameter gives, clamped to 1 and `most` (rows L-3 and R-3);
/// `default` if it is not there.
pub(super) fn number(
    form: &Form,
    name: &str,
    (default, most): (usize, usize),
) -> Result<usize, Refused> {
    let Some(text) = form.get(name) else { return Ok(default) };
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let upto = if most == usize::MAX { String::new() } else { format!(" to {most}") };
        return Err(unprocessable(format!("{name} must be a number from 1{upto}, not {text}.")));
    }
    if text.starts_with('-') {
        return Ok(1);
    }
    // What is no number of ours is too large.
    Ok(digits.parse().unwrap_or(usize::MAX).clamp(1, most))
}

/// The store failed: the cause is for the log, not for the wire.
pub(crate) fn broken(err: &(dyn Error + 'static)) -> Refused {
    error!(error = err, "a request at the hub could not be served");
    let why = "feedgate is out of order, please try again later.";
    Refused::new(StatusCode::SERVICE_UNAVAILABLE, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_range_are_clamped_and_others_refused() {
        #[rustfmt::skip]
        let cases = [
            ("",                      Some(10)),
            ("count=",                Some(10)),
            ("count=7",               Some(7)),
            ("count=0",               Some(1)),
            ("count=-3",              Some(1)),
            ("count=51",              Some(50)),
            ("count=99999999999999999999999", Some(50)),
            ("count=abc",             None),
            ("count=1.5",             None),
            ("count=-",               None),
        ];
        for (query, want) in cases {
            let form = Form::from_urlencoded(query.as_bytes()).unwrap();
            assert_eq!(number(&form, "count", (10, 50)).ok(), want, "{query}");
        }
    }
}
