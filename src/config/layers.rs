//! The layers of settings: the command line overrides the environment, which overrides the TOML
//! file, which overrides the defaults.
//!
//! An unknown name is refused in every layer, with a suggestion of the nearest known name: ignoring
//! a misspelled setting would be worse than refusing to start.

use std::collections::BTreeMap;
use std::fs;

use super::SETTINGS;
use super::setting::{Origin, PREFIX, Setting};

/// Names in the environment that begin like settings but are none.
const NOT_SETTINGS: [&str; 7] = [
    "FEEDGATE_CONFIG",
    // The credentials of the commands that send requests to a gateway.
    "FEEDGATE_TOKEN",
    // The secret with which `feedgate tail` signs.
    "FEEDGATE_WEBHOOK_SECRET",
    // Used by the test suite.
    "FEEDGATE_TEST_",
    // Kubernetes sets these in every container beside a service called "feedgate".
    "FEEDGATE_PORT",
    "FEEDGATE_SERVICE_HOST",
    "FEEDGATE_SERVICE_PORT",
];

/// The maximum edit distance to a setting that is suggested for an unknown name.
const FARTHEST: usize = 3;

/// The values given in all layers, with their origins.
#[derive(Clone, Debug, Default)]
pub(super) struct Layers {
    given: BTreeMap<&'static str, Given>,
    /// The faults of the layers themselves.
    pub(super) faults: Vec<String>,
    /// The values that others override: a sentence for each, which shows no value.
    pub(super) overridden: Vec<String>,
}

/// A value of a setting.
#[derive(Clone, Debug)]
struct Given {
    value: String,
    origin: Origin,
    /// The name as it was given.
    spelled: String,
}

impl Layers {
    /// Merges the layers; the command line wins over the environment, and that over the file.
    pub(super) fn merge(
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
            if let Some(target) = target(name) {
                let spelled = target.setting().spelled(Origin::CommandLine);
                layers.add(target, value.clone(), Origin::CommandLine, &spelled);
            }
        }
        layers
    }

    /// Returns the value given for a name, with its origin.
    pub(super) fn get(&self, name: &str) -> Option<(String, Origin)> {
        self.given.get(name).map(|given| (given.value.clone(), given.origin))
    }

    fn add_file(&mut self, name: &str, text: &str) {
        let table: toml::Table = match text.parse() {
            Ok(table) => table,
            Err(err) => return self.faults.push(format!("{name}: {}", err.to_string().trim())),
        };
        for (key, value) in table {
            let name = format!("{PREFIX}{}", key.to_ascii_uppercase());
            let target = target(&name).filter(|_| key == key.to_ascii_lowercase());
            match (target, plain(&value)) {
                (Some(target), Some(value)) => self.add(target, value, Origin::File, &key),
                (Some(_), None) => self
                    .faults
                    .push(format!("{key} must be a string, a number or an array of strings")),
                (None, _) => self.faults.push(unknown(&key, Origin::File)),
            }
        }
    }

    fn add_environment(&mut self, environment: &[(String, String)]) {
        // Images of containers set plain values; a secret from a file takes precedence over them.
        let mut environment: Vec<_> = environment.iter().collect();
        environment.sort_by_key(|(name, _)| matches!(target(name), Some(Target::File(_))));
        for (name, value) in environment {
            let is_other = NOT_SETTINGS.iter().any(|start| name.starts_with(start));
            if !name.starts_with(PREFIX) || is_other {
                continue;
            }
            match target(name) {
                Some(target) => self.add(target, value.clone(), Origin::Environment, name),
                None => self.faults.push(unknown(name, Origin::Environment)),
            }
        }
    }

    /// Adds one value. `spelled` is the name as it was given.
    fn add(&mut self, target: Target, value: String, origin: Origin, spelled: &str) {
        let (setting, value) = match target {
            Target::Value(setting) => (setting, value),
            Target::File(setting) => match fs::read_to_string(&value) {
                Ok(text) => (setting, text.trim().to_owned()),
                Err(err) => {
                    self.faults.push(format!("{spelled}: cannot read {value}: {err}"));
                    return;
                }
            },
        };
        if let Some(lower) = self.given.get(setting.name).filter(|lower| lower.value != value) {
            let [lower_place, place] = [lower.origin, origin].map(Origin::place);
            let lower = &lower.spelled;
            self.overridden
                .push(format!("{lower} {lower_place} is overridden by {spelled} {place}"));
        }
        self.given.insert(setting.name, Given { value, origin, spelled: spelled.to_owned() });
    }
}

/// The meaning of a name in the environment.
enum Target {
    /// The value of this setting.
    Value(&'static Setting),
    /// The path of a file that contains the value of this setting.
    File(&'static Setting),
}

impl Target {
    fn setting(&self) -> &'static Setting {
        match self {
            Target::Value(setting) | Target::File(setting) => setting,
        }
    }
}

fn target(name: &str) -> Option<Target> {
    let find = |name| SETTINGS.iter().find(|setting| setting.name == name);
    let file = || {
        let setting = find(name.strip_suffix("_FILE")?)?;
        setting.is_secret.then_some(Target::File(setting))
    };
    find(name).map(Target::Value).or_else(file)
}

/// Returns a TOML value in the form it has in the environment.
fn plain(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Array(list) => {
            let texts: Option<Vec<String>> = list.iter().map(item).collect();
            // Values without a shorter form are written as JSON.
            let json = || serde_json::to_string(list).ok();
            let tables = !list.is_empty() && list.iter().all(toml::Value::is_table);
            texts.map(|texts| texts.join(",")).or_else(|| tables.then(json).flatten())
        }
        _ => None,
    }
}

/// Returns an item of an array: a string, or a table with the URL and the protocol of a ping
/// target.
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

/// Returns the error message for an unknown name, spelled as in the layer where it was found.
fn unknown(spelled: &str, origin: Origin) -> String {
    let upper = spelled.to_ascii_uppercase();
    let name = upper.strip_prefix(PREFIX).unwrap_or(&upper);
    let nearest = SETTINGS
        .iter()
        .map(|setting| (distance(name, &setting.name[PREFIX.len()..]), setting))
        .min_by_key(|(distance, setting)| (*distance, setting.name))
        .filter(|(distance, _)| *distance <= FARTHEST);
    let advice = match nearest {
        Some((_, setting)) => format!("did you mean `{}`?", setting.spelled(origin)),
        None => "`feedgate check-config --help` lists all settings".to_owned(),
    };
    format!("unknown setting `{spelled}`; {advice}")
}

/// Returns the edit distance between two names (Levenshtein): the number of letters to change, add
/// or remove.
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
        let toml = "listen = '[::1]:3'\nlog = 'warn'\njob_lease_s = 7\n\
                    trusted_proxies = ['10.0.0.0/8', 'fd00::/8']\n\
                    ping_targets = [{ url = 'http://a.test/', protocol = 'get' }, 'http://b.test/']\n\
                    [[collections]]\nname = 'a'\ntopics = ['http://a.test/']";
        let layers = Layers::merge(&options, &environment, Some(("feedgate.toml", toml)));
        assert_eq!(layers.faults, [""; 0]);
        let cases = [
            ("FEEDGATE_LISTEN", "[::1]:1", Origin::CommandLine),
            ("FEEDGATE_LOG", "debug", Origin::Environment),
            ("FEEDGATE_JOB_LEASE_S", "7", Origin::File),
            ("FEEDGATE_TRUSTED_PROXIES", "10.0.0.0/8,fd00::/8", Origin::File),
            ("FEEDGATE_PING_TARGETS", "get=http://a.test/,http://b.test/", Origin::File),
            ("FEEDGATE_COLLECTIONS", r#"[{"name":"a","topics":["http://a.test/"]}]"#, Origin::File),
        ];
        for (name, value, origin) in cases {
            assert_eq!(layers.get(name), Some((value.to_owned(), origin)), "{name}");
        }
        assert_eq!(layers.get("FEEDGATE_SHUTDOWN_GRACE_S"), None);
        let wanted = [
            "listen in the file is overridden by FEEDGATE_LISTEN in the environment",
            "log in the file is overridden by FEEDGATE_LOG in the environment",
            "FEEDGATE_LISTEN in the environment is overridden by --listen on the command line",
        ];
        assert_eq!(layers.overridden, wanted);
    }

    #[test]
    fn an_unknown_name_is_refused_wherever_it_is_found() {
        let environment = environment(&[
            ("FEEDGATE_LISTN", "x"),
            ("FEEDGATE_LISTEN_FILE", "x"),
            ("FEEDGATE_TEST_POSTGRES", "x"),
            ("FEEDGATE_CONFIG", "x"),
            ("FEEDGATE_SERVICE_PORT_HTTP", "8080"),
            ("FEEDGATE_PORT_8080_TCP", "tcp://10.0.0.1:8080"),
        ]);
        let toml = "colour = 'red'\nLISTEN = 'x'\nlog = true\nlogg = 'x'\nFEEDGATE_JOB_LEASE_S = 7";
        let layers = Layers::merge(&[], &environment, Some(("f", toml)));
        let faults = layers.faults.join("\n");
        let wanted = [
            "unknown setting `colour`; `feedgate check-config --help` lists all settings",
            "unknown setting `LISTEN`; did you mean `listen`?",
            "unknown setting `logg`; did you mean `log`?",
            "unknown setting `FEEDGATE_JOB_LEASE_S`; did you mean `job_lease_s`?",
            "log must be a string, a number or an array of strings",
            "unknown setting `FEEDGATE_LISTN`; did you mean `FEEDGATE_LISTEN`?",
            "unknown setting `FEEDGATE_LISTEN_FILE`; \
             `feedgate check-config --help` lists all settings",
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
        let from_file = ("FEEDGATE_DATABASE_FILE", path.to_str().unwrap());
        let of_the_image = ("FEEDGATE_DATABASE", "sqlite:/data");
        for given in [&[from_file][..], &[from_file, of_the_image], &[of_the_image, from_file]] {
            let layers = Layers::merge(&[], &environment(given), None);
            assert_eq!(layers.faults, [""; 0]);
            let want = Some(("postgres://me:pw@db.test/feedgate".to_owned(), Origin::Environment));
            assert_eq!(layers.get("FEEDGATE_DATABASE"), want);
            assert_eq!(layers.overridden.len(), given.len() - 1, "{:?}", layers.overridden);
        }
    }
}
