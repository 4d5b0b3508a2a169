//! Text → typed settings, with a sentence for each fault.

use std::fmt::Display;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use ipnet::IpNet;
use tracing_subscriber::filter::{EnvFilter, LevelFilter};
use url::Url;

use crate::http::Aliases;
use feedgate_core::backfill;
use feedgate_core::collection::ConfiguredCollection;
use feedgate_core::host_groups::HostGroups;
use feedgate_core::page::{ArchiveRetention, PageLimits};
use feedgate_core::ping::TimeUnit;
use feedgate_core::ping_forwarding::Sink;
use feedgate_protocol::signature::Method;

use super::settings::Setting;
use super::{LogFormat, Origin, collections};

/// Reads one setting after the other and collects what is wrong with them.
pub(super) struct Reader<G> {
    get: G,
    /// What is wrong so far.
    pub(super) faults: Vec<String>,
}

impl<G: Fn(&str) -> Option<(String, Origin)>> Reader<G> {
    /// Reads through `get`.
    pub(super) fn new(get: G) -> Reader<G> {
        Reader { get, faults: Vec::new() }
    }

    /// What was given or else the default; `None` if that is empty.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        let given = (self.get)(name);
        let given = given.map_or_else(|| default(name).to_owned(), |(value, _)| value);
        Some(given.trim().to_owned()).filter(|text| !text.is_empty())
    }

    pub(super) fn parsed<T: FromStr>(&mut self, name: &str, what: &str) -> T {
        let text = self.text(name).unwrap_or_default();
        text.parse().unwrap_or_else(|_| {
            self.fault(name, what);
            let parsed = default(name).parse().ok();
            parsed.expect("a test reads every default")
        })
    }

    pub(super) fn number(&mut self, name: &str, least: u64, most: u64) -> u64 {
        let what = format!("a number from {least} to {most}");
        let number = self.parsed(name, &what);
        if !(least..=most).contains(&number) {
            self.fault(name, &what);
        }
        number
    }

    pub(super) fn count(&mut self, name: &str, most: u64) -> usize {
        self.number(name, 1, most) as usize
    }

    /// How much a page of an archive takes.
    pub(super) fn history(&mut self) -> backfill::BackfillLimits {
        backfill::BackfillLimits {
            pages: self.number("FEEDGATE_BACKFILL_PAGES", 0, 100_000) as u32,
            entries: self.number("FEEDGATE_BACKFILL_ENTRIES", 1, 10_000_000),
            bytes: self.number("FEEDGATE_BACKFILL_BYTES", 1, 1 << 40),
        }
    }

    pub(super) fn cut(&mut self) -> PageLimits {
        PageLimits {
            records: self.number("FEEDGATE_PAGE_RECORDS", 1, 1_000) as i64,
            bytes: self.number("FEEDGATE_PAGE_BYTES", 1_024, 1 << 26) as i64,
        }
    }

    /// How much of each archive is kept; 0 sets no bound.
    pub(super) fn retention(&mut self) -> ArchiveRetention {
        let mut bound = |name| {
            let number = self.number(name, 0, u32::MAX.into());
            u32::try_from(number).ok().filter(|number| *number > 0)
        };
        let (days, pages) = (bound("FEEDGATE_ARCHIVE_DAYS"), bound("FEEDGATE_ARCHIVE_PAGES"));
        ArchiveRetention { days, pages }
    }

    pub(super) fn secs(&mut self, name: &str, most: u64) -> Duration {
        Duration::from_secs(self.number(name, 1, most))
    }

    pub(super) fn millis(&mut self, name: &str) -> Duration {
        Duration::from_millis(self.number(name, 0, 3_600_000))
    }

    pub(super) fn switch(&mut self, name: &str) -> bool {
        match self.text(name).as_deref() {
            Some("on") => true,
            Some("off") => false,
            _ => {
                self.fault(name, "on or off");
                false
            }
        }
    }

    pub(super) fn networks(&mut self, name: &str) -> Vec<IpNet> {
        let text = self.text(name).unwrap_or_default();
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let nets: Result<Vec<IpNet>, _> = parts.map(network).collect();
        nets.unwrap_or_else(|part| {
            self.fault(name, format!("networks such as 10.0.0.0/8,fd00::/8; {part} is none"));
            Vec::new()
        })
    }

    pub(super) fn limit_groups(&mut self, name: &str) -> Vec<(String, Option<Duration>)> {
        let text = self.text(name).unwrap_or_default();
        HostGroups::parse(&text).unwrap_or_else(|part| {
            self.fault(name, format!("domains such as example.org=5,example.net; {part} is none"));
            Vec::new()
        })
    }

    pub(super) fn aliases(&mut self, paths: &str, procedures: &str) -> Aliases {
        let mut aliases = Aliases::default();
        let given =
            (self.text(paths).unwrap_or_default(), self.text(procedures).unwrap_or_default());
        if let Err(part) = aliases.add_paths(&given.0) {
            let what = "paths such as /cloud/register,/cloud/changed=ping,/xmlrpc=call";
            self.fault(paths, format!("{what}; {part} is none"));
        }
        if let Err(part) = aliases.add_procedures(&given.1) {
            let what = "procedures such as cloud.register,cloud.changed=ping";
            self.fault(procedures, format!("{what}; {part} is none"));
        }
        aliases
    }

    pub(super) fn collections(&mut self, name: &str) -> Vec<ConfiguredCollection> {
        let Some(text) = self.text(name) else { return Vec::new() };
        collections::parse(&text).unwrap_or_else(|why| {
            let such = "[{\"name\": \"news\", \"topics\": [\"https://example.org/feed\"]}]";
            self.fault(name, format!("collections such as {such}; {why}"));
            Vec::new()
        })
    }

    pub(super) fn url(&mut self, name: &str) -> Option<Url> {
        let url = Url::parse(&self.text(name)?).ok();
        let good = url.filter(|url| {
            matches!(url.scheme(), "http" | "https") && url.query().is_none() && url.path() == "/"
        });
        if good.is_none() {
            self.fault(name, "an http or https URL without path and query");
        }
        good
    }

    pub(super) fn database(&mut self, name: &str) -> String {
        let text = self.text(name).unwrap_or_default();
        if !["sqlite:", "postgres://", "postgresql://"].iter().any(|start| text.starts_with(start))
        {
            self.fault(name, "sqlite:FOLDER or postgres://USER:PASSWORD@HOST/DATABASE");
        }
        text
    }

    pub(super) fn log(&mut self, name: &str) -> String {
        let text = self.text(name).unwrap_or_default();
        // A bare word that is no level would be taken for a target, of which there is none.
        let bare = |part: &&str| !part.is_empty() && !part.contains(['=', '[', ']', '{', '}']);
        let mut bare = text.split(',').filter(bare);
        let levels = bare.all(|word| word.parse::<LevelFilter>().is_ok());
        if !levels || EnvFilter::try_new(&text).is_err() {
            self.fault(name, "a level such as info, or levels such as info,feedgate=debug");
        }
        text
    }

    pub(super) fn signature(&mut self, name: &str) -> Method {
        let method = self.text(name).as_deref().and_then(Method::from_word);
        method.unwrap_or_else(|| {
            self.fault(name, "sha1, sha256, sha384 or sha512");
            Method::default()
        })
    }

    pub(super) fn hours(&mut self, name: &str) -> Duration {
        Duration::from_secs(3_600 * self.number(name, 2, 1_000_000))
    }

    /// Days; `None` for 0, which is for ever.
    pub(super) fn days(&mut self, name: &str) -> Option<Duration> {
        let days = self.number(name, 0, 100_000);
        (days > 0).then(|| Duration::from_secs(86_400 * days))
    }

    pub(super) fn sinks(&mut self, name: &str) -> Vec<Sink> {
        let text = self.text(name).unwrap_or_default();
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let sinks: Result<Vec<Sink>, &str> =
            parts.map(|part| Sink::parse(part).ok_or(part)).collect();
        sinks.unwrap_or_else(|part| {
            self.fault(name, format!("URLs, or get=URL for plain requests; {part} is neither"));
            Vec::new()
        })
    }

    pub(super) fn urls(&mut self, name: &str) -> Vec<Url> {
        let text = self.text(name).unwrap_or_default();
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let urls: Result<Vec<Url>, &str> =
            parts.map(|part| Url::parse(part).map_err(|_| part)).collect();
        urls.unwrap_or_else(|part| {
            self.fault(name, format!("URLs such as https://example.org/blog; {part} is none"));
            Vec::new()
        })
    }

    pub(super) fn unit(&mut self, name: &str) -> TimeUnit {
        let unit = self.text(name).as_deref().and_then(TimeUnit::from_word);
        unit.unwrap_or_else(|| {
            self.fault(name, "minutes or seconds");
            TimeUnit::Minutes
        })
    }

    pub(super) fn log_format(&mut self, name: &str) -> LogFormat {
        match self.text(name).as_deref() {
            Some("text") => LogFormat::Text,
            Some("json") => LogFormat::Json,
            _ => {
                self.fault(name, "text or json");
                LogFormat::Text
            }
        }
    }

    /// The name as its author wrote it.
    pub(super) fn written(&self, name: &str) -> String {
        let origin = (self.get)(name).map_or(Origin::Default, |(_, origin)| origin);
        Setting::find(name).map_or_else(|| name.to_owned(), |setting| setting.written(origin))
    }

    fn fault(&mut self, name: &str, what: impl Display) {
        let default = match default(name) {
            "" => "none".to_owned(),
            default => default.to_owned(),
        };
        let mut fault = format!("{} must be {what} (default: {default})", self.written(name));
        if let Some((value, origin)) = (self.get)(name) {
            let secret = Setting::find(name).is_none_or(|setting| setting.secret);
            let said = if secret { "something else".to_owned() } else { format!("{value:?}") };
            fault.push_str(&format!(", but the {} says {said}", origin.as_str()));
        }
        self.faults.push(fault);
    }
}

fn default(name: &str) -> &'static str {
    Setting::find(name).map_or("", |setting| setting.default)
}

/// A network, or a single address as a network of one; else the text back.
fn network(text: &str) -> Result<IpNet, String> {
    let single = || text.parse().map(|addr: IpAddr| IpNet::from(addr));
    text.parse().or_else(|_| single()).map_err(|_| text.to_owned())
}
