//! `/v1/tokens`: the tokens of an account. What is created with a token is its child: with at most its
//! rights and its end, and revoked with it.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use futures_util::FutureExt;
use http::{Method, StatusCode, header};
use serde::Serialize;
use serde_json::Value;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use super::call::{JsonText, RestCall, json_reply, to_response};
use super::idempotency;
use super::json_body::{JsonBody, reject_field};
use super::paging::PageRequest;
use crate::http::kit::auth;
use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::paths;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::reply::{empty, set_header};
use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use crate::jobs::runner;
use crate::tokens::{self, ChildTokenError, TokenRequest};
use feedgate_core::account::{Access, MOST_TOKENS, Scope, Scopes, TokenInfo};

const ALL: Endpoint =
    Endpoint { name: "v1_tokens", methods: &["GET", "POST"], body_limit_bytes: 16 << 10 };
const ONE: Endpoint =
    Endpoint { name: "v1_tokens", methods: &["GET", "DELETE"], body_limit_bytes: 1_024 };

/// The longest name of a token, in characters.
const MOST_NAME_CHARS: usize = 100;
/// Stands for the id of the token that a call is made with.
const SELF: &str = "self";

/// Returns the routes of tokens.
pub(super) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let all = paths::exact("v1/tokens");
    let one = paths::with_segment("v1/tokens/{}");
    ALL.route(gateway, all, |gateway, request| async move {
        match request.method {
            Method::POST => create(gateway, request).await,
            _ => to_response(&request, list(&gateway, &request).await),
        }
    })
    .or(ONE.route_with_param(gateway, one, |gateway, request, id| async move {
        let result = match request.method {
            Method::DELETE => revoke(&gateway, &request, &id).await,
            _ => show(&gateway, &request, &id).await,
        };
        to_response(&request, result)
    }))
    .unify()
    .boxed()
}

/// A token.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TokenView<'t> {
    id: String,
    name: &'t str,
    login: &'t str,
    scopes: Vec<&'static str>,
    current: bool,
    valid: bool,
    created_at: DateTime<Utc>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used_at: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked_at: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
}

fn describe(access: &Access, token: &TokenInfo) -> Value {
    let scopes = Scope::ALL.into_iter().filter(|scope| token.scopes.allow(*scope));
    let displayed = TokenView {
        id: token.id.to_string(),
        name: &token.name,
        login: &token.login,
        scopes: scopes.map(Scope::as_str).collect(),
        current: token.id == access.token.0,
        valid: token.is_valid(runner::now()),
        created_at: token.created_at,
        last_used_at: token.used_at,
        expires_at: token.expires_at,
        revoked_at: token.revoked_at,
        parent: token.parent.map(|parent| parent.to_string()),
    };
    serde_json::to_value(displayed).expect("a token is a struct of plain values")
}

/// Returns up to `limit` tokens of the account after the number `after`, oldest first. A token that may not
/// manage tokens sees itself only.
async fn visible_tokens(
    call: &RestCall<'_>,
    mut after: i64,
    mut limit: usize,
) -> Result<Vec<TokenInfo>, Rejection> {
    if !call.access.scopes.allow(Scope::Tokens) {
        let own = call.access.token.0;
        if after >= own {
            return Ok(Vec::new());
        }
        (after, limit) = (own - 1, 1);
    }
    let charge = call.admit_rows(limit)?;
    let tokens = call.gateway.store.tokens_after(call.access.account, after, limit).await;
    let tokens = tokens.map_err(|err| Rejection::unavailable(&err))?;
    charge.return_unread(tokens.len());
    Ok(tokens)
}

/// Returns a page of the tokens of the account.
async fn list(gateway: &Arc<Gateway>, request: &Request) -> Result<Response, Rejection> {
    let call = RestCall::begin(gateway, request, None, &["limit", "cursor"]).await?;
    let page = PageRequest::from_call(&call, "tokens")?;
    let after = page.after_number()?;
    let mut tokens = visible_tokens(&call, after, page.limit + 1).await?;
    let has_more = tokens.len() > page.limit;
    tokens.truncate(page.limit);
    let next = tokens.last().filter(|_| has_more).map(|last| last.id);
    let data = tokens.iter().map(|token| describe(&call.access, token)).collect();
    Ok(page.to_reply(&call, data, next))
}

async fn show(gateway: &Arc<Gateway>, request: &Request, id: &str) -> Result<Response, Rejection> {
    let call = RestCall::begin(gateway, request, None, &[]).await?;
    let token = find(&call, id).await?;
    Ok(json_reply(StatusCode::OK, &describe(&call.access, &token)))
}

async fn find(call: &RestCall<'_>, id: &str) -> Result<TokenInfo, Rejection> {
    let not_found = || Rejection::new(StatusCode::NOT_FOUND, "There is no token with this id.");
    let number = match id {
        SELF => call.access.token.0,
        id => id.parse().map_err(|_| not_found())?,
    };
    let found = visible_tokens(call, number.saturating_sub(1), 1).await?.pop();
    found.filter(|token| id == SELF || token.id.to_string() == id).ok_or_else(not_found)
}

/// Creates a token. The reply is the only one that has it: what is stored for a client that repeats the
/// request is without it.
async fn create(gateway: Arc<Gateway>, request: Request) -> Response {
    idempotency::once(gateway, request, Scope::Tokens, |call| create_once(call).boxed()).await
}

async fn create_once(call: &RestCall<'_>) -> Result<Response, Rejection> {
    let body = JsonBody::read(call.request, &["name", "scopes", "expiresAt"])?;
    let now = runner::now();
    let requested = TokenRequest {
        login: call.access.login.clone(),
        name: name(&body)?,
        scopes: scopes(&body)?.unwrap_or(Scopes::of_subscriber()),
        expires_at: expires_at(&body, now)?,
    };
    let made = tokens::create_child_token(&call.gateway.store, requested, &call.access, now).await;
    let (token, number) = made.map_err(|err| match err {
        ChildTokenError::MissingScope(scope) => {
            let reason = format!("Your token does not have the scope {}.", scope.as_str());
            Rejection::new(StatusCode::FORBIDDEN, reason).with_field("scopes")
        }
        ChildTokenError::TooMany => {
            let reason =
                format!("This account has {MOST_TOKENS} valid tokens. Please revoke some first.");
            Rejection::unprocessable(reason).with_code("too_many_tokens")
        }
        ChildTokenError::ParentEnded => {
            Rejection::new(StatusCode::UNAUTHORIZED, "Your token is not valid any more.")
        }
        err => Rejection::unavailable(&err),
    })?;
    let mut displayed = describe(&call.access, &find(call, &number.to_string()).await?);
    let stored = JsonText(displayed.to_string().into());
    displayed["token"] = token.into();
    let mut response = json_reply(StatusCode::CREATED, &displayed);
    response.extensions_mut().insert(stored);
    let address = call.gateway.public_url(&format!("v1/tokens/{number}"));
    set_header(&mut response, header::LOCATION, &address);
    Ok(response)
}

fn name(body: &JsonBody) -> Result<String, Rejection> {
    let name = body.text("name")?.unwrap_or_default().trim();
    let is_usable = name.chars().count() <= MOST_NAME_CHARS && !name.chars().any(char::is_control);
    match is_usable {
        true => Ok(name.to_owned()),
        false => {
            let most = MOST_NAME_CHARS;
            let reason = format!("name must have at most {most} characters, and no line ends.");
            Err(reject_field("name", reason))
        }
    }
}

fn scopes(body: &JsonBody) -> Result<Option<Scopes>, Rejection> {
    let Some(words) = body.texts("scopes")? else { return Ok(None) };
    let scopes = words.into_iter().map(|word| {
        Scope::from_word(word).ok_or_else(|| {
            let known = Scope::ALL.map(Scope::as_str).join(", ");
            let word: String = word.chars().take(64).collect();
            reject_field("scopes", format!("scopes must be some of {known}, not {word}."))
        })
    });
    scopes.collect::<Result<_, _>>().map(Some)
}

fn expires_at(body: &JsonBody, now: DateTime<Utc>) -> Result<Option<DateTime<Utc>>, Rejection> {
    let Some(text) = body.text("expiresAt")? else { return Ok(None) };
    let time = DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc());
    time.filter(|time| *time > now).map(Some).ok_or_else(|| {
        let reason = "expiresAt must be a time in the future, such as 2030-01-31T00:00:00Z.";
        reject_field("expiresAt", reason.to_owned())
    })
}

/// Checks that the token of a call may revoke another one.
async fn check_revocation(call: &RestCall<'_>, token: &TokenInfo) -> Result<(), Rejection> {
    auth::require(&call.access, Scope::Tokens)?;
    // Tokens that have ended are read as well.
    let charge = call.admit_rows(2 * MOST_TOKENS)?;
    let tokens = call.gateway.store.tokens_of(&call.access.login).await;
    let tokens = tokens.map_err(|err| Rejection::unavailable(&err))?;
    charge.return_unread(tokens.len());
    if call.access.may_revoke(token, &tokens) {
        return Ok(());
    }
    let reason = "Your token cannot revoke one with more rights or a later end, nor the one that it was \
                  created with.";
    Err(Rejection::new(StatusCode::FORBIDDEN, reason))
}

/// Revokes a token with those that were created with it. A token may always revoke itself.
async fn revoke(
    gateway: &Arc<Gateway>,
    request: &Request,
    id: &str,
) -> Result<Response, Rejection> {
    let call = RestCall::begin(gateway, request, None, &[]).await?;
    let token = find(&call, id).await?;
    if token.id != call.access.token.0 {
        check_revocation(&call, &token).await?;
    }
    let revoked = gateway.store.revoke_token(token.id, runner::now()).await;
    revoked.map_err(|err| Rejection::unavailable(&err))?;
    Ok(empty(StatusCode::NO_CONTENT))
}
