//! Requests to callbacks: without redirects, with a short response limit and a short timeout.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use http::header::USER_AGENT;
use http::{HeaderMap, Method, StatusCode};
use reqwest::{Request, Response};
use tokio::time::{Instant, timeout, timeout_at};
use url::Url;

use super::guarded_client::looking_up_with;
use super::{FetchError, HttpClient, Purpose, body, failure, is_public};
use feedgate_core::event::AnswerExcerpt;

/// The maximum length of a response body that is read, in bytes (rule D4).
const LONGEST_REPLY_BYTES: usize = 16 * 1024;

/// A timeout that is noticed so much later than it was due was not noticed in time because this process stood
/// still, as while its machine is suspended. What has arrived meanwhile is read for as long.
const STOOD_STILL: Duration = Duration::from_secs(1);

/// A request to a callback. Redirects are not followed (rule D5).
#[derive(Clone, Debug)]
pub struct CallbackRequest {
    /// The HTTP method.
    pub method: Method,
    /// The URL of the callback.
    pub url: Url,
    /// The headers; `User-Agent` is added.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// The response of a callback.
#[derive(Clone, Debug)]
pub struct CallbackResponse {
    /// The status code.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The first 16 kB of the body (rule D4), unless the caller set another limit.
    pub body: Bytes,
    /// Whether the response came from a public address.
    pub is_public: bool,
}

impl CallbackResponse {
    /// Returns the address that a redirect of a request to `from` names, if the request can be
    /// repeated there unchanged. After 303 it cannot.
    pub fn redirect_target(&self, from: &Url) -> Option<Url> {
        if !matches!(self.status.as_u16(), 301 | 302 | 307 | 308) {
            return None;
        }
        let location = self.headers.get(http::header::LOCATION)?;
        let mut target = from.join(&String::from_utf8_lossy(location.as_bytes())).ok()?;
        target.set_fragment(None);
        Some(target)
    }

    /// Returns the beginning of the body, for display.
    pub fn excerpt(&self) -> AnswerExcerpt {
        AnswerExcerpt::new(&self.body, self.is_public)
    }
}

impl HttpClient {
    /// Sends one request to a callback. Any response is a [`CallbackResponse`], whatever its status
    /// code; the caller decides what it means (rule D5). A response counts as received once its
    /// status code has arrived: a body that breaks off or takes too long is truncated.
    ///
    /// Connections to servers that receive requests often are kept alive and reused. A GET whose
    /// connection breaks off is sent once more, on a new connection. The timeout includes everything
    /// from the name lookup to the last byte.
    pub async fn call(&self, call: CallbackRequest) -> Result<CallbackResponse, FetchError> {
        self.call_reading(call, LONGEST_REPLY_BYTES).await
    }

    /// Sends one request to a publisher or its hub as [`call`](Self::call) does, signed like a fetch.
    pub async fn call_signed(
        &self,
        mut call: CallbackRequest,
    ) -> Result<CallbackResponse, FetchError> {
        self.inner.signer.sign(&call.url, &mut call.headers);
        self.call(call).await
    }

    /// Sends one request as [`call`](Self::call) does, and reads up to `limit_bytes` of the response.
    pub async fn call_reading(
        &self,
        call: CallbackRequest,
        limit_bytes: usize,
    ) -> Result<CallbackResponse, FetchError> {
        let deadline = Instant::now() + self.inner.settings.callback_timeout;
        let mut response = self.execute_call(call, deadline).await?;
        let is_public = response.remote_addr().is_some_and(|peer| is_public(peer.ip()));
        let is_late = Instant::now() > deadline;
        let deadline = if is_late { Instant::now() + STOOD_STILL } else { deadline };
        let body = body::read_start(&mut response, limit_bytes, deadline).await;
        Ok(CallbackResponse {
            status: response.status(),
            headers: std::mem::take(response.headers_mut()),
            body,
            is_public,
        })
    }

    /// Sends one request, and returns the response once its status code has arrived.
    pub(super) async fn execute_call(
        &self,
        call: CallbackRequest,
        deadline: Instant,
    ) -> Result<Response, FetchError> {
        let (inner, callbacks) = (&self.inner, self.guarded(Purpose::Callback));
        callbacks.check(&call.url)?;
        let url = call.url.clone();
        let mut request = Request::new(call.method, call.url);
        *request.headers_mut() = call.headers;
        request.headers_mut().insert(USER_AGENT, inner.user_agent.clone());
        if !call.body.is_empty() {
            *request.body_mut() = Some(call.body.into());
        }

        // A GET changes nothing at the callback, so it can be repeated.
        let again = (request.method() == Method::GET).then(|| request.try_clone()).flatten();
        let sent = async {
            match callbacks.client_for_rare_server(&url).execute(request).await {
                // The server may have closed the connection while it was idle.
                Err(err) if is_broken_off(&err, &url) => match again {
                    Some(again) => callbacks.client_without_reuse().execute(again).await,
                    None => Err(err),
                },
                sent => sent,
            }
        };
        let sent = looking_up_with(inner.lookups.for_owner(self.requester), sent);
        let allowed = inner.settings.callback_timeout;
        let sent = await_answer(deadline, sent).await.ok_or(FetchError::TimedOut(allowed))?;
        sent.map_err(|err| failure::from_client(&err, &url))
    }
}

/// Waits for an answer until `deadline`; longer if that is noticed late: the answer may have arrived in time, and
/// only the task that reads it has not run yet.
async fn await_answer<T>(deadline: Instant, answer: impl Future<Output = T>) -> Option<T> {
    let mut answer = pin!(answer);
    match timeout_at(deadline, &mut answer).await {
        Ok(answer) => Some(answer),
        Err(_) if deadline.elapsed() > STOOD_STILL => timeout(STOOD_STILL, answer).await.ok(),
        Err(_) => None,
    }
}

/// Returns whether a connection was closed before the response began.
fn is_broken_off(err: &reqwest::Error, url: &Url) -> bool {
    failure::is_connection_closed(err) || failure::is_http2(err, url)
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::{advance, sleep_until};

    use super::*;

    /// Waits a second for an answer, which a task has after `answered_after`, while the process stands still for
    /// `stands_still`.
    async fn await_answer_of_task(
        answered_after: Duration,
        stands_still: Duration,
    ) -> Option<&'static str> {
        let now = Instant::now();
        let connection = tokio::spawn(async move {
            sleep_until(now + answered_after).await;
            "answer"
        });
        let answer = async { connection.await.unwrap_or("panic") };
        let waiting = tokio::spawn(await_answer(now + Duration::from_secs(1), answer));
        tokio::task::yield_now().await;
        advance(stands_still).await;
        waiting.await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn e03_an_answer_that_arrived_while_the_process_stood_still_is_read() {
        let second = Duration::from_secs(1);
        assert_eq!(await_answer_of_task(second / 2, second * 600).await, Some("answer"));
        assert_eq!(await_answer_of_task(second / 2, Duration::ZERO).await, Some("answer"));
        assert_eq!(
            await_answer_of_task(second * 3 / 2, Duration::ZERO).await,
            None,
            "it is too late"
        );
        let deadline = Instant::now() + second;
        assert_eq!(await_answer(deadline, pending::<()>()).await, None);
    }
}
