//! Ping targets: the servers that are pinged when certain resources change.
//!
//! Pings are forwarded only for resources whose owner wants it: feeds that are saved here, below
//! `/storage`, and addresses that the operator lists. A ping speaks for the author of a feed, so
//! none is forwarded for other resources.

use url::Url;

use crate::claim::ClaimToken;

/// The method by which a target is pinged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PingMethod {
    /// `weblogUpdates.extendedPing` or `weblogUpdates.ping` over XML-RPC.
    XmlRpc,
    /// A plain request, as `/pingSiteForm` takes it.
    Get,
}

impl PingMethod {
    /// The word in settings, in the store and in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            PingMethod::XmlRpc => "xml-rpc",
            PingMethod::Get => "get",
        }
    }
}

/// A ping target: a server and the method by which it is pinged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PingTarget {
    means: PingMethod,
    url: String,
}

impl PingTarget {
    /// Parses `xml-rpc=URL`, `get=URL` or `URL`, which uses XML-RPC. In a URL for `get`, `{name}`,
    /// `{url}` and `{feed}` are placeholders.
    pub fn parse(text: &str) -> Option<PingTarget> {
        let given = [PingMethod::XmlRpc, PingMethod::Get].into_iter().find_map(|means| {
            let url = text.strip_prefix(means.as_str())?.strip_prefix('=')?;
            Some((means, url))
        });
        let (means, url) = given.unwrap_or((PingMethod::XmlRpc, text));
        let (url, parsed) = (url.trim().to_owned(), Url::parse(url.trim()).ok()?);
        let is_web = matches!(parsed.scheme(), "http" | "https") && parsed.has_host();
        is_web.then_some(PingTarget { means, url })
    }

    /// The method by which the target is pinged.
    pub fn means(&self) -> PingMethod {
        self.means
    }

    /// The URL of the target; a template for `get`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The key in the store, from which the target can be parsed.
    pub fn name(&self) -> String {
        format!("{}={}", self.means.as_str(), self.url)
    }
}

/// Which targets are pinged for which resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PingForwarding {
    /// The targets.
    pub targets: Vec<PingTarget>,
    /// Pings are forwarded for resources below these addresses.
    pub prefixes: Vec<Url>,
}

impl PingForwarding {
    /// Whether pings are forwarded for this topic.
    pub fn applies_to(&self, topic: &str) -> bool {
        !self.targets.is_empty() && self.prefixes.iter().any(|prefix| is_below(topic, prefix))
    }
}

/// Whether `topic` is on the same server as `prefix` and continues it: `…/blog` covers `…/blog`,
/// `…/blog/feed` and `…/blog?feed=rss`, but not `…/blogger`.
fn is_below(topic: &str, prefix: &Url) -> bool {
    let Ok(topic) = Url::parse(topic) else { return false };
    let tail = |url: &Url| url[url::Position::BeforePath..url::Position::AfterQuery].to_owned();
    let (whole, start) = (tail(&topic), tail(prefix));
    let Some(rest) = whole.strip_prefix(&start) else { return false };
    let goes_on =
        rest.is_empty() || start.ends_with(['/', '=']) || rest.starts_with(['/', '?', '&']);
    topic.origin() == prefix.origin() && goes_on
}

/// A ping that is due to one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuePing {
    /// The number in the store.
    pub id: i64,
    /// The claim, which the result names.
    pub claim: ClaimToken,
    /// The key of the target.
    pub target: String,
    /// The name of the weblog.
    pub name: String,
    /// The address of the weblog.
    pub url: String,
    /// The address of the feed.
    pub feed_url: String,
    /// How many changes it covers so far: a change that arrives while it is sent is sent later.
    pub version: i64,
    /// How many attempts have failed.
    pub attempts: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_with_and_without_their_means() {
        #[rustfmt::skip]
        let cases = [
            ("https://a.test/RPC2",             Some((PingMethod::XmlRpc, "https://a.test/RPC2"))),
            ("xml-rpc=http://a.test:81/",       Some((PingMethod::XmlRpc, "http://a.test:81/"))),
            ("get=http://a.test/?u={url}",      Some((PingMethod::Get, "http://a.test/?u={url}"))),
            ("post=http://a.test/",             None),
            ("ftp://a.test/",                   None),
            ("",                                None),
        ];
        for (text, want) in cases {
            let target = PingTarget::parse(text);
            assert_eq!(
                target.as_ref().map(|target| (target.means(), target.url())),
                want,
                "{text}"
            );
            if let Some(target) = target {
                assert_eq!(PingTarget::parse(&target.name()), Some(target), "{text}");
            }
        }
    }

    #[test]
    fn pings_are_forwarded_for_what_is_below_an_address() {
        let prefixes = ["https://a.test/blog", "https://b.test/", "https://c.test/?feed="];
        let prefixes: Vec<Url> = prefixes.iter().map(|url| Url::parse(url).unwrap()).collect();
        let targets = vec![PingTarget::parse("https://sink.test/").unwrap()];
        let forwarding = PingForwarding { targets, prefixes };
        #[rustfmt::skip]
        let cases = [
            ("https://a.test/blog",          true),
            ("https://a.test/blog/feed.xml", true),
            ("https://a.test/blog?feed=rss", true),
            ("https://a.test/blogger",       false),
            ("https://a.test/",              false),
            ("http://a.test/blog",           false),
            ("https://b.test/any/thing?x",   true),
            ("https://b.test.evil/",         false),
            ("https://b.test:444/",          false),
            ("https://c.test/?feed=rss",     true),
            ("no address",                   false),
        ];
        for (topic, want) in cases {
            assert_eq!(forwarding.applies_to(topic), want, "{topic}");
        }
        let nobody = PingForwarding { targets: Vec::new(), ..forwarding };
        assert!(!nobody.applies_to("https://b.test/"), "there is no target");
    }
}
