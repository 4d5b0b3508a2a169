//! What `subscribe`, `unsubscribe`, `list`, `replay` and `tail` share: requests to a gateway that runs
//! anywhere. `import-superfeedr` takes its options and credentials from here too.
//!
//! With credentials, requests go to the account API at `/`; without them, to the hub at `/hub`. An
//! error quotes the reply of the server. The exit code distinguishes a request that the server has
//! refused from one that can be repeated later.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use clap::Args;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use ipnet::{Ipv4Net, Ipv6Net};
use serde_json::{Value, json};
use url::Url;
use url::form_urlencoded::Serializer;

use crate::config::{BadConfig, Config};
use crate::net::{CallbackRequest, FetchError, HttpClient, OpenResponse};

use super::web_url::web_url;
use super::{Outcome, print_line, print_note};

/// The environment variable with the credentials.
const CREDENTIALS: &str = "FEEDGATE_TOKEN";
/// How long to wait for a response: the gateway may fetch the topic and verify the callback first,
/// which take up to 30 s and 10 s.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest response that is read: a page of 500 subscriptions with long URLs.
const LONGEST_RESPONSE_BYTES: usize = 8 * 1024 * 1024;
/// The exit code of a request that can be repeated later.
pub(super) const TRY_AGAIN: u8 = 3;

/// The server that a command sends its request to.
#[derive(Debug, Args)]
pub(super) struct RemoteArgs {
    /// The URL of the gateway.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080", value_parser = web_url)]
    pub(super) server: Url,
    /// The login and the token of an account. FEEDGATE_TOKEN has the same form, and is not shown in
    /// the list of processes. Without either, requests go to the WebSub hub at /hub.
    #[arg(long, value_name = "LOGIN:TOKEN", value_parser = credentials)]
    pub(super) user: Option<AccountCredentials>,
    /// Print the result as JSON.
    #[arg(long)]
    pub(super) json: bool,
    /// Read settings from this TOML file.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl RemoteArgs {
    /// Reads the settings.
    pub(super) fn load_config(&self) -> Result<Config, BadConfig> {
        Ok(Config::load(self.config.clone(), &[])?.0)
    }

    /// Returns the client for the servers that the options name. The user named them, so that any address
    /// is allowed.
    pub(super) fn client(&self) -> Result<HttpClient, Box<dyn Error>> {
        let config = self.load_config()?;
        let mut settings = config.net(config.public_url.as_ref().unwrap_or(&self.server));
        settings.allow_callbacks = vec![Ipv4Net::default().into(), Ipv6Net::default().into()];
        settings.callback_timeout = PATIENCE;
        Ok(HttpClient::new(settings))
    }
}

/// A login and a token, separated by a colon.
#[derive(Clone)]
pub(super) struct AccountCredentials(String);

impl fmt::Debug for AccountCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccountCredentials")
    }
}

impl AccountCredentials {
    /// The login.
    pub(super) fn login(&self) -> &str {
        self.0.split(':').next().unwrap_or_default()
    }

    /// Returns the header with the credentials.
    pub(super) fn to_header(&self) -> Result<HeaderValue, Box<dyn Error>> {
        let mut basic = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(&self.0)))?;
        basic.set_sensitive(true);
        Ok(basic)
    }
}

/// Reads credentials from the command line or the environment.
pub(super) fn credentials(text: &str) -> Result<AccountCredentials, String> {
    match text.split_once(':') {
        Some((login, token)) if !login.is_empty() && !token.is_empty() => {
            Ok(AccountCredentials(text.to_owned()))
        }
        _ => Err("credentials are a login and a token, separated by a colon".to_owned()),
    }
}

/// Returns the header with the credentials, which are those of the option or of the environment.
pub(super) fn authorization(
    option: Option<&AccountCredentials>,
) -> Result<Option<HeaderValue>, Box<dyn Error>> {
    let given = given_credentials(option)?;
    given.map(|given| given.to_header()).transpose()
}

/// Returns the credentials for a gateway, which are those of the option or of the environment.
pub(super) fn given_credentials(
    option: Option<&AccountCredentials>,
) -> Result<Option<AccountCredentials>, String> {
    match option {
        Some(given) => Ok(Some(given.clone())),
        None => credentials_in(CREDENTIALS),
    }
}

/// Returns the credentials in an environment variable, if it is set.
pub(super) fn credentials_in(variable: &str) -> Result<Option<AccountCredentials>, String> {
    // Not a setting: it belongs to the client, and `serve` must not refuse it.
    let Some(text) = std::env::var_os(variable) else { return Ok(None) };
    let given = credentials(&text.to_string_lossy()).map_err(|why| format!("{variable}: {why}"))?;
    Ok(Some(given))
}

/// A gateway, and the account at it.
pub(super) struct RemoteGateway {
    client: HttpClient,
    server: Url,
    authorization: Option<HeaderValue>,
    is_json: bool,
}

/// A reply that reports success.
pub(super) struct RemoteReply {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
    /// The remark of the gateway about the topic, if it has one.
    pub(super) note: Option<String>,
}

/// A request that did not succeed.
#[derive(Debug, thiserror::Error)]
pub(super) enum RemoteError {
    /// No response was received.
    #[error("no response from {server}: {reason}")]
    Unreachable { server: String, reason: FetchError },
    /// The server has refused the request.
    #[error("{server} responded with {status}: {reason}")]
    Refused { server: String, status: StatusCode, code: Option<String>, reason: String },
    /// The action exists only in the account API.
    #[error("this command needs an account: set FEEDGATE_TOKEN=LOGIN:TOKEN, or use --user")]
    NoCredentials,
}

impl RemoteError {
    /// Whether the same request may succeed later.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            RemoteError::Refused { status, .. } => {
                status.is_server_error() || *status == StatusCode::TOO_MANY_REQUESTS
            }
            RemoteError::Unreachable { .. } => true,
            RemoteError::NoCredentials => false,
        }
    }
}

impl RemoteGateway {
    /// Opens the gateway that the options name.
    pub(super) fn open(args: &RemoteArgs) -> Result<RemoteGateway, Box<dyn Error>> {
        Ok(RemoteGateway {
            client: args.client()?,
            server: args.server.clone(),
            authorization: authorization(args.user.as_ref())?,
            is_json: args.json,
        })
    }

    /// Returns whether requests go to the account API.
    pub(super) fn has_account(&self) -> bool {
        self.authorization.is_some()
    }

    /// Sends a request to the account API.
    pub(super) async fn send_to_account(
        &self,
        method: Method,
        parameters: &[(&str, &str)],
    ) -> Result<RemoteReply, RemoteError> {
        match self.has_account() {
            true => self.send(method, parameters).await,
            false => Err(RemoteError::NoCredentials),
        }
    }

    /// Sends a request to the account API, or to the hub without credentials.
    pub(super) async fn send(
        &self,
        method: Method,
        parameters: &[(&str, &str)],
    ) -> Result<RemoteReply, RemoteError> {
        let call = self.request(method, parameters);
        let sent = self.client.call_reading(call, LONGEST_RESPONSE_BYTES).await;
        let reply = sent.map_err(|reason| self.unreachable(reason))?;
        if !reply.status.is_success() {
            return Err(self.refusal(reply.status, &reply.body));
        }
        let note = reply.headers.get("x-feedgate-note").map(|note| quoted(note.as_bytes()));
        Ok(RemoteReply { status: reply.status, body: reply.body, note })
    }

    /// Opens a stream of the account, behind the event with this id if one is given.
    pub(super) async fn open_stream(
        &self,
        parameters: &[(&str, &str)],
        last_event_id: Option<&str>,
    ) -> Result<OpenResponse, RemoteError> {
        if !self.has_account() {
            return Err(RemoteError::NoCredentials);
        }
        let mut call = self.request(Method::GET, parameters);
        call.headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(Ok(id)) = last_event_id.map(HeaderValue::from_str) {
            call.headers.insert("last-event-id", id);
        }
        let opened = self.client.open(call).await;
        let mut response = opened.map_err(|reason| self.unreachable(reason))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let body = response.next_piece(PATIENCE).await.ok().flatten().unwrap_or_default();
        Err(self.refusal(response.status(), &body))
    }

    /// Returns a request to the account API, or to the hub without credentials.
    fn request(&self, method: Method, parameters: &[(&str, &str)]) -> CallbackRequest {
        let mut url = self.server.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().push(if self.has_account() { "" } else { "hub" });
        }
        let form = Serializer::new(String::new()).extend_pairs(parameters).finish();
        let mut headers = self.headers();
        let body = match method {
            Method::GET => {
                url.set_query(Some(&form));
                String::new()
            }
            _ => {
                let of_form = HeaderValue::from_static("application/x-www-form-urlencoded");
                headers.insert(CONTENT_TYPE, of_form);
                form
            }
        };
        CallbackRequest { method, url, headers, body: body.into() }
    }

    fn unreachable(&self, reason: FetchError) -> RemoteError {
        RemoteError::Unreachable { server: self.server.to_string(), reason }
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        // Not application/json, which would select the format of a subscription.
        headers.insert(ACCEPT, HeaderValue::from_static("application/problem+json"));
        headers.extend(self.authorization.clone().map(|basic| (AUTHORIZATION, basic)));
        headers
    }

    fn refusal(&self, status: StatusCode, body: &[u8]) -> RemoteError {
        let problem: Value = serde_json::from_slice(body).unwrap_or_default();
        let reason = match problem["detail"].as_str() {
            Some(detail) => quoted(detail.as_bytes()),
            None => quoted(body),
        };
        let code = problem["code"].as_str().map(str::to_owned);
        RemoteError::Refused { server: self.server.to_string(), status, code, reason }
    }

    /// Prints what a command has done: a sentence, or with `--json` an object.
    pub(super) fn print_done(&self, reply: &RemoteReply, sentence: &str, mut fields: Value) {
        fields["status"] = reply.status.as_u16().into();
        if let Some(note) = &reply.note {
            fields["note"] = note.as_str().into();
            print_note(note);
        }
        print_line(if self.is_json { fields.to_string() } else { sentence.to_owned() });
    }

    /// Reports an error, and returns the exit code for it.
    pub(super) fn fail(&self, err: &RemoteError) -> Outcome {
        print_note(err.to_string());
        let (status, code) = match err {
            RemoteError::Refused { status, code, .. } => (Some(status.as_u16()), code.as_deref()),
            RemoteError::Unreachable { reason, .. } => (None, Some(reason.code())),
            RemoteError::NoCredentials => return Ok(ExitCode::from(2)),
        };
        if self.is_json {
            let object = json!({ "status": status, "code": code, "error": err.to_string() });
            print_line(object.to_string());
        }
        Ok(if err.is_passing() { ExitCode::from(TRY_AGAIN) } else { ExitCode::FAILURE })
    }
}

/// Returns a text of the server in one line, without control characters, which could control the
/// terminal (S42).
pub(super) fn quoted(text: &[u8]) -> String {
    const LONGEST_CHARS: usize = 500;
    let text = String::from_utf8_lossy(text);
    let text = text.trim().chars().take(LONGEST_CHARS);
    let quoted: String = text.map(|c| if c.is_control() { ' ' } else { c }).collect();
    if quoted.is_empty() { "the response is empty".to_owned() } else { quoted }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_have_both_parts_and_are_never_printed() {
        for text in ["", "ann", ":token", "ann:"] {
            assert!(credentials(text).is_err(), "{text}");
        }
        let given = credentials("ann:to:ken").unwrap();
        assert_eq!(given.0, "ann:to:ken");
        assert!(!format!("{given:?}").contains("ann"));
    }

    #[test]
    fn replies_are_quoted_in_one_line() {
        for (text, want) in
            [("a\n", "a"), ("a\u{1b}[31m\nb", "a [31m b"), (" \n", "the response is empty")]
        {
            assert_eq!(quoted(text.as_bytes()), want);
        }
    }
}
