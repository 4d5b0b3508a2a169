//! HTTP Message Signatures (RFC 9421) with Ed25519, as Web Bot Auth uses them
//! (draft-ietf-webbotauth-httpsig-protocol).
//!
//! Messages are signed here and not verified. What a signature covers is passed in as identifiers and
//! values that are serialized already, so that nothing is serialized in two ways: this program covers
//! few components, and knows the values of all of them. Signatures are made by ring, which TLS uses
//! as well.

use std::fmt;

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use ring::signature::{Ed25519KeyPair, KeyPair};
use sha2::{Digest, Sha256};

/// The number of bytes from which a key is made.
pub const SEED_BYTES: usize = 32;

/// A component that a signature covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Component<'a> {
    /// The serialized identifier, such as `"@authority"` or `"signature-agent";key="sig1"`.
    pub id: &'a str,
    /// The value in the message.
    pub value: &'a str,
}

/// The parameters of a signature that is made with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignatureParams<'a> {
    /// When it was made, in seconds since 1970.
    pub created: i64,
    /// Whether it names its algorithm.
    pub has_algorithm: bool,
    /// When it ends, in seconds since 1970.
    pub expires: Option<i64>,
    /// A text that no other signature has.
    pub nonce: Option<&'a str>,
    /// What it is for.
    pub tag: Option<&'a str>,
}

/// The values of the two headers of a signature, without its label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageSignature {
    /// The member of `Signature-Input`: what is covered, and the parameters.
    pub input: String,
    /// The member of `Signature`.
    pub signature: String,
}

/// An Ed25519 key that signs. `Debug` does not print the private key.
pub struct SigningKey {
    pair: Ed25519KeyPair,
    /// The public key in base64url.
    x: String,
    key_id: String,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("key_id", &self.key_id).finish_non_exhaustive()
    }
}

impl SigningKey {
    /// Returns the key that is made from `seed` (RFC 8032 `#section-5.1.5`).
    pub fn from_seed(seed: &[u8; SEED_BYTES]) -> SigningKey {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed);
        let pair = pair.expect("a seed has the one length that a key can be made from");
        let x = BASE64_URL_SAFE_NO_PAD.encode(pair.public_key().as_ref());
        // RFC 7638 with the members of RFC 8037 `#appendix-A.3`, in the order of their names.
        let thumbprint = format!("{{\"crv\":\"Ed25519\",\"kty\":\"OKP\",\"x\":\"{x}\"}}");
        let key_id = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(thumbprint));
        SigningKey { pair, x, key_id }
    }

    /// Returns the name of the key: the thumbprint of its JSON Web Key.
    pub fn key_id(&self) -> &str {
        &self.key_id
    }

    /// Signs `components`.
    pub fn sign(
        &self,
        components: &[Component<'_>],
        params: &SignatureParams<'_>,
    ) -> MessageSignature {
        self.sign_as(&self.key_id, components, params)
    }

    /// Signs `components` with this key under the name `key_id`.
    fn sign_as(
        &self,
        key_id: &str,
        components: &[Component<'_>],
        params: &SignatureParams<'_>,
    ) -> MessageSignature {
        let input = input(components, key_id, params);
        let base = base(components, &input);
        let signature = BASE64_STANDARD.encode(self.pair.sign(base.as_bytes()));
        MessageSignature { input, signature: format!(":{signature}:") }
    }
}

/// Returns a JSON Web Key Set with the public halves of `keys`.
pub fn key_set<'a>(keys: impl IntoIterator<Item = &'a SigningKey>) -> String {
    let keys = keys.into_iter().map(|SigningKey { x, key_id, .. }| {
        format!(
            "{{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"{key_id}\",\"x\":\"{x}\",\
             \"use\":\"sig\"}}"
        )
    });
    format!("{{\"keys\":[{}]}}", keys.collect::<Vec<_>>().join(","))
}

/// Returns the value of `Content-Digest` for a body (RFC 9530).
pub fn content_digest(body: &[u8]) -> String {
    format!("sha-256=:{}:", BASE64_STANDARD.encode(Sha256::digest(body)))
}

/// Returns what a signature covers, with its parameters (RFC 9421 `#section-2.3`). No value has a
/// character that must be escaped.
fn input(components: &[Component<'_>], key_id: &str, params: &SignatureParams<'_>) -> String {
    let ids: Vec<&str> = components.iter().map(|component| component.id).collect();
    let mut input = format!("({});created={}", ids.join(" "), params.created);
    input.push_str(&format!(";keyid=\"{key_id}\""));
    if params.has_algorithm {
        input.push_str(";alg=\"ed25519\"");
    }
    if let Some(expires) = params.expires {
        input.push_str(&format!(";expires={expires}"));
    }
    for (name, value) in [("nonce", params.nonce), ("tag", params.tag)] {
        if let Some(value) = value {
            input.push_str(&format!(";{name}=\"{value}\""));
        }
    }
    input
}

/// Returns the text that is signed (RFC 9421 `#section-2.5`).
fn base(components: &[Component<'_>], input: &str) -> String {
    let mut base = String::new();
    for Component { id, value } in components {
        base.push_str(&format!("{id}: {value}\n"));
    }
    base.push_str(&format!("\"@signature-params\": {input}"));
    base
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `test-key-ed25519` of RFC 9421, appendix B.1.4, which the draft uses too.
    fn test_key() -> SigningKey {
        let seed = BASE64_URL_SAFE_NO_PAD.decode("n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU");
        SigningKey::from_seed(&seed.unwrap().try_into().unwrap())
    }

    #[test]
    fn a_request_is_signed_as_in_the_rfc() {
        let components = [
            ("\"date\"", "Tue, 20 Apr 2021 02:07:55 GMT"),
            ("\"@method\"", "POST"),
            ("\"@path\"", "/foo"),
            ("\"@authority\"", "example.com"),
            ("\"content-type\"", "application/json"),
            ("\"content-length\"", "18"),
        ];
        let components = components.map(|(id, value)| Component { id, value });
        let params = SignatureParams {
            created: 1_618_884_473,
            has_algorithm: false,
            expires: None,
            nonce: None,
            tag: None,
        };
        let signed = test_key().sign_as("test-key-ed25519", &components, &params);
        assert_eq!(
            signed.input,
            "(\"date\" \"@method\" \"@path\" \"@authority\" \"content-type\" \"content-length\")\
             ;created=1618884473;keyid=\"test-key-ed25519\""
        );
        assert_eq!(
            signed.signature,
            ":wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:",
            "appendix B.2.6"
        );
    }

    #[test]
    fn a_request_is_signed_as_in_the_draft_of_web_bot_auth() {
        let components = [
            Component { id: "\"@authority\"", value: "example.com" },
            Component {
                id: "\"signature-agent\";key=\"agent2\"",
                value: "\"https://signature-agent.test\"",
            },
        ];
        let nonce = "n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQt\
                     FioQb6E1YsauiA==";
        let params = SignatureParams {
            created: 1_735_689_600,
            has_algorithm: true,
            expires: Some(4_889_289_600),
            nonce: Some(nonce),
            tag: Some("web-bot-auth"),
        };
        let signed = test_key().sign(&components, &params);
        assert_eq!(
            signed.input,
            format!(
                "(\"@authority\" \"signature-agent\";key=\"agent2\");created=1735689600\
                 ;keyid=\"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U\";alg=\"ed25519\"\
                 ;expires=4889289600;nonce=\"{nonce}\";tag=\"web-bot-auth\""
            )
        );
        assert_eq!(
            signed.signature,
            ":RdNFx5Bj6au3YgAMQL/RzmUlZE8QZLIaXGRpw985hWnwPfMxT228NMk6ehRS1PSl4e8PhbNZACSanGdhEwYCCg==:"
        );
    }

    #[test]
    fn a_directory_is_signed_as_in_the_draft_of_web_bot_auth() {
        let key = test_key();
        let body = key_set([&key]);
        let digest = content_digest(body.as_bytes());
        assert_eq!(digest, "sha-256=:CADMT2aBdV/rqQr/NIru64ERQkCobVvllA4V0fLFDu0=:", "{body}");
        let components = [
            Component { id: "\"@authority\";req", value: "signature-agent.test" },
            Component { id: "\"content-digest\"", value: &digest },
        ];
        let params = SignatureParams {
            created: 1_735_689_600,
            has_algorithm: false,
            expires: Some(4_889_289_600),
            nonce: None,
            tag: Some("http-message-signatures-directory"),
        };
        // The parameters of the vector are in another order, which is part of what is signed.
        let signed = key.sign(&components, &params);
        let input = "(\"@authority\";req \"content-digest\");created=1735689600\
                     ;keyid=\"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U\"\
                     ;expires=4889289600;tag=\"http-message-signatures-directory\"";
        assert_eq!(signed.input, input);
        let vector = "(\"@authority\";req \"content-digest\");created=1735689600;expires=4889289600\
                      ;keyid=\"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U\"\
                      ;tag=\"http-message-signatures-directory\"";
        let signature = key.pair.sign(base(&components, vector).as_bytes());
        assert_eq!(
            BASE64_STANDARD.encode(signature),
            "l6P8R67tm3kujAxbHWio7ll01qrEZ0dKD/WWlGhNYEmTnFZM8Wt0VQ9zqGfvo7T/UMkBxsigzChM1Gpz7gOVBg=="
        );
    }

    #[test]
    fn a_key_is_named_by_its_thumbprint_and_printed_without_its_private_half() {
        let key = test_key();
        assert_eq!(key.key_id(), "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U");
        let printed = format!("{key:?}");
        assert_eq!(
            printed,
            "SigningKey { key_id: \"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U\", .. }"
        );
    }
}
