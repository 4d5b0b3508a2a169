//! The signatures of Standard Webhooks, which authenticate the id and the time of a notification
//! with its body.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Returns one signature for `webhook-signature`, by the symmetric scheme `v1`: an HMAC-SHA-256 over
/// the id, the time and the body, separated by full stops (`#signature-scheme`). The header has one
/// signature for each key, separated by spaces.
pub fn sign(key: &[u8], id: &str, timestamp_s: i64, body: &[u8]) -> String {
    let mut mac =
        <Hmac<Sha256> as KeyInit>::new_from_slice(key).expect("an HMAC takes keys of any length");
    mac.update(format!("{id}.{timestamp_s}.").as_bytes());
    mac.update(body);
    format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The case that the libraries of Standard Webhooks share.
    #[test]
    fn a_signature_is_that_of_the_libraries() {
        let key = BASE64_STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let body = br#"{"test": 2432232314}"#;
        let signature = sign(&key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
}
