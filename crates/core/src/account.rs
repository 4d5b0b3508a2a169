//! Accounts, their tokens, and the scopes of tokens.

use chrono::{DateTime, TimeDelta, Utc};

/// The number of an account in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccountId(pub i64);

impl AccountId {
    /// Stands for no account: subscriptions made without authentication have this number.
    pub const NOBODY: AccountId = AccountId(0);
}

/// One permission of a token (Superfeedr's API, "Token rights").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Create and change subscriptions.
    Subscribe,
    /// End subscriptions.
    Unsubscribe,
    /// See subscriptions.
    List,
    /// Read entries: retrieve, stream and replay.
    Retrieve,
    /// Manage accounts and the gateway.
    Admin,
    /// Save feeds below `/storage` in the folder of the account. Superfeedr has no such scope.
    Publish,
}

impl Scope {
    /// All scopes, in display order.
    pub const ALL: [Scope; 6] = [
        Scope::Subscribe,
        Scope::Unsubscribe,
        Scope::List,
        Scope::Retrieve,
        Scope::Admin,
        Scope::Publish,
    ];

    /// The name on the wire and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Subscribe => "subscribe",
            Scope::Unsubscribe => "unsubscribe",
            Scope::List => "list",
            Scope::Retrieve => "retrieve",
            Scope::Admin => "admin",
            Scope::Publish => "publish",
        }
    }

    /// Parses the name.
    pub fn from_word(word: &str) -> Option<Scope> {
        Scope::ALL.into_iter().find(|scope| scope.as_str() == word)
    }
}

/// A set of scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scopes(u8);

impl Scopes {
    /// Every scope.
    pub fn all() -> Scopes {
        Scope::ALL.into_iter().collect()
    }

    /// Whether the set contains `scope`.
    pub fn allow(self, scope: Scope) -> bool {
        self.0 & (1 << scope as u8) != 0
    }

    /// The names, separated by single spaces, as stored.
    pub fn to_words(self) -> String {
        let held = Scope::ALL.into_iter().filter(|scope| self.allow(*scope));
        held.map(Scope::as_str).collect::<Vec<_>>().join(" ")
    }

    /// Parses names separated by spaces or commas. An unknown name is returned as the error.
    pub fn from_words(words: &str) -> Result<Scopes, String> {
        let words = words.split([' ', ',']).filter(|word| !word.is_empty());
        words.map(|word| Scope::from_word(word).ok_or_else(|| word.to_owned())).collect()
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Scopes {
        Scopes(scopes.into_iter().fold(0, |set, scope| set | 1 << scope as u8))
    }
}

/// The account and the scopes of a valid token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The account of the token.
    pub account: AccountId,
    /// The login of the account.
    pub login: String,
    /// The scopes of the token.
    pub scopes: Scopes,
}

/// A token to be stored.
#[derive(Clone, PartialEq, Eq)]
pub struct NewToken {
    /// The login of the account.
    pub login: String,
    /// The name that the owner gave the token.
    pub name: String,
    /// The scopes of the token.
    pub scopes: Scopes,
    /// The hash of the token.
    pub hash: TokenHash,
    /// When the token ends; `None`: it is valid until it is revoked.
    pub expires_at: Option<DateTime<Utc>>,
}

/// A token in a list, without the token itself, because only its hash is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenInfo {
    /// The number of the token.
    pub id: i64,
    /// The login of the account.
    pub login: String,
    /// The name that the owner gave the token.
    pub name: String,
    /// The scopes of the token.
    pub scopes: Scopes,
    /// When the token was created.
    pub created_at: DateTime<Utc>,
    /// When it was revoked, if it was.
    pub revoked_at: Option<DateTime<Utc>>,
    /// When it ends, if it does.
    pub expires_at: Option<DateTime<Utc>>,
    /// When it was last used, exact to an hour.
    pub used_at: Option<DateTime<Utc>>,
}

impl TokenInfo {
    /// Returns whether the token authenticates requests at `now`.
    pub fn is_valid(&self, now: DateTime<Utc>) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|at| at > now)
    }
}

/// An account in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountInfo {
    /// The login of the account.
    pub login: String,
    /// When the account was created.
    pub created_at: DateTime<Utc>,
    /// Whether the account has a password.
    pub has_password: bool,
    /// Whether the account was removed.
    pub is_removed: bool,
    /// Whether the account is deactivated.
    pub is_deactivated: bool,
    /// The number of tokens that have not been revoked.
    pub tokens: u64,
    /// The number of stored files.
    pub files: u64,
    /// The size of all stored files, in bytes.
    pub bytes: u64,
}

/// An account that is deactivated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeactivatedAccount {
    /// The number of the account.
    pub id: AccountId,
    /// Since when it is deactivated, which is also since when its subscriptions are paused.
    pub since: DateTime<Utc>,
}

/// What an account owns, which is deleted with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountHoldings {
    /// The number of subscriptions.
    pub subscriptions: u64,
    /// The number of tokens that have not been revoked.
    pub tokens: u64,
    /// The number of stored files.
    pub files: u64,
}

/// The SHA-256 of a token. A token has 256 random bits, so a plain hash suffices (S36), and a
/// lookup by the hash leaks no timing (S33).
#[derive(Clone, PartialEq, Eq)]
pub struct TokenHash(pub [u8; 32]);

impl TokenHash {
    /// Hashes `token`.
    pub fn from_token(token: &str) -> TokenHash {
        use sha2::{Digest, Sha256};
        TokenHash(Sha256::digest(token.as_bytes()).into())
    }
}

/// How long a session of the console lasts without being used (S39).
pub const SESSION_IDLE: TimeDelta = TimeDelta::days(30);

/// The SHA-256 of the cookie of a session, which has 256 random bits, as a token does.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionHash(pub [u8; 32]);

impl SessionHash {
    /// Hashes the value of a cookie.
    pub fn from_cookie(cookie: &str) -> SessionHash {
        SessionHash(TokenHash::from_token(cookie).0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_survive_the_store() {
        let some: Scopes = [Scope::List, Scope::Subscribe].into_iter().collect();
        assert_eq!(some.to_words(), "subscribe list");
        assert_eq!(Scopes::from_words("subscribe,list"), Ok(some));
        assert_eq!(Scopes::from_words("list fly"), Err("fly".to_owned()));
        assert!(!some.allow(Scope::Admin));
    }
}
