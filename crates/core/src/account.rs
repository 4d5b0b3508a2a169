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
pub enum Right {
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

impl Right {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Right; 6] = [
        Right::Subscribe,
        Right::Unsubscribe,
        Right::List,
        Right::Retrieve,
        Right::Admin,
        Right::Publish,
    ];

    /// Its name on the wire and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Right::Subscribe => "subscribe",
            Right::Unsubscribe => "unsubscribe",
            Right::List => "list",
            Right::Retrieve => "retrieve",
            Right::Admin => "admin",
            Right::Publish => "publish",
        }
    }

    /// Reads its name.
    pub fn from_word(word: &str) -> Option<Right> {
        Right::ALL.into_iter().find(|right| right.as_str() == word)
    }
}

/// A set of rights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rights(u8);

impl Rights {
    /// Every right there is.
    pub fn all() -> Rights {
        Right::ALL.into_iter().collect()
    }

    /// Whether `right` is among them.
    pub fn allow(self, right: Right) -> bool {
        self.0 & (1 << right as u8) != 0
    }

    /// The names, separated by single spaces: the form kept in the store.
    pub fn to_words(self) -> String {
        let held = Right::ALL.into_iter().filter(|right| self.allow(*right));
        held.map(Right::as_str).collect::<Vec<_>>().join(" ")
    }

    /// Reads names separated by spaces or commas; an unknown one is returned as the
    /// error.
    pub fn from_words(words: &str) -> Result<Rights, String> {
        let words = words.split([' ', ',']).filter(|word| !word.is_empty());
        words.map(|word| Right::from_word(word).ok_or_else(|| word.to_owned())).collect()
    }
}

impl FromIterator<Right> for Rights {
    fn from_iter<I: IntoIterator<Item = Right>>(rights: I) -> Rights {
        Rights(rights.into_iter().fold(0, |set, right| set | 1 << right as u8))
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
    pub rights: Rights,
}

/// A token on its way into the store.
#[derive(Clone, PartialEq, Eq)]
pub struct NewToken {
    /// The login of its account.
    pub login: String,
    /// What its owner calls it.
    pub name: String,
    /// What it allows.
    pub rights: Rights,
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
    pub rights: Rights,
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
    pub fn of(token: &str) -> TokenHash {
        use sha2::{Digest, Sha256};
        TokenHash(Sha256::digest(token.as_bytes()).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_survive_the_store() {
        let some: Rights = [Right::List, Right::Subscribe].into_iter().collect();
        assert_eq!(some.to_words(), "subscribe list");
        assert_eq!(Rights::from_words("subscribe,list"), Ok(some));
        assert_eq!(Rights::from_words("list fly"), Err("fly".to_owned()));
        assert!(!some.allow(Right::Admin));
    }
}
