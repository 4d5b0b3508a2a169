//! The parameters that say how the notifications of a subscription are signed.

use crate::http::kit::params;
use crate::http::kit::rejection::Rejection;
use feedgate_core::signing::{BadSecret, Secret, SecretOverlap, SigningRequest};
use feedgate_protocol::form::Form;
use feedgate_protocol::signature::SignatureMethod;

/// Reads `hub.secret`, which ends the secret of a subscription if it is empty, `signature` and
/// `secret_overlap_seconds`.
pub(super) fn signing(form: &Form) -> Result<SigningRequest, Rejection> {
    Ok(SigningRequest {
        secret: secret(form)?,
        ends_secret: form.get_verbatim("hub.secret").is_some_and(str::is_empty),
        method: method(form)?,
        overlap: overlap(form)?,
    })
}

fn secret(form: &Form) -> Result<Option<Secret>, Rejection> {
    let given = form.get_verbatim("hub.secret").filter(|secret| !secret.is_empty());
    let secret = given.map(|key| {
        Secret::new(key.to_owned()).map_err(|reason| match reason {
            BadSecret::TooLong => Rejection::unprocessable(format!(
                "Please provide a hub.secret shorter than {} bytes.",
                Secret::TOO_LONG_BYTES
            )),
            BadSecret::ContainsNul => Rejection::unprocessable(
                "Please provide a hub.secret without the character U+0000.",
            ),
            BadSecret::NotBase64 => Rejection::unprocessable(
                "Please provide a hub.secret that continues in base64 after whsec_, or one without \
                 whsec_.",
            ),
        })
    });
    secret.transpose()
}

fn method(form: &Form) -> Result<Option<SignatureMethod>, Rejection> {
    params::signature(form).map_err(Rejection::unprocessable)
}

fn overlap(form: &Form) -> Result<Option<SecretOverlap>, Rejection> {
    let Some(text) = form.get("secret_overlap_seconds").filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let seconds = text.parse().ok().filter(|_| is_number);
    let overlap = seconds.and_then(SecretOverlap::from_secs).ok_or_else(|| {
        let max = SecretOverlap::MAX_S;
        Rejection::unprocessable(format!(
            "secret_overlap_seconds must be a number of seconds from 0 to {max}, not {text}."
        ))
    });
    overlap.map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_that_cannot_be_made_is_rejected() {
        #[rustfmt::skip]
        let cases = [
            ("hub.secret=s&signature=SHA512&secret_overlap_seconds=604800", ""),
            ("signature=md5",                     "signature must be one of sha1, sha256, sha384, sha512, not md5."),
            ("secret_overlap_seconds=604801",     "secret_overlap_seconds must be a number of seconds from 0 to 604800, not 604801."),
            ("secret_overlap_seconds=-1",         "secret_overlap_seconds must be a number of seconds from 0 to 604800, not -1."),
            ("hub.secret=whsec_open%20sesame",    "Please provide a hub.secret that continues in base64 after whsec_, or one without whsec_."),
        ];
        for (query, want) in cases {
            let form = Form::from_urlencoded(query.as_bytes()).unwrap();
            let reason =
                signing(&form).err().map_or_else(String::new, |why| why.reason().to_owned());
            assert_eq!(reason, want, "{query}");
        }
    }
}
