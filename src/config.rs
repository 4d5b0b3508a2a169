//! Settings: read once, checked together, handed on in the struct of the module
//! that uses them.
//!
//! The environment is looked at here and nowhere else. All faults are told at once,
//! so that nobody has to mend a configuration one fault a start.

mod collections;
mod layers;
mod reader;
mod settings;
mod together;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use url::Url;

use crate::authoring;
use crate::http;
use crate::http::serve::listener;
use crate::jobs::deliver;
use crate::jobs::maintenance;
use crate::jobs::poll;
use crate::jobs::upstream;
use crate::net;
use feedgate_core::backfill;
use feedgate_core::collection::ConfiguredCollection;
use feedgate_core::host_groups::HostGroups;
use feedgate_core::page::{ArchiveRetention, PageLimits};
use feedgate_core::password::Password;
use feedgate_core::ping::TimeUnit;
use feedgate_core::ping_forwarding::Onward;
use feedgate_core::schedule::{K_LEAST, ScheduleBounds};
use feedgate_core::stored_file::Quota;
use feedgate_protocol::signature::Method;
use feedgate_store as store;

use layers::Layers;
use reader::Reader;

pub use layers::Origin;
pub use settings::{SETTINGS, Setting};

/// Everything an operator can decide. `docs/operations.md` says what each is for.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where the doors are; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The address others know us by; `None` derives it from where we listen.
    pub public_url: Option<Url>,
    /// `sqlite:FOLDER`, `sqlite:FILE.db` or `postgres://…`.
    pub database: String,
    /// Connections to it.
    pub database_connections: usize,
    /// The certificate chain and its key, both in PEM.
    pub tls: Option<Tls>,
    /// Networks whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Connections open at once.
    pub max_connections: usize,
    /// How long a client may take to send its request's headers.
    pub header_timeout: Duration,
    /// How long work in hand may take to finish once told to stop.
    pub drain: Duration,
    /// Networks that topics may lead to though they are not public.
    pub allow_topics: Vec<IpNet>,
    /// Networks that callbacks may lead to though they are not public.
    pub allow_callbacks: Vec<IpNet>,
    /// Polls at once.
    pub fetch_at_once: usize,
    /// For one fetch, all in all.
    pub fetch_timeout: Duration,
    /// The longest body read.
    pub body_limit_bytes: u64,
    /// Between the starts of two fetches from one host.
    pub host_spacing: Duration,
    /// Further domains whose servers are limited together, and the pause for each.
    pub limit_groups: Vec<(String, Option<Duration>)>,
    /// Whom the owner of a polled server may write to.
    pub contact: Option<String>,
    /// The networks that fetches come from.
    pub bot_addresses: Vec<IpNet>,
    /// Between two fetches of one resource because of pings.
    pub ping_spacing: Duration,
    /// Whether pings are answered when all have been told, unless they say otherwise.
    pub ping_waits: bool,
    /// How long such an answer is waited for.
    pub ping_wait: Duration,
    /// What else publishers call the doors of the cloud.
    pub cloud_aliases: http::Aliases,
    /// Whether a registration is told when it ends.
    pub cloud_expires: bool,
    /// The shortest period of any resource, in seconds.
    pub min_period_s: u32,
    /// Polls a second, of all nodes together.
    pub polls_per_s: u32,
    /// How much of the history of a source is brought in.
    pub backfill: backfill::BackfillLimits,
    /// Whether to estimate the porn rank.
    pub porn_rank: bool,
    /// Deliveries at once.
    pub delivery_at_once: usize,
    /// Deliveries at once to one host.
    pub delivery_per_host: usize,
    /// For one delivery or verification.
    pub delivery_timeout: Duration,
    /// How what is delivered is signed.
    pub signature: Method,
    /// How long claimed work belongs to this node.
    pub claim: Duration,
    /// Registrations, subscriptions and pings a minute from one public address.
    pub stranger_calls_per_min: usize,
    /// Networks that `/metrics` is shown to.
    pub metrics_networks: Vec<IpNet>,
    /// Whether anybody may see what is watched and what is done.
    pub public_views: bool,
    /// How much a page of an archive takes.
    pub page: PageLimits,
    /// How much one account may store.
    pub quota: Quota,
    /// How changes are listed.
    pub listing: Listing,
    /// Which changes are pinged onward, besides those of what is saved here.
    pub onward: Onward,
    /// What `feedgate post` signs in with; `None` reads it from standard input.
    pub password: Option<Password>,
    /// How much of each archive is kept.
    pub retention: ArchiveRetention,
    /// What archive documents at hand may take in memory.
    pub shelf_bytes: usize,
    /// How much the log page holds.
    pub events: maintenance::EventsKept,
    /// Whether all that is public is collected.
    pub collect_all: bool,
    /// What else is collected.
    pub collections: Vec<ConfiguredCollection>,
    /// What is logged, in the words of `tracing`'s filter.
    pub log: String,
    /// How it is logged.
    pub log_format: LogFormat,
}

/// How changes.xml is written, and how long what it lists is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listing {
    /// How it counts.
    pub unit: TimeUnit,
    /// How long pings are kept.
    pub keep_pings: Duration,
    /// How long the documents of hours are kept; `None` is for ever.
    pub save_hours: Option<Duration>,
}

/// Where the certificate and its key are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The certificate chain, in PEM.
    pub cert: PathBuf,
    /// The private key, in PEM.
    pub key: PathBuf,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Everything that is wrong with the settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the settings are wrong:\n  {}", .0.join("\n  "))]
pub struct BadConfig(pub Vec<String>);

/// One setting as it takes effect, fit to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effective {
    /// Its name in the environment.
    pub name: &'static str,
    /// Its value, masked if it is a secret.
    pub value: String,
    /// Who set it.
    pub origin: Origin,
}

impl Config {
    /// Reads the settings of this process: `options` from the command line, the
    /// environment, and the TOML file named by `file` or `FEEDGATE_CONFIG`.
    pub fn load(
        file: Option<PathBuf>,
        options: &[(&'static str, String)],
    ) -> Result<(Config, Vec<Effective>), BadConfig> {
        let environment: Vec<(String, String)> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let named = environment.iter().find(|(name, _)| name == "FEEDGATE_CONFIG");
        let path = file.or_else(|| named.map(|(_, path)| PathBuf::from(path)));
        let text = path.map(|path| {
            let name = path.display().to_string();
            std::fs::read_to_string(&path)
                .map(|text| (name.clone(), text))
                .map_err(|err| BadConfig(vec![format!("cannot read {name}: {err}")]))
        });
        let text = text.transpose()?;
        let toml = text.as_ref().map(|(name, text)| (name.as_str(), text.as_str()));

        let layers = Layers::lay(options, &environment, toml);
        let effective = SETTINGS.iter().map(|setting| {
            let default = || (setting.default.to_owned(), Origin::Default);
            let (value, origin) = layers.get(setting.name).unwrap_or_else(default);
            Effective { name: setting.name, value: setting.shown(&value), origin }
        });
        let effective = effective.collect();
        match Config::read_from(|name| layers.get(name)) {
            Ok(config) if layers.faults.is_empty() => Ok((config, effective)),
            Ok(_) => Err(BadConfig(layers.faults)),
            Err(BadConfig(more)) => Err(BadConfig([layers.faults, more].concat())),
        }
    }

    /// Reads the settings through `get`, as if they stood in the environment.
    pub fn read(get: impl Fn(&str) -> Option<String>) -> Result<Config, BadConfig> {
        Config::read_from(|name| Some((get(name)?, Origin::Environment)))
    }

    fn read_from(get: impl Fn(&str) -> Option<(String, Origin)>) -> Result<Config, BadConfig> {
        let mut from = Reader::new(get);
        let tls = (from.text("FEEDGATE_TLS_CERT"), from.text("FEEDGATE_TLS_KEY"));
        let config = Config {
            listen: from.parsed("FEEDGATE_LISTEN", "an address and a port, such as 127.0.0.1:8080"),
            public_url: from.url("FEEDGATE_PUBLIC_URL"),
            database: from.database("FEEDGATE_DATABASE"),
            database_connections: from.count("FEEDGATE_DATABASE_CONNECTIONS", 1_000),
            tls: match &tls {
                (Some(cert), Some(key)) => Some(Tls { cert: cert.into(), key: key.into() }),
                _ => None,
            },
            trusted_proxies: from.networks("FEEDGATE_TRUSTED_PROXIES"),
            max_connections: from.count("FEEDGATE_MAX_CONNECTIONS", 1_000_000),
            header_timeout: from.secs("FEEDGATE_HEADER_TIMEOUT_S", 300),
            drain: from.secs("FEEDGATE_DRAIN_S", 600),
            allow_topics: from.networks("FEEDGATE_EGRESS_ALLOW_TOPIC_CIDRS"),
            allow_callbacks: from.networks("FEEDGATE_EGRESS_ALLOW_CALLBACK_CIDRS"),
            fetch_at_once: from.count("FEEDGATE_FETCH_AT_ONCE", 10_000),
            fetch_timeout: from.secs("FEEDGATE_FETCH_TIMEOUT_S", 300),
            body_limit_bytes: from.number("FEEDGATE_BODY_LIMIT_BYTES", 1_024, 1 << 30),
            host_spacing: from.millis("FEEDGATE_HOST_SPACING_MS"),
            limit_groups: from.limit_groups("FEEDGATE_LIMIT_GROUPS"),
            contact: from.text("FEEDGATE_CONTACT"),
            bot_addresses: from.networks("FEEDGATE_BOT_ADDRESSES"),
            ping_spacing: from.millis("FEEDGATE_PING_SPACING_MS"),
            ping_waits: from.switch("FEEDGATE_PING_WAIT"),
            ping_wait: from.secs("FEEDGATE_PING_WAIT_S", 600),
            cloud_aliases: from.aliases("FEEDGATE_CLOUD_PATHS", "FEEDGATE_CLOUD_PROCEDURES"),
            cloud_expires: from.switch("FEEDGATE_CLOUD_EXPIRES"),
            min_period_s: from.number("FEEDGATE_MIN_PERIOD_S", 1, 86_400) as u32,
            polls_per_s: from.number("FEEDGATE_POLLS_PER_S", 1, 1_000_000) as u32,
            backfill: from.history(),
            porn_rank: from.switch("FEEDGATE_PORN_RANK"),
            delivery_at_once: from.count("FEEDGATE_DELIVERY_AT_ONCE", 100_000),
            delivery_per_host: from.count("FEEDGATE_DELIVERY_PER_HOST", 100_000),
            delivery_timeout: from.secs("FEEDGATE_DELIVERY_TIMEOUT_S", 60),
            signature: from.signature("FEEDGATE_SIGNATURE"),
            claim: from.secs("FEEDGATE_CLAIM_S", 3_600),
            stranger_calls_per_min: from.count("FEEDGATE_STRANGER_CALLS_PER_MIN", 1_000_000),
            metrics_networks: from.networks("FEEDGATE_METRICS_NETWORKS"),
            public_views: from.switch("FEEDGATE_PUBLIC_VIEWS"),
            password: from.text("FEEDGATE_PASSWORD").and_then(|text| Password::sent(&text)),
            quota: quota(&mut from),
            listing: listing(&mut from),
            onward: onward(&mut from),
            page: from.cut(),
            retention: from.retention(),
            shelf_bytes: from.number("FEEDGATE_ARCHIVE_CACHE_BYTES", 0, 1 << 40) as usize,
            events: events(&mut from),
            collect_all: from.switch("FEEDGATE_COLLECT_ALL"),
            collections: from.collections("FEEDGATE_COLLECTIONS"),
            log: from.log("FEEDGATE_LOG"),
            log_format: from.log_format("FEEDGATE_LOG_FORMAT"),
        };
        config.check_together(&mut from, &tls);
        if from.faults.is_empty() { Ok(config) } else { Err(BadConfig(from.faults)) }
    }

    /// Where state lives. A path that ends in `.db` is the database itself, any other
    /// the folder it is in.
    pub fn store(&self) -> store::Settings {
        let mut url = self.database.clone();
        if url.starts_with("sqlite:") && !url.ends_with(".db") {
            url = format!("{}/feedgate.db", url.trim_end_matches('/'));
        }
        let groups = HostGroups::with(self.host_spacing, self.limit_groups.clone());
        store::Settings {
            url,
            connections: self.database_connections,
            groups,
            cut: self.page,
            onward: Onward::default(),
        }
    }

    /// How requests go out. `public_url` stands in the user agent.
    pub fn fetch(&self, public_url: &Url) -> net::Settings {
        net::Settings {
            user_agent: format!("feedgate/{} (+{public_url}bot", env!("CARGO_PKG_VERSION")),
            allow_topics: self.allow_topics.clone(),
            allow_callbacks: self.allow_callbacks.clone(),
            fetch_timeout: self.fetch_timeout,
            callback_timeout: self.delivery_timeout,
            body_limit_bytes: self.body_limit_bytes,
            host_spacing: self.host_spacing,
        }
    }

    /// What bounds periods, while the poll budget suffices.
    pub fn bounds(&self) -> ScheduleBounds {
        ScheduleBounds { min_period_s: self.min_period_s, k: K_LEAST }
    }

    /// How resources are polled.
    pub fn ingest(&self) -> poll::Settings {
        poll::Settings {
            claim: self.claim,
            min_period_s: self.min_period_s,
            porn_rank: self.porn_rank,
            upstream_url: self.public_url.clone(),
        }
    }

    /// Which changes are pinged onward: those of what is saved here, and of what the
    /// operator names.
    pub fn onward(&self, public_url: &Url) -> Onward {
        let saved = public_url.join("storage/").ok();
        let asked = self.onward.asked.iter().cloned().chain(saved).collect();
        Onward { sinks: self.onward.sinks.clone(), asked }
    }

    /// How histories are brought in.
    pub fn history(&self) -> crate::jobs::backfill::Settings {
        crate::jobs::backfill::Settings { claim: self.claim, limits: self.backfill }
    }

    /// How house is kept.
    pub fn upkeep(&self) -> maintenance::Settings {
        maintenance::Settings {
            polls_per_s: self.polls_per_s,
            changes_unit: self.listing.unit,
            keep_pings: self.listing.keep_pings,
            save_hours: self.listing.save_hours,
            retention: self.retention,
            events: self.events,
        }
    }

    /// How hubs and clouds are asked to tell us of changes; `None` where they could not
    /// reach us, as far as we know.
    pub fn upstreams(&self) -> Option<upstream::Settings> {
        let public_url = self.public_url.clone()?;
        Some(upstream::Settings { public_url, ping_spacing: self.ping_spacing })
    }

    /// How callbacks are told.
    pub fn deliver(&self, public_url: &Url) -> deliver::Settings {
        deliver::Settings {
            public_url: public_url.clone(),
            claim: self.claim,
            per_host: self.delivery_per_host,
            signature: self.signature,
        }
    }

    /// How feeds are kept for their authors.
    pub fn publish(&self, public_url: &Url) -> authoring::Settings {
        authoring::Settings {
            public_url: public_url.clone(),
            quota: self.quota,
            ping_spacing: self.ping_spacing,
        }
    }

    /// How the doors behave.
    pub fn doors(&self, public_url: &Url) -> http::Settings {
        http::Settings {
            public_url: public_url.clone(),
            trusted_proxies: self.trusted_proxies.clone(),
            ping_spacing: self.ping_spacing,
            ping_waits: self.ping_waits,
            ping_wait: self.ping_wait,
            tells_expiry: self.cloud_expires,
            aliases: self.cloud_aliases.clone(),
            stranger_calls_per_min: self.stranger_calls_per_min,
            metrics_networks: self.metrics_networks.clone(),
            shows_views: self.public_views,
            changes_unit: self.listing.unit,
            shelf_bytes: self.shelf_bytes,
            collects_all: self.collect_all,
            collections: self.collections.clone(),
            contact: self.contact.clone(),
            bot_addresses: self.bot_addresses.clone(),
        }
    }

    /// How connections come in.
    pub fn listener(&self) -> listener::Settings {
        listener::Settings {
            max_connections: self.max_connections,
            header_timeout: self.header_timeout,
            drain: self.drain,
            tls: self.tls.as_ref().map(|tls| (tls.cert.clone(), tls.key.clone())),
        }
    }

    /// The address others know us by: what the operator says, or where we listen.
    pub fn public_url_at(&self, addr: SocketAddr) -> Url {
        if let Some(url) = &self.public_url {
            return url.clone();
        }
        url_at(if self.tls.is_some() { "https" } else { "http" }, addr)
    }
}

fn events<G: Fn(&str) -> Option<(String, Origin)>>(
    from: &mut Reader<G>,
) -> maintenance::EventsKept {
    maintenance::EventsKept {
        age: Duration::from_secs(86_400 * from.number("FEEDGATE_EVENTS_DAYS", 1, 3_650)),
        of_a_kind: from.count("FEEDGATE_EVENTS_OF_A_KIND", 10_000_000),
    }
}

fn quota<G: Fn(&str) -> Option<(String, Origin)>>(from: &mut Reader<G>) -> Quota {
    Quota {
        file_bytes: from.number("FEEDGATE_STORAGE_FILE_BYTES", 1_024, 1 << 26) as usize,
        files: from.count("FEEDGATE_STORAGE_FILES", 100_000),
        bytes: from.number("FEEDGATE_STORAGE_BYTES", 1_024, 1 << 40) as usize,
    }
}

fn onward<G>(from: &mut Reader<G>) -> Onward
where
    G: Fn(&str) -> Option<(String, Origin)>,
{
    Onward { sinks: from.sinks("FEEDGATE_PING_SINKS"), asked: from.urls("FEEDGATE_PING_ONWARD") }
}

fn listing<G>(from: &mut Reader<G>) -> Listing
where
    G: Fn(&str) -> Option<(String, Origin)>,
{
    Listing {
        unit: from.unit("FEEDGATE_CHANGES_WHEN"),
        keep_pings: from.hours("FEEDGATE_PINGS_KEEP_H"),
        save_hours: from.days("FEEDGATE_HOURS_KEEP_DAYS"),
    }
}

/// The URL of what listens at `addr`. Who listens everywhere is found on this machine.
pub(crate) fn url_at(scheme: &str, addr: SocketAddr) -> Url {
    let ip = match addr.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    let addr = SocketAddr::new(ip, addr.port()); // which writes IPv6 in brackets
    Url::parse(&format!("{scheme}://{addr}")).expect("an address and a port make a URL")
}

#[cfg(test)]
mod tests {
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
        assert_eq!(config.drain, Duration::from_secs(15));
    }

    #[test]
    fn all_faults_are_told_at_once() {
        let cases = [
            ("FEEDGATE_LISTEN", "everywhere"),
            ("FEEDGATE_PUBLIC_URL", "https://a.test/path"),
            ("FEEDGATE_DATABASE", "mysql://a.test"),
            ("FEEDGATE_TLS_CERT", "cert.pem"),
            ("FEEDGATE_TRUSTED_PROXIES", "10.0.0.0/8, local"),
            ("FEEDGATE_EGRESS_ALLOW_TOPIC_CIDRS", "10.0.0.0/40"),
            ("FEEDGATE_LIMIT_GROUPS", "example.org=soon"),
            ("FEEDGATE_DELIVERY_TIMEOUT_S", "0"),
            ("FEEDGATE_BODY_LIMIT_BYTES", "10M"),
            ("FEEDGATE_LOG", "feedgate=loud"),
            ("FEEDGATE_LOG_FORMAT", "xml"),
            ("FEEDGATE_CLAIM_S", "20"),
        ];
        let BadConfig(faults) = read(&cases).unwrap_err();
        for (name, _) in cases {
            assert!(faults.iter().any(|fault| fault.contains(name)), "{name}: {faults:?}");
        }
        assert_eq!(faults.len(), cases.len(), "{faults:?}");
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
