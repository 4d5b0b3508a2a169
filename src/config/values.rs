//! The kinds of values of settings, and their parsers.
//!
//! The accepted values of a kind complete the sentence "NAME must be …"; the reader adds the name,
//! the default and the place where the value was set.

use std::fmt::{self, Display};
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use tracing_subscriber::filter::{EnvFilter, LevelFilter};
use url::Url;

use crate::document_budget::SMALLEST_BUDGET_BYTES;
use crate::http::{AnonymousAccess, CloudAliases};
use feedgate_core::collection::ConfiguredCollection;
use feedgate_core::host_groups::HostGroups;
use feedgate_core::password::Password;
use feedgate_core::ping::TimeUnit;
use feedgate_core::ping_forwarding::PingTarget;
use feedgate_core::publisher_secrets::PublisherSecrets;
use feedgate_protocol::signature::SignatureMethod;
use feedgate_store::SecretKey;

use super::{LogFormat, collections};

/// A parsed value, or an additional explanation of what is wrong with the text; empty if there is
/// nothing to add.
pub(super) type Parsed<T> = Result<T, String>;

/// A kind of value. The text is trimmed, and empty if the setting is not set.
pub(super) enum ValueKind<T> {
    /// A whole number in a range.
    Number { unit: &'static str, min: u64, max: u64, convert: fn(u64) -> T },
    /// Any other value.
    Text { expected: &'static str, parse: fn(&str) -> Parsed<T> },
}

/// The accepted values; completes the sentence "NAME must be …".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// A whole number in this range.
    Number {
        /// The unit, in the plural; may be empty.
        unit: &'static str,
        /// The minimum.
        min: u64,
        /// The maximum.
        max: u64,
    },
    /// Any other value, described in words.
    Text(&'static str),
}

impl Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expected::Number { unit: "", min, max } => write!(f, "a number from {min} to {max}"),
            Expected::Number { unit, min, max } => {
                write!(f, "a number of {unit} from {min} to {max}")
            }
            Expected::Text(text) => f.write_str(text),
        }
    }
}

impl<T> ValueKind<T> {
    /// Returns the accepted values.
    pub(super) const fn expected(&self) -> Expected {
        match self {
            ValueKind::Number { unit, min, max, .. } => {
                Expected::Number { unit, min: *min, max: *max }
            }
            ValueKind::Text { expected, .. } => Expected::Text(expected),
        }
    }

    /// Parses a value.
    pub(super) fn parse(&self, text: &str) -> Parsed<T> {
        match self {
            ValueKind::Number { min, max, convert, .. } => {
                let number = text.parse().ok().filter(|number| (min..=max).contains(&number));
                number.map(convert).ok_or_else(String::new)
            }
            ValueKind::Text { parse, .. } => parse(text),
        }
    }
}

/// A type that numbers in the range of a setting are converted into.
pub(super) trait FromNumber {
    fn from_number(number: u64) -> Self;
}

impl FromNumber for u32 {
    fn from_number(number: u64) -> u32 {
        u32::try_from(number).unwrap_or(u32::MAX)
    }
}

impl FromNumber for u64 {
    fn from_number(number: u64) -> u64 {
        number
    }
}

impl FromNumber for i64 {
    fn from_number(number: u64) -> i64 {
        i64::try_from(number).unwrap_or(i64::MAX)
    }
}

impl FromNumber for usize {
    fn from_number(number: u64) -> usize {
        usize::try_from(number).unwrap_or(usize::MAX)
    }
}

/// Declares a number of `unit` (in the plural; may be empty).
pub(super) const fn number<T: FromNumber>(
    unit: &'static str,
    range: RangeInclusive<u64>,
) -> ValueKind<T> {
    ValueKind::Number { unit, min: *range.start(), max: *range.end(), convert: T::from_number }
}

/// Declares a number of `unit`, where 0 means no limit.
pub(super) const fn limit<T: FromNumber>(
    unit: &'static str,
    range: RangeInclusive<u64>,
) -> ValueKind<Option<T>> {
    let convert = |number| (number > 0).then(|| T::from_number(number));
    ValueKind::Number { unit, min: *range.start(), max: *range.end(), convert }
}

pub(super) const fn milliseconds(range: RangeInclusive<u64>) -> ValueKind<Duration> {
    let (min, max) = (*range.start(), *range.end());
    ValueKind::Number { unit: "milliseconds", min, max, convert: Duration::from_millis }
}

pub(super) const fn seconds(range: RangeInclusive<u64>) -> ValueKind<Duration> {
    let (min, max) = (*range.start(), *range.end());
    ValueKind::Number { unit: "seconds", min, max, convert: Duration::from_secs }
}

pub(super) const fn hours(range: RangeInclusive<u64>) -> ValueKind<Duration> {
    let convert = |hours| Duration::from_secs(3_600 * hours);
    ValueKind::Number { unit: "hours", min: *range.start(), max: *range.end(), convert }
}

pub(super) const fn days(range: RangeInclusive<u64>) -> ValueKind<Duration> {
    let convert = |days| Duration::from_secs(86_400 * days);
    ValueKind::Number { unit: "days", min: *range.start(), max: *range.end(), convert }
}

/// Declares a number of days, where 0 means forever.
pub(super) const fn days_or_forever(range: RangeInclusive<u64>) -> ValueKind<Option<Duration>> {
    let convert = |days| (days > 0).then(|| Duration::from_secs(86_400 * days));
    ValueKind::Number { unit: "days", min: *range.start(), max: *range.end(), convert }
}

pub(super) const SWITCH: ValueKind<bool> = ValueKind::Text {
    expected: "`on` or `off`",
    parse: |text| match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(String::new()),
    },
};

pub(super) const LINE: ValueKind<Option<String>> = ValueKind::Text {
    expected: "one line of text without control characters",
    parse: |text| match text.chars().find(|letter| letter.is_control()) {
        Some(control) => Err(format!("it contains U+{:04X}", u32::from(control))),
        None => Ok(non_empty(text).map(str::to_owned)),
    },
};

pub(super) const FILE: ValueKind<Option<PathBuf>> = ValueKind::Text {
    expected: "the path of a file",
    parse: |text| Ok(non_empty(text).map(PathBuf::from)),
};

pub(super) const ADDRESS: ValueKind<SocketAddr> = ValueKind::Text {
    expected: "an address and a port, such as `127.0.0.1:8080`",
    parse: |text| text.parse().map_err(|_| String::new()),
};

pub(super) const OPTIONAL_ADDRESS: ValueKind<Option<SocketAddr>> = ValueKind::Text {
    expected: "an address and a port, such as `127.0.0.1:8081`",
    parse: |text| non_empty(text).map(|text| text.parse().map_err(|_| String::new())).transpose(),
};

pub(super) const DOCUMENT_MEMORY: ValueKind<Option<u64>> = ValueKind::Text {
    expected: "a number of bytes from 67108864 (64 MiB)",
    parse: |text| {
        if text.is_empty() {
            return Ok(None);
        }
        let bytes = text.parse().ok().filter(|bytes| *bytes >= SMALLEST_BUDGET_BYTES);
        bytes.map(Some).ok_or_else(String::new)
    },
};

pub(super) const MIN_FREE: ValueKind<Option<u64>> = ValueKind::Text {
    expected: "a number of bytes",
    parse: |text| non_empty(text).map(|text| text.parse().map_err(|_| String::new())).transpose(),
};

pub(super) const PUBLIC_URL: ValueKind<Option<Url>> = ValueKind::Text {
    expected: "an http or https URL without a query and credentials; each part of its path has only \
               letters, digits, `-`, `.`, `_` and `~`",
    parse: |text| {
        let Some(text) = non_empty(text) else { return Ok(None) };
        let mut url = Url::parse(text).map_err(|err| err.to_string())?;
        // The paths of requests are compared with this one, so that it has a single spelling.
        let folder = url.path().trim_end_matches('/').to_owned();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
        let is_part = |part: &str| !part.is_empty() && part.chars().all(is_plain);
        let is_plain_path = folder.split('/').skip(1).all(is_part);
        url.set_path(&format!("{folder}/"));
        let is_bare = url.query().is_none() && url.fragment().is_none();
        let is_web = matches!(url.scheme(), "http" | "https");
        let is_anonymous = url.username().is_empty() && url.password().is_none();
        let is_valid = is_plain_path && is_bare && is_web && is_anonymous;
        if is_valid { Ok(Some(url)) } else { Err(String::new()) }
    },
};

pub(super) const URLS: ValueKind<Vec<Url>> = ValueKind::Text {
    expected: "URLs separated by commas, such as `https://example.org/blog`",
    parse: |text| list(text, "a URL", |part| Url::parse(part).ok()),
};

pub(super) const NETWORKS: ValueKind<Vec<IpNet>> = ValueKind::Text {
    expected: "networks or addresses separated by commas, such as `10.0.0.0/8,fd00::1`",
    parse: |text| list(text, "a network", network),
};

pub(super) const DATABASE: ValueKind<String> = ValueKind::Text {
    expected: "`sqlite:FOLDER`, `sqlite:FILE.db` or `postgres://USER:PASSWORD@HOST/DATABASE`",
    parse: database,
};

pub(super) const COPY_SOURCE: ValueKind<Option<String>> = ValueKind::Text {
    expected: "`sqlite:FOLDER`, `sqlite:FILE.db` or `postgres://USER:PASSWORD@HOST/DATABASE`",
    parse: |text| match non_empty(text) {
        Some(text) => database(text).map(Some),
        None => Ok(None),
    },
};

pub(super) const PASSWORD: ValueKind<Option<Password>> = ValueKind::Text {
    expected: "a password",
    parse: |text| match non_empty(text) {
        Some(text) => Password::sent(text).map(Some).ok_or_else(String::new),
        None => Ok(None),
    },
};

pub(super) const HOST_GROUPS: ValueKind<Vec<(String, Option<Duration>)>> = ValueKind::Text {
    expected: "domains separated by commas, such as `example.org=5,example.net`",
    parse: |text| HostGroups::parse(text).map_err(|part| not(&part, "a domain")),
};

pub(super) const PUBLISHER_SECRETS: ValueKind<PublisherSecrets> = ValueKind::Text {
    expected: "domains with their secrets separated by commas, such as `example.org=SECRET`",
    parse: PublisherSecrets::parse,
};

pub(super) const SECRETS_KEY: ValueKind<Option<SecretKey>> = ValueKind::Text {
    expected: "a key of 32 random bytes in base64 or hexadecimal, as `openssl rand -base64 32` prints it",
    parse: |text| match non_empty(text) {
        Some(text) => SecretKey::parse(text).map(Some).ok_or_else(String::new),
        None => Ok(None),
    },
};

pub(super) const SECRETS_KEYS: ValueKind<Vec<SecretKey>> = ValueKind::Text {
    expected: "keys of 32 bytes in base64 or hexadecimal, separated by commas",
    parse: |text| list(text, "a key", SecretKey::parse),
};

pub(super) const PING_TARGETS: ValueKind<Vec<PingTarget>> = ValueKind::Text {
    expected: "URLs separated by commas, each with `get=` before it if it is requested with GET",
    parse: |text| list(text, "a ping target", PingTarget::parse),
};

pub(super) const ANONYMOUS: ValueKind<AnonymousAccess> = ValueKind::Text {
    expected: "`none`, or some of `hub`, `rsscloud`, `pings`, `storage`, `views`, `try` \
               and `inner-addresses`, separated by commas",
    parse: |text| {
        AnonymousAccess::parse(text).map_err(|part| not(&part, "something that can be allowed"))
    },
};

pub(super) const RSSCLOUD_PATHS: ValueKind<CloudAliases> = ValueKind::Text {
    expected: "paths separated by commas, such as \
               `/cloud/register,/cloud/changed=ping,/xmlrpc=call`",
    parse: |text| {
        let mut aliases = CloudAliases::default();
        aliases.add_paths(text).map_err(|part| not(&part, "a path with a known meaning"))?;
        Ok(aliases)
    },
};

pub(super) const RSSCLOUD_PROCEDURES: ValueKind<CloudAliases> = ValueKind::Text {
    expected: "procedures separated by commas, such as `cloud.register,cloud.changed=ping`",
    parse: |text| {
        let mut aliases = CloudAliases::default();
        aliases
            .add_procedures(text)
            .map_err(|part| not(&part, "a procedure with a known meaning"))?;
        Ok(aliases)
    },
};

pub(super) const SIGNATURE: ValueKind<SignatureMethod> = ValueKind::Text {
    expected: "`sha1`, `sha256`, `sha384` or `sha512`",
    parse: |text| SignatureMethod::from_word(text).ok_or_else(String::new),
};

pub(super) const COLLECTIONS: ValueKind<Vec<ConfiguredCollection>> = ValueKind::Text {
    expected: "a JSON array of collections, such as \
               `[{\"name\": \"news\", \"topics\": [\"https://example.org/feed\"]}]`",
    parse: |text| non_empty(text).map_or_else(|| Ok(Vec::new()), collections::parse),
};

pub(super) const WHEN_UNIT: ValueKind<TimeUnit> = ValueKind::Text {
    expected: "`minutes` or `seconds`",
    parse: |text| TimeUnit::from_word(text).ok_or_else(String::new),
};

pub(super) const LOG_FILTER: ValueKind<String> = ValueKind::Text {
    expected: "a level such as `info`, or levels such as `info,feedgate=debug`",
    parse: |text| {
        // A single word that is not a level would be read as the name of a module, and nothing
        // would be logged.
        let is_bare = |part: &&str| !part.is_empty() && !part.contains(['=', '[', ']', '{', '}']);
        if let Some(word) =
            text.split(',').filter(is_bare).find(|word| word.parse::<LevelFilter>().is_err())
        {
            return Err(not(word, "a level"));
        }
        EnvFilter::try_new(text).map_err(|err| err.to_string())?;
        Ok(text.to_owned())
    },
};

pub(super) const LOG_FORMAT: ValueKind<LogFormat> = ValueKind::Text {
    expected: "`text` or `json`",
    parse: |text| match text {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err(String::new()),
    },
};

fn non_empty(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

/// Parses a comma-separated list. `what` describes one item in error messages.
fn list<T>(text: &str, what: &str, parse: impl Fn(&str) -> Option<T>) -> Parsed<Vec<T>> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| parse(part).ok_or_else(|| not(part, what))).collect()
}

fn not(part: &str, what: &str) -> String {
    format!("{part:?} is not {what}")
}

/// Parses a network. A single address is a network of one.
fn database(text: &str) -> Parsed<String> {
    let schemes = ["sqlite:", "postgres://", "postgresql://"];
    let is_known = schemes.iter().any(|scheme| text.starts_with(scheme));
    if is_known { Ok(text.to_owned()) } else { Err(String::new()) }
}

fn network(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| text.parse().map(|addr: IpAddr| IpNet::from(addr)).ok())
}
