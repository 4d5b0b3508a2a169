//! Accounts and their tokens: an administrator manages all accounts, and a session whose token has the
//! scope `tokens` the tokens of its account. What it creates is a child of its token.

use http::StatusCode;
use maud::{Markup, html};
use warp::reply::Response;

use super::paging::Paging;
use super::visit::Visit;
use super::{account_alerts, account_tokens, traffic_charts};
use crate::http::kit::auth;
use crate::http::kit::html::parts::{
    Tone, badge, counted, empty_row, grouped, relative_time, timestamp,
};
use crate::http::kit::rejection::Rejection;
use crate::jobs::runner;
use crate::tokens;
use feedgate_core::account::{AccountInfo, Scope, Scopes};
use feedgate_core::store::StoreError;
use feedgate_core::traffic::TrafficSubject;

/// The section of the navigation.
const SECTION: &str = "console/accounts";
/// The number of accounts on a page.
const PAGE: usize = 100;

/// Returns the list of accounts; who is no administrator gets to the own account.
pub(super) async fn page(visit: &Visit) -> Result<Response, Rejection> {
    if !visit.is_admin() {
        return Ok(visit.see_other(&path(&visit.access()?.login)));
    }
    let (paging, prefix) = (Paging::read(visit), visit.value("q"));
    let found = visit.gateway.store.accounts_page(prefix, &paging.after, PAGE + 1).await;
    let mut accounts = found.map_err(unavailable)?;
    let is_more = accounts.len() > PAGE;
    accounts.truncate(PAGE);
    let next = accounts.last().filter(|_| is_more).map(|last| last.login.clone());
    let content = html! {
        @if visit.value("done") == "removed" { p role="status" { "The account was deleted." } }
        form.filter method="get" action=(visit.address(SECTION)) {
            label { "Search "
                input type="search" name="q" value=(prefix) placeholder="beginning of the login";
            }
            button type="submit" { "Show" }
        }
        table.records.dense {
            thead { tr {
                th.main scope="col" { "Login" }
                @for name in ["State", "Created"] { th scope="col" { (name) } }
                @for name in ["Tokens", "Files", "Stored"] { th.number scope="col" { (name) } }
            } }
            tbody {
                @for account in &accounts { (row(visit, account)) }
                @if accounts.is_empty() {
                    (empty_row(6, "No accounts found.", html! {
                        a href=(visit.address(SECTION)) { "Show all accounts" } "."
                    }))
                }
            }
        }
        (paging.links(visit, (SECTION, &["q"]), next))
        @if visit.allows(Scope::Tokens) {
            h2 { "New account" }
            p { "An account is created with its first token." }
            form.filter method="post" action=(visit.address(SECTION)) {
                (visit.csrf_field())
                label { "Login " input name="login" required maxlength="100"; }
                button type="submit" { "Create" }
            }
        }
    };
    Ok(visit.page("Accounts", SECTION, content))
}

fn row(visit: &Visit, account: &AccountInfo) -> Markup {
    html! {
        tr {
            td.main {
                @if account.is_removed { (account.login) } @else {
                    a href=(visit.address(&path(&account.login))) { (account.login) }
                }
            }
            td.state { (state(account)) }
            td { (relative_time(account.created_at, runner::now())) }
            @for count in [account.tokens, account.files] { td.number { (grouped(count)) } }
            td.number { (kilobytes(account.bytes)) }
        }
    }
}

/// Returns a size in units of 1,000 bytes, rounded up.
fn kilobytes(bytes: u64) -> String {
    format!("{}\u{a0}kB", grouped(bytes.div_ceil(1_000)))
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
    auth::require(visit.access()?, Scope::Tokens)?;
    let login = visit.value("login");
    let reason = tokens::check_login(login).err();
    if let Some(reason) = reason {
        return Err(Rejection::unprocessable(format!("Please choose another login: {reason}.")));
    }
    let note = account_tokens::issue(visit, login, Scopes::of_owner()).await?;
    show(visit, &find(visit, login).await?, note).await
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
        "alerts" => html! { p role="status" { "Alerts are sent to this URL from now on." } },
        "no-alerts" => html! { p role="status" { "No alerts are sent any more." } },
        _ => html! {},
    };
    show(visit, &account, note).await
}

/// Carries out what a form of an account's page requests.
pub(super) async fn act(visit: &Visit, login: &str) -> Result<Response, Rejection> {
    let account = find(visit, login).await?;
    let (store, now) = (&visit.gateway.store, runner::now());
    match visit.value("action") {
        "create-token" => {
            let scopes = account_tokens::chosen_scopes(visit);
            show(visit, &account, account_tokens::issue(visit, login, scopes).await?).await
        }
        "revoke-token" => account_tokens::revoke(visit, login, &path(login)).await,
        // The alert address is the owner's concern alone: it may have a key in it.
        "set-alerts" | "delete-alerts" if login != visit.access()?.login => Err(not_found()),
        "set-alerts" => account_alerts::set(visit, &path(login)).await,
        "delete-alerts" => account_alerts::delete(visit, &path(login)).await,
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
    let found = visit.gateway.store.account(login).await.map_err(unavailable)?;
    found.ok_or_else(not_found)
}

async fn show(visit: &Visit, account: &AccountInfo, note: Markup) -> Result<Response, Rejection> {
    let tokens = visit.gateway.store.tokens_of(&account.login).await.map_err(unavailable)?;
    let action = visit.address(&path(&account.login));
    let alerts = match account.login == visit.access()?.login {
        true => account_alerts::section(visit, &action).await?,
        false => html! {},
    };
    let subject = TrafficSubject::Account(account.id);
    let charts = traffic_charts::OF_DELIVERIES;
    let charts = traffic_charts::section(visit, &path(&account.login), subject, charts).await?;
    let content = html! {
        (note)
        dl.facts {
            dt { "State" } dd { (state(account)) }
            dt { "Created" } dd { (timestamp(account.created_at)) }
            dt { "Files" }
            dd {
                @match account.files {
                    0 => span.absent { "none" },
                    files => { (counted(files, "file")) ", " (kilobytes(account.bytes)) }
                }
            }
        }
        h2 { "Tokens" }
        (account_tokens::section(visit, &tokens, &action)?)
        (alerts)
        (charts)
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
