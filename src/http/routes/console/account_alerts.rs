//! The alert address on the page of the own account: where alerts are sent, and which.

use maud::{Markup, html};
use warp::reply::Response;

use super::visit::Visit;
use crate::http::kit::alert_callback::parse_alert_callback;
use crate::http::kit::auth;
use crate::http::kit::html::parts::{Tone, badge, counted, timestamp};
use crate::http::kit::rejection::Rejection;
use crate::jobs::runner;
use feedgate_core::account::Scope;
use feedgate_core::alert::{AlertAddress, AlertAddressState, AlertKind};
use feedgate_core::signing::Secret;
use feedgate_core::store::StoreError;
use feedgate_core::topic::Callback;

/// Returns the alert address of the account that is signed in, with its form; `action` is where that is sent.
pub(super) async fn section(visit: &Visit, action: &str) -> Result<Markup, Rejection> {
    if !visit.allows(Scope::List) {
        return Ok(html! {});
    }
    let state = find(visit).await?;
    Ok(html! {
        h2 { "Alerts" }
        p.soft { "This URL is told when a callback fails or a feed is gone." }
        @if let Some(state) = &state { (facts(state)) }
        @if visit.allows(Scope::Subscribe) { (form(visit, state.as_ref(), action)) }
    })
}

async fn find(visit: &Visit) -> Result<Option<AlertAddressState>, Rejection> {
    let found = visit.gateway.store.alert_address(visit.access()?.account).await;
    found.map_err(unavailable)
}

fn facts(state: &AlertAddressState) -> Markup {
    let AlertAddress { callback, secret, .. } = &state.address;
    html! {
        dl.facts {
            dt { "URL" } dd { code { (callback) } }
            dt { "Secret" } dd { @match secret {
                Some(secret) => { code { (secret.fingerprint()) } }
                None => "none: alerts are not signed",
            } }
            dt { "Last attempt" } dd { @match &state.last_attempt {
                Some(last) if state.failures > 0 => {
                    (badge(Tone::Bad, &last.code)) " " (timestamp(last.at)) ", "
                    (counted(state.failures.into(), "failure")) ", next attempt "
                    (timestamp(state.due_at))
                }
                Some(last) => { (badge(Tone::Good, &last.code)) " " (timestamp(last.at)) }
                None => "none: there was nothing to tell",
            } }
        }
    }
}

fn form(visit: &Visit, state: Option<&AlertAddressState>, action: &str) -> Markup {
    let address = state.map(|state| &state.address);
    let is_sent = |kind: &AlertKind| address.is_none_or(|address| address.kinds.contains(kind));
    html! {
        form.stacked method="post" action=(action) {
            (visit.csrf_field())
            label { "URL for alerts"
                input name="url" type="url" required maxlength=(Callback::LONGEST_BYTES)
                    placeholder="https://example.com/alerts"
                    value=(address.map_or("", |address| address.callback.as_str()));
            }
            label { "Secret " small { "(empty: as it is)" }
                input name="secret" autocomplete="off" spellcheck="false";
            }
            fieldset {
                legend { "What is sent" }
                @for kind in AlertKind::ALL {
                    label.choice {
                        input type="checkbox" name="kind" value=(kind.as_str()) checked[is_sent(kind)];
                        " " (kind.as_str().replace('_', " "))
                    }
                }
            }
            button type="submit" name="action" value="set-alerts" { "Save" }
        }
        @if state.is_some() && visit.allows(Scope::Unsubscribe) {
            form method="post" action=(action) {
                (visit.csrf_field())
                button.quiet type="submit" name="action" value="delete-alerts" { "Send no alerts" }
            }
        }
    }
}

/// Sets the alert address that a form of the account's `page` names.
pub(super) async fn set(visit: &Visit, page: &str) -> Result<Response, Rejection> {
    let access = visit.access()?;
    auth::require(access, Scope::Subscribe)?;
    auth::require(access, Scope::List)?; // alerts tell what the list of subscriptions does
    let callback = parse_alert_callback(&visit.gateway, visit.value("url").trim())?;
    let kinds: Vec<AlertKind> = visit.form.all("kind").filter_map(AlertKind::from_word).collect();
    if kinds.is_empty() {
        return Err(Rejection::unprocessable("Choose something that is sent."));
    }
    let secret = match visit.value("secret") {
        "" => find(visit).await?.and_then(|state| state.address.secret),
        secret => Some(Secret::new(secret.to_owned()).map_err(|reason| {
            Rejection::unprocessable(format!("The secret cannot be used: {reason}."))
        })?),
    };
    let address = AlertAddress { account: access.account, callback, secret, kinds };
    let stored = visit.gateway.store.set_alert_address(&address, runner::now()).await;
    stored.map_err(unavailable)?;
    Ok(visit.see_other(&format!("{page}?done=alerts")))
}

/// Ends the alerts of the account that is signed in.
pub(super) async fn delete(visit: &Visit, page: &str) -> Result<Response, Rejection> {
    let access = visit.access()?;
    auth::require(access, Scope::Unsubscribe)?;
    let deleted = visit.gateway.store.delete_alert_address(access.account).await;
    deleted.map_err(unavailable)?;
    Ok(visit.see_other(&format!("{page}?done=no-alerts")))
}

fn unavailable(err: StoreError) -> Rejection {
    Rejection::unavailable(&err)
}
