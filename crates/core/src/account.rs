//! Who may do what: accounts and their tokens.

use chrono::{DateTime, Utc};

/// An account's number in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AccountId(pub i64);

impl AccountId {
    /// The number of no account: open subscriptions are kept under it.
    pub const NOBODY: AccountId = AccountId(0);
}

/// One thing a token may allow (Superfeedr's API, "Token rights").
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
    /// Manage accounts and the gateway itself.
    Admin,
    /// Save feeds in the account's own folder below `/storage`; ours, not Superfeedr's.
    Publish,
}

impl Scope {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Scope; 6] = [
        Scope::Subscribe,
        Scope::Unsubscribe,
        Scope::List,
        Scope::Retrieve,
        Scope::Admin,
        Scope::Publish,
    ];

    /// Its name on the wire and on the command line.
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

    /// Reads its name.
    pub fn from_word(word: &str) -> Option<Scope> {
        Scope::ALL.into_iter().find(|right| right.as_str() == word)
    }
}

/// A set of rights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scopes(u8);

impl Scopes {
    /// Every right there is.
    pub fn all() -> Scopes {
        Scope::ALL.into_iter().collect()
    }

    /// Whether `right` is among them.
    pub fn allow(self, right: Scope) -> bool {
        self.0 & (1 << right as u8) != 0
    }

    /// The names, separated by single spaces: the form kept in the store.
    pub fn to_words(self) -> String {
        let held = Scope::ALL.into_iter().filter(|right| self.allow(*right));
        held.map(Scope::as_str).collect::<Vec<_>>().join(" ")
    }

    /// Reads names separated by spaces or commas; an unknown one is returned as the
    /// error.
    pub fn from_words(words: &str) -> Result<Scopes, String> {
        let words = words.split([' ', ',']).filter(|word| !word.is_empty());
        words.map(|word| Scope::from_word(word).ok_or_else(|| word.to_owned())).collect()
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(rights: I) -> Scopes {
        Scopes(rights.into_iter().fold(0, |set, right| set | 1 << right as u8))
    }
}

/// What a valid token says about who sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The account it belongs to.
    pub account: AccountId,
    /// The account's login.
    pub login: String,
    /// What it allows.
    pub rights: Scopes,
}

/// A token on its way into the store.
#[derive(Clone, PartialEq, Eq)]
pub struct NewToken {
    /// The login of its account.
    pub login: String,
    /// What its owner calls it.
    pub name: String,
    /// What it allows.
    pub rights: Scopes,
    /// What is kept of it.
    pub hash: TokenHash,
}

/// A token as it is listed: never the token itself, of which only a hash is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenInfo {
    /// Its number.
    pub id: i64,
    /// The login of its account.
    pub login: String,
    /// What its owner calls it.
    pub name: String,
    /// What it allows.
    pub rights: Scopes,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it was revoked, if it was.
    pub revoked_at: Option<DateTime<Utc>>,
}

/// An account as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountInfo {
    /// What its owner signs in with.
    pub login: String,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// Whether it has a password.
    pub has_password: bool,
    /// How many live tokens it has.
    pub tokens: u64,
    /// How many files it stores.
    pub files: u64,
    /// How many bytes they have in all.
    pub bytes: u64,
}

/// The SHA-256 of a token. Tokens are 256 random bits, so a plain hash suffices
/// (rule S36), and looking one up by it leaks no timing (rule S33).
#[derive(Clone, PartialEq, Eq)]
pub struct TokenHash(pub [u8; 32]);

impl TokenHash {
    /// The hash of `token`.
    pub fn from_token(token: &str) -> TokenHash {
        use sha2::{Digest, Sha256};
        TokenHash(Sha256::digest(token.as_bytes()).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_survive_the_store() {
        let some: Scopes = [Scope::List, Scope::Subscribe].into_iter().collect();
        assert_eq!(some.to_words(), "subscribe list");
        assert_eq!(Scopes::from_words("subscribe,list"), Ok(some));
        assert_eq!(Scopes::from_words("list fly"), Err("fly".to_owned()));
        assert!(!some.allow(Scope::Admin));
    }
}
