//! The tokens of an account: creating and revoking them with the token of the session, which needs the
//! scope `tokens`. What is created is a child of that token: with at most its rights and its end, and
//! revoked with it.

use chrono::{DateTime, Days, Utc};
use http::StatusCode;
use maud::{Markup, html};
use warp::reply::Response;

use super::visit::Visit;
use crate::http::kit::auth;
use crate::http::kit::html::parts::{Tone, badge, optional_time, timestamp};
use crate::http::kit::rejection::Rejection;
use crate::jobs::runner;
use crate::tokens::{self, ChildTokenError, TokenError, TokenRequest};
use feedgate_core::account::{Access, Scope, Scopes, TokenInfo};
use feedgate_core::store::StoreError;

/// The longest life of a token that a form asks for, in days.
const MOST_DAYS: u64 = 3_650;

/// Returns the tokens of an account, and what the session may do with them; `action` is where its forms
/// are sent. A session that may not manage tokens sees its own only.
pub(super) fn section(
    visit: &Visit,
    tokens: &[TokenInfo],
    action: &str,
) -> Result<Markup, Rejection> {
    let access = visit.access()?;
    let may_manage = access.scopes.allow(Scope::Tokens);
    let listed = tokens.iter().filter(|token| may_manage || token.id == access.token.0);
    let listed: Vec<_> = listed.map(|token| (token, may_revoke(access, token, tokens))).collect();
    Ok(html! {
        (token_table(visit, &listed, action))
        @if may_manage {
            (token_form(visit, tokens, action)?)
        } @else {
            p.soft { "Your token does not have the scope tokens, so that it cannot manage tokens." }
        }
    })
}

/// Revokes the token that a form of the account's `page` names.
pub(super) async fn revoke(visit: &Visit, login: &str, page: &str) -> Result<Response, Rejection> {
    let (access, store) = (visit.access()?, &visit.gateway.store);
    let number = visit.value("token").parse::<i64>().unwrap_or_default();
    let tokens = store.tokens_of(login).await.map_err(unavailable)?;
    let token = tokens.iter().find(|token| token.id == number).ok_or_else(not_found)?;
    auth::require(access, Scope::Tokens)?;
    if !may_revoke(access, token, &tokens) {
        let reason = "Your token cannot revoke one with more rights or a later end, nor the one that \
                      it was created with. Sign in with another token.";
        return Err(Rejection::new(StatusCode::FORBIDDEN, reason));
    }
    store.revoke_token(number, runner::now()).await.map_err(unavailable)?;
    Ok(visit.see_other(&format!("{page}?done=revoked")))
}

/// Returns whether the token of a session may revoke a token of `tokens`, those of one account. An
/// administrator may delete other accounts, and so revoke their tokens.
fn may_revoke(access: &Access, token: &TokenInfo, tokens: &[TokenInfo]) -> bool {
    let is_foreign = access.scopes.allow(Scope::Admin) && token.login != access.login;
    access.scopes.allow(Scope::Tokens) && (is_foreign || access.may_revoke(token, tokens))
}

/// Creates a token with that of the session, and returns the note that shows it once.
pub(super) async fn issue(visit: &Visit, login: &str, scopes: Scopes) -> Result<Markup, Rejection> {
    let now = runner::now();
    let request = TokenRequest {
        login: login.to_owned(),
        name: visit.value("name").chars().filter(|c| !c.is_control()).take(100).collect(),
        scopes,
        expires_at: expiry(visit, now),
    };
    let made =
        tokens::create_child_token(&visit.gateway.store, request, visit.access()?, now).await;
    let (token, _) = made.map_err(|err| match err {
        ChildTokenError::Token(TokenError::Store(StoreError::AccountRemoved(_))) => {
            Rejection::unprocessable(
                "An account with this login was deleted. Its login cannot be used again.",
            )
        }
        ChildTokenError::MissingScope(scope) => {
            let reason = format!("Your token does not have the scope {}.", scope.as_str());
            Rejection::new(StatusCode::FORBIDDEN, reason)
        }
        err @ ChildTokenError::TooMany => Rejection::unprocessable(format!(
            "The token was not created: {err}. Revoke some first."
        )),
        ChildTokenError::ParentEnded => {
            Rejection::new(StatusCode::FORBIDDEN, "Your token is not valid any more.")
        }
        err => Rejection::unavailable(&err),
    })?;
    Ok(html! {
        div.card role="status" {
            p { "The new token is shown only now. Programs authenticate with the login and the token, \
                 by HTTP Basic:" }
            p { code { (login) ":" (token) } }
        }
    })
}

/// Returns the scopes that a form requests.
pub(super) fn chosen_scopes(visit: &Visit) -> Scopes {
    visit.form.all("scope").filter_map(Scope::from_word).collect()
}

/// Returns when a token ends that a form requests; `None` if it is valid until it is revoked.
fn expiry(visit: &Visit, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let days = visit.value("days").parse::<u64>().ok().filter(|days| *days > 0)?;
    now.checked_add_days(Days::new(days.min(MOST_DAYS)))
}

fn token_table(visit: &Visit, tokens: &[(&TokenInfo, bool)], action: &str) -> Markup {
    let now = runner::now();
    html! {
        table.records {
            thead { tr {
                @for name in ["Name", "Scopes", "Created", "Last used", "Valid", "Action"] {
                    th scope="col" { (name) }
                }
            } }
            tbody {
                @for (token, may_revoke) in tokens {
                    @let is_valid = token.is_valid(now);
                    tr {
                        td data-name="" {
                            (displayed_name(token))
                            @if let Some(parent) = token.parent { br; small { "created with token " (parent) } }
                        }
                        td data-name="Scopes" { (token.scopes.to_words()) }
                        td data-name="Created" { (timestamp(token.created_at)) }
                        td data-name="Last used" { (optional_time(token.used_at, now)) }
                        td data-name="Valid" {
                            @match (token.revoked_at, token.expires_at) {
                                (Some(at), _) => { (badge(Tone::Neutral, "revoked")) " " (timestamp(at)) }
                                (None, Some(at)) if is_valid => { "until " (timestamp(at)) }
                                (None, Some(at)) => { (badge(Tone::Neutral, "expired")) " " (timestamp(at)) }
                                (None, None) => "until it is revoked",
                            }
                        }
                        td data-name="" {
                            @if is_valid && *may_revoke {
                                form method="post" action=(action) {
                                    (visit.csrf_field())
                                    input type="hidden" name="token" value=(token.id);
                                    button.quiet type="submit" name="action" value="revoke-token"
                                        aria-label=(format!("Revoke token {} {}", token.id, token.name))
                                        { "Revoke" }
                                }
                            }
                        }
                    }
                }
                @if tokens.is_empty() { tr { td colspan="6" { "No tokens." } } }
            }
        }
    }
}

/// Returns the name of a token, or its number if it has none.
fn displayed_name(token: &TokenInfo) -> String {
    if token.name.is_empty() { format!("Token {}", token.id) } else { token.name.clone() }
}

fn token_form(visit: &Visit, tokens: &[TokenInfo], action: &str) -> Result<Markup, Rejection> {
    let access = visit.access()?;
    let own = tokens.iter().find(|token| token.id == access.token.0);
    Ok(html! {
        h3 { "New token" }
        p {
            "The new token depends on the one that you are signed in with"
            @if let Some(own) = own { ", " b { (displayed_name(own)) } }
            ": when that is revoked, the new one is revoked as well"
            @if let Some(at) = access.expires_at { ", and it ends with it at the latest, " (timestamp(at)) }
            "."
        }
        form method="post" action=(action) {
            (visit.csrf_field())
            div.actions {
                label { "Name " small { "(optional)" } br; input name="name" maxlength="100"; }
                label { "Valid for days " small { "(empty: until it is revoked)" } br;
                    input name="days" type="number" min="1" max=(MOST_DAYS);
                }
            }
            fieldset {
                legend { "Scopes" }
                @for scope in Scope::ALL.into_iter().filter(|scope| access.scopes.allow(*scope)) {
                    label.choice {
                        input type="checkbox" name="scope" value=(scope.as_str())
                            checked[Scopes::of_subscriber().allow(scope)];
                        " " (scope.as_str()) " " small { (permitted(scope)) }
                    }
                }
            }
            button type="submit" name="action" value="create-token" { "Create a token" }
        }
    })
}

/// Returns what a scope permits.
fn permitted(scope: Scope) -> &'static str {
    match scope {
        Scope::Subscribe => "make and change subscriptions",
        Scope::Unsubscribe => "end subscriptions",
        Scope::List => "see subscriptions",
        Scope::Retrieve => "read entries",
        Scope::Admin => "manage all accounts and the gateway",
        Scope::Publish => "save feeds in the storage",
        Scope::Tokens => "create and revoke tokens",
    }
}

fn not_found() -> Rejection {
    Rejection::new(StatusCode::NOT_FOUND, "There is no such token.")
}

fn unavailable(err: StoreError) -> Rejection {
    Rejection::unavailable(&err)
}
