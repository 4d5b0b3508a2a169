//! Accounts and their tokens: an administrator manages all of them, everybody else the tokens of the
//! own account.

use chrono::{DateTime, Days, Utc};
use http::StatusCode;
use maud::{Markup, html};
use warp::reply::Response;

use super::visit::Visit;
use crate::http::kit::html::parts::{Tone, badge, counted, grouped, optional_time, timestamp};
use crate::http::kit::rejection::Rejection;
use crate::jobs::runner;
use crate::tokens::{self, TokenRequest};
use feedgate_core::account::{AccountInfo, Scope, Scopes, TokenInfo};
use feedgate_core::ports::StoreError;

/// The section of the navigation.
const SECTION: &str = "console/accounts";
/// The longest life of a token that a form asks for, in days.
const MOST_DAYS: u64 = 3_650;

/// Returns the list of accounts; who is no administrator gets to the own account.
pub(super) async fn page(visit: &Visit) -> Result<Response, Rejection> {
    if !visit.is_admin() {
        return Ok(visit.see_other(&path(&visit.access()?.login)));
    }
    let accounts = visit.gateway.store.list_accounts().await.map_err(unavailable)?;
    let content = html! {
        @if visit.value("done") == "removed" { p role="status" { "The account was deleted." } }
        table.records {
            thead { tr {
                @for name in ["Login", "State", "Created"] { th scope="col" { (name) } }
                @for name in ["Tokens", "Files", "Bytes"] { th.number scope="col" { (name) } }
            } }
            tbody { @for account in &accounts { (row(visit, account)) } }
        }
        h2 { "New account" }
        p { "An account is created with its first token." }
        form.inline method="post" action=(visit.address(SECTION)) {
            (visit.csrf_field())
            label { "Login " input name="login" required maxlength="100"; }
            button type="submit" { "Create" }
        }
    };
    Ok(visit.page("Accounts", SECTION, content))
}

fn row(visit: &Visit, account: &AccountInfo) -> Markup {
    html! {
        tr {
            td data-name="" {
                @if account.is_removed { (account.login) } @else {
                    a href=(visit.address(&path(&account.login))) { (account.login) }
                }
            }
            td data-name="State" { (state(account)) }
            td data-name="Created" { (timestamp(account.created_at)) }
            td.number data-name="Tokens" { (grouped(account.tokens)) }
            td.number data-name="Files" { (grouped(account.files)) }
            td.number data-name="Bytes" { (grouped(account.bytes)) }
        }
    }
}

fn state(account: &AccountInfo) -> Markup {
    match (account.is_removed, account.is_deactivated) {
        (true, _) => badge(Tone::Bad, "deleted"),
        (false, true) => badge(Tone::Warning, "deactivated"),
        (false, false) => badge(Tone::Good, "active"),
    }
}

/// Creates the account that a form names, with a token.
pub(super) async fn create(visit: &Visit) -> Result<Response, Rejection> {
    if !visit.is_admin() {
        return Err(not_found());
    }
    let login = visit.value("login");
    let reason = tokens::check_login(login).err();
    if let Some(reason) = reason {
        return Err(Rejection::unprocessable(format!("Please choose another login: {reason}.")));
    }
    issue(visit, login, tokens::subscriber_scopes()).await
}

/// Returns the page of one account.
pub(super) async fn account(visit: &Visit, login: &str) -> Result<Response, Rejection> {
    let account = find(visit, login).await?;
    let note = match visit.value("done") {
        "revoked" => html! { p role="status" { "The token was revoked." } },
        "deactivated" => html! {
            p role="status" { "The account is deactivated, and its deliveries are paused." }
        },
        "activated" => html! { p role="status" { "The account is active." } },
        _ => html! {},
    };
    show(visit, &account, note).await
}

/// Carries out what a form of an account's page requests.
pub(super) async fn act(visit: &Visit, login: &str) -> Result<Response, Rejection> {
    let account = find(visit, login).await?;
    let (store, now) = (&visit.gateway.store, runner::now());
    match visit.value("action") {
        "create-token" => issue(visit, login, chosen_scopes(visit)).await,
        "revoke-token" => {
            let number = visit.value("token").parse::<i64>().unwrap_or_default();
            let own = store.tokens_of(login).await.map_err(unavailable)?;
            if !own.iter().any(|token| token.id == number) {
                return Err(not_found());
            }
            store.revoke_token(number, now).await.map_err(unavailable)?;
            Ok(visit.see_other(&format!("{}?done=revoked", path(login))))
        }
        action if !visit.is_admin() || login == visit.access()?.login => {
            let reason = match action {
                "deactivate" | "remove" => "The account that you are signed in with stays.",
                _ => "The form names no action of this page.",
            };
            Err(Rejection::bad_request(reason))
        }
        "deactivate" => {
            store.deactivate_account(login, now).await.map_err(unavailable)?;
            Ok(visit.see_other(&format!("{}?done=deactivated", path(login))))
        }
        "activate" => {
            store.activate_account(login, now).await.map_err(unavailable)?;
            Ok(visit.see_other(&format!("{}?done=activated", path(login))))
        }
        "remove" if visit.value("confirmed") == login => {
            store.remove_account(login, now).await.map_err(unavailable)?;
            Ok(visit.see_other(&format!("{SECTION}?done=removed")))
        }
        "remove" => confirm_removal(visit, &account).await,
        _ => Err(Rejection::bad_request("The form names no action of this page.")),
    }
}

/// Finds the account of a page: any for administrators, the own one for everybody else (S37).
async fn find(visit: &Visit, login: &str) -> Result<AccountInfo, Rejection> {
    if !visit.is_admin() && visit.access()?.login != login {
        return Err(not_found());
    }
    let accounts = visit.gateway.store.list_accounts().await.map_err(unavailable)?;
    let found = accounts.into_iter().find(|held| held.login == login && !held.is_removed);
    found.ok_or_else(not_found)
}

/// Creates a token, and shows it once. Nobody can give more rights than the own ones.
async fn issue(visit: &Visit, login: &str, scopes: Scopes) -> Result<Response, Rejection> {
    let own = visit.access()?.scopes;
    if let Some(missing) =
        Scope::ALL.into_iter().find(|scope| scopes.allow(*scope) && !own.allow(*scope))
    {
        let reason = format!("Your token does not have the scope {}.", missing.as_str());
        return Err(Rejection::new(StatusCode::FORBIDDEN, reason));
    }
    let now = runner::now();
    let request = TokenRequest {
        login: login.to_owned(),
        name: visit.value("name").chars().filter(|c| !c.is_control()).take(100).collect(),
        scopes,
        expires_at: expiry(visit, now),
    };
    let made = tokens::create_token(&*visit.gateway.store, request, now).await;
    let (token, _) = made.map_err(|err| match err {
        tokens::TokenError::Store(StoreError::AccountRemoved(_)) => Rejection::unprocessable(
            "An account with this login was deleted. Its login cannot be used again.",
        ),
        err => Rejection::unavailable(&err),
    })?;
    let note = html! {
        div.card role="status" {
            p { "The new token is shown only now. Programs authenticate with the login and the token, \
                 by HTTP Basic:" }
            p { code { (login) ":" (token) } }
        }
    };
    show(visit, &find(visit, login).await?, note).await
}

fn chosen_scopes(visit: &Visit) -> Scopes {
    visit.form.all("scope").filter_map(Scope::from_word).collect()
}

/// Returns when a token ends that a form requests; `None` if it is valid until it is revoked.
fn expiry(visit: &Visit, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let days = visit.value("days").parse::<u64>().ok().filter(|days| *days > 0)?;
    now.checked_add_days(Days::new(days.min(MOST_DAYS)))
}

async fn show(visit: &Visit, account: &AccountInfo, note: Markup) -> Result<Response, Rejection> {
    let tokens = visit.gateway.store.tokens_of(&account.login).await.map_err(unavailable)?;
    let action = visit.address(&path(&account.login));
    let content = html! {
        (note)
        dl.facts {
            dt { "State" } dd { (state(account)) }
            dt { "Created" } dd { (timestamp(account.created_at)) }
            dt { "Files" } dd { (grouped(account.files)) " with " (grouped(account.bytes)) " bytes" }
        }
        h2 { "Tokens" }
        (token_table(visit, &account.login, &tokens))
        (token_form(visit, &action)?)
        @if visit.is_admin() && account.login != visit.access()?.login {
            h2 { "Account" }
            form.inline method="post" action=(action) {
                (visit.csrf_field())
                @if account.is_deactivated {
                    button type="submit" name="action" value="activate" { "Activate" }
                } @else {
                    button type="submit" name="action" value="deactivate" { "Deactivate" }
                }
                button.danger type="submit" name="action" value="remove" { "Delete…" }
            }
        }
    };
    Ok(visit.page(&account.login, SECTION, content))
}

fn token_table(visit: &Visit, login: &str, tokens: &[TokenInfo]) -> Markup {
    let now = runner::now();
    html! {
        table.records {
            thead { tr {
                @for name in ["Name", "Scopes", "Created", "Last used", "Valid", "Action"] {
                    th scope="col" { (name) }
                }
            } }
            tbody {
                @for token in tokens {
                    @let is_valid = token.is_valid(now);
                    tr {
                        td data-name="" {
                            @if token.name.is_empty() { "Token " (token.id) } @else { (token.name) }
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
                            @if is_valid {
                                form method="post" action=(visit.address(&path(login))) {
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

fn token_form(visit: &Visit, action: &str) -> Result<Markup, Rejection> {
    let own = visit.access()?.scopes;
    Ok(html! {
        h3 { "New token" }
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
                @for scope in Scope::ALL.into_iter().filter(|scope| own.allow(*scope)) {
                    label.choice {
                        input type="checkbox" name="scope" value=(scope.as_str())
                            checked[tokens::subscriber_scopes().allow(scope)];
                        " " (scope.as_str())
                    }
                }
            }
            button type="submit" name="action" value="create-token" { "Create a token" }
        }
    })
}

/// Returns the page that says what is deleted with an account, and asks once more.
async fn confirm_removal(visit: &Visit, account: &AccountInfo) -> Result<Response, Rejection> {
    let login = &account.login;
    let holdings = visit.gateway.store.account_holdings(login).await.map_err(unavailable)?;
    let holdings = holdings.ok_or_else(not_found)?;
    let content = html! {
        p {
            "With the account, these are deleted for good: "
            (counted(holdings.subscriptions, "subscription")) " with their secrets, "
            (counted(holdings.tokens, "token")) " and " (counted(holdings.files, "stored file"))
            ". Nobody can use the login again."
        }
        form.inline method="post" action=(visit.address(&path(login))) {
            (visit.csrf_field())
            input type="hidden" name="confirmed" value=(login);
            button.danger type="submit" name="action" value="remove" { "Delete the account " (login) }
            a.button href=(visit.address(&path(login))) { "Cancel" }
        }
    };
    Ok(visit.page("Delete an account", SECTION, content))
}

/// Returns the address of the page of an account.
fn path(login: &str) -> String {
    use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
    format!("{SECTION}/{}", utf8_percent_encode(login, NON_ALPHANUMERIC))
}

fn not_found() -> Rejection {
    Rejection::new(StatusCode::NOT_FOUND, "There is no such account.")
}

fn unavailable(err: StoreError) -> Rejection {
    Rejection::unavailable(&err)
}
