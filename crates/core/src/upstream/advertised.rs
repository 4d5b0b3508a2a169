//! The hub or cloud that a document advertises, read from the forms that publishers use.

use std::time::Duration;

use url::Url;

use super::super::topic::host;
use super::known_hubs;
use feedgate_feed::model::{Element, Feed};
use feedgate_protocol::Protocol;

/// The longest address taken from a feed, in bytes.
const LONGEST_BYTES: usize = 2_048;
/// The namespace of scripting.com (source.scripting.com, "source:cloud").
const SOURCE: &str = "http://source.scripting.com/";
/// The renewal interval at a cloud. rssCloud: "You must renew your subscription every 24 hours
/// because they expire after 25 hours" (seed 000). The value is an hour less than 24, so that a
/// failure leaves time for another try.
const CLOUD_RENEWAL: Duration = Duration::from_secs(23 * 3_600);

/// A hub or a cloud, as a resource advertises it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdvertisedUpstream {
    /// The protocol of the upstream; a procedure in it is the one that registers.
    pub protocol: Protocol,
    /// The address of the hub or the cloud.
    pub endpoint: String,
    /// The address under which the upstream knows the resource.
    pub topic: String,
}

impl AdvertisedUpstream {
    /// Returns the host and port of the hub or the cloud, the unit in which requests to them are
    /// limited; empty if the endpoint is no address.
    pub fn host(&self) -> String {
        Url::parse(&self.endpoint).map(|url| host(&url)).unwrap_or_default()
    }

    /// Returns the hub or cloud that a document advertises. `links` are the relation and absolute
    /// target of the links in the response headers, which take precedence over those in the
    /// document (WebSub `#discovery`); `url` is where the resource is fetched.
    ///
    /// A hub takes precedence over a cloud, because a hub sends the new entries and signs them;
    /// `<source:cloud>` takes precedence over `<cloud>`, which cannot express "https". A feed that
    /// names neither may have a hub that is known for it.
    pub fn find_in(
        links: &[(String, String)],
        feed: Option<&Feed>,
        url: &str,
    ) -> Option<AdvertisedUpstream> {
        let header = |rel: &str| links.iter().find(|link| link.0 == rel).map(|link| &link.1);
        let element = |rel: &str| {
            let mut links = feed?.links.iter().filter(|link| link.rel == rel);
            links.find(|link| is_address(&link.href)).map(|link| &link.href)
        };
        let own = header("self").or_else(|| element("self")).filter(|own| is_address(own));
        let topic = own.map_or(url, String::as_str).to_owned();
        // The password of a private feed must not be sent to its hub (rule S49).
        if !is_address(&topic) || !is_address(url) {
            return None;
        }

        let hub = header("hub").filter(|hub| is_address(hub)).or_else(|| element("hub"));
        if let Some(hub) = hub {
            return Some(AdvertisedUpstream {
                protocol: Protocol::WebSub,
                endpoint: hub.clone(),
                topic,
            });
        }
        let feed = feed?;
        let known = || {
            let (endpoint, topic) = known_hubs::find(url)?;
            Some(AdvertisedUpstream { protocol: Protocol::WebSub, endpoint, topic })
        };
        AdvertisedUpstream::find_cloud(&feed.extensions, topic).or_else(known)
    }

    /// Returns the cloud that the extensions of a feed name.
    fn find_cloud(extensions: &[Element], topic: String) -> Option<AdvertisedUpstream> {
        let named = |name: &str, is_source: bool| {
            extensions.iter().find(move |element| {
                element.name == name && (element.namespace == SOURCE) == is_source
            })
        };
        let new = named("cloud", true).map(|element| element.text().trim().to_owned());
        let new = new.filter(|endpoint| is_address(endpoint));
        if let Some(endpoint) = new {
            return Some(AdvertisedUpstream { protocol: Protocol::HttpPost, endpoint, topic });
        }
        let (protocol, endpoint) = named("cloud", false).and_then(cloud)?;
        Some(AdvertisedUpstream { protocol, endpoint, topic })
    }

    /// Returns whether the upstream is below `own`, which is this gateway itself.
    pub fn is_within(&self, own: &Url) -> bool {
        let home = own.path().trim_end_matches('/');
        Url::parse(&self.endpoint).is_ok_and(|url| {
            let below = url.path().strip_prefix(home);
            url.origin() == own.origin()
                && below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// Returns when to renew a subscription whose lease lasts for `lease` from now.
    pub fn renewal(&self, lease: Duration) -> Duration {
        match self.protocol {
            Protocol::WebSub => (lease / 2).max(Duration::from_secs(60)),
            _ => CLOUD_RENEWAL.min(lease),
        }
    }
}

/// Reads `<cloud domain port path registerProcedure protocol>` (RSS 2.0, "cloud"), whatever the
/// case of its names.
fn cloud(element: &Element) -> Option<(Protocol, String)> {
    let named = |name: &str| {
        let mut attributes = element.attributes.iter();
        let found = attributes.find(|attribute| attribute.name.eq_ignore_ascii_case(name));
        found.map(|attribute| attribute.value.trim())
    };
    let procedure = named("registerProcedure").unwrap_or_default().to_owned();
    let protocol = match named("protocol")?.to_ascii_lowercase().as_str() {
        "http-post" | "https-post" => Protocol::HttpPost,
        "xml-rpc" => Protocol::XmlRpc { procedure },
        "soap" => Protocol::Soap { procedure },
        _ => return None,
    };
    let port: u16 = named("port").unwrap_or("80").parse().ok()?;
    let is_tls = port == 443 || named("protocol")?.eq_ignore_ascii_case("https-post");
    let scheme = if is_tls { "https" } else { "http" };
    // Some publishers write an address in place of a host name.
    let domain = named("domain")?;
    let domain = domain.split_once("://").map_or(domain, |(_, rest)| rest);
    let domain = domain.trim_end_matches('/');
    let slash = if named("path").unwrap_or_default().starts_with('/') { "" } else { "/" };
    let path = named("path").unwrap_or_default();
    let endpoint = format!("{scheme}://{domain}:{port}{slash}{path}");
    is_address(&endpoint).then_some((protocol, endpoint))
}

/// Returns whether requests may be sent to an address: it is a web address, has no password, and is
/// not too long.
fn is_address(text: &str) -> bool {
    text.len() <= LONGEST_BYTES
        && Url::parse(text).is_ok_and(|url| {
            matches!(url.scheme(), "http" | "https")
                && url.username().is_empty()
                && url.password().is_none()
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedgate_feed::model::{Attribute, Link, Node};

    const URL: &str = "https://a.test/feed";

    fn feed(links: &[(&str, &str)], extensions: Vec<Element>) -> Feed {
        let links = links.iter().map(|(rel, href)| Link {
            rel: (*rel).to_owned(),
            href: (*href).to_owned(),
            ..Link::default()
        });
        Feed { links: links.collect(), extensions, ..Feed::default() }
    }

    fn rss_cloud(attributes: &[(&str, &str)]) -> Element {
        let attributes = attributes.iter().map(|(name, value)| Attribute {
            name: (*name).to_owned(),
            value: (*value).to_owned(),
            ..Attribute::default()
        });
        let namespace = "http://backend.userland.com/rss2".to_owned();
        let name = "cloud".to_owned();
        Element { namespace, name, attributes: attributes.collect(), ..Element::default() }
    }

    fn source_cloud(url: &str) -> Element {
        let (namespace, name) = (SOURCE.to_owned(), "cloud".to_owned());
        let children = vec![Node::Text(format!(" {url}\n"))];
        Element { namespace, name, children, ..Element::default() }
    }

    /// Returns protocol, procedure, endpoint and topic.
    fn told(offer: Option<AdvertisedUpstream>) -> Option<(&'static str, String, String, String)> {
        let offer = offer?;
        let procedure = offer.protocol.procedure().to_owned();
        Some((offer.protocol.as_str(), procedure, offer.endpoint, offer.topic))
    }

    #[test]
    fn p53_a_hub_counts_before_a_cloud_and_headers_before_elements() {
        let hub = || feed(&[("hub", "https://h.test/"), ("self", "https://a.test/own")], vec![]);
        let both = feed(&[("hub", "https://h.test/")], vec![source_cloud("https://c.test/x")]);
        let wrong = feed(&[("hub", "javascript:x"), ("hub", "http://u:p@h.test/")], vec![]);
        let header = [("hub".to_owned(), "https://other.test/".to_owned())];
        #[rustfmt::skip]
        let cases = [
            ("nothing is offered",       None,         &[][..],  None),
            ("a hub and a name",         Some(hub()),  &[],      Some(("websub", "https://h.test/", "https://a.test/own"))),
            ("a header counts first",    Some(hub()),  &header,  Some(("websub", "https://other.test/", "https://a.test/own"))),
            ("a page has headers only",  None,         &header,  Some(("websub", "https://other.test/", URL))),
            ("a hub before a cloud",     Some(both),   &[],      Some(("websub", "https://h.test/", URL))),
            ("no address, no hub",       Some(wrong),  &[],      None),
        ];
        for (why, feed, links, want) in cases {
            let offer = told(AdvertisedUpstream::find_in(links, feed.as_ref(), URL));
            let want = want.map(|(p, e, t)| (p, String::new(), e.to_owned(), t.to_owned()));
            assert_eq!(offer, want, "{why}");
        }
    }

    #[test]
    fn p53_a_hub_that_is_known_counts_after_those_that_are_named() {
        let url = "https://www.youtube.com/feeds/videos.xml?channel_id=UC1";
        let known = (
            "websub",
            String::new(),
            "https://pubsubhubbub.appspot.com/subscribe".to_owned(),
            "https://www.youtube.com/xml/feeds/videos.xml?channel_id=UC1".to_owned(),
        );
        let of = |feed: Option<&Feed>| told(AdvertisedUpstream::find_in(&[], feed, url));
        let plain =
            feed(&[("self", "http://www.youtube.com/feeds/videos.xml?channel_id=UC1")], vec![]);
        assert_eq!(of(Some(&plain)), Some(known));
        assert_eq!(of(None), None, "a page is not what the hub publishes");
        let named = of(Some(&feed(&[("hub", "https://h.test/")], vec![]))).unwrap();
        assert_eq!((named.2.as_str(), named.3.as_str()), ("https://h.test/", url));
    }

    #[test]
    fn s49_a_private_feed_is_named_to_nobody() {
        let hub = feed(&[("hub", "https://h.test/"), ("self", "https://a.test/feed")], vec![]);
        assert_eq!(
            told(AdvertisedUpstream::find_in(&[], Some(&hub), "https://u:p@a.test/feed")),
            None
        );
    }

    #[test]
    fn our_own_hub_is_below_our_address() {
        #[rustfmt::skip]
        let cases = [
            ("https://a.test/hub",       "https://a.test/",      true),
            ("https://a.test/gate/hub",  "https://a.test/gate/", true),
            ("https://a.test/gate",      "https://a.test/gate/", true),
            ("https://a.test/gatehouse", "https://a.test/gate",  false),
            ("https://a.test/hub",       "https://a.test/gate/", false),
            ("https://b.test/hub",       "https://a.test/",      false),
        ];
        for (endpoint, own, want) in cases {
            let endpoint = endpoint.to_owned();
            let offer =
                AdvertisedUpstream { protocol: Protocol::WebSub, endpoint, topic: URL.to_owned() };
            assert_eq!(offer.is_within(&Url::parse(own).unwrap()), want, "{offer:?} {own}");
        }
    }

    #[test]
    fn p53_clouds_are_read_as_publishers_write_them() {
        let of = |element: Element| {
            told(AdvertisedUpstream::find_in(&[], Some(&feed(&[], vec![element])), URL))
        };
        let rest = [("domain", "c.test"), ("port", "80"), ("path", "/RPC2")];
        let with = |more: &[(&str, &str)]| rss_cloud(&[&rest, more].concat());
        #[rustfmt::skip]
        let cases = [
            ("the new element",       source_cloud("https://c.test/pleaseNotify"),                            Some(("http-post", "", "https://c.test/pleaseNotify"))),
            ("a form",                with(&[("protocol", "http-post"), ("registerProcedure", "")]),          Some(("http-post", "", "http://c.test:80/RPC2"))),
            ("a procedure",           with(&[("protocol", "xml-rpc"), ("registerProcedure", "x.notify")]),    Some(("xml-rpc", "x.notify", "http://c.test:80/RPC2"))),
            ("soap, in capitals",     with(&[("PROTOCOL", "SOAP"), ("registerprocedure", "n")]),              Some(("soap", "n", "http://c.test:80/RPC2"))),
            ("something else",        with(&[("protocol", "smoke")]),                                         None),
            ("443 is https",          rss_cloud(&[("domain", "http://c.test/"), ("port", "443"), ("path", "x"), ("protocol", "http-post")]), Some(("http-post", "", "https://c.test:443/x"))),
            ("no port is no number",  rss_cloud(&[("domain", "c.test"), ("port", "x"), ("protocol", "http-post")]), None),
            ("nobody there",          rss_cloud(&[("protocol", "http-post")]),                                None),
        ];
        for (why, element, want) in cases {
            let want = want.map(|(p, n, e)| (p, n.to_owned(), e.to_owned(), URL.to_owned()));
            assert_eq!(of(element), want, "{why}");
        }
    }
}
