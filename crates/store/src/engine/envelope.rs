//! Secrets at rest (S36): how a secret is encrypted in its column, and with which keys.
//!
//! A stored secret is one of three texts:
//!
//! | text | meaning |
//! | --- | --- |
//! | `sealed:1:KEY:DATA` | an envelope of version 1: the id of the key, then a nonce of 24 bytes and the ciphertext of XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha), together in base64 |
//! | `plain:TEXT` | TEXT, which begins like one of these two |
//! | anything else | the secret itself, stored while no key was set |
//!
//! The column and the row of an envelope are its associated data ([`RowIdentity`]), so an envelope
//! that is moved to another row or column cannot be opened. Nonces are random: 24 bytes are enough
//! for any number of secrets.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use sha2::{Digest, Sha256};

use feedgate_core::store::StoreError;

/// The beginning of every envelope.
const SEALED: &str = "sealed:";
/// The beginning of an envelope of the version that is written.
const VERSION_1: &str = "sealed:1:";
/// The beginning of a text that is stored as it is although it begins like an envelope.
const PLAIN: &str = "plain:";
/// The length of a nonce, in bytes.
const NONCE_BYTES: usize = 24;

/// A key that secrets are encrypted with.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretKey {
    bytes: [u8; SecretKey::BYTES],
    id: String,
}

impl SecretKey {
    /// The length of a key, in bytes.
    pub const BYTES: usize = 32;

    /// Reads a key of [`Self::BYTES`] bytes in hexadecimal or in base64; `None` if `text` is
    /// neither.
    pub fn parse(text: &str) -> Option<SecretKey> {
        let unpadded = text.trim_end_matches('=');
        let bytes = hex::decode(text).ok().or_else(|| STANDARD_NO_PAD.decode(unpadded).ok())?;
        let bytes: [u8; Self::BYTES] = bytes.try_into().ok()?;
        // 64 bits of a hash tell keys apart, and say nothing about a random key.
        let mut hash = Sha256::new_with_prefix("feedgate secrets key");
        hash.update(bytes);
        Some(SecretKey { bytes, id: hex::encode(&hash.finalize()[..8]) })
    }

    /// The id, by which envelopes and operators name the key: 16 hexadecimal digits.
    pub fn id(&self) -> &str {
        &self.id
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&Key::from(self.bytes))
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey({})", self.id)
    }
}

/// The keys of a gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecretKeys {
    /// The key that new secrets are encrypted with; `None`: they are stored in clear.
    pub present: Option<SecretKey>,
    /// Further keys that stored secrets may be encrypted with.
    pub old: Vec<SecretKey>,
}

impl SecretKeys {
    /// Returns the key with this id.
    pub(crate) fn find(&self, id: &str) -> Option<&SecretKey> {
        self.present.iter().chain(&self.old).find(|key| key.id == id)
    }

    /// Returns whether there is no key at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.present.is_none() && self.old.is_empty()
    }

    /// Returns the text that is stored for `secret` in a column of a row.
    pub(crate) fn seal(
        &self,
        column: &'static str,
        row: &RowIdentity,
        secret: &str,
    ) -> Result<String, StoreError> {
        match &self.present {
            Some(key) => seal(key, column, row, secret),
            None => Ok(plain(secret)),
        }
    }

    /// Returns the secret that is stored as `stored` in a column of a row.
    pub(crate) fn open(
        &self,
        column: &'static str,
        row: &RowIdentity,
        stored: String,
    ) -> Result<String, StoreError> {
        if let Some(text) = stored.strip_prefix(PLAIN) {
            return Ok(text.to_owned());
        }
        if !stored.starts_with(SEALED) {
            return Ok(stored);
        }
        let unreadable = |why: &str| {
            StoreError::Corrupt(format!("the secret in {column} cannot be read: {why}"))
        };
        let (id, data) = envelope(&stored).ok_or_else(|| unreadable("its form is not known"))?;
        let missing =
            || unreadable(&format!("it is encrypted with the key {id}, which is not set"));
        let key = self.find(id).ok_or_else(missing)?;
        let changed = || unreadable("it was changed, or belongs to another row");
        let bytes = STANDARD.decode(data).map_err(|_| changed())?;
        let (nonce, ciphertext) = bytes.split_first_chunk::<NONCE_BYTES>().ok_or_else(changed)?;
        let payload = Payload { msg: ciphertext, aad: &row.associated_data(column) };
        let opened = key.cipher().decrypt(&XNonce::from(*nonce), payload).map_err(|_| changed())?;
        String::from_utf8(opened).map_err(|_| changed())
    }

    /// Returns whether `stored` is what would be stored now: with the present key, or in clear
    /// without one.
    pub(crate) fn is_current(&self, stored: &str) -> bool {
        let id = envelope(stored).map(|(id, _)| id);
        match &self.present {
            Some(key) => id == Some(key.id()),
            None => !stored.starts_with(SEALED),
        }
    }
}

/// Returns the envelope of `secret`.
fn seal(
    key: &SecretKey,
    column: &'static str,
    row: &RowIdentity,
    secret: &str,
) -> Result<String, StoreError> {
    let mut nonce = [0; NONCE_BYTES];
    getrandom::fill(&mut nonce).map_err(|err| StoreError::Database(Box::new(err)))?;
    let payload = Payload { msg: secret.as_bytes(), aad: &row.associated_data(column) };
    let too_long = |_| StoreError::Database("a secret is too long to be encrypted".into());
    let ciphertext = key.cipher().encrypt(&XNonce::from(nonce), payload).map_err(too_long)?;
    let data = STANDARD.encode([&nonce[..], &ciphertext].concat());
    Ok(format!("{VERSION_1}{}:{data}", key.id))
}

/// Returns the text that is stored for a secret that is not encrypted.
fn plain(secret: &str) -> String {
    match secret.starts_with(SEALED) || secret.starts_with(PLAIN) {
        true => format!("{PLAIN}{secret}"),
        false => secret.to_owned(),
    }
}

/// Returns the id of the key and the data of an envelope; `None` if `stored` is none of version 1.
fn envelope(stored: &str) -> Option<(&str, &str)> {
    stored.strip_prefix(VERSION_1)?.split_once(':')
}

/// What identifies a row: values that no other row of its table shares, and that stay the same for
/// as long as the row exists and when its database is copied. Numbers that the database assigns
/// do not: a copy may change them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowIdentity(Vec<u8>);

impl RowIdentity {
    pub(crate) fn new(values: &[&str]) -> RowIdentity {
        let mut bytes = Vec::new();
        for value in values {
            // As a text with U+0000 is stored (`sql.rs`).
            let value = value.replace('\0', "\u{fffd}");
            bytes.extend((value.len() as u64).to_be_bytes());
            bytes.extend(value.as_bytes());
        }
        RowIdentity(bytes)
    }

    /// Returns the associated data of an envelope in this row; `column` is `TABLE.COLUMN`.
    fn associated_data(&self, column: &'static str) -> Vec<u8> {
        [VERSION_1.as_bytes(), column.as_bytes(), b"\0", &self.0].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> SecretKey {
        SecretKey::parse(&hex::encode([byte; 32])).unwrap()
    }

    fn keys(present: Option<u8>, old: &[u8]) -> SecretKeys {
        SecretKeys { present: present.map(key), old: old.iter().copied().map(key).collect() }
    }

    fn row(name: &str) -> RowIdentity {
        RowIdentity::new(&[name, "websub"])
    }

    #[test]
    fn a_key_has_32_bytes_in_hexadecimal_or_base64() {
        let bytes: Vec<u8> = (100..132).collect();
        let padded = STANDARD.encode(&bytes);
        let key = SecretKey::parse(&hex::encode(&bytes)).unwrap();
        assert_eq!(SecretKey::parse(&padded).as_ref(), Some(&key));
        assert_eq!(SecretKey::parse(padded.trim_end_matches('=')).as_ref(), Some(&key));
        assert_eq!(SecretKey::parse(&hex::encode(&bytes).to_uppercase()), Some(key.clone()));
        assert_eq!(format!("{key:?}"), format!("SecretKey({})", key.id()));
        for bad in ["", "opensesame", &hex::encode(&bytes[1..]), &STANDARD.encode(&bytes[1..])] {
            assert_eq!(SecretKey::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn s36_an_envelope_opens_with_its_key_in_its_place_only() {
        let sealed = keys(Some(1), &[]).seal("t.secret", &row("a"), "opensesame").unwrap();
        assert!(sealed.starts_with(&format!("sealed:1:{}:", key(1).id())), "{sealed}");
        assert!(!sealed.contains("opensesame"));
        let again = keys(Some(1), &[]).seal("t.secret", &row("a"), "opensesame").unwrap();
        assert_ne!(sealed, again, "each has its own nonce");

        let mut changed = sealed.clone();
        changed.insert(changed.len() - 8, 'A');
        #[rustfmt::skip]
        let cases = [
            ("the present key",  keys(Some(1), &[]),  "t.secret", row("a"), &sealed, true),
            ("an old key",       keys(Some(2), &[1]), "t.secret", row("a"), &sealed, true),
            ("no present key",   keys(None, &[1]),    "t.secret", row("a"), &sealed, true),
            ("another key",      keys(Some(2), &[]),  "t.secret", row("a"), &sealed, false),
            ("no key",           keys(None, &[]),     "t.secret", row("a"), &sealed, false),
            ("another row",      keys(Some(1), &[]),  "t.secret", row("b"), &sealed, false),
            ("another column",   keys(Some(1), &[]),  "t.token",  row("a"), &sealed, false),
            ("another text",     keys(Some(1), &[]),  "t.secret", row("a"), &changed, false),
        ];
        for (why, keys, column, row, stored, is_opened) in cases {
            let opened = keys.open(column, &row, stored.clone());
            assert_eq!(opened.is_ok_and(|text| text == "opensesame"), is_opened, "{why}");
        }
    }

    #[test]
    fn a_secret_that_looks_like_an_envelope_is_none() {
        for secret in ["", "opensesame", "sealed:1:x:y", "plain:opensesame", "plain:sealed:1:"] {
            for written in [keys(None, &[]), keys(Some(1), &[])] {
                let stored = written.seal("t.secret", &row("a"), secret).unwrap();
                let opened = keys(Some(2), &[1]).open("t.secret", &row("a"), stored);
                assert_eq!(opened.unwrap(), secret);
            }
        }
    }

    #[test]
    fn rotation_rewrites_what_is_not_encrypted_with_the_present_key() {
        let sealed = keys(Some(1), &[]).seal("t.secret", &row("a"), "x").unwrap();
        for (keys, stored, is_current) in [
            (keys(Some(1), &[]), sealed.as_str(), true),
            (keys(Some(2), &[1]), sealed.as_str(), false),
            (keys(Some(1), &[]), "opensesame", false),
            (keys(None, &[]), "opensesame", true),
        ] {
            assert_eq!(keys.is_current(stored), is_current, "{keys:?} {stored}");
        }
    }
}
