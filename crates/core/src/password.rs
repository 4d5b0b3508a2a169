//! Passwords and their hashes.
//!
//! A password is chosen by a person, so it is hashed slowly: argon2id with the minimum parameters
//! of OWASP's "Password Storage Cheat Sheet" (19 MiB, two passes, one lane). A stored hash contains
//! its parameters, so that they can be raised without invalidating passwords. Hashing takes tens of
//! milliseconds and the whole memory, so callers run it outside the threads that serve requests
//! (`authoring::sign_in`).

use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use subtle::ConstantTimeEq;

/// Memory for one hash, in KiB.
const MEMORY_KIB: u32 = 19 * 1024;
/// The number of passes.
const PASSES: u32 = 2;
/// The number of lanes.
const LANES: u32 = 1;
/// The maximum parameters accepted in a stored hash; larger ones could only be an attack by
/// somebody with write access to the database.
const MOST_MEMORY_KIB: u32 = 1024 * 1024;
/// The length of a hash.
const HASH_BYTES: usize = 32;
/// The length of a salt.
pub const SALT_BYTES: usize = 16;
/// The minimum length in characters (NIST SP 800-63B `#memsecretver`: "at least 8").
pub const SHORTEST_CHARS: usize = 8;
/// The maximum length in bytes.
pub const LONGEST_BYTES: usize = 1_024;

/// A password in clear text. It cannot be printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

/// Why a text is not accepted as a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPassword {
    /// The password is too short.
    #[error("a password must have at least {SHORTEST_CHARS} characters")]
    TooShort,
    /// The password is too long.
    #[error("a password cannot be longer than {LONGEST_BYTES} bytes")]
    TooLong,
    /// The password contains a character that no form can send.
    #[error("a password cannot contain control characters")]
    Control,
}

impl BadPassword {
    /// A stable code, listed in `docs/errors.md`.
    pub fn code(self) -> &'static str {
        match self {
            Self::TooShort | Self::TooLong | Self::Control => "bad_password",
        }
    }
}

impl Password {
    /// Checks a password that a person chose.
    pub fn chosen(text: &str) -> Result<Password, BadPassword> {
        if text.chars().count() < SHORTEST_CHARS {
            return Err(BadPassword::TooShort);
        }
        if text.len() > LONGEST_BYTES {
            return Err(BadPassword::TooLong);
        }
        if text.chars().any(char::is_control) {
            return Err(BadPassword::Control);
        }
        Ok(Password(text.to_owned()))
    }

    /// Checks a password sent to sign in; `None` if it is longer than any password.
    pub fn sent(text: &str) -> Option<Password> {
        (text.len() <= LONGEST_BYTES).then(|| Password(text.to_owned()))
    }

    /// Formats 130 random bits as a password that is easy to type: 26 letters and digits in groups.
    pub fn generated(random: [u8; 26]) -> Password {
        // Without i, l, o and u, which are easily confused or form words (Crockford).
        const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
        let letters: Vec<char> =
            random.iter().map(|byte| LETTERS[usize::from(*byte) % 32].into()).collect();
        let groups: Vec<String> = letters.chunks(6).map(|group| group.iter().collect()).collect();
        Password(groups.join("-"))
    }

    /// The text, to be shown to its owner once.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Password(…)")
    }
}

/// The stored hash of a password: `$argon2id$v=19$m=…,t=…,p=…$SALT$HASH` (the PHC string format).
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(String);

impl PasswordHash {
    /// Hashes a password. This takes tens of milliseconds.
    pub fn from_password(password: &Password, salt: [u8; SALT_BYTES]) -> PasswordHash {
        let cost = (MEMORY_KIB, PASSES, LANES);
        let hash = hash(password, &salt, cost).expect("our own cost and salt are allowed");
        let (salt, hash) = (STANDARD_NO_PAD.encode(salt), STANDARD_NO_PAD.encode(hash));
        PasswordHash(format!("$argon2id$v=19$m={MEMORY_KIB},t={PASSES},p={LANES}${salt}${hash}"))
    }

    /// A hash that matches no password and takes as long to verify, for logins that do not exist
    /// (S33).
    pub fn of_nobody() -> PasswordHash {
        let (salt, hash) =
            (STANDARD_NO_PAD.encode([0; SALT_BYTES]), STANDARD_NO_PAD.encode([0; HASH_BYTES]));
        PasswordHash(format!("$argon2id$v=19$m={MEMORY_KIB},t={PASSES},p={LANES}${salt}${hash}"))
    }

    /// The stored form.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Parses the stored form; `None` if it is invalid.
    pub fn kept(text: String) -> Option<PasswordHash> {
        read(&text).is_some().then_some(PasswordHash(text))
    }

    /// Whether this is the hash of `password`. Takes as long as hashing, and compares in constant
    /// time.
    pub fn matches(&self, password: &Password) -> bool {
        let Some((cost, salt, kept)) = read(&self.0) else { return false };
        let hash = hash(password, &salt, cost);
        hash.is_some_and(|hash| hash.ct_eq(kept.as_slice()).into())
    }
}

impl std::fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PasswordHash(…)")
    }
}

/// Memory in KiB, passes and lanes.
type Cost = (u32, u32, u32);

fn hash(
    password: &Password,
    salt: &[u8],
    (memory, passes, lanes): Cost,
) -> Option<[u8; HASH_BYTES]> {
    let params = Params::new(memory, passes, lanes, Some(HASH_BYTES)).ok()?;
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let mut hash = [0; HASH_BYTES];
    argon2.hash_password_into(password.0.as_bytes(), salt, &mut hash).ok()?;
    Some(hash)
}

/// The parameters, the salt and the hash.
fn read(text: &str) -> Option<(Cost, Vec<u8>, Vec<u8>)> {
    let mut parts = text.strip_prefix("$argon2id$v=19$")?.split('$');
    let mut cost = parts.next()?.split(',');
    let mut number = |name: &str| cost.next()?.strip_prefix(name)?.parse::<u32>().ok();
    let cost = (number("m=")?, number("t=")?, number("p=")?);
    let salt = STANDARD_NO_PAD.decode(parts.next()?).ok()?;
    let hash = STANDARD_NO_PAD.decode(parts.next()?).ok()?;
    let is_sound = parts.next().is_none() && hash.len() == HASH_BYTES && cost.0 <= MOST_MEMORY_KIB;
    is_sound.then_some((cost, salt, hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s36_of_a_password_a_slow_hash_is_kept_that_only_it_matches() {
        let password = Password::chosen("correct horse").unwrap();
        let hash = PasswordHash::from_password(&password, [7; SALT_BYTES]);
        assert!(hash.as_str().starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{}", hash.as_str());
        assert!(!hash.as_str().contains("correct"));
        let kept = PasswordHash::kept(hash.as_str().to_owned()).unwrap();
        assert!(kept.matches(&password));
        assert!(!kept.matches(&Password::sent("correct horsf").unwrap()));
        assert!(!PasswordHash::of_nobody().matches(&password));
        assert_ne!(
            hash,
            PasswordHash::from_password(&password, [8; SALT_BYTES]),
            "salts tell them apart"
        );
        assert_eq!(format!("{password:?} {hash:?}"), "Password(…) PasswordHash(…)");
    }

    #[test]
    fn a_hash_made_by_the_reference_implementation_is_known() {
        // Its own test: "password", "somesalt", two passes over 64 MiB, one lane.
        let made = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ\
                    $CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
        let kept = PasswordHash::kept(made.to_owned()).unwrap();
        assert!(kept.matches(&Password::sent("password").unwrap()));
        assert!(!kept.matches(&Password::sent("Password").unwrap()));
        let none = ["", "plain", "$argon2i$v=19$m=1,t=1,p=1$AA$AA", "$argon2id$v=19$m=9$A$A"];
        for text in none.into_iter().chain(["$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$AAAA"]) {
            assert_eq!(PasswordHash::kept(text.to_owned()), None, "{text}");
        }
    }

    #[test]
    fn passwords_are_long_enough_to_be_some_and_short_enough_to_be_typed() {
        let long = "x".repeat(LONGEST_BYTES + 1);
        let cases = [
            ("eightchr", Ok(())),
            ("größer!!", Ok(())),
            ("seven77", Err(BadPassword::TooShort)),
            (&long, Err(BadPassword::TooLong)),
            ("line\nline", Err(BadPassword::Control)),
        ];
        for (text, want) in cases {
            assert_eq!(Password::chosen(text).map(drop), want, "{text}");
        }
        assert!(Password::sent(&long).is_none() && Password::sent("").is_some());
        let made = Password::generated([3; 26]);
        assert_eq!(made.reveal().len(), 30);
        assert!(Password::chosen(made.reveal()).is_ok());
    }
}
