//! Responses that stay open: their bodies are read piece by piece, for as long as the server sends some.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use reqwest::Response;
use tokio::time::{Instant, timeout};

use super::{CallbackRequest, FetchError, HttpClient, failure};

/// A response whose body is still arriving. Dropping it closes the connection.
#[derive(Debug)]
pub struct OpenResponse {
    response: Response,
}

impl OpenResponse {
    /// The status code.
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// Returns the next piece of the body, or `None` at its end. Nothing for as long as `pause` is an
    /// error.
    pub async fn next_piece(&mut self, pause: Duration) -> Result<Option<Bytes>, FetchError> {
        let piece = timeout(pause, self.response.chunk()).await;
        let piece = piece.map_err(|_| FetchError::TimedOut(pause))?;
        piece.map_err(|err| failure::from_client(&err.without_url(), self.response.url()))
    }
}

impl HttpClient {
    /// Sends one request as [`call`](Self::call) does, whose response may never end. The timeout of
    /// callbacks is that until its status code arrives.
    pub async fn open(&self, call: CallbackRequest) -> Result<OpenResponse, FetchError> {
        let deadline = Instant::now() + self.inner.settings.callback_timeout;
        let response = self.execute_call(call, deadline).await?;
        Ok(OpenResponse { response })
    }
}
