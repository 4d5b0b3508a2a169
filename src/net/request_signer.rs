//! Signs requests to publishers, so that they can tell this gateway from whoever uses its name: HTTP
//! Message Signatures (RFC 9421) as Web Bot Auth profiles them.
//!
//! A signature covers the server that the request goes to (`@authority`) and the address of this
//! gateway (`Signature-Agent`), where the public keys are. It is made for each hop of its own, because
//! another server could use it otherwise, and ends after minutes. Without keys, which only `serve` with
//! a public URL has, requests are not signed.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use chrono::{DateTime, Utc};
use http::{HeaderMap, HeaderName, HeaderValue};
use url::Url;

use crate::clock;
use feedgate_core::signing_key::current_key;
use feedgate_protocol::message_signatures::{
    Component, MessageSignature, SignatureParams, SigningKey,
};

/// The URL of the gateway that signs, as a dictionary whose keys are labels of signatures.
const SIGNATURE_AGENT: HeaderName = HeaderName::from_static("signature-agent");
const SIGNATURE_INPUT: HeaderName = HeaderName::from_static("signature-input");
const SIGNATURE: HeaderName = HeaderName::from_static("signature");
/// The label of the signature, which is the key of its agent too.
const LABEL: &str = "sig1";
/// What the signature of a request is for.
pub const REQUEST_TAG: &str = "web-bot-auth";
/// How long the signature of a request is valid: long enough for clocks that differ by minutes.
pub const VALID_FOR: Duration = Duration::from_secs(300);
/// The number of random bytes in a signature: the libraries of Web Bot Auth accept no other.
const NONCE_BYTES: usize = 64;

/// A key with the time from which requests are signed with it.
#[derive(Debug)]
pub struct PublishedKey {
    /// The key.
    pub key: SigningKey,
    /// Since when, or from when on, it is used.
    pub used_from: DateTime<Utc>,
}

/// Who signs, and the published keys.
#[derive(Debug)]
pub struct Signer {
    /// The URL of the gateway without its path, under which the keys are found.
    origin: String,
    /// `Signature-Agent`.
    agent: HeaderValue,
    keys: Vec<PublishedKey>,
}

impl Signer {
    /// Creates the signer of the gateway at `public_url`. The keys are ordered by the times from
    /// which they are used.
    pub fn new(public_url: &Url, keys: Vec<PublishedKey>) -> Signer {
        let origin = public_url.origin().ascii_serialization();
        let agent = HeaderValue::from_str(&format!("{LABEL}=\"{origin}\""));
        Signer { origin, agent: agent.expect("an origin is printable ASCII"), keys }
    }

    /// The published keys: the one that is used, the next one, and the one before it.
    pub fn keys(&self) -> &[PublishedKey] {
        &self.keys
    }

    /// The URL that `Signature-Agent` names.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Returns the key that requests are signed with at `now`.
    pub fn current(&self, now: DateTime<Utc>) -> Option<&SigningKey> {
        let place = current_key(self.keys.iter().map(|published| published.used_from), now)?;
        self.keys.get(place).map(|published| &published.key)
    }

    /// Adds the headers of a signature to those of a request to `url`; none if the system provides
    /// no random numbers or there is no key.
    fn sign(&self, url: &Url, headers: &mut HeaderMap, now: SystemTime) {
        let Some(signed) = self.signature(url, now) else { return };
        let MessageSignature { input, signature } = signed;
        let labelled = |value: &str| HeaderValue::from_str(&format!("{LABEL}={value}"));
        let (Ok(input), Ok(mut signature)) = (labelled(&input), labelled(&signature)) else {
            return;
        };
        // Who reads it could repeat the request for as long as it is valid.
        signature.set_sensitive(true);
        headers.insert(SIGNATURE_AGENT, self.agent.clone());
        headers.insert(SIGNATURE_INPUT, input);
        headers.insert(SIGNATURE, signature);
    }

    fn signature(&self, url: &Url, now: SystemTime) -> Option<MessageSignature> {
        let key = self.current(now.into())?;
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).ok()?;
        let nonce = BASE64_STANDARD.encode(nonce);
        let created = now.duration_since(UNIX_EPOCH).ok()?;
        let seconds = |time: Duration| i64::try_from(time.as_secs()).ok();
        let (authority, agent) = (authority(url)?, format!("\"{}\"", self.origin));
        let components = [
            Component { id: "\"@authority\"", value: &authority },
            Component { id: "\"signature-agent\";key=\"sig1\"", value: &agent },
        ];
        let params = SignatureParams {
            created: seconds(created)?,
            has_algorithm: true,
            expires: Some(seconds(created + VALID_FOR)?),
            nonce: Some(&nonce),
            tag: Some(REQUEST_TAG),
        };
        Some(key.sign(&components, &params))
    }
}

/// Signs the requests of a client, once it knows the keys. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct RequestSigner {
    signer: Arc<RwLock<Option<Arc<Signer>>>>,
}

impl RequestSigner {
    /// Signs with other keys from now on.
    pub fn replace(&self, signer: Signer) {
        *self.signer.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(signer));
    }

    /// Returns who signs; `None` if requests are not signed.
    pub fn signer(&self) -> Option<Arc<Signer>> {
        self.signer.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds the headers of a signature to those of a request to `url`.
    pub(super) fn sign(&self, url: &Url, headers: &mut HeaderMap) {
        if let Some(signer) = self.signer() {
            signer.sign(url, headers, SystemTime::from(clock::now()));
        }
    }
}

/// Returns the value of `@authority` (RFC 9421 `#section-2.2.3`): the host, and the port unless it is
/// that of the scheme.
pub fn authority(url: &Url) -> Option<String> {
    let host = url.host_str()?;
    Some(match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_authority_is_that_of_the_host_header() {
        let cases = [
            ("https://Example.com/a?b", "example.com"),
            ("https://example.com:443/", "example.com"),
            ("http://example.com:8080/", "example.com:8080"),
            ("http://[::1]:8080/", "[::1]:8080"),
            ("https://bücher.example/", "xn--bcher-kva.example"),
        ];
        for (url, want) in cases {
            assert_eq!(authority(&Url::parse(url).unwrap()).as_deref(), Some(want), "{url}");
        }
    }

    #[test]
    fn a_request_is_signed_for_its_server_with_the_key_whose_time_has_come() {
        let at = |seconds: u64| UNIX_EPOCH + Duration::from_secs(seconds);
        let key = |byte: u8, from: u64| PublishedKey {
            key: SigningKey::from_seed(&[byte; 32]),
            used_from: at(from).into(),
        };
        let url = Url::parse("https://gateway.example/below/").unwrap();
        let signer = Signer::new(&url, vec![key(1, 100), key(2, 200)]);
        let signed = |now: u64| {
            let mut headers = HeaderMap::new();
            let topic = Url::parse("http://publisher.example:8080/feed").unwrap();
            signer.sign(&topic, &mut headers, at(now));
            headers
        };
        let headers = signed(150);
        assert_eq!(headers["signature-agent"], "sig1=\"https://gateway.example\"");
        let input = headers["signature-input"].to_str().unwrap();
        let want = format!(
            "sig1=(\"@authority\" \"signature-agent\";key=\"sig1\");created=150;keyid=\"{}\"\
             ;alg=\"ed25519\";expires=450;nonce=\"",
            signer.keys()[0].key.key_id()
        );
        assert!(input.starts_with(&want), "{input}");
        assert!(input.ends_with("\";tag=\"web-bot-auth\""), "{input}");
        assert!(headers["signature"].is_sensitive());
        assert_ne!(signed(150)["signature-input"], headers["signature-input"], "the nonce");
        let later = signed(200);
        let next = signer.keys()[1].key.key_id();
        assert!(later["signature-input"].to_str().unwrap().contains(next), "{later:?}");
    }
}
