//! Ping sinks: who is told that a resource changed whose owner asked for it.
//!
//! The owner asks by saving the feed here, below `/storage`, or by being named by the
//! operator. Nobody else's resources are pinged onward: a ping speaks for its author.

use url::Url;

/// How a sink is told.
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

/// Who is told, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PingTarget {
    means: PingMethod,
    url: String,
}

impl PingTarget {
    /// Reads `xml-rpc=URL`, `get=URL` or `URL`, which is one for XML-RPC. In a URL to get,
    /// `{name}`, `{url}` and `{feed}` are places to be filled.
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

    /// How it is told.
    pub fn means(&self) -> PingMethod {
        self.means
    }

    /// Where it is; a template, if it is one to get.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What tells it from the others, in the store: it reads back as the same sink.
    pub fn name(&self) -> String {
        format!("{}={}", self.means.as_str(), self.url)
    }
}

/// Which sinks are told of which resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PingForwarding {
    /// Whom to tell.
    pub sinks: Vec<PingTarget>,
    /// Resources below these addresses are told of.
    pub asked: Vec<Url>,
}

impl PingForwarding {
    /// Whether the owner of this topic asked for it.
    pub fn is_asked(&self, topic: &str) -> bool {
        !self.sinks.is_empty() && self.asked.iter().any(|prefix| is_below(topic, prefix))
    }
}

/// Whether a topic is at the same server as `prefix`, and goes on from it: `…/blog` covers
/// `…/blog`, `…/blog/feed` and `…/blog?feed=rss`, but not `…/blogger`.
fn is_below(topic: &str, prefix: &Url) -> bool {
    let Ok(topic) = Url::parse(topic) else { return false };
    let tail = |url: &Url| url[url::Position::BeforePath..url::Position::AfterQuery].to_owned();
    let (whole, start) = (tail(&topic), tail(prefix));
    let Some(rest) = whole.strip_prefix(&start) else { return false };
    let goes_on =
        rest.is_empty() || start.ends_with(['/', '=']) || rest.starts_with(['/', '?', '&']);
    topic.origin() == prefix.origin() && goes_on
}

/// A sink that has to be told of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuePing {
    /// Its number in the store.
    pub id: i64,
    /// The name of the sink.
    pub sink: String,
    /// What the weblog is called.
    pub name: String,
    /// Its address.
    pub url: String,
    /// Its feed.
    pub feed_url: String,
    /// How many changes it tells of so far: one that comes meanwhile is told of apart.
    pub version: i64,
    /// How often it was tried in vain.
    pub attempts: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sinks_are_read_with_and_without_their_means() {
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
            let sink = PingTarget::parse(text);
            assert_eq!(sink.as_ref().map(|sink| (sink.means(), sink.url())), want, "{text}");
            if let Some(sink) = sink {
                assert_eq!(PingTarget::parse(&sink.name()), Some(sink), "{text}");
            }
        }
    }

    #[test]
    fn an_owner_asks_for_what_is_below_an_address() {
        let asked = ["https://a.test/blog", "https://b.test/", "https://c.test/?feed="];
        let asked: Vec<Url> = asked.iter().map(|url| Url::parse(url).unwrap()).collect();
        let sinks = vec![PingTarget::parse("https://sink.test/").unwrap()];
        let onward = PingForwarding { sinks, asked };
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
            assert_eq!(onward.is_asked(topic), want, "{topic}");
        }
        let nobody = PingForwarding { sinks: Vec::new(), ..onward };
        assert!(!nobody.is_asked("https://b.test/"), "there is nobody to tell");
    }
}
