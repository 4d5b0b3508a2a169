//! The local address that notifications are posted to, with the attempts to do so.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};
use url::Url;

use super::webhook_secret::WebhookSecret;
use crate::cli::event_printer::EventPrinter;
use crate::cli::forward::ForwardTarget;
use crate::cli::print_note;
use crate::cli::remote::RemoteArgs;
use crate::jobs::deliver::{DeliverySettings, StreamCallback, StreamedNotification};
use crate::jobs::runner;
use crate::net::{CallbackResponse, FetchError};
use feedgate_core::topic::Callback;

/// The seconds between the attempts to post a notification: long enough for a program that is being
/// compiled again to come back, and short enough for somebody who watches.
const RETRY_STEPS_S: [u64; 3] = [1, 2, 4];
/// The longest part of a response that is printed.
const LONGEST_RESPONSE_CHARS: usize = 200;

/// A local address.
pub(super) struct LocalCallback {
    target: ForwardTarget,
    to: StreamCallback,
    settings: DeliverySettings,
    is_secret_made: bool,
    /// How many notifications were given up.
    given_up: u64,
}

/// What the local address responded.
struct LocalResponse {
    status: Option<u16>,
    text: String,
    is_accepted: bool,
    /// Whether another attempt may succeed without a change of the program.
    is_passing: bool,
}

impl LocalCallback {
    /// Posts to `url` what the gateway of `remote` sends, signed with the secret of `file`, of the
    /// environment or a new one.
    pub(super) fn new(
        remote: &RemoteArgs,
        url: &Url,
        file: Option<&Path>,
    ) -> Result<LocalCallback, Box<dyn Error>> {
        let config = remote.load_config()?;
        let callback = Callback::parse(url.as_str()).map_err(|err| format!("{url}: {err}"))?;
        let WebhookSecret { secret, is_made } = WebhookSecret::find(file)?;
        Ok(LocalCallback {
            target: ForwardTarget::new(&config, url),
            to: StreamCallback { callback, secret, acknowledged: 0 },
            settings: config.deliver(&remote.server),
            is_secret_made: is_made,
            given_up: 0,
        })
    }

    /// Says where notifications go and how they are signed.
    pub(super) fn print_beginning(&self) {
        let url = self.target.url();
        print_note(match self.is_secret_made {
            true => format!("posting to {url}, signed with {}", self.to.secret.expose()),
            false => format!("posting to {url}, signed with your secret"),
        });
    }

    /// Says how many notifications were posted.
    pub(super) fn print_end(&self) {
        let (accepted, given_up) = (self.to.acknowledged, self.given_up);
        print_note(format!("{accepted} notifications were accepted, {given_up} were given up"));
    }

    /// Posts a notification until it is accepted, rejected, or was attempted often enough, and prints each
    /// attempt.
    pub(super) async fn deliver(
        &mut self,
        notification: &StreamedNotification,
        printer: EventPrinter,
    ) {
        let mut steps = RETRY_STEPS_S.into_iter();
        for failures in 0.. {
            let now = runner::now();
            let (call, id) = notification.request(&self.to, failures, &self.settings, now);
            let begun = Instant::now();
            let response = LocalResponse::new(self.target.send(call).await);
            let took = begun.elapsed();
            let step_s = if response.is_passing { steps.next() } else { None };
            let (event, ending) = match (response.is_accepted, step_s) {
                (true, _) => ("forwarded", String::new()),
                (false, Some(step_s)) => ("retrying", format!(", again in {step_s} s")),
                (false, None) => ("failed", ", given up".to_owned()),
            };
            let (url, ms) = (self.target.url(), took.as_millis() as u64);
            let detail = format!("{url}: {} in {ms} ms{ending}", response.text);
            let fields = json!({ "id": id, "status": response.status, "ms": ms });
            printer.print_with(event, notification.topic.as_str(), &detail, fields);
            match step_s.filter(|_| !response.is_accepted) {
                Some(step_s) => sleep(Duration::from_secs(step_s)).await,
                None => {
                    self.to.acknowledged += i64::from(response.is_accepted);
                    self.given_up += u64::from(!response.is_accepted);
                    return;
                }
            }
        }
    }
}

impl LocalResponse {
    fn new(answer: Result<CallbackResponse, FetchError>) -> LocalResponse {
        match answer {
            Ok(reply) => {
                let is_accepted = reply.status.is_success();
                let body = String::from_utf8_lossy(&reply.body);
                let body: String = body.trim().chars().take(LONGEST_RESPONSE_CHARS).collect();
                let is_told = !is_accepted && !body.is_empty();
                LocalResponse {
                    status: Some(reply.status.as_u16()),
                    text: match is_told {
                        true => format!("{} {body}", reply.status),
                        false => reply.status.to_string(),
                    },
                    is_accepted,
                    is_passing: reply.status.is_server_error(),
                }
            }
            Err(err) => LocalResponse {
                status: None,
                text: err.to_string(),
                is_accepted: false,
                is_passing: true,
            },
        }
    }
}
