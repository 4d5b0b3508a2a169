//! Groups of servers that share one rate limit (P27, P41).
//!
//! Usually a group is one name and port. Large platforms limit all of their names together, so each
//! platform is one group: `a.tumblr.com` and `b.tumblr.com` both belong to `tumblr.com`. The names
//! alone do not show what belongs together (the public suffix list would split some groups and join
//! others), so the groups are a table, to which the operator can add.

use std::sync::Arc;
use std::time::Duration;

use url::Url;

use super::topic::host;

/// Platforms that limit all their names together, with the interval between two requests in seconds
/// if the platform is known to require more than the default.
const PLATFORMS: [(&str, Option<u64>); 14] = [
    ("blogger.com", None),
    ("blogspot.com", None),
    ("feedburner.com", None),
    ("libsyn.com", None),
    ("livejournal.com", None),
    ("medium.com", None),
    // Responds with 403 to more than one request a minute.
    ("reddit.com", Some(60)),
    ("squarespace.com", None),
    ("substack.com", None),
    ("tumblr.com", None),
    ("typepad.com", None),
    ("wixsite.com", None),
    ("wordpress.com", None),
    ("youtube.com", None),
];

/// The maximum interval between two requests that is learned or followed (P28).
pub const LONGEST_SPACING: Duration = Duration::from_secs(60);

/// The table of groups, and the interval for all other servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostGroups {
    spacing: Duration,
    /// A domain, which includes all of its subdomains, and its interval.
    table: Arc<[(String, Option<Duration>)]>,
}

impl HostGroups {
    /// The built-in platforms, and `spacing` as the interval between the starts of two fetches.
    pub fn new(spacing: Duration) -> HostGroups {
        HostGroups::with(spacing, Vec::new())
    }

    /// Adds domains, which take precedence over the built-in ones.
    pub fn with(spacing: Duration, more: Vec<(String, Option<Duration>)>) -> HostGroups {
        let known = PLATFORMS
            .iter()
            .map(|(domain, secs)| ((*domain).to_owned(), secs.map(Duration::from_secs)));
        HostGroups { spacing, table: more.into_iter().chain(known).collect() }
    }

    /// The same groups without any interval between their fetches.
    pub fn without_intervals(&self) -> HostGroups {
        let table = self.table.iter().map(|(domain, _)| (domain.clone(), None)).collect();
        HostGroups { spacing: Duration::ZERO, table }
    }

    /// Parses `DOMAIN` or `DOMAIN=SECONDS`, separated by commas. The error describes what is
    /// invalid.
    pub fn parse(text: &str) -> Result<Vec<(String, Option<Duration>)>, String> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        parts.map(|part| row(part).ok_or_else(|| part.to_owned())).collect()
    }

    /// The group of the server in `url`: the name of a platform, or host and port.
    pub fn name(&self, url: &Url) -> String {
        match self.row(url.host_str().unwrap_or_default()) {
            Some((domain, _)) => domain.clone(),
            None => host(url),
        }
    }

    /// The minimum interval between the starts of two fetches from this group.
    pub fn spacing(&self, name: &str) -> Duration {
        let own = self.row(name).and_then(|(_, own)| *own);
        own.map_or(self.spacing, |own| own.max(self.spacing))
    }

    /// A fingerprint of the table, which changes when the grouping changes.
    pub fn fingerprint(&self) -> String {
        let domains: Vec<&str> = self.table.iter().map(|(domain, _)| domain.as_str()).collect();
        domains.join(" ")
    }

    fn row(&self, host: &str) -> Option<&(String, Option<Duration>)> {
        let host = host.trim_end_matches('.');
        self.table.iter().find(|(domain, _)| {
            let above = host.strip_suffix(domain.as_str());
            above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
        })
    }
}

fn row(text: &str) -> Option<(String, Option<Duration>)> {
    let (domain, secs) = text.split_once('=').unwrap_or((text, ""));
    let domain = domain.trim().trim_start_matches("*.").to_ascii_lowercase();
    let is_name = domain.contains('.')
        && domain.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'));
    let secs = match secs.trim() {
        "" if !text.contains('=') => None,
        secs => Some(Duration::from_secs(secs.parse().ok().filter(|secs| *secs <= 3_600)?)),
    };
    is_name.then_some((domain, secs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p27_platforms_are_one_group_and_all_others_their_own() {
        let more = HostGroups::parse("*.example.org=5, pages.test").unwrap();
        let groups = HostGroups::with(Duration::from_secs(1), more);
        #[rustfmt::skip]
        let cases = [
            ("https://a.tumblr.com/rss",          "tumblr.com",       1),
            ("https://tumblr.com/rss",            "tumblr.com",       1),
            ("http://www.reddit.com:8080/r/.rss", "reddit.com",      60),
            ("https://nottumblr.com/rss",         "nottumblr.com:443", 1),
            ("http://blog.test/feed",             "blog.test:80",     1),
            ("https://blog.test/feed",            "blog.test:443",    1),
            ("https://x.y.example.org/feed",      "example.org",      5),
            ("https://me.pages.test/feed",        "pages.test",       1),
            ("http://[::1]:8080/feed",            "[::1]:8080",       1),
        ];
        for (url, name, secs) in cases {
            let got = groups.name(&Url::parse(url).unwrap());
            assert_eq!((got.as_str(), groups.spacing(&got).as_secs()), (name, secs), "{url}");
        }
    }

    #[test]
    fn a_table_that_cannot_be_read_says_where() {
        for bad in ["example", "a.test=soon", "a.test=", "a.test=99999", "a b.test"] {
            assert_eq!(HostGroups::parse(&format!("good.test=1,{bad}")), Err(bad.to_owned()));
        }
    }
}
