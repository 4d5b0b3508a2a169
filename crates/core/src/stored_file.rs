//! Feeds that are stored here for those who have no server of their own: "feed storage"
//! (seed 000, "Saving the feed through the cloud").
//!
//! A file belongs to an account and is served at `/storage/{login}/{name}`. Its name and
//! the login are path segments that need no encoding, so that the address is written in
//! one way only: addresses are what subscriptions go by.

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};

/// The file name for `saveRss`, which has no parameter for a name.
pub const DEFAULT_NAME: &str = "rss.xml";

/// The longest login or name, in characters.
const LONGEST_CHARS: usize = 64;

/// A segment of the address of a stored file: a login, or a file's name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathSegment(String);

/// Why a text cannot be one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" cannot be part of a URL: use up to {LONGEST_CHARS} ASCII letters, digits, \".\", \
     \"-\" and \"_\", and begin with a letter or a digit"
)]
pub struct BadPathSegment(pub String);

impl PathSegment {
    /// Reads a login.
    pub fn login(text: &str) -> Result<PathSegment, BadPathSegment> {
        let plain = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
        let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        if begins && text.len() <= LONGEST_CHARS && text.chars().all(plain) {
            return Ok(PathSegment(text.to_owned()));
        }
        // It is shown to whoever sent it, but not all of what may be very long.
        Err(BadPathSegment(text.chars().take(LONGEST_CHARS).collect()))
    }

    /// Reads a file's name: it ends in `.xml`.
    pub fn file(text: &str) -> Option<PathSegment> {
        PathSegment::login(text).ok().filter(|name| name.0.ends_with(".xml"))
    }

    /// The segment as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// How much an account may store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Bytes in one file.
    pub file_bytes: usize,
    /// Files.
    pub files: usize,
    /// Bytes in all of them.
    pub bytes: usize,
}

/// What a file must be for it to be replaced or removed: nobody overwrites what they have
/// not seen (RFC 9110 `#field.if-match`, `#field.if-none-match`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WriteCondition {
    /// Whatever it is.
    #[default]
    None,
    /// There is none.
    Absent,
    /// The file has one of these entity tags, without quotes; `*` matches any.
    Tagged(Vec<String>),
}

impl WriteCondition {
    /// Whether a file with this tag, or none, meets it.
    pub fn allows(&self, tag: Option<&str>) -> bool {
        match self {
            WriteCondition::None => true,
            WriteCondition::Absent => tag.is_none(),
            WriteCondition::Tagged(tags) => {
                tag.is_some_and(|held| tags.iter().any(|tag| tag == held || tag == "*"))
            }
        }
    }
}

/// The location of a stored file.
#[derive(Clone, Copy, Debug)]
pub struct FileLocation<'a> {
    /// The login of the account.
    pub login: &'a PathSegment,
    /// The name of the file.
    pub name: &'a PathSegment,
}

/// A file to be saved.
#[derive(Clone, Copy, Debug)]
pub struct FileToSave<'a> {
    /// Where to save it.
    pub location: FileLocation<'a>,
    /// Its content.
    pub content: &'a FileContent,
    /// The condition under which it is saved.
    pub condition: &'a WriteCondition,
    /// The quota of the account.
    pub quota: Quota,
}

/// The content of a file.
#[derive(Clone, PartialEq, Eq)]
pub struct FileContent {
    /// The `Content-Type` with which the file is served.
    pub media_type: String,
    /// The bytes as they were sent.
    pub body: Vec<u8>,
}

impl FileContent {
    /// Its strong entity tag, without quotes.
    pub fn tag(&self) -> String {
        hex::encode(&Sha256::digest(&self.body)[..16])
    }
}

impl std::fmt::Debug for FileContent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let length = self.body.len();
        f.debug_struct("FileContent")
            .field("media_type", &self.media_type)
            .field("bytes", &length)
            .finish()
    }
}

/// A file as it is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFile {
    /// The content.
    pub content: FileContent,
    /// Its strong entity tag, without quotes.
    pub tag: String,
    /// When it last became another.
    pub changed_at: DateTime<Utc>,
}

/// The result of saving a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveOutcome {
    /// The file was created.
    Made,
    /// The file was replaced.
    Replaced,
    /// The file was unchanged.
    Same,
    /// The file was not saved, because the quota of the account is exceeded.
    Full,
    /// The file was not saved, because the condition does not hold.
    Unmet,
    /// The file was not saved, because there is no such account.
    NoAccount,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_written_in_one_way_only() {
        let long = "x".repeat(LONGEST_CHARS + 1);
        let cases = [
            ("bull", true),
            ("Bull.2-x_y", true),
            ("", false),
            (".", false),
            ("..", false),
            ("-x", false),
            ("a/b", false),
            ("a b", false),
            ("a%20b", false),
            ("bü", false),
            (&long, false),
        ];
        for (text, want) in cases {
            assert_eq!(PathSegment::login(text).is_ok(), want, "{text}");
        }
        for (text, want) in
            [("rss.xml", true), ("rss", false), (".xml", false), ("a.xml.exe", false)]
        {
            assert_eq!(PathSegment::file(text).is_some(), want, "{text}");
        }
    }

    #[test]
    fn a_condition_is_about_the_tag() {
        let tagged = |tag: &str| WriteCondition::Tagged(vec!["x".to_owned(), tag.to_owned()]);
        let cases = [
            (WriteCondition::None, None, true),
            (WriteCondition::None, Some("a"), true),
            (WriteCondition::Absent, None, true),
            (WriteCondition::Absent, Some("a"), false),
            (tagged("a"), Some("a"), true),
            (tagged("a"), Some("b"), false),
            (tagged("a"), None, false),
            (tagged("*"), Some("b"), true),
            (tagged("*"), None, false),
        ];
        for (condition, tag, want) in cases {
            assert_eq!(condition.allows(tag), want, "{condition:?} of {tag:?}");
        }
    }
}
