//! `X-Hub-Signature`: authenticates the sender and the integrity of a body.
//!
//! The value is `method=hex`, an HMAC over the exact bytes of the body with the subscriber's secret
//! as key (WebSub `#authenticated-content-distribution`). Signatures are compared in constant time
//! (rule S33).

use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::{Sha256, Sha384, Sha512};
use subtle::ConstantTimeEq;

/// The hash functions that WebSub `#signature-validation` names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SignatureMethod {
    /// HMAC-SHA-1: the only method that every Superfeedr client checks, and therefore the default.
    #[default]
    Sha1,
    /// HMAC-SHA-256.
    Sha256,
    /// HMAC-SHA-384.
    Sha384,
    /// HMAC-SHA-512.
    Sha512,
}

impl SignatureMethod {
    /// All methods, weakest first.
    pub const ALL: [SignatureMethod; 4] = [
        SignatureMethod::Sha1,
        SignatureMethod::Sha256,
        SignatureMethod::Sha384,
        SignatureMethod::Sha512,
    ];

    /// Returns the name used in the header and in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            SignatureMethod::Sha1 => "sha1",
            SignatureMethod::Sha256 => "sha256",
            SignatureMethod::Sha384 => "sha384",
            SignatureMethod::Sha512 => "sha512",
        }
    }

    /// Parses the name, in any case.
    pub fn from_word(word: &str) -> Option<SignatureMethod> {
        SignatureMethod::ALL.into_iter().find(|method| method.as_str().eq_ignore_ascii_case(word))
    }

    fn digest(self, secret: &[u8], body: &[u8]) -> Vec<u8> {
        match self {
            SignatureMethod::Sha1 => hmac::<Hmac<Sha1>>(secret, body),
            SignatureMethod::Sha256 => hmac::<Hmac<Sha256>>(secret, body),
            SignatureMethod::Sha384 => hmac::<Hmac<Sha384>>(secret, body),
            SignatureMethod::Sha512 => hmac::<Hmac<Sha512>>(secret, body),
        }
    }
}

/// Returns the value of `X-Hub-Signature` for `body`, signed with `secret`.
pub fn sign(method: SignatureMethod, secret: &str, body: &[u8]) -> String {
    format!("{}={}", method.as_str(), hex::encode(method.digest(secret.as_bytes(), body)))
}

/// Returns whether `header` is a valid signature of `body` with `secret`, by any method.
pub fn holds(header: &str, secret: &str, body: &[u8]) -> bool {
    let Some((method, claimed)) = header.trim().split_once('=') else { return false };
    let (Some(method), Ok(claimed)) = (SignatureMethod::from_word(method), hex::decode(claimed))
    else {
        return false;
    };
    method.digest(secret.as_bytes(), body).ct_eq(&claimed).into()
}

fn hmac<M: Mac + KeyInit>(secret: &[u8], body: &[u8]) -> Vec<u8> {
    let mut mac = <M as KeyInit>::new_from_slice(secret).expect("an HMAC takes keys of any length");
    mac.update(body);
    mac.finalize().into_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test case 2 of RFC 2202 and RFC 4231.
    #[test]
    fn signatures_are_those_of_the_rfcs() {
        let (key, data) = ("Jefe", b"what do ya want for nothing?");
        #[rustfmt::skip]
        let cases = [
            (SignatureMethod::Sha1,   "sha1=effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"),
            (SignatureMethod::Sha256, "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
            (SignatureMethod::Sha384, "sha384=af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e8e2240ca5e69e2c78b3239ecfab21649"),
            (SignatureMethod::Sha512, "sha512=164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737"),
        ];
        for (method, want) in cases {
            assert_eq!(sign(method, key, data), want);
            assert!(holds(want, key, data), "{want}");
        }
    }

    #[test]
    fn a_signature_that_does_not_fit_is_refused() {
        let good = sign(SignatureMethod::Sha256, "key", b"body");
        let cases = ["", "sha256", "sha256=", "sha256=zz", "md5=00", &good[..good.len() - 2]];
        for header in cases {
            assert!(!holds(header, "key", b"body"), "{header}");
        }
        assert!(!holds(&good, "other", b"body"));
        assert!(!holds(&good, "key", b"bodY"));
        assert!(holds(&good.to_uppercase().replace("SHA256", "sha256"), "key", b"body"));
    }
}
