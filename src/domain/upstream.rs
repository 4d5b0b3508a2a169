//! What a resource itself offers so as to be polled less: a hub or a cloud that tells of
//! its changes, and how far we can rely on it (rule P53).
//!
//! ```text
//! wanted ──► asked ──► active ──► (renewed) ──► active …
//!    ▲          │          │
//!    └── retry ─┘          └──► doubted ── a week ──► wanted
//! ```
//!
//! An offer is taken as a promise that has to be kept: polls become rare only while what
//! is new comes by push before a poll finds it.

use std::time::Duration;

use chrono::{DateTime, Utc};
use url::Url;

use super::feed::{Element, Feed, Node};
use super::resource::ResourceId;
use super::subscription::{Protocol, Secret};

/// The longest address taken from a feed, in bytes.
const LONGEST_BYTES: usize = 2_048;
/// Where the scripting.com namespace is (source.scripting.com, "source:cloud").
const SOURCE: &str = "http://source.scripting.com/";
/// A hub that does not answer is asked again after this, doubled each time …
const RETRY_FIRST: Duration = Duration::from_secs(5 * 60);
/// … up to a day.
const RETRY_LONGEST: Duration = Duration::from_secs(24 * 3_600);
/// One that refuses is asked again in a week, as one that is doubted.
const MUCH_LATER: Duration = Duration::from_secs(7 * 24 * 3_600);
/// How long a hub may take to verify what it has accepted.
const VERIFIES_WITHIN: Duration = Duration::from_secs(10 * 60);
/// rssCloud: "You must renew your subscription every 24 hours because they expire after
/// 25 hours" (seed 000). An hour sooner, so that a failure leaves time for another try.
const CLOUD_RENEWAL: Duration = Duration::from_secs(23 * 3_600);
/// The share of what comes by push is judged from so many entries on (rule P53).
const JUDGED_FROM: u32 = 20;
/// Beyond twice as many the past counts half, so that a hub that dies is soon found out.
const REMEMBERED: u32 = 2 * JUDGED_FROM;

/// A hub or a cloud, as a resource advertises it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// How it is spoken to; a procedure is the one that registers.
    pub protocol: Protocol,
    /// The address of the hub or the cloud.
    pub endpoint: String,
    /// The address under which it knows the resource.
    pub topic: String,
}

/// An offer, with what a subscription to it would be made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// What was offered.
    pub offer: Offer,
    /// See [`Upstream::token`].
    pub token: String,
    /// See [`Upstream::secret`].
    pub secret: Secret,
}

/// What a poll learned of upstreams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Offered {
    /// There was no document that could tell.
    #[default]
    Unknown,
    /// The resource has none.
    Nothing,
    /// This one. Nothing changes if it is known.
    Upstream(Proposal),
}

/// How far a subscription at an upstream has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is still to be asked.
    Wanted,
    /// It accepted the request and has not verified it yet.
    Asked,
    /// It is to tell us of changes.
    Active,
    /// It refused, or polls found most of what was new first.
    Doubted,
}

impl State {
    /// The word in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Wanted => "wanted",
            State::Asked => "asked",
            State::Active => "active",
            State::Doubted => "doubted",
        }
    }

    /// Reads the word.
    pub fn from_word(word: &str) -> Option<State> {
        let all = [State::Wanted, State::Asked, State::Active, State::Doubted];
        all.into_iter().find(|state| state.as_str() == word)
    }

    /// Whether we asked for what a hub now verifies. It may do so before it answers.
    pub fn is_asking(self) -> bool {
        self != State::Doubted
    }
}

/// What is known of one upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Whose.
    pub resource: ResourceId,
    /// What was offered.
    pub offer: Offer,
    /// What makes the address at which we are told, `/upstream/{token}`, unguessable.
    pub token: String,
    /// With what a hub signs.
    pub secret: Secret,
    /// How far it has come.
    pub state: State,
    /// Until when it holds.
    pub lease_until: Option<DateTime<Utc>>,
    /// Consecutive requests that came to nothing.
    pub failures: u32,
    /// How many follow the resource: nobody needs to be told for nobody.
    pub subscribers: u32,
}

/// What an upstream has proved so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// Entries that came by push first.
    pub pushed: u32,
    /// Entries that a poll found although they should have been pushed.
    pub missed: u32,
    /// Whether the last of them came by push.
    pub last_was_pushed: bool,
}

impl Proof {
    /// So many new entries came, by push or found by a poll.
    pub fn after(self, entries: u32, by_push: bool) -> Proof {
        let (mut pushed, mut missed) = (self.pushed, self.missed);
        let count = if by_push { &mut pushed } else { &mut missed };
        *count = count.saturating_add(entries);
        while pushed.saturating_add(missed) > REMEMBERED {
            (pushed, missed) = (pushed / 2, missed / 2);
        }
        Proof { pushed, missed, last_was_pushed: by_push }
    }

    /// Whether it is treated as no push at all: less than half came by it (rule P53).
    pub fn is_doubtful(self) -> bool {
        let all = self.pushed.saturating_add(self.missed);
        all >= JUDGED_FROM && self.pushed < self.missed
    }

    /// Whether polls may be rare: it has told of something, and of the last thing too.
    pub fn is_relied_on(self) -> bool {
        self.last_was_pushed && self.pushed > 0 && !self.is_doubtful()
    }
}

impl Offer {
    /// What a document offers. `links` are the relation and absolute target of the links
    /// in the answer's headers, which count before those in the document (WebSub
    /// `#discovery`); `url` is where the resource is fetched.
    ///
    /// A hub counts before a cloud, because it sends what is new and signs it;
    /// `<source:cloud>` before `<cloud>`, which cannot say "https".
    pub fn of(links: &[(String, String)], feed: Option<&Feed>, url: &str) -> Option<Offer> {
        let header = |rel: &str| links.iter().find(|link| link.0 == rel).map(|link| &link.1);
        let element = |rel: &str| {
            let mut links = feed?.links.iter().filter(|link| link.rel == rel);
            links.find(|link| is_address(&link.href)).map(|link| &link.href)
        };
        let own = header("self").or_else(|| element("self")).filter(|own| is_address(own));
        let topic = own.map_or(url, String::as_str).to_owned();
        // The password of a private feed is no business of its hub's (rule S49).
        if !is_address(&topic) || !is_address(url) {
            return None;
        }

        let hub = header("hub").filter(|hub| is_address(hub)).or_else(|| element("hub"));
        if let Some(hub) = hub {
            return Some(Offer { protocol: Protocol::WebSub, endpoint: hub.clone(), topic });
        }
        let extensions = &feed?.extensions;
        let named = |name: &str, is_source: bool| {
            extensions.iter().find(move |element| {
                element.name == name && (element.namespace == SOURCE) == is_source
            })
        };
        let new = named("cloud", true).map(text).filter(|endpoint| is_address(endpoint));
        if let Some(endpoint) = new {
            return Some(Offer { protocol: Protocol::HttpPost, endpoint, topic });
        }
        let (protocol, endpoint) = named("cloud", false).and_then(cloud)?;
        Some(Offer { protocol, endpoint, topic })
    }

    /// Whether it is an address below `own`: nobody need tell us what we tell ourselves.
    pub fn is_within(&self, own: &Url) -> bool {
        let home = own.path().trim_end_matches('/');
        Url::parse(&self.endpoint).is_ok_and(|url| {
            let below = url.path().strip_prefix(home);
            url.origin() == own.origin()
                && below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// When to ask for more time, if what is given now lasts for `lease`.
    pub fn renewal(&self, lease: Duration) -> Duration {
        match self.protocol {
            Protocol::WebSub => (lease / 2).max(Duration::from_secs(60)),
            _ => CLOUD_RENEWAL.min(lease),
        }
    }
}

impl Upstream {
    /// It is to tell us until `lease_until`.
    pub fn confirm(&mut self, lease_until: DateTime<Utc>) {
        self.state = State::Active;
        self.lease_until = Some(lease_until);
        self.failures = 0;
    }

    /// It has heard us and will verify. Returns how long to wait for that; until then it
    /// counts as a failure.
    pub fn accepted(&mut self) -> Duration {
        if self.state != State::Active {
            self.state = State::Asked;
        }
        let wait = self.retry().max(VERIFIES_WITHIN);
        self.failures = self.failures.saturating_add(1);
        wait
    }

    /// A request came to nothing: `finally` by a word of the other side's, else by what
    /// may be over in minutes. Returns how long to wait before the next.
    pub fn refused(&mut self, finally: bool) -> Duration {
        let wait = if finally { MUCH_LATER } else { self.retry() };
        if finally {
            self.state = State::Doubted;
        }
        self.failures = self.failures.saturating_add(1);
        wait
    }

    fn retry(&self) -> Duration {
        (RETRY_FIRST * (1 << self.failures.min(10))).min(RETRY_LONGEST)
    }
}

/// Until an upstream that was found wanting gets another chance.
pub fn next_chance(now: DateTime<Utc>) -> DateTime<Utc> {
    now + MUCH_LATER
}

/// `<cloud domain port path registerProcedure protocol>` (RSS 2.0, "cloud"), whatever
/// the case of its names.
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
    // Some write an address where the name of a host belongs.
    let domain = named("domain")?;
    let domain = domain.split_once("://").map_or(domain, |(_, rest)| rest);
    let domain = domain.trim_end_matches('/');
    let slash = if named("path").unwrap_or_default().starts_with('/') { "" } else { "/" };
    let path = named("path").unwrap_or_default();
    let endpoint = format!("{scheme}://{domain}:{port}{slash}{path}");
    is_address(&endpoint).then_some((protocol, endpoint))
}

fn text(element: &Element) -> String {
    let texts = element.children.iter().filter_map(|node| match node {
        Node::Text(text) => Some(text.as_str()),
        Node::Element(_) => None,
    });
    texts.collect::<String>().trim().to_owned()
}

/// Whether requests may be made to it: of the web, no password in it, not endless.
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
    use super::super::feed::{Attribute, Link};
    use super::*;

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

    /// Protocol, procedure, endpoint and topic.
    fn told(offer: Option<Offer>) -> Option<(&'static str, String, String, String)> {
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
            let offer = told(Offer::of(links, feed.as_ref(), URL));
            let want = want.map(|(p, e, t)| (p, String::new(), e.to_owned(), t.to_owned()));
            assert_eq!(offer, want, "{why}");
        }
    }

    #[test]
    fn s49_a_private_feed_is_named_to_nobody() {
        let hub = feed(&[("hub", "https://h.test/"), ("self", "https://a.test/feed")], vec![]);
        assert_eq!(told(Offer::of(&[], Some(&hub), "https://u:p@a.test/feed")), None);
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
            let offer = Offer { protocol: Protocol::WebSub, endpoint, topic: URL.to_owned() };
            assert_eq!(offer.is_within(&Url::parse(own).unwrap()), want, "{offer:?} {own}");
        }
    }

    #[test]
    fn p53_clouds_are_read_as_publishers_write_them() {
        let of = |element: Element| told(Offer::of(&[], Some(&feed(&[], vec![element])), URL));
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

    #[test]
    fn p53_a_push_is_relied_on_while_it_comes_first() {
        let none = Proof::default();
        assert!(!none.is_relied_on(), "nothing is proved yet");
        let good = none.after(1, true);
        assert!(good.is_relied_on());
        let late = good.after(1, false);
        assert!(!late.is_relied_on() && !late.is_doubtful(), "one miss: polls come back");
        assert!(late.after(1, true).is_relied_on(), "and go again");

        let bad = none.after(9, true).after(11, false);
        assert!(bad.is_doubtful(), "{bad:?}");
        assert!(!none.after(9, true).after(10, false).is_doubtful(), "19 are too few");
        let died = (0..25).fold(none.after(10_000, true), |record, _| record.after(1, false));
        assert!(died.is_doubtful(), "years of good service are soon forgotten: {died:?}");
    }

    #[test]
    fn requests_that_fail_are_made_again_ever_later() {
        let upstream = |failures, state| Upstream {
            resource: ResourceId(1),
            offer: Offer {
                protocol: Protocol::WebSub,
                endpoint: "https://h.test/".to_owned(),
                topic: URL.to_owned(),
            },
            token: String::new(),
            secret: Secret::new(String::new()).unwrap(),
            state,
            lease_until: None,
            failures,
            subscribers: 1,
        };
        for (failures, secs) in [(0, 300), (1, 600), (4, 4_800), (40, 86_400)] {
            let mut silent = upstream(failures, State::Wanted);
            assert_eq!(silent.refused(false).as_secs(), secs, "{failures}");
            assert_eq!((silent.state, silent.failures), (State::Wanted, failures + 1));
        }
        let mut no = upstream(0, State::Asked);
        assert_eq!((no.refused(true), no.state), (MUCH_LATER, State::Doubted));

        let mut heard = upstream(0, State::Wanted);
        assert_eq!(heard.accepted(), VERIFIES_WITHIN);
        assert_eq!((heard.state, heard.failures), (State::Asked, 1), "until it verifies");
        let mut renewed = upstream(0, State::Active);
        renewed.accepted();
        assert_eq!(renewed.state, State::Active, "the old lease goes on");
        renewed.confirm(DateTime::UNIX_EPOCH);
        assert_eq!(renewed.failures, 0);
        let days = |days: u64| Duration::from_secs(days * 86_400);
        assert_eq!(renewed.offer.renewal(days(10)), days(5));
    }
}
