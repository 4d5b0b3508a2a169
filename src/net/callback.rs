//! Calling a callback, once: no redirects, a short answer, little patience.

use http::header::USER_AGENT;
use reqwest::Request;
use tokio::time::{Instant, timeout_at};

use super::{CallbackRequest, CallbackResponse, FetchError, HttpClient, is_public};
use super::{body, failure};

/// The most that is read of an answer (rule D4).
const LONGEST_REPLY_BYTES: usize = 16 * 1024;

impl HttpClient {
    /// Calls a callback, once. Any answer is a [`CallbackResponse`], whatever its status code; the
    /// caller judges (rule D5). Once the status code is there the call has been
    /// answered: a body that breaks off or takes too long is cut where it stopped.
    ///
    /// Connections to servers that are called often are kept and used again. The time
    /// allowed counts from the lookup of the name to the last byte.
    pub async fn call(&self, call: CallbackRequest) -> Result<CallbackResponse, FetchError> {
        let inner = &self.inner;
        inner.callbacks.check(&call.url)?;
        let allowed = inner.settings.callback_timeout;
        let deadline = Instant::now() + allowed;

        let url = call.url.clone();
        let mut request = Request::new(call.method, call.url);
        *request.headers_mut() = call.headers;
        request.headers_mut().insert(USER_AGENT, inner.user_agent.clone());
        if !call.body.is_empty() {
            *request.body_mut() = Some(call.body.into());
        }

        let sent = timeout_at(deadline, inner.callbacks.client_once(&url).execute(request)).await;
        let sent = sent.map_err(|_| FetchError::TimedOut(allowed))?;
        let mut response = sent.map_err(|err| failure::from_client(&err, &url))?;
        let is_public = response.remote_addr().is_some_and(|peer| is_public(peer.ip()));
        let body = body::read_start(&mut response, LONGEST_REPLY_BYTES, deadline).await;
        Ok(CallbackResponse {
            status: response.status(),
            headers: std::mem::take(response.headers_mut()),
            body,
            is_public,
        })
    }
}
