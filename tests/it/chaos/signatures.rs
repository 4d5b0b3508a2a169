//! With which secrets a notification is signed.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::support::origin::Request;
use crate::support::subscriber::hub_signature;

/// Whether `X-Hub-Signature` was made with this secret.
pub(super) fn is_hub_signature(request: &Request, secret: &str) -> bool {
    let given = request.header("x-hub-signature");
    given.is_some_and(|given| given == hub_signature(given, secret, &request.body))
}

/// The signatures in `webhook-signature`.
pub(super) fn webhook_signatures(request: &Request) -> Vec<&str> {
    request.header("webhook-signature").into_iter().flat_map(|all| all.split(' ')).collect()
}

/// The signature of Standard Webhooks with this secret.
pub(super) fn webhook_signature(request: &Request, secret: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    for name in ["webhook-id", "webhook-timestamp"] {
        mac.update(request.header(name).unwrap_or_default().as_bytes());
        mac.update(b".");
    }
    mac.update(&request.body);
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}
