//! `Idempotency-Key`: a client that has seen no answer to a POST repeats it with the same key. The request
//! is carried out once, and the answer is the same for a day.
//!
//! Only successes are stored: a request that was rejected may be repeated with the same key once it is
//! corrected. A POST is carried out to its end although its client closes the connection meanwhile, so
//! that the answer is there when the client repeats it.

use std::error::Error;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use http::{HeaderName, StatusCode, header};
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tracing::{error, warn};
use warp::reply::Response;

use super::call::{JsonText, RestCall, json_text_reply, to_response};
use crate::http::kit::rejection::Rejection;
use crate::http::kit::reply::set_header;
use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use crate::jobs::runner;
use feedgate_core::account::Scope;
use feedgate_core::idempotency::{IdempotencyClaim, IdempotencyKey, IdempotentAnswer};
use feedgate_core::store::StoreError;

/// The header with the key.
const KEY: &str = "idempotency-key";
/// The header of an answer that was given before.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// The longest key, in characters.
const MOST_KEY_CHARS: usize = 255;
/// After how many seconds a client may repeat a request that is being carried out, or for which there is
/// no room.
const RETRY_AFTER_S: u64 = 1;
/// How often the claim of a request is renewed: a third of the time after which it counts as lost
/// (`LONGEST_SILENCE`).
const RENEW_EVERY: Duration = Duration::from_secs(20);

/// Authenticates a POST that needs `scope`, and carries out its `work`, unless it was answered before: then
/// the answer is that one. Calls without a key are carried out always.
pub(super) async fn once<W>(
    gateway: Arc<Gateway>,
    request: Request,
    scope: Scope,
    work: W,
) -> Response
where
    W: for<'c> FnOnce(&'c RestCall<'c>) -> BoxFuture<'c, Result<Response, Rejection>>,
    W: Send + 'static,
{
    // A task of its own is not cancelled when the connection of its client is.
    let carried_out = tokio::spawn(async move {
        let result = authenticate_and_carry_out(&gateway, &request, scope, work).await;
        to_response(&request, result)
    });
    carried_out.await.unwrap_or_else(|stopped| resume_unwind(stopped.into_panic()))
}

async fn authenticate_and_carry_out<W>(
    gateway: &Arc<Gateway>,
    request: &Request,
    scope: Scope,
    work: W,
) -> Result<Response, Rejection>
where
    W: for<'c> FnOnce(&'c RestCall<'c>) -> BoxFuture<'c, Result<Response, Rejection>>,
{
    let call = RestCall::begin(gateway, request, scope, &[]).await?;
    let slot = gateway.account_rate_limit.begin_post(call.access.account);
    let _slot = slot.map_err(|_| {
        let reason = "Too many requests are being carried out, please try again in a moment.";
        Rejection::overloaded(reason, RETRY_AFTER_S)
    })?;
    let Some(key) = key(&call)? else { return work(&call).await };
    let now = runner::now();
    let claim = gateway.store.begin_idempotent(&key, now).await;
    match claim.map_err(|err| Rejection::unavailable(&err))? {
        IdempotencyClaim::Begun => carry_out_claimed(&call, &key, now, work(&call)).await,
        IdempotencyClaim::Answered(answer) => Ok(response(answer)),
        IdempotencyClaim::InProgress => {
            let reason = "The same request is being carried out, please repeat it in a moment.";
            let rejection = Rejection::new(StatusCode::CONFLICT, reason);
            Err(rejection.with_code("request_in_progress").with_retry_after(RETRY_AFTER_S))
        }
        IdempotencyClaim::OtherRequest => {
            let reason =
                "This Idempotency-Key was used for another request, please choose a new one.";
            let rejection = Rejection::unprocessable(reason).with_code("idempotency_key_used");
            Err(rejection.with_field("Idempotency-Key"))
        }
    }
}

fn key(call: &RestCall<'_>) -> Result<Option<IdempotencyKey>, Rejection> {
    let request = call.request;
    let Some(value) = request.headers.get(KEY) else { return Ok(None) };
    let key = value.to_str().unwrap_or_default().trim();
    let is_usable = (1..=MOST_KEY_CHARS).contains(&key.len());
    if !is_usable {
        let reason = format!("Idempotency-Key must have 1 to {MOST_KEY_CHARS} ASCII characters.");
        return Err(RestCall::reject_parameter("Idempotency-Key", reason));
    }
    let mut digest = Sha256::new();
    digest.update(request.method.as_str());
    digest.update([0]);
    digest.update(&request.path);
    digest.update([0]);
    digest.update(&request.body);
    let (account, key) = (call.access.account, Sha256::digest(key).into());
    Ok(Some(IdempotencyKey { account, key, request: digest.finalize().into() }))
}

fn response(answer: IdempotentAnswer) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
    let mut response = json_text_reply(status, answer.body);
    set_header(&mut response, REPLAYED, "true");
    if !answer.location.is_empty() {
        set_header(&mut response, header::LOCATION, &answer.location);
    }
    response
}

/// Carries out a call whose claim is from the time `claimed_at`. Stores the answer of a call that succeeded, and
/// forgets one that did not.
async fn carry_out_claimed(
    call: &RestCall<'_>,
    key: &IdempotencyKey,
    claimed_at: DateTime<Utc>,
    work: BoxFuture<'_, Result<Response, Rejection>>,
) -> Result<Response, Rejection> {
    let store = &call.gateway.store;
    let renew = |since, now| store.renew_idempotent(key, since, now);
    let (result, claimed_at) = carry_out_renewed(work, claimed_at, renew).await;
    let answer = result.as_ref().ok().map(stored_answer);
    // The work is done: a client that sees its answer does not repeat it.
    match store.finish_idempotent(key, claimed_at, answer).await {
        Ok(true) => {}
        Ok(false) => {
            let account = key.account.0;
            warn!(
                account,
                "the claim of an idempotency key was lost; the request may be carried out twice"
            );
        }
        Err(err) => {
            error!(error = &err as &dyn Error, "the answer to an idempotency key was not stored");
        }
    }
    result
}

/// Carries out `work`, and renews its claim from the time `claimed_at` meanwhile: `renew` gets the time of the
/// claim and the present one, and returns `false` if the claim was lost. Returns the result, and the time of the
/// claim.
async fn carry_out_renewed<T, R>(
    work: impl Future<Output = T>,
    mut claimed_at: DateTime<Utc>,
    renew: impl Fn(DateTime<Utc>, DateTime<Utc>) -> R,
) -> (T, DateTime<Utc>)
where
    R: Future<Output = Result<bool, StoreError>>,
{
    let (done, mut is_done) = oneshot::channel::<()>();
    let working = async move {
        let result = work.await;
        drop(done);
        result
    };
    let renewing = async move {
        while timeout(RENEW_EVERY, &mut is_done).await.is_err() {
            let now = runner::now();
            match renew(claimed_at, now).await {
                Ok(true) => claimed_at = now,
                Ok(false) => break,
                Err(err) => {
                    let error = &err as &dyn Error;
                    warn!(error, "the claim of an idempotency key was not renewed");
                }
            }
        }
        claimed_at
    };
    tokio::join!(working, renewing)
}

fn stored_answer(response: &Response) -> IdempotentAnswer {
    let header = response.headers().get(header::LOCATION);
    let location = header.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let body = response.extensions().get::<JsonText>().map(|text| text.0.to_string());
    IdempotentAnswer {
        status: response.status().as_u16(),
        location: location.to_owned(),
        body: body.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Notify;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a02_work_goes_on_while_its_claim_is_renewed() {
        let (renewing, worked) = (Notify::new(), Notify::new());
        let work = async {
            renewing.notified().await;
            worked.notify_one();
            7
        };
        let renew = |_, _| async {
            renewing.notify_one();
            worked.notified().await;
            Ok(true)
        };
        let carried_out = carry_out_renewed(work, DateTime::UNIX_EPOCH, renew);
        let (result, claimed_at) = timeout(10 * RENEW_EVERY, carried_out).await.unwrap();
        assert_eq!(result, 7);
        assert!(claimed_at > DateTime::UNIX_EPOCH, "a renewal that has begun is not forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn a02_a_claim_is_renewed_until_it_is_lost() {
        let renewals = std::cell::Cell::new(0);
        let renew = |_, _| {
            renewals.set(renewals.get() + 1);
            let renewed = renewals.get() < 3;
            async move { Ok(renewed) }
        };
        let work = tokio::time::sleep(10 * RENEW_EVERY);
        carry_out_renewed(work, DateTime::UNIX_EPOCH, renew).await;
        assert_eq!(renewals.get(), 3);
    }
}
