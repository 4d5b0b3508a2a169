//! The declaration of a setting, its sources, and the display of its name and value.

use super::values::Expected;

/// The prefix of every name in the environment.
pub(super) const PREFIX: &str = "FEEDGATE_";

/// A setting, as declared in `settings.rs`.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The name in the environment. In the TOML file it is the same without `FEEDGATE_`, in lower
    /// case.
    pub name: &'static str,
    /// The value if it is not set; empty for none.
    pub default: &'static str,
    /// The title of the section in which it is listed.
    pub section: &'static str,
    /// The description in Markdown: a summary of one sentence, followed by details. These are the
    /// lines of a doc comment, each with a leading space.
    pub(super) help: &'static str,
    /// The values that are accepted.
    pub expected: Expected,
    /// Whether the value may contain a password. It can then be read from the file named by
    /// `…_FILE`, and is masked when displayed.
    pub is_secret: bool,
}

/// The source of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The default.
    Default,
    /// A preset: another setting that changes the default.
    Preset,
    /// The TOML file.
    File,
    /// The environment.
    Environment,
    /// An option on the command line.
    CommandLine,
}

impl Origin {
    /// Returns the word that `feedgate check-config` prints.
    pub fn as_str(self) -> &'static str {
        match self {
            Origin::Default => "default",
            Origin::Preset => "preset",
            Origin::File => "file",
            Origin::Environment => "environment",
            Origin::CommandLine => "command line",
        }
    }

    /// Returns the place where a value was set, for the end of a sentence.
    pub(super) fn place(self) -> &'static str {
        match self {
            Origin::Default => "by default",
            Origin::Preset => "by a preset",
            Origin::File => "in the file",
            Origin::Environment => "in the environment",
            Origin::CommandLine => "on the command line",
        }
    }
}

impl Setting {
    /// Returns the name in the TOML file.
    pub fn key(&self) -> String {
        self.name[PREFIX.len()..].to_ascii_lowercase()
    }

    /// Returns the description in Markdown.
    pub fn help(&self) -> &'static str {
        self.help.trim_start()
    }

    /// Returns the description as one sentence.
    pub fn summary(&self) -> &'static str {
        let help = self.help();
        help.find(". ").map_or(help, |end| &help[..=end])
    }

    /// Returns the help text of the command-line option for this setting.
    pub(crate) fn option_help(&self) -> String {
        format!("Overrides {}. {}", self.name, self.summary())
    }

    /// Returns the name as it is spelled in that source.
    pub fn spelled(&self, origin: Origin) -> String {
        match origin {
            Origin::File => self.key(),
            Origin::CommandLine => format!("--{}", self.key().replace('_', "-")),
            Origin::Environment | Origin::Default | Origin::Preset => self.name.to_owned(),
        }
    }

    /// Returns `value` in a form that can be displayed: a secret is masked as a whole, except a
    /// URL, in which only the secret parts are masked.
    pub fn masked(&self, value: &str) -> String {
        if !self.is_secret {
            return value.to_owned();
        }
        match url::Url::parse(value) {
            Ok(mut url) if url.has_host() => {
                if url.password().is_some() {
                    // This cannot fail, because a URL with a host accepts a password.
                    url.set_password(Some("***")).unwrap_or_default();
                }
                let query = url.query().map(mask_query);
                url.set_query(query.as_deref());
                // A PostgreSQL URL has no fragment, so this may be part of a password.
                if url.fragment().is_some() {
                    url.set_fragment(Some("***"));
                }
                url.into()
            }
            Ok(url) if url.scheme() == "sqlite" => value.to_owned(),
            // This may be `host=… password=…`, which PostgreSQL accepts too.
            _ => "***".to_owned(),
        }
    }
}

/// Masks the values of query parameters whose names suggest a secret.
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
