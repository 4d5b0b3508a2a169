//! The table of settings: every name, its default, and what it is for.
//!
//! It is the one list. Unknown names are found by it, `feedgate check-config` prints
//! it, and a test holds `docs/operations.md` to it.

use super::Origin;

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its name in the environment. In the TOML file it is the same without
    /// `FEEDGATE_`, in lower case.
    pub name: &'static str,
    /// What it is when nobody sets it; empty for none.
    pub default: &'static str,
    /// Whether it may hold a password: it can also be given by naming a file in
    /// `…_FILE`, and is masked when shown.
    pub secret: bool,
}

/// What every name in the environment begins with.
pub(super) const PREFIX: &str = "FEEDGATE_";

/// All settings, in the order in which they are shown.
pub const SETTINGS: &[Setting] = &[
    plain("FEEDGATE_LISTEN", "127.0.0.1:8080"),
    plain("FEEDGATE_PUBLIC_URL", ""),
    secret("FEEDGATE_DATABASE", "sqlite:feedgate-data"),
    plain("FEEDGATE_DATABASE_CONNECTIONS", "8"),
    plain("FEEDGATE_TLS_CERT", ""),
    plain("FEEDGATE_TLS_KEY", ""),
    plain("FEEDGATE_TRUSTED_PROXIES", ""),
    plain("FEEDGATE_MAX_CONNECTIONS", "4096"),
    plain("FEEDGATE_HEADER_TIMEOUT_S", "10"),
    plain("FEEDGATE_DRAIN_S", "15"),
    plain("FEEDGATE_EGRESS_ALLOW_TOPIC_CIDRS", ""),
    plain("FEEDGATE_EGRESS_ALLOW_CALLBACK_CIDRS", ""),
    plain("FEEDGATE_FETCH_AT_ONCE", "64"),
    plain("FEEDGATE_FETCH_TIMEOUT_S", "30"),
    plain("FEEDGATE_BODY_LIMIT_BYTES", "10485760"),
    plain("FEEDGATE_HOST_SPACING_MS", "1000"),
    plain("FEEDGATE_LIMIT_GROUPS", ""),
    plain("FEEDGATE_CONTACT", ""),
    plain("FEEDGATE_BOT_ADDRESSES", ""),
    plain("FEEDGATE_PING_SPACING_MS", "1000"),
    plain("FEEDGATE_PING_WAIT", "off"),
    plain("FEEDGATE_PING_WAIT_S", "10"),
    plain("FEEDGATE_CLOUD_PATHS", ""),
    plain("FEEDGATE_CLOUD_PROCEDURES", ""),
    plain("FEEDGATE_CLOUD_EXPIRES", "on"),
    plain("FEEDGATE_MIN_PERIOD_S", "300"),
    plain("FEEDGATE_POLLS_PER_S", "50"),
    plain("FEEDGATE_BACKFILL_PAGES", "500"),
    plain("FEEDGATE_BACKFILL_ENTRIES", "20000"),
    plain("FEEDGATE_BACKFILL_BYTES", "268435456"),
    plain("FEEDGATE_PORN_RANK", "off"),
    plain("FEEDGATE_DELIVERY_AT_ONCE", "512"),
    plain("FEEDGATE_DELIVERY_PER_HOST", "8"),
    plain("FEEDGATE_DELIVERY_TIMEOUT_S", "10"),
    plain("FEEDGATE_SIGNATURE", "sha1"),
    plain("FEEDGATE_CLAIM_S", "60"),
    plain("FEEDGATE_PAGE_RECORDS", "50"),
    plain("FEEDGATE_PAGE_BYTES", "1048576"),
    plain("FEEDGATE_CHANGES_WHEN", "minutes"),
    plain("FEEDGATE_PINGS_KEEP_H", "168"),
    plain("FEEDGATE_HOURS_KEEP_DAYS", "0"),
    plain("FEEDGATE_PING_SINKS", ""),
    plain("FEEDGATE_PING_ONWARD", ""),
    plain("FEEDGATE_ARCHIVE_DAYS", "0"),
    plain("FEEDGATE_ARCHIVE_PAGES", "0"),
    plain("FEEDGATE_ARCHIVE_CACHE_BYTES", "67108864"),
    plain("FEEDGATE_COLLECT_ALL", "off"),
    plain("FEEDGATE_COLLECTIONS", ""),
    plain("FEEDGATE_STRANGER_CALLS_PER_MIN", "600"),
    plain(
        "FEEDGATE_METRICS_NETWORKS",
        "127.0.0.0/8,::1,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,fc00::/7",
    ),
    plain("FEEDGATE_PUBLIC_VIEWS", "on"),
    plain("FEEDGATE_STORAGE_FILE_BYTES", "1048576"),
    plain("FEEDGATE_STORAGE_FILES", "20"),
    plain("FEEDGATE_STORAGE_BYTES", "10485760"),
    secret("FEEDGATE_PASSWORD", ""),
    plain("FEEDGATE_EVENTS_DAYS", "14"),
    plain("FEEDGATE_EVENTS_OF_A_KIND", "20000"),
    plain("FEEDGATE_LOG", "info"),
    plain("FEEDGATE_LOG_FORMAT", "text"),
];

const fn plain(name: &'static str, default: &'static str) -> Setting {
    Setting { name, default, secret: false }
}

const fn secret(name: &'static str, default: &'static str) -> Setting {
    Setting { name, default, secret: true }
}

impl Setting {
    /// The setting of this name.
    pub fn find(name: &str) -> Option<&'static Setting> {
        SETTINGS.iter().find(|setting| setting.name == name)
    }

    /// Its name in the TOML file.
    pub fn key(&self) -> String {
        self.name[PREFIX.len()..].to_ascii_lowercase()
    }

    /// How its name is written in that place.
    pub fn written(&self, origin: Origin) -> String {
        match origin {
            Origin::File => self.key(),
            Origin::CommandLine => format!("--{}", self.key().replace('_', "-")),
            Origin::Environment | Origin::Default => self.name.to_owned(),
        }
    }

    /// `value` as it may be shown: what is secret in a URL, or all of a secret that is no
    /// URL, is masked.
    pub fn shown(&self, value: &str) -> String {
        if !self.secret {
            return value.to_owned();
        }
        match url::Url::parse(value) {
            Ok(mut url) if url.has_host() => {
                if url.password().is_some() {
                    // A URL with a host takes a password, so this cannot fail.
                    url.set_password(Some("***")).unwrap_or_default();
                }
                let query = url.query().map(masked);
                url.set_query(query.as_deref());
                // A URL of PostgreSQL has none, so this is a piece of something else.
                if url.fragment().is_some() {
                    url.set_fragment(Some("***"));
                }
                url.into()
            }
            Ok(url) if url.scheme() == "sqlite" => value.to_owned(),
            // `host=… password=…`, which PostgreSQL takes too.
            _ => "***".to_owned(),
        }
    }
}

/// A query without the values of those names that tell of a secret.
fn masked(query: &str) -> String {
    let pairs = query.split('&').map(|pair| {
        let name = url::form_urlencoded::parse(pair.as_bytes()).next();
        let name = name.map(|(name, _)| name.to_ascii_lowercase()).unwrap_or_default();
        if ["password", "secret", "token"].iter().any(|word| name.contains(word)) {
            return format!("{name}=***");
        }
        pair.to_owned()
    });
    pairs.collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_masked() {
        let database = Setting::find("FEEDGATE_DATABASE").unwrap();
        let cases = [
            ("postgres://me:secret@db.test/x", "postgres://me:***@db.test/x"),
            ("postgres://db.test/x", "postgres://db.test/x"),
            ("postgres://db.test/x?password=secret", "postgres://db.test/x?password=***"),
            (
                "postgres://db.test/x?a=%20b&pass%77ord=secret&c",
                "postgres://db.test/x?a=%20b&password=***&c",
            ),
            (
                "postgres://db.test/x?sslPassword=s&API_TOKEN=s",
                "postgres://db.test/x?sslpassword=***&api_token=***",
            ),
            ("postgres://db.test/x#secret", "postgres://db.test/x#***"),
            ("sqlite:feedgate-data", "sqlite:feedgate-data"),
            ("host=db.test password=secret", "***"),
        ];
        for (value, want) in cases {
            assert_eq!(database.shown(value), want);
        }
    }
}
