//! The secret that signs what `feedgate tail` posts: of a file, of the environment, or made.

use std::error::Error;
use std::fs;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::jobs::runner;
use feedgate_core::signing::Secret;

/// The environment variable with the secret. It is no setting: it belongs to the client.
const VARIABLE: &str = "FEEDGATE_WEBHOOK_SECRET";

/// A secret, and whether it was made for this run.
pub(super) struct WebhookSecret {
    pub(super) secret: Secret,
    pub(super) is_made: bool,
}

impl WebhookSecret {
    /// Reads the secret of `file` or of the environment, or makes one that libraries for Standard Webhooks
    /// accept.
    pub(super) fn find(file: Option<&Path>) -> Result<WebhookSecret, Box<dyn Error>> {
        let given = match file {
            Some(file) => {
                let text = fs::read_to_string(file);
                let text = text.map_err(|err| format!("cannot read {}: {err}", file.display()))?;
                Some((file.display().to_string(), text))
            }
            None => std::env::var_os(VARIABLE)
                .map(|text| (VARIABLE.to_owned(), text.to_string_lossy().into_owned())),
        };
        if let Some((place, text)) = given {
            let text = text.trim().to_owned();
            if text.is_empty() {
                return Err(format!("{place}: the secret is empty").into());
            }
            let secret = Secret::new(text).map_err(|err| format!("{place}: {err}"))?;
            return Ok(WebhookSecret { secret, is_made: false });
        }
        let made = format!("whsec_{}", STANDARD.encode(runner::nonce()));
        Ok(WebhookSecret { secret: Secret::new(made)?, is_made: true })
    }
}
