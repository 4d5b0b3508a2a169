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
    /// Create and revoke tokens. Superfeedr has no such scope.
    Tokens,
}

impl Scope {
    /// All scopes, in display order.
    pub const ALL: [Scope; 7] = [
        Scope::Subscribe,
        Scope::Unsubscribe,
        Scope::List,
        Scope::Retrieve,
        Scope::Admin,
        Scope::Publish,
        Scope::Tokens,
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
            Scope::Tokens => "tokens",
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

    /// Those of a token for which none are chosen, on the command line: the rights of a subscriber, and
    /// the management of tokens within them.
    pub fn of_owner() -> Scopes {
        Scopes::of_subscriber().with(Scope::Tokens)
    }

    /// Those of Superfeedr, which a program that subscribes needs.
    pub fn of_subscriber() -> Scopes {
        [Scope::Subscribe, Scope::Unsubscribe, Scope::List, Scope::Retrieve].into_iter().collect()
    }

    /// The set and `scope`.
    pub fn with(self, scope: Scope) -> Scopes {
        Scopes(self.0 | 1 << scope as u8)
    }

    /// The set without `scope`.
    pub fn without(self, scope: Scope) -> Scopes {
        Scopes(self.0 & !(1 << scope as u8))
    }

    /// Returns a scope of `others` that is not in this set, if there is one.
    pub fn first_missing(self, others: Scopes) -> Option<Scope> {
        Scope::ALL.into_iter().find(|scope| others.allow(*scope) && !self.allow(*scope))
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

/// The number of a token in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TokenId(pub i64);

/// The account and the scopes of a valid token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The account of the token.
    pub account: AccountId,
    /// The login of the account.
    pub login: String,
    /// The scopes of the token.
    pub scopes: Scopes,
    /// The token.
    pub token: TokenId,
    /// When the token ends; `None`: it is valid until it is revoked.
    pub expires_at: Option<DateTime<Utc>>,
}

impl Access {
    /// Returns the end of a token that is created with this one, for which `wanted` was requested: no
    /// later than that of this token.
    pub fn end_of_child(&self, wanted: Option<DateTime<Utc>>) -> Option<DateTime<Utc>> {
        [wanted, self.expires_at].into_iter().flatten().min()
    }

    /// Returns whether this token may revoke another one of its account: itself, and tokens that it
    /// could have created, except those that it was created with. `tokens` are those of the account.
    pub fn may_revoke(&self, token: &TokenInfo, tokens: &[TokenInfo]) -> bool {
        let id = self.token.0;
        let outlives = match (token.expires_at, self.expires_at) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(its), Some(own)) => its > own,
        };
        let is_weaker = self.scopes.first_missing(token.scopes).is_none() && !outlives;
        token.id == id || (is_weaker && !is_ancestor(token.id, id, tokens))
    }
}

/// Returns whether the token `id` was created with `ancestor`, or with one that was.
fn is_ancestor(ancestor: i64, id: i64, tokens: &[TokenInfo]) -> bool {
    let parent_of = |id: i64| tokens.iter().find(|held| held.id == id)?.parent;
    let line = std::iter::successors(parent_of(id), |parent| parent_of(*parent));
    // A parent is older than its child, so that the line ends.
    line.take(tokens.len()).any(|parent| parent == ancestor)
}

/// The most valid tokens of an account, unless the command line creates more; and how many that have ended
/// are listed at most. A program that makes a token for each of its users fits, and the list of all is read
/// when one is revoked.
pub const MOST_TOKENS: usize = 1_000;

/// What became of a token that is created with another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildTokenOutcome {
    /// The token was created, with this number.
    Created(TokenId),
    /// The token that creates it is not valid any more.
    ParentEnded,
    /// The account has [`MOST_TOKENS`] valid ones.
    TooMany,
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
    /// The number of the token with which it was created, and with which it ends.
    pub parent: Option<i64>,
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
    /// The number of the account.
    pub id: AccountId,
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

    #[test]
    fn h07_a_token_revokes_itself_and_what_it_could_have_created() {
        let at = |day: i64| DateTime::from_timestamp(day * 86_400, 0).unwrap();
        let token = |id, scopes, expires_at, parent| TokenInfo {
            id,
            login: "ada".to_owned(),
            name: String::new(),
            scopes,
            created_at: at(0),
            revoked_at: None,
            expires_at,
            used_at: None,
            parent,
        };
        let (owner, list) = (Scopes::of_owner(), [Scope::List].into_iter().collect::<Scopes>());
        let tokens = [
            token(1, owner, None, None),
            token(2, owner, None, Some(1)),
            token(3, owner, Some(at(1)), Some(2)),
            token(4, list, Some(at(1)), None),
            token(5, list, None, None),
            token(6, owner.with(Scope::Admin), None, None),
        ];
        let revoked_by = |id: i64, scopes: Scopes, expires_at| {
            let (account, login) = (AccountId(1), "ada".to_owned());
            let access = Access { account, login, scopes, token: TokenId(id), expires_at };
            let held = tokens.iter().filter(|token| access.may_revoke(token, &tokens));
            held.map(|token| token.id).collect::<Vec<_>>()
        };
        assert_eq!(revoked_by(1, owner, None), [1, 2, 3, 4, 5]);
        assert_eq!(revoked_by(2, owner, None), [2, 3, 4, 5], "not the one that it comes from");
        assert_eq!(revoked_by(3, owner, Some(at(1))), [3, 4], "nor one that ends later");
        assert_eq!(revoked_by(4, list.with(Scope::Tokens), Some(at(1))), [4]);
        assert_eq!(revoked_by(6, Scopes::all(), None), [1, 2, 3, 4, 5, 6]);
    }
}
