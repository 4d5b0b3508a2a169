//! Settings: read once, checked together, and passed on in the settings struct of each module.
//!
//! No other module reads the environment. Each setting is declared once, in `settings.rs`. All
//! faults are reported together, so that a configuration can be corrected in one attempt.

mod checks;
mod collections;
mod declare;
mod layers;
mod memory_limit;
mod module_settings;
mod presets;
mod reader;
pub(crate) mod reference;
mod setting;
mod settings;
mod values;

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use url::Url;

use layers::Layers;
use reader::{SettingLookup, SettingReader};

pub use setting::{Origin, Setting};
pub use settings::*;
pub use values::Expected;

/// What `feedgate serve` and `feedgate check-config` say if no key for secrets is set.
pub const SECRETS_IN_CLEAR: &str =
    "FEEDGATE_SECRETS_KEY is not set: secrets in the database are stored in clear";

/// The file with settings that every command reads if no other is named, wherever it is started: that of
/// the Debian package.
const DEFAULT_FILE: &str = "/etc/feedgate/feedgate.toml";

/// The addresses of this machine.
pub(crate) const LOOPBACK_NETWORKS: [IpNet; 2] = [
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(127, 0, 0, 0), 8)),
    IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128)),
];

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Text for people.
    Text,
    /// One JSON object per line.
    Json,
}

/// All faults of the settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid settings:\n  {}", .0.join("\n  "))]
pub struct BadConfig(pub Vec<String>);

/// A setting as it takes effect, safe to display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effective {
    /// The name in the environment.
    pub name: &'static str,
    /// The value, masked if it is a secret.
    pub value: String,
    /// The source of the value.
    pub origin: Origin,
}

/// Where the settings of a process come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingSources {
    /// All settings, with their origins.
    pub effective: Vec<Effective>,
    /// The TOML file that was read.
    pub file: Option<String>,
    /// A sentence for each setting that was given in several places with different values.
    pub overridden: Vec<String>,
}

impl Config {
    /// Reads the settings of this process from the command line (`options`), the environment, and
    /// the TOML file named by `file` or `FEEDGATE_CONFIG`, or else `/etc/feedgate/feedgate.toml` if it
    /// exists.
    pub fn load(
        file: Option<PathBuf>,
        options: &[(&'static str, String)],
    ) -> Result<(Config, SettingSources), BadConfig> {
        let environment: Vec<(String, String)> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let named = environment.iter().find(|(name, _)| name == "FEEDGATE_CONFIG");
        let path = file.or_else(|| named.map(|(_, path)| PathBuf::from(path)));
        let text = read_file(path.as_deref(), Path::new(DEFAULT_FILE))?;
        let toml = text.as_ref().map(|(name, text)| (name.as_str(), text.as_str()));

        let layers = Layers::merge(options, &environment, toml);
        let effective = SETTINGS.iter().map(|setting| {
            let default = || (setting.default.to_owned(), Origin::Default);
            let given = presets::given_or_preset(&|name| layers.get(name), setting.name);
            let (value, origin) = given.unwrap_or_else(default);
            Effective { name: setting.name, value: setting.masked(&value), origin }
        });
        let effective = effective.collect();
        let sources = SettingSources {
            effective,
            file: text.map(|(name, _)| name),
            overridden: layers.overridden.clone(),
        };
        match Config::read_from(&|name| layers.get(name)) {
            Ok(config) if layers.faults.is_empty() => Ok((config, sources)),
            Ok(_) => Err(BadConfig(layers.faults)),
            Err(BadConfig(more)) => Err(BadConfig([layers.faults, more].concat())),
        }
    }

    /// Reads the settings through `get`, as if they were set in the environment.
    pub fn read(get: impl Fn(&str) -> Option<String>) -> Result<Config, BadConfig> {
        Config::read_from(&|name| Some((get(name)?, Origin::Environment)))
    }

    fn read_from(lookup: SettingLookup<'_>) -> Result<Config, BadConfig> {
        let lookup = |name: &str| presets::given_or_preset(lookup, name);
        let mut reader = SettingReader::new(&lookup);
        let config = Config::read_with(&mut reader);
        config.check_together(&mut reader);
        if reader.faults.is_empty() { Ok(config) } else { Err(BadConfig(reader.faults)) }
    }
}

/// Returns the name and the text of the file at `named`, or else of the one at `default` if it exists. A
/// file that exists and cannot be read is never skipped: the process would use another database.
fn read_file(named: Option<&Path>, default: &Path) -> Result<Option<(String, String)>, BadConfig> {
    let path = named.unwrap_or(default);
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some((path.display().to_string(), text))),
        Err(err) if named.is_none() && err.kind() == ErrorKind::NotFound => Ok(None),
        Err(err) => Err(BadConfig(vec![format!("cannot read {}: {err}", path.display())])),
    }
}

/// Returns the URL of a listener at `addr`; the address is that of this machine if it listens on
/// all addresses.
pub(crate) fn url_at(scheme: &str, addr: SocketAddr) -> Url {
    let ip = match addr.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    let addr = SocketAddr::new(ip, addr.port()); // writes IPv6 in brackets
    Url::parse(&format!("{scheme}://{addr}")).expect("an address and a port make a URL")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Config, BadConfig> {
        let get = |name: &str| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        Config::read(get)
    }

    #[test]
    fn nothing_needs_to_be_set() {
        let config = read(&[]).unwrap();
        assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
        assert_eq!(config.database, "sqlite:feedgate-data");
        assert!(config.allow_topics.is_empty(), "nothing private is reachable unless listed");
        assert!(config.allow_callbacks.is_empty());
        assert_eq!(config.shutdown_grace, Duration::from_secs(15));
    }

    #[test]
    fn all_faults_are_told_at_once() {
        let cases = [
            ("FEEDGATE_LISTEN", "everywhere"),
            ("FEEDGATE_PUBLIC_URL", "https://a.test/?a=b"),
            ("FEEDGATE_DATABASE", "mysql://a.test"),
            ("FEEDGATE_TLS_CERT", "cert.pem"),
            ("FEEDGATE_TRUSTED_PROXIES", "10.0.0.0/8, local"),
            ("FEEDGATE_EGRESS_ALLOW_TOPIC_CIDRS", "10.0.0.0/40"),
            ("FEEDGATE_HOST_RATE_GROUPS", "example.org=soon"),
            ("FEEDGATE_DELIVERY_TIMEOUT_S", "0"),
            ("FEEDGATE_BODY_LIMIT_BYTES", "10M"),
            ("FEEDGATE_LOG", "feedgate=loud"),
            ("FEEDGATE_LOG_FORMAT", "xml"),
            ("FEEDGATE_JOB_LEASE_S", "20"),
        ];
        let BadConfig(faults) = read(&cases).unwrap_err();
        for (name, _) in cases {
            assert!(faults.iter().any(|fault| fault.contains(name)), "{name}: {faults:?}");
        }
        assert_eq!(faults.len(), cases.len(), "{faults:?}");
    }

    #[test]
    fn one_file_is_found_from_everywhere_and_none_is_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let [named, default] = ["named.toml", "default.toml"].map(|name| folder.path().join(name));
        let read = |named: Option<&Path>| {
            let read = read_file(named, &default);
            read.map(|read| read.map(|(_, text)| text)).map_err(|BadConfig(faults)| faults.concat())
        };
        assert_eq!(read(None), Ok(None), "no file is needed");
        assert!(read(Some(&named)).unwrap_err().starts_with("cannot read "));
        std::fs::write(&named, "log = 'warn'").unwrap();
        std::fs::create_dir(&default).unwrap();
        assert!(read(None).unwrap_err().contains("default.toml"), "it exists, but is unreadable");
        std::fs::remove_dir(&default).unwrap();
        std::fs::write(&default, "log = 'info'").unwrap();
        assert_eq!(read(None), Ok(Some("log = 'info'".to_owned())));
        assert_eq!(read(Some(&named)), Ok(Some("log = 'warn'".to_owned())));
    }

    #[test]
    fn the_password_of_the_database_can_be_given_apart_from_its_url() {
        let password = ("FEEDGATE_DATABASE_PASSWORD", "p@ss/wörd %20");
        let url = |database| {
            let read = read(&[("FEEDGATE_DATABASE", database), password]);
            read.map(|config| config.store().url).map_err(|BadConfig(faults)| faults.concat())
        };
        let with_password = url("postgres://me@db.test/x?sslmode=require").unwrap();
        assert_eq!(
            with_password,
            "postgres://me:p%40ss%2Fw%C3%B6rd%20%2520@db.test/x?sslmode=require"
        );
        let parsed: tokio_postgres::Config = with_password.parse().unwrap();
        assert_eq!(parsed.get_password(), Some("p@ss/wörd %20".as_bytes()));
        for database in ["sqlite:feedgate-data", "postgres://me:pw@db.test/x", "postgres:///x"] {
            assert!(
                url(database).unwrap_err().contains("FEEDGATE_DATABASE_PASSWORD"),
                "{database}"
            );
        }
    }

    #[test]
    fn the_public_url_may_have_a_path_which_is_spelled_in_one_way() {
        #[rustfmt::skip]
        let cases = [
            ("https://a.test",             Some("https://a.test/")),
            ("https://a.test/feeds",       Some("https://a.test/feeds/")),
            ("https://a.test/feeds/",      Some("https://a.test/feeds/")),
            ("https://a.test/x/../a/b-1/", Some("https://a.test/a/b-1/")),
            ("https://a.test/a//b/",       None),
            ("https://a.test/a%20b/",      None),
            ("https://a.test/a;b/",        None),
            ("https://a.test/a/#b",        None),
            ("https://b@a.test/a/",        None),
        ];
        for (text, want) in cases {
            let url = read(&[("FEEDGATE_PUBLIC_URL", text)]).ok().and_then(|read| read.public_url);
            assert_eq!(url.as_ref().map(url::Url::as_str), want, "{text}");
        }
    }

    #[test]
    fn a_bare_word_in_the_log_setting_is_a_level() {
        let good =
            ["off", "INFO", "info,feedgate=debug", "feedgate=debug,hyper=warn", "[poll{id}]"];
        for log in good {
            assert_eq!(read(&[("FEEDGATE_LOG", log)]).unwrap().log, log);
        }
        for log in ["verbose", "info,feedgate", "debug,loud,hyper=warn"] {
            assert!(read(&[("FEEDGATE_LOG", log)]).is_err(), "{log} turns logging off");
        }
    }

    #[test]
    fn a_single_address_is_a_network_of_one() {
        let config = read(&[("FEEDGATE_EGRESS_ALLOW_CALLBACK_CIDRS", "127.0.0.1, ::1/128")]);
        let nets = config.unwrap().allow_callbacks;
        assert_eq!(nets, ["127.0.0.1/32".parse().unwrap(), "::1/128".parse().unwrap()]);
    }
}
