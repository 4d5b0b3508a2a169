//! Where a setting comes from: the command line, then the environment, then the
//! TOML file, then the default.
//!
//! A name that is not in the table is a fault in either place, because a misspelt
//! setting that is silently ignored is worse than a program that does not start.

use std::collections::BTreeMap;
use std::fs;

use super::settings::{PREFIX, SETTINGS, Setting};

/// Names in the environment that begin like settings and are none.
const NOT_SETTINGS: [&str; 5] = [
    "FEEDGATE_CONFIG",
    // For the test suite.
    "FEEDGATE_TEST_",
    // Kubernetes sets these in every container beside a service called "feedgate".
    "FEEDGATE_PORT",
    "FEEDGATE_SERVICE_HOST",
    "FEEDGATE_SERVICE_PORT",
];

/// What was given, and where.
#[derive(Clone, Debug, Default)]
pub(super) struct Layers {
    given: BTreeMap<&'static str, (String, Origin)>,
    /// What is wrong with the layers themselves.
    pub(super) faults: Vec<String>,
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
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Origin::Default => "default",
            Origin::File => "file",
            Origin::Environment => "environment",
            Origin::CommandLine => "command line",
        }
    }
}

impl Layers {
    /// Lays the layers over each other; an upper one wins.
    pub(super) fn lay(
        options: &[(&'static str, String)],
        environment: &[(String, String)],
        toml: Option<(&str, &str)>,
    ) -> Layers {
        let mut layers = Layers::default();
        if let Some((name, text)) = toml {
            layers.add_file(name, text);
        }
        layers.add_environment(environment);
        for (name, value) in options {
            layers.given.insert(name, (value.clone(), Origin::CommandLine));
        }
        layers
    }

    /// The value of this name, if it was given, and where.
    pub(super) fn get(&self, name: &str) -> Option<(String, Origin)> {
        self.given.get(name).cloned()
    }

    fn add_file(&mut self, name: &str, text: &str) {
        let table: toml::Table = match text.parse() {
            Ok(table) => table,
            Err(err) => return self.faults.push(format!("{name}: {}", err.to_string().trim())),
        };
        for (key, value) in table {
            let full = format!("{PREFIX}{}", key.to_ascii_uppercase());
            let known = key == key.to_ascii_lowercase();
            match (plain(&value), known) {
                (Some(value), true) => self.add(&full, value, Origin::File, &key),
                (None, true) => {
                    self.faults.push(format!("{key} must be a text, a number or a list of texts"));
                }
                _ => self.faults.push(unknown(&key, Origin::File)),
            }
        }
    }

    fn add_environment(&mut self, environment: &[(String, String)]) {
        for (name, value) in environment {
            let none = NOT_SETTINGS.iter().any(|start| name.starts_with(start));
            if name.starts_with(PREFIX) && !none {
                self.add(name, value.clone(), Origin::Environment, name);
            }
        }
    }

    /// Adds one value under its full name; `written` is how its author wrote the name.
    fn add(&mut self, name: &str, value: String, origin: Origin, written: &str) {
        if let Some(setting) = Setting::find(name) {
            self.given.insert(setting.name, (value, origin));
            return;
        }
        let secret = name.strip_suffix("_FILE").and_then(Setting::find);
        match secret.filter(|setting| setting.secret) {
            Some(setting) => match fs::read_to_string(&value) {
                Ok(text) => {
                    self.given.insert(setting.name, (text.trim().to_owned(), origin));
                }
                Err(err) => self.faults.push(format!("{written}: cannot read {value}: {err}")),
            },
            None => self.faults.push(unknown(written, origin)),
        }
    }
}

/// A TOML value as it would stand in the environment.
fn plain(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Array(list) => {
            let texts: Option<Vec<String>> = list.iter().map(item).collect();
            // What has no shorter form is written as JSON.
            let json = || serde_json::to_string(list).ok();
            let tables = !list.is_empty() && list.iter().all(toml::Value::is_table);
            texts.map(|texts| texts.join(",")).or_else(|| tables.then(json).flatten())
        }
        _ => None,
    }
}

/// What stands in a list: a text, or a table of a URL and how it is spoken to.
fn item(value: &toml::Value) -> Option<String> {
    if let Some(text) = value.as_str() {
        return Some(text.to_owned());
    }
    let table = value.as_table()?;
    let text = |key| table.get(key).and_then(toml::Value::as_str);
    let known = table.keys().all(|key| matches!(key.as_str(), "url" | "protocol"));
    let protocol = if table.contains_key("protocol") { text("protocol")? } else { "xml-rpc" };
    known.then_some(format!("{protocol}={}", text("url")?))
}

/// What to say of a name that is no setting in the place where it stands, with the
/// nearest that is.
fn unknown(written: &str, origin: Origin) -> String {
    let upper = written.to_ascii_uppercase();
    let asked = upper.strip_prefix(PREFIX).unwrap_or(&upper);
    let prefixed = asked != upper;
    let nearest = SETTINGS
        .iter()
        .map(|setting| (distance(asked, &setting.name[PREFIX.len()..]), setting))
        .min_by_key(|(distance, setting)| (*distance, setting.name))
        .filter(|(distance, _)| *distance <= 3);
    match nearest {
        Some((0, setting)) if origin == Origin::File && prefixed => {
            format!("{written}: write it as `{}` here", setting.key())
        }
        Some((_, setting)) => {
            format!("{written} is no setting; did you mean `{}`?", setting.written(origin))
        }
        None => format!("{written} is no setting; docs/operations.md lists them"),
    }
}

/// How many letters must be changed, added or left out to make `b` of `a`
/// (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let change = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_command_line_beats_the_environment_and_that_the_file() {
        let environment = environment(&[
            ("FEEDGATE_LISTEN", "[::1]:2"),
            ("FEEDGATE_LOG", "debug"),
            ("HOME", "/"),
        ]);
        let options = [("FEEDGATE_LISTEN", "[::1]:1".to_owned())];
        let toml = "listen = '[::1]:3'\nlog = 'warn'\nclaim_s = 7\n\
                    trusted_proxies = ['10.0.0.0/8', 'fd00::/8']\n\
                    ping_sinks = [{ url = 'http://a.test/', protocol = 'get' }, 'http://b.test/']\n\
                    [[collections]]\nname = 'a'\ntopics = ['http://a.test/']";
        let layers = Layers::lay(&options, &environment, Some(("feedgate.toml", toml)));
        assert_eq!(layers.faults, [""; 0]);
        let cases = [
            ("FEEDGATE_LISTEN", "[::1]:1", Origin::CommandLine),
            ("FEEDGATE_LOG", "debug", Origin::Environment),
            ("FEEDGATE_CLAIM_S", "7", Origin::File),
            ("FEEDGATE_TRUSTED_PROXIES", "10.0.0.0/8,fd00::/8", Origin::File),
            ("FEEDGATE_PING_SINKS", "get=http://a.test/,http://b.test/", Origin::File),
            ("FEEDGATE_COLLECTIONS", r#"[{"name":"a","topics":["http://a.test/"]}]"#, Origin::File),
        ];
        for (name, value, origin) in cases {
            assert_eq!(layers.get(name), Some((value.to_owned(), origin)), "{name}");
        }
        assert_eq!(layers.get("FEEDGATE_DRAIN_S"), None);
    }

    #[test]
    fn an_unknown_name_is_a_fault_wherever_it_stands() {
        let environment = environment(&[
            ("FEEDGATE_LISTN", "x"),
            ("FEEDGATE_LISTEN_FILE", "x"),
            ("FEEDGATE_TEST_POSTGRES", "x"),
            ("FEEDGATE_CONFIG", "x"),
            ("FEEDGATE_SERVICE_PORT_HTTP", "8080"),
            ("FEEDGATE_PORT_8080_TCP", "tcp://10.0.0.1:8080"),
        ]);
        let toml = "colour = 'red'\nLISTEN = 'x'\nlog = true\nlogg = 'x'\nFEEDGATE_CLAIM_S = 7";
        let layers = Layers::lay(&[], &environment, Some(("f", toml)));
        let faults = layers.faults.join("\n");
        let wanted = [
            "colour is no setting; docs/operations.md lists them",
            "LISTEN is no setting; did you mean `listen`?",
            "logg is no setting; did you mean `log`?",
            "FEEDGATE_CLAIM_S: write it as `claim_s` here",
            "log must be a text, a number or a list of texts",
            "FEEDGATE_LISTN is no setting; did you mean `FEEDGATE_LISTEN`?",
            "FEEDGATE_LISTEN_FILE is no setting; docs/operations.md lists them",
        ];
        for want in wanted {
            assert!(faults.contains(want), "{want} not in:\n{faults}");
        }
        assert_eq!(layers.faults.len(), wanted.len(), "{faults}");
    }

    #[test]
    fn a_secret_can_be_read_from_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("database");
        fs::write(&path, "postgres://me:pw@db.test/feedgate\n").unwrap();
        let environment = environment(&[("FEEDGATE_DATABASE_FILE", path.to_str().unwrap())]);
        let layers = Layers::lay(&[], &environment, None);
        assert_eq!(layers.faults, [""; 0]);
        let want = Some(("postgres://me:pw@db.test/feedgate".to_owned(), Origin::Environment));
        assert_eq!(layers.get("FEEDGATE_DATABASE"), want);
    }
}
