//! Patterns of hosts and addresses: the values of `site:` and `link:`.

use std::fmt;

use url::{Host, Url};

/// A host with all its subdomains.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HostPattern(String);

/// A host with all its subdomains, or one page.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LinkPattern {
    /// Any page of the host.
    Host(HostPattern),
    /// One page.
    Page(PageAddress),
}

/// The address of a page without its scheme, its fragment and a slash at its end, as it is
/// compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PageAddress {
    host: String,
    /// Path and query.
    path: String,
}

impl HostPattern {
    /// Parses a host name.
    pub(super) fn parse(text: &str) -> Option<HostPattern> {
        let host = Host::parse(text.trim_end_matches('.')).ok()?;
        Some(HostPattern(host.to_string()))
    }

    /// Returns whether `host` is the host or a subdomain of it.
    pub(super) fn matches(&self, host: &str) -> bool {
        let prefix = host.strip_suffix(&self.0);
        prefix.is_some_and(|prefix| prefix.is_empty() || prefix.ends_with('.'))
    }

    /// Returns the key that all entries of the site have.
    pub(super) fn site_key(&self) -> String {
        format!("site:{}", self.0)
    }
}

impl LinkPattern {
    /// Parses a host name, or the address of a page with or without its scheme.
    pub(super) fn parse(text: &str) -> Option<LinkPattern> {
        if text.contains("://") {
            let url = Url::parse(text).ok()?;
            return PageAddress::from_url(&url).map(LinkPattern::Page);
        }
        if text.contains('/') {
            let url = Url::parse(&format!("https://{text}")).ok()?;
            return PageAddress::from_url(&url).map(LinkPattern::Page);
        }
        HostPattern::parse(text).map(LinkPattern::Host)
    }

    /// Returns whether `page` is the page, or one of the host.
    pub(super) fn matches(&self, page: &PageAddress) -> bool {
        match self {
            LinkPattern::Host(host) => host.matches(&page.host),
            LinkPattern::Page(wanted) => wanted == page,
        }
    }

    /// Returns the key that all entries with such a link have.
    pub(super) fn link_key(&self) -> String {
        match self {
            LinkPattern::Host(host) => format!("link:{}", host.0),
            LinkPattern::Page(page) => format!("link:{}", page.host),
        }
    }
}

impl PageAddress {
    /// Returns the address of a web page; `None` for other addresses.
    pub(super) fn from_url(url: &Url) -> Option<PageAddress> {
        if !matches!(url.scheme(), "http" | "https") {
            return None;
        }
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
        let path = url.path().trim_end_matches('/');
        Some(PageAddress { host: url.host_str()?.to_owned(), path: format!("{port}{path}{query}") })
    }

    /// Returns the host.
    pub(super) fn host(&self) -> &str {
        &self.host
    }
}

/// Returns a host and the domains that it is in.
pub(super) fn domains(host: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(host), |host| host.split_once('.').map(|(_, domain)| domain))
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for LinkPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkPattern::Host(host) => host.fmt(f),
            LinkPattern::Page(page) => write!(f, "https://{}{}", page.host, page.path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_includes_its_subdomains() {
        let host = HostPattern::parse("Example.com").unwrap();
        for (text, want) in
            [("example.com", true), ("blog.example.com", true), ("notexample.com", false)]
        {
            assert_eq!(host.matches(text), want, "{text}");
        }
        assert_eq!(domains("a.b.test").collect::<Vec<_>>(), ["a.b.test", "b.test", "test"]);
    }

    #[test]
    fn links_are_hosts_or_pages() {
        #[rustfmt::skip]
        let cases = [
            ("a.test",             "https://blog.a.test/x?y=1", true),
            ("a.test",             "https://b.test/a.test",     false),
            ("https://a.test/",    "http://a.test",             true),
            ("https://a.test/",    "http://a.test/x",           false),
            ("a.test/x/?y=1",      "https://a.test/x?y=1#z",    true),
            ("https://a.test/x",   "https://a.test:8080/x",     false),
        ];
        for (pattern, url, want) in cases {
            let page = PageAddress::from_url(&Url::parse(url).unwrap()).unwrap();
            let pattern = LinkPattern::parse(pattern).unwrap();
            assert_eq!(pattern.matches(&page), want, "{pattern} {url}");
            assert_eq!(LinkPattern::parse(&pattern.to_string()), Some(pattern));
        }
        assert_eq!(LinkPattern::parse("a b"), None);
    }
}
