//! Requests to the account API that Superfeedr and feedgate share, a few at a time.
//!
//! A server that limits requests is left alone: after 429 and 503, no request is sent to it before the
//! time that `Retry-After` names. Without one, and after other failures that pass, the waits grow.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde_json::Value;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::{Instant, sleep, sleep_until};
use url::Url;
use url::form_urlencoded::Serializer;

use super::super::remote::quoted;
use crate::net::freshness::retry_after_s;
use crate::net::{CallbackRequest, FetchError, HttpClient};

/// How many requests are sent to a server at the same time. With responses within 0.2 s, ten thousand
/// feeds are compared in less than ten minutes.
pub(super) const CONCURRENCY: usize = 4;
/// The longest response that is read: 50 entries with long texts.
const LONGEST_RESPONSE_BYTES: usize = 32 * 1024 * 1024;
/// How many failures of a request in a row are waited for.
const MAX_FAILURES: u32 = 5;
/// The wait after the first failure; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// The longest time that a request waits for a busy server. The command can be repeated later.
const LONGEST_WAIT: Duration = Duration::from_secs(15 * 60);

/// A server, and the account at it.
pub(super) struct AccountApi {
    client: HttpClient,
    url: Url,
    authorization: HeaderValue,
    slots: Semaphore,
    /// Before this time, the server has asked not to be contacted.
    paused_until: Mutex<Instant>,
}

/// A request that did not succeed.
#[derive(Debug, thiserror::Error)]
pub(super) enum AccountApiError {
    /// No response was received, though the request was repeated.
    #[error("no response from {server}: {reason}")]
    Unreachable { server: String, reason: FetchError },
    /// The server goes on limiting requests.
    #[error("{server} is busy ({status}) and asks to wait for {wait_s} s")]
    Busy { server: String, status: StatusCode, wait_s: u64 },
    /// The server has refused the request.
    #[error("{server} responded with {status}: {reason}")]
    Refused { server: String, status: StatusCode, reason: String },
    /// The response is not what the API describes.
    #[error("cannot read the response of {server}: {reason}")]
    Unreadable { server: String, reason: String },
}

impl AccountApiError {
    /// Whether the same request may succeed later.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            AccountApiError::Unreachable { .. } | AccountApiError::Busy { .. } => true,
            AccountApiError::Refused { status, .. } => status.is_server_error(),
            AccountApiError::Unreadable { .. } => false,
        }
    }

    /// Whether further requests would fail as well, so that the run is better ended. A response that takes
    /// too long may be that of one feed.
    pub(super) fn ends_run(&self) -> bool {
        match self {
            AccountApiError::Unreachable { reason, .. } => {
                !matches!(reason, FetchError::TimedOut(_))
            }
            AccountApiError::Busy { .. } => true,
            AccountApiError::Refused { status, .. } => *status == StatusCode::UNAUTHORIZED,
            AccountApiError::Unreadable { .. } => false,
        }
    }
}

/// An attempt that failed.
struct FailedAttempt {
    error: AccountApiError,
    /// The wait that the server has named.
    named_wait: Option<Duration>,
    /// Whether the server limits requests, so that all of them wait.
    is_limited: bool,
}

impl AccountApi {
    /// The API at `url` or at the root below it.
    pub(super) fn new(client: HttpClient, url: &Url, authorization: HeaderValue) -> AccountApi {
        let mut url = url.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().push("");
        }
        let (slots, paused_until) = (Semaphore::new(CONCURRENCY), Mutex::new(Instant::now()));
        AccountApi { client, url, authorization, slots, paused_until }
    }

    /// Sends a request that reads.
    pub(super) async fn get(&self, parameters: &[(&str, &str)]) -> Result<Bytes, AccountApiError> {
        let mut url = self.url.clone();
        url.query_pairs_mut().extend_pairs(parameters);
        self.send(self.request(Method::GET, url)).await
    }

    /// Sends a request that changes something. It may be carried out twice if its response is lost.
    pub(super) async fn post(&self, parameters: &[(&str, &str)]) -> Result<Bytes, AccountApiError> {
        let form = Serializer::new(String::new()).extend_pairs(parameters).finish();
        self.post_body("application/x-www-form-urlencoded", form).await
    }

    /// Sends a batch, which only feedgate has. Returns what became of each item: a note, or the reason why
    /// it failed.
    pub(super) async fn post_batch(
        &self,
        items: &[Value],
    ) -> Result<Vec<Result<Option<String>, String>>, AccountApiError> {
        let body = Value::from(items.to_vec()).to_string();
        let report = self.post_body("application/json", body).await?;
        let report: Value = serde_json::from_slice(&report).map_err(|err| self.unreadable(err))?;
        let results = report["items"].as_array().filter(|results| results.len() == items.len());
        let results = results.ok_or_else(|| self.unreadable("it is no report on the batch"))?;
        Ok(results.iter().map(item_result).collect())
    }

    /// Returns the error of a response that is not what the API describes.
    pub(super) fn unreadable(&self, reason: impl ToString) -> AccountApiError {
        AccountApiError::Unreadable { server: self.url.to_string(), reason: reason.to_string() }
    }

    async fn post_body(
        &self,
        media_type: &'static str,
        body: String,
    ) -> Result<Bytes, AccountApiError> {
        let mut call = self.request(Method::POST, self.url.clone());
        call.headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        call.body = body.into();
        self.send(call).await
    }

    fn request(&self, method: Method, url: Url) -> CallbackRequest {
        let headers = HeaderMap::from_iter([(AUTHORIZATION, self.authorization.clone())]);
        CallbackRequest { method, url, headers, body: Bytes::new() }
    }

    /// Sends a request, and repeats it after failures that pass.
    async fn send(&self, call: CallbackRequest) -> Result<Bytes, AccountApiError> {
        let _slot = self.slots.acquire().await;
        let (begun, mut failures) = (Instant::now(), 0);
        loop {
            self.wait_while_paused().await;
            let failed = match self.attempt(call.clone()).await {
                Ok(body) => return Ok(body),
                Err(failed) => failed,
            };
            let own_wait = FIRST_WAIT * 2_u32.pow(failures);
            let wait = failed.named_wait.unwrap_or_default().max(own_wait);
            let is_counted = failed.named_wait.is_none();
            failures += u32::from(is_counted);
            let is_last = failures == MAX_FAILURES || begun.elapsed() + wait > LONGEST_WAIT;
            if !failed.error.is_passing() || is_last {
                return Err(failed.error);
            }
            match failed.is_limited {
                true => self.pause(wait).await,
                false => sleep(wait).await,
            }
        }
    }

    async fn attempt(&self, call: CallbackRequest) -> Result<Bytes, FailedAttempt> {
        let sent = self.client.call_reading(call, LONGEST_RESPONSE_BYTES).await;
        let server = self.url.to_string();
        let reply = sent.map_err(|reason| FailedAttempt {
            error: AccountApiError::Unreachable { server: server.clone(), reason },
            named_wait: None,
            is_limited: false,
        })?;
        let status = reply.status;
        if status.is_success() {
            return Ok(reply.body);
        }
        let named_s = retry_after_s(&reply.headers, SystemTime::now());
        let is_limited =
            matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        let error = if is_limited {
            AccountApiError::Busy { server, status, wait_s: named_s.unwrap_or(0).into() }
        } else {
            AccountApiError::Refused { server, status, reason: quoted(&reply.body) }
        };
        let named_wait = named_s.filter(|_| is_limited).map(|s| Duration::from_secs(s.into()));
        Err(FailedAttempt { error, named_wait, is_limited })
    }

    /// Lets no request begin before this wait is over.
    async fn pause(&self, wait: Duration) {
        let mut paused_until = self.paused_until.lock().await;
        *paused_until = (*paused_until).max(Instant::now() + wait);
    }

    async fn wait_while_paused(&self) {
        loop {
            let until = *self.paused_until.lock().await;
            if until <= Instant::now() {
                return;
            }
            sleep_until(until).await;
        }
    }
}

/// Returns what became of an item of a batch.
fn item_result(item: &Value) -> Result<Option<String>, String> {
    let status = item["status"].as_u64().unwrap_or_default();
    let reason = item["reason"].as_str().map(|reason| quoted(reason.as_bytes()));
    match status {
        200..300 => Ok(reason),
        _ => Err(reason.unwrap_or_else(|| format!("the gateway responded with {status}"))),
    }
}
