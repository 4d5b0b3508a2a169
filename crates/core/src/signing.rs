//! How notifications to a subscriber are signed: its secret, the one before it, and the hash
//! function.
//!
//! A secret that replaces another one does not end it at once: for the overlap, notifications carry
//! Standard Webhooks signatures with both, so that no receiver rejects a notification while it
//! changes its key.

use std::fmt;
use std::time::Duration;

use base64::Engine;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use feedgate_protocol::signature::SignatureMethod;

/// The beginning of a secret whose key is encoded in base64, as Standard Webhooks serializes secrets
/// (`#signature-scheme`).
const ENCODED_PREFIX: &str = "whsec_";
/// Base64 as the libraries of Standard Webhooks decode it: padding may be missing.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The hash function of `X-Hub-Signature` for open subscriptions that request no other: WebSub
/// subscribers know all of them, and SHA-1 is only there for clients of Superfeedr, which have accounts.
const OPEN_METHOD: SignatureMethod = SignatureMethod::Sha256;

/// The subscriber's key for signatures.
///
/// Fewer than 200 bytes (WebSub `#subscriber-sends-subscription-request`). `Debug` does not print
/// the key.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The length from which a secret is refused, in bytes.
    pub const TOO_LONG_BYTES: usize = 200;

    /// Accepts `key` if it is short enough and can be stored, and if its encoding, where it names
    /// one, is right.
    pub fn new(key: String) -> Result<Secret, BadSecret> {
        if key.len() >= Self::TOO_LONG_BYTES {
            return Err(BadSecret::TooLong);
        }
        if key.contains('\0') {
            return Err(BadSecret::ContainsNul);
        }
        match decode(&key) {
            Some(Err(bad)) => Err(bad),
            Some(Ok(_)) | None => Ok(Secret(key)),
        }
    }

    /// The secret itself, which is the key for `X-Hub-Signature`.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the key for `webhook-signature`: what follows `whsec_`, decoded, or the bytes of a
    /// secret without that prefix.
    pub fn standard_key(&self) -> Vec<u8> {
        match decode(&self.0) {
            Some(Ok(key)) => key,
            Some(Err(_)) | None => self.0.clone().into_bytes(),
        }
    }

    /// Returns a text by which an owner who knows the key recognizes it: the first 32 bits of its
    /// SHA-256, too few to recover it from.
    pub fn fingerprint(&self) -> String {
        let digest = Sha256::digest(self.0.as_bytes());
        format!("sha256:{}", hex::encode(&digest[..4]))
    }
}

/// Returns the key that a secret with the prefix of Standard Webhooks encodes; `None` without the
/// prefix.
fn decode(secret: &str) -> Option<Result<Vec<u8>, BadSecret>> {
    let encoded = secret.strip_prefix(ENCODED_PREFIX)?;
    let key = BASE64.decode(encoded).ok().filter(|key| !key.is_empty());
    Some(key.ok_or(BadSecret::NotBase64))
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Why a text cannot be a [`Secret`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSecret {
    /// The secret has [`Secret::TOO_LONG_BYTES`] or more.
    #[error("a secret must be shorter than {} bytes", Secret::TOO_LONG_BYTES)]
    TooLong,
    /// The secret contains U+0000.
    #[error("a secret must not contain the character U+0000")]
    ContainsNul,
    /// The secret has the prefix of an encoded key, followed by something else.
    #[error("a secret that begins with whsec_ must continue in base64")]
    NotBase64,
}

/// For how long notifications are signed with a secret that has been replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretOverlap(Duration);

impl SecretOverlap {
    /// The overlap that a request gets that names none: time for a deployment.
    pub const DEFAULT: SecretOverlap = SecretOverlap(Duration::from_secs(86_400));
    /// The longest overlap, in seconds: seven days. A secret is replaced in order to end it.
    pub const MAX_S: u64 = 7 * 86_400;

    /// Returns an overlap of so many seconds; `None` if it is longer than [`Self::MAX_S`].
    pub fn from_secs(seconds: u64) -> Option<SecretOverlap> {
        (seconds <= Self::MAX_S).then(|| SecretOverlap(Duration::from_secs(seconds)))
    }

    /// The value in seconds.
    pub fn as_secs(self) -> u64 {
        self.0.as_secs()
    }

    /// Returns the end of an overlap that begins `now`.
    fn end(self, now: DateTime<Utc>) -> DateTime<Utc> {
        now + self.0
    }
}

/// How notifications are to be signed, in a subscription request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SigningRequest {
    /// The key; `None`: a new subscription is not signed, and a renewal keeps its key.
    pub secret: Option<Secret>,
    /// Whether a renewal without a key ends the one that the subscription has.
    pub ends_secret: bool,
    /// The hash function of `X-Hub-Signature`; `None`: the default, and after a renewal the one before.
    pub method: Option<SignatureMethod>,
    /// For how long the secret that this one replaces is used as well. `None`: for
    /// [`SecretOverlap::DEFAULT`], or without a change if the secret stays the same.
    pub overlap: Option<SecretOverlap>,
}

impl SigningRequest {
    /// Returns how a new subscription of an account is signed.
    pub fn begin(&self) -> Signing {
        Signing { secret: self.secret.clone(), method: self.method, previous: None }
    }

    /// Returns how a new open subscription is signed.
    pub fn begin_open(&self) -> Signing {
        let method = self.method.or(self.secret.as_ref().map(|_| OPEN_METHOD));
        Signing { method, ..self.begin() }
    }
}

/// How the notifications of a subscription are signed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signing {
    /// The key; `None`: notifications are not signed.
    pub secret: Option<Secret>,
    /// The hash function of `X-Hub-Signature`; `None`: that of the gateway.
    pub method: Option<SignatureMethod>,
    /// The key before it, while both are used.
    pub previous: Option<PreviousSecret>,
}

/// A secret that has been replaced and is still used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreviousSecret {
    /// The secret.
    pub secret: Secret,
    /// Until when notifications are signed with it.
    pub until: DateTime<Utc>,
}

impl Signing {
    /// Returns how the subscription is signed after a renewal by `request`. Of several secrets that
    /// are replaced within one overlap, the last one is kept. A renewal that names no secret keeps the
    /// one that it has.
    pub fn renew(&self, request: &SigningRequest, now: DateTime<Utc>) -> Signing {
        let kept = self.secret.as_ref().filter(|_| !request.ends_secret);
        let secret = request.secret.as_ref().or(kept);
        let previous = match (&self.secret, secret) {
            (Some(old), Some(new)) if old != new => {
                let overlap = request.overlap.unwrap_or(SecretOverlap::DEFAULT);
                Some(PreviousSecret { secret: old.clone(), until: overlap.end(now) })
            }
            (Some(_), Some(_)) => self.previous.clone().map(|previous| PreviousSecret {
                until: request.overlap.map_or(previous.until, |overlap| overlap.end(now)),
                ..previous
            }),
            _ => None,
        };
        let previous = previous.filter(|previous| previous.until > now);
        Signing { secret: secret.cloned(), method: request.method.or(self.method), previous }
    }

    /// Returns how an open subscription, which no account owns, is signed after a renewal by
    /// `request`. Anybody who knows topic and callback can make one, and many callbacks echo every
    /// challenge.
    ///
    /// So a renewal without a secret leaves the secrets as they are. Another secret signs beside the
    /// one that has stood longest, until the lease of that one ends at `lease_until`; only a renewal
    /// with that one ends the other. However many further secrets are given meanwhile, the newest of
    /// them is kept, and the one that has stood longest is not displaced.
    pub fn renew_open(
        &self,
        request: &SigningRequest,
        lease_until: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Signing {
        let standing = self.standing(lease_until, now);
        let previous = match (&request.secret, standing) {
            (None, _) => {
                let previous = self.previous.clone().filter(|previous| previous.until > now);
                return Signing { previous, ..self.clone() };
            }
            (Some(new), Some(standing)) if *new != standing.secret => Some(standing),
            (Some(_), _) => None,
        };
        let method = match self.secret {
            Some(_) => request.method.or(self.method),
            None => request.method.or(Some(OPEN_METHOD)),
        };
        Signing { secret: request.secret.clone(), method, previous }
    }

    /// Returns whether a renewal of an open subscription by `request` has the rights of its
    /// subscriber: it knows the secret that has stood longest.
    pub fn is_proven_by(&self, request: &SigningRequest, now: DateTime<Utc>) -> bool {
        // The end of the lease does not matter for who has stood longest.
        let standing = self.standing(now, now);
        let (Some(standing), Some(given)) = (standing, &request.secret) else { return false };
        standing.secret.0.as_bytes().ct_eq(given.0.as_bytes()).into()
    }

    /// Returns the secret of an open subscription that has stood longest, and until when it signs
    /// whoever gives another.
    fn standing(&self, lease_until: DateTime<Utc>, now: DateTime<Utc>) -> Option<PreviousSecret> {
        let previous = self.previous.clone().filter(|previous| previous.until > now);
        let current = self.secret.clone();
        previous.or(current.map(|secret| PreviousSecret { secret, until: lease_until }))
    }

    /// Returns the keys that sign at `now`, the current one first.
    pub fn secrets(&self, now: DateTime<Utc>) -> impl Iterator<Item = &Secret> {
        let previous = self.previous.iter().filter(move |previous| previous.until > now);
        self.secret.iter().chain(previous.map(|previous| &previous.secret))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> Secret {
        Secret::new(text.to_owned()).unwrap()
    }

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_790_000_000 + seconds, 0).unwrap()
    }

    #[test]
    fn a_secret_is_short_and_never_shown() {
        assert_eq!(format!("{:?}", secret("opensesame")), "Secret(..)");
        assert_eq!(secret("opensesame").fingerprint(), "sha256:d9fb92e3");
        assert!(Secret::new("x".repeat(199)).is_ok());
        assert_eq!(Secret::new("x".repeat(200)), Err(BadSecret::TooLong));
        assert_eq!(Secret::new("open\0sesame".to_owned()), Err(BadSecret::ContainsNul));
    }

    #[test]
    fn the_key_of_standard_webhooks_is_decoded_where_the_secret_is_encoded() {
        #[rustfmt::skip]
        let cases = [
            ("opensesame",         Ok(b"opensesame".to_vec())),
            ("b3BlbnNlc2FtZQ==",   Ok(b"b3BlbnNlc2FtZQ==".to_vec())),
            ("whsec_b3BlbnNlc2FtZQ==", Ok(b"opensesame".to_vec())),
            ("whsec_b3BlbnNlc2FtZQ",   Ok(b"opensesame".to_vec())),
            ("whsec_",             Err(BadSecret::NotBase64)),
            ("whsec_open sesame",  Err(BadSecret::NotBase64)),
        ];
        for (text, want) in cases {
            let key = Secret::new(text.to_owned()).map(|secret| secret.standard_key());
            assert_eq!(key, want, "{text}");
        }
    }

    /// Why, the secrets of renewals, and those that sign before and after the first lease ends.
    type Renewals<'a> = (&'a str, &'a [Option<&'a str>], &'a [&'a str], &'a [&'a str]);

    #[test]
    fn h06_a_stranger_who_renews_an_open_subscription_ends_no_secret() {
        let requested = |text: Option<&str>| SigningRequest {
            secret: text.map(secret),
            ..SigningRequest::default()
        };
        let texts = |signing: &Signing, now| -> Vec<String> {
            signing.secrets(now).map(|secret| secret.expose().to_owned()).collect()
        };
        // The first lease, of a subscription with "own", ends at 100 s.
        #[rustfmt::skip]
        let cases: [Renewals<'_>; 8] = [
            ("its own secret",           &[Some("own")],                            &["own"],         &["own"]),
            ("another secret",           &[Some("b")],                              &["b", "own"],    &["b"]),
            ("no secret",                &[None],                                   &["own"],         &["own"]),
            ("another, then none",       &[Some("b"), None],                        &["b", "own"],    &["b"]),
            ("many others",              &[Some("b"), Some("c"), Some("d")],        &["d", "own"],    &["d"]),
            ("another one repeated",     &[Some("b"), Some("b"), Some("b")],        &["b", "own"],    &["b"]),
            ("the own one ends others",  &[Some("b"), Some("c"), Some("own")],      &["own"],         &["own"]),
            ("and may be replaced again", &[Some("b"), Some("own"), Some("c")],     &["c", "own"],    &["c"]),
        ];
        for (why, renewals, before, after) in cases {
            let mut signing = requested(Some("own")).begin();
            for renewal in renewals {
                signing = signing.renew_open(&requested(*renewal), at(100), at(1));
            }
            assert_eq!(texts(&signing, at(99)), before, "{why}");
            assert_eq!(texts(&signing, at(100)), after, "{why}");
        }
        let contested =
            requested(Some("own")).begin().renew_open(&requested(Some("b")), at(100), at(1));
        for (given, now, want) in [
            (Some("own"), 2, true),
            (Some("b"), 2, false),
            (None, 2, false),
            (Some("b"), 100, true),
        ] {
            assert_eq!(contested.is_proven_by(&requested(given), at(now)), want, "{given:?} {now}");
        }
        let unsigned = requested(None).begin();
        assert!(!unsigned.is_proven_by(&requested(None), at(1)), "anybody knows no secret");
        let signed = unsigned.renew_open(&requested(Some("b")), at(100), at(1));
        assert_eq!(texts(&signed, at(1)), ["b"]);
    }

    #[test]
    fn a_secret_that_is_replaced_signs_until_the_overlap_ends() {
        let request = |text: Option<&str>, overlap_s: Option<u64>| SigningRequest {
            secret: text.map(secret),
            overlap: overlap_s.map(|seconds| SecretOverlap::from_secs(seconds).unwrap()),
            ..SigningRequest::default()
        };
        // What is renewed at 10 s, and the end of the previous secret after it.
        #[rustfmt::skip]
        let cases = [
            ("a new secret",            request(Some("old"), None), request(Some("new"), None),      Some(86_410)),
            ("an overlap",              request(Some("old"), None), request(Some("new"), Some(60)),  Some(70)),
            ("no overlap",              request(Some("old"), None), request(Some("new"), Some(0)),   None),
            ("the same secret",         request(Some("old"), None), request(Some("old"), None),      None),
            ("no secret before",        request(None, None),        request(Some("new"), None),      None),
            ("no secret named",         request(Some("old"), None), request(None, Some(60)),         None),
        ];
        for (why, first, second, want) in cases {
            let renewed = first.begin().renew(&second, at(10));
            let until = renewed.previous.map(|previous| previous.until);
            assert_eq!(until, want.map(at), "{why}");
        }

        let rotated =
            request(Some("old"), None).begin().renew(&request(Some("new"), Some(60)), at(0));
        let texts = |signing: &Signing, now| -> Vec<String> {
            signing.secrets(now).map(|secret| secret.expose().to_owned()).collect()
        };
        assert_eq!(texts(&rotated, at(59)), ["new", "old"]);
        assert_eq!(texts(&rotated, at(60)), ["new"]);
        let renewed = rotated.renew(&request(Some("new"), None), at(1));
        assert_eq!(texts(&renewed, at(59)), ["new", "old"], "a renewal leaves the overlap alone");
        let ended = rotated.renew(&request(Some("new"), Some(0)), at(1));
        assert_eq!(texts(&ended, at(2)), ["new"], "unless it names another one");
        assert_eq!(SecretOverlap::from_secs(604_801), None);
    }

    #[test]
    fn a08_a_renewal_without_a_secret_keeps_it_unless_it_ends_it() {
        let method = Some(SignatureMethod::Sha512);
        let begun = SigningRequest { secret: Some(secret("a")), method, ..Default::default() };
        let rotated = SigningRequest { secret: Some(secret("b")), ..Default::default() };
        let rotated = begun.begin().renew(&rotated, at(0));
        assert_eq!(rotated.method, method);
        let unnamed = SigningRequest::default();
        assert_eq!(rotated.renew(&unnamed, at(1)), rotated, "the overlap goes on as well");
        let ended = rotated.renew(&SigningRequest { ends_secret: true, ..unnamed }, at(1));
        assert_eq!((ended.secret, ended.previous), (None, None));
    }

    #[test]
    fn a11_a_new_open_subscription_is_signed_with_sha_256_and_an_older_one_as_before() {
        let signed = |method| SigningRequest {
            secret: Some(secret("a")),
            method,
            ..SigningRequest::default()
        };
        let (none, sha1, sha256) =
            (None, Some(SignatureMethod::Sha1), Some(SignatureMethod::Sha256));
        let unsigned = SigningRequest::default();
        assert_eq!(signed(none).begin().method, none, "that of an account is the gateway's");
        assert_eq!(unsigned.begin_open().method, none);
        // What a subscription had, what is requested, and what it has then.
        #[rustfmt::skip]
        let cases = [
            (signed(none).begin_open(),  signed(none), sha256),
            (signed(sha1).begin_open(),  signed(none), sha1),
            (signed(none).begin(),       signed(none), none),
            (signed(none).begin(),       signed(sha1), sha1),
            (signed(sha1).begin_open(),  SigningRequest { method: sha256, ..unsigned.clone() }, sha1),
            (unsigned.begin_open(),      signed(none), sha256),
        ];
        for (before, request, want) in cases {
            assert_eq!(before.renew_open(&request, at(9), at(1)).method, want, "{request:?}");
        }
    }
}
