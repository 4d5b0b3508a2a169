//! One setting: what is declared of it, where it can be set, and how its name and value are shown.

use super::values::Expected;

/// What every name in the environment begins with.
pub(super) const PREFIX: &str = "FEEDGATE_";

/// One setting, as `settings.rs` declares it.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its name in the environment. In the TOML file it is the same without
    /// `FEEDGATE_`, in lower case.
    pub name: &'static str,
    /// Its value if it is not set; empty for none.
    pub default: &'static str,
    /// The title under which it is listed.
    pub section: &'static str,
    /// What it decides, in Markdown: one sentence, and details after it. The lines of a doc
    /// comment, each with a space before it.
    pub(super) help: &'static str,
    /// What a value must be.
    pub expected: Expected,
    /// Whether it may hold a password: it can also be given by naming a file in
    /// `…_FILE`, and is masked when shown.
    pub is_secret: bool,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// The TOML file.
    File,
    /// The environment.
    Environment,
    /// An option on the command line.
    CommandLine,
}

impl Origin {
    /// The word that `feedgate check-config` prints.
    pub fn as_str(self) -> &'static str {
        match self {
            Origin::Default => "default",
            Origin::File => "file",
            Origin::Environment => "environment",
            Origin::CommandLine => "command line",
        }
    }

    /// Where a value was set, at the end of a sentence.
    pub(super) fn place(self) -> &'static str {
        match self {
            Origin::Default => "by default",
            Origin::File => "in the file",
            Origin::Environment => "in the environment",
            Origin::CommandLine => "on the command line",
        }
    }
}

impl Setting {
    /// Its name in the TOML file.
    pub fn key(&self) -> String {
        self.name[PREFIX.len()..].to_ascii_lowercase()
    }

    /// What it decides, in Markdown.
    pub fn help(&self) -> &'static str {
        self.help.trim_start()
    }

    /// What it decides, in one sentence.
    pub fn summary(&self) -> &'static str {
        let help = self.help();
        help.find(". ").map_or(help, |end| &help[..=end])
    }

    /// What the option of this setting on the command line does.
    pub(crate) fn option_help(&self) -> String {
        format!("Overrides {}. {}", self.name, self.summary())
    }

    /// Its name as it is spelled in that place.
    pub fn spelled(&self, origin: Origin) -> String {
        match origin {
            Origin::File => self.key(),
            Origin::CommandLine => format!("--{}", self.key().replace('_', "-")),
            Origin::Environment | Origin::Default => self.name.to_owned(),
        }
    }

    /// `value` as it may be shown. Of a secret, the secret parts of a URL are masked, and
    /// anything else as a whole.
    pub fn masked(&self, value: &str) -> String {
        if !self.is_secret {
            return value.to_owned();
        }
        match url::Url::parse(value) {
            Ok(mut url) if url.has_host() => {
                if url.password().is_some() {
                    // A URL with a host takes a password, so this cannot fail.
                    url.set_password(Some("***")).unwrap_or_default();
                }
                let query = url.query().map(mask_query);
                url.set_query(query.as_deref());
                // A PostgreSQL URL has no fragment, so this may be a part of a password.
                if url.fragment().is_some() {
                    url.set_fragment(Some("***"));
                }
                url.into()
            }
            Ok(url) if url.scheme() == "sqlite" => value.to_owned(),
            // Perhaps `host=… password=…`, which PostgreSQL accepts too.
            _ => "***".to_owned(),
        }
    }
}

/// A query in which the values of parameters whose names suggest a secret are masked.
fn mask_query(query: &str) -> String {
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
    use crate::config::FEEDGATE_DATABASE;

    #[test]
    fn passwords_are_masked() {
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
            assert_eq!(FEEDGATE_DATABASE.masked(value), want);
        }
    }
}
