//! `Idempotency-Key`: a client that has seen no answer to a POST repeats it with the same key. The request
//! is carried out once, and the answer is the same for a day.
//!
//! Only successes are stored: a request that was rejected may be repeated with the same key once it is
//! corrected.

use http::{HeaderName, StatusCode, header};
use sha2::{Digest, Sha256};
use warp::reply::Response;

use super::call::{JsonText, RestCall, json_text_reply};
use crate::http::kit::rejection::Rejection;
use crate::http::kit::reply::set_header;
use crate::jobs::runner;
use feedgate_core::idempotency::{IdempotencyClaim, IdempotencyKey, IdempotentAnswer};

/// The header with the key.
const KEY: &str = "idempotency-key";
/// The header of an answer that was given before.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// The longest key, in characters.
const MOST_KEY_CHARS: usize = 255;
/// After how many seconds a client may repeat a request that is being carried out.
const RETRY_AFTER_S: u64 = 1;

/// Carries out a call, unless it was answered before: then the answer is that one. Calls without a key are
/// carried out always.
pub(super) async fn once(
    call: &RestCall<'_>,
    work: impl Future<Output = Result<Response, Rejection>>,
) -> Result<Response, Rejection> {
    let Some(key) = key(call)? else { return work.await };
    let claim = call.gateway.store.begin_idempotent(&key, runner::now()).await;
    match claim.map_err(|err| Rejection::unavailable(&err))? {
        IdempotencyClaim::Begun => finish(call, &key, work.await).await,
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

/// Stores the answer of a call that succeeded, and forgets one that did not.
async fn finish(
    call: &RestCall<'_>,
    key: &IdempotencyKey,
    result: Result<Response, Rejection>,
) -> Result<Response, Rejection> {
    let answer = result.as_ref().ok().map(|response| {
        let header = response.headers().get(header::LOCATION);
        let location = header.and_then(|value| value.to_str().ok()).unwrap_or_default();
        let body = response.extensions().get::<JsonText>().map(|text| text.0.to_string());
        IdempotentAnswer {
            status: response.status().as_u16(),
            location: location.to_owned(),
            body: body.unwrap_or_default(),
        }
    });
    let finished = call.gateway.store.finish_idempotent(key, answer).await;
    finished.map_err(|err| Rejection::unavailable(&err))?;
    result
}
