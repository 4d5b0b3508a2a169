//! The links of entries, as feed readers understand them where the document states no base.
//!
//! * A relative link of an RSS item is relative to the site of the feed, if the feed lies on another
//!   host: services such as FeedBurner republish feeds as they are.
//! * An address that lacks only its scheme (`example.org/post`) gets one.
//! * `feedburner:origLink` is the page of an entry whose link counts clicks.
//!
//! Ids and digests of entries that were stored before were made of links relative to the document. Each link
//! remembers that address ([`Link::former_href`]), so that no entry becomes another one.

use url::Url;

use crate::context::{Context, LONGEST_BASE_BYTES};
use crate::iri;
use crate::model::{Element, Entry, Feed, FeedFormat, Link};

/// The namespace of FeedBurner.
const FEEDBURNER: &str = "http://rssnamespace.org/feedburner/ext/1.0";

/// Endings of file names: a folder that is called like a file is no host.
#[rustfmt::skip]
const FILE_ENDINGS: [&str; 33] = [
    "asp", "aspx", "atom", "cfm", "cgi", "css", "dll", "do", "exe", "htm", "html", "jpg", "js",
    "json", "jsp", "jspx", "md", "mvc", "nsf", "pdf", "php", "phtml", "pl", "png", "py", "rb", "rdf", "rss",
    "shtml", "txt", "woa", "xhtml", "xml",
];

/// The bases of the links and texts of the entries of a feed.
#[derive(Debug)]
pub(super) struct ItemBases {
    /// The base of the document.
    document: Url,
    /// The base of the links of entries.
    links: Url,
    /// Whether texts are relative to the page of their entry.
    is_by_page: bool,
}

impl ItemBases {
    /// Returns the bases for a feed whose own links are absolute. A stated base is obeyed.
    pub(super) fn from_feed(feed: &Feed, context: &Context) -> ItemBases {
        let location = context.location();
        let is_stated = location.is_some() || feed.base.is_some();
        let document = location.unwrap_or_else(|| context.url.clone());
        let site = if is_stated || !is_rss(feed.format) { None } else { site(feed, &document) };
        // A page is displayed where it was fetched, with all of its entries.
        let is_by_page = context.location().is_none() && !feed.format.is_page();
        ItemBases { links: site.unwrap_or_else(|| document.clone()), document, is_by_page }
    }

    /// Returns the base of the addresses in texts of an entry with absolute links: its page. `None` if
    /// the document states a base, or the entry has no page.
    pub(super) fn text_base(&self, entry: &Entry) -> Option<String> {
        if !self.is_by_page || entry.base.is_some() {
            return None;
        }
        let page = entry.links.iter().find(|link| {
            let is_page = link.mime.as_deref().is_none_or(|mime| mime.contains("html"));
            link.rel == "alternate" && is_page
        })?;
        let is_base = is_web(&page.href) && page.href.len() <= LONGEST_BASE_BYTES;
        is_base.then(|| page.href.clone())
    }
}

/// Makes the relative links of an entry absolute, and remembers what they were by the base of the
/// document. Where either page may be meant, the other one becomes a related link.
pub(super) fn resolve(links: &mut Vec<Link>, bases: &ItemBases) {
    let own = [&bases.links, &bases.document];
    let mut others = Vec::new();
    for link in links.iter_mut() {
        let written = link.href.trim();
        if written.is_empty() || written.starts_with("//") || iri::is_absolute(written) {
            continue;
        }
        let former = iri::join(bases.document.as_str(), written).into_owned();
        let is_alternate = matches!(link.rel.trim(), "" | "alternate");
        let complete = if is_alternate { with_scheme(written, &own) } else { None };
        let is_relative = complete.is_none();
        let joined = || iri::join(bases.links.as_str(), written).into_owned();
        let href = complete.unwrap_or_else(joined);
        if href == former {
            continue;
        }
        if is_alternate && is_relative && others.is_empty() {
            let (href, rel) = (former.clone(), "related".to_owned());
            others.push(Link { href, rel, ..Link::default() });
        }
        link.former_href.get_or_insert(former);
        link.href = href;
    }
    links.append(&mut others);
}

/// Makes the original page of an entry its first alternate link, if FeedBurner states it. Links must be
/// absolute.
pub(super) fn prefer_original(entry: &mut Entry) {
    let is_original =
        |element: &&Element| element.namespace == FEEDBURNER && element.name == "origLink";
    let Some(element) = entry.extensions.iter().find(is_original) else { return };
    let text = element.text();
    let original = iri::encode(text.trim());
    let first = entry.links.iter().position(|link| link.rel == "alternate");
    let counted = first.map(|at| &entry.links[at]);
    let is_complete = Url::parse(&original).is_ok_and(|url| is_web(url.as_str()) && url.has_host());
    if !is_complete || counted.is_some_and(|link| link.href == original) {
        return;
    }
    let former = counted.map(|link| link.compared_href().to_owned()).unwrap_or_default();
    let link = Link {
        href: original.into_owned(),
        rel: "alternate".to_owned(),
        mime: counted.and_then(|link| link.mime.clone()),
        hreflang: counted.and_then(|link| link.hreflang.clone()),
        former_href: Some(former),
        trace_id: element.trace_id,
        ..Link::default()
    };
    // Of two alternate links of one type, the later one becomes `related`.
    entry.links.insert(first.unwrap_or(0), link);
}

fn is_rss(format: FeedFormat) -> bool {
    use FeedFormat::{Rdf, Rss10, Rss11, Rss20, Rss090, Rss091, Rss092, Rss093, Rss094};
    matches!(format, Rss090 | Rss091 | Rss092 | Rss093 | Rss094 | Rss10 | Rss11 | Rss20 | Rdf)
}

/// Returns the site of a feed that lies on another host.
fn site(feed: &Feed, document: &Url) -> Option<Url> {
    let site = feed.site_url().filter(|site| site.len() <= LONGEST_BASE_BYTES)?;
    let site = Url::parse(&site).ok().filter(|site| is_web(site.as_str()))?;
    let is_elsewhere = site.host_str().map(bare_host) != document.host_str().map(bare_host);
    is_elsewhere.then_some(site)
}

/// Gives the address of the site of a feed a scheme, if it lacks nothing else.
pub(super) fn complete_site(links: &mut [Link], document: &Url) {
    for link in links.iter_mut().filter(|link| matches!(link.rel.trim(), "" | "alternate")) {
        let written = link.href.trim();
        // No page beside the feed is called like a host.
        let site = if is_domain(written) { format!("{written}/") } else { written.to_owned() };
        if let Some(href) = with_scheme(&site, &[document]) {
            link.href = href;
        }
    }
}

/// Returns an address that lacks only its scheme; `None` if it is relative. `own` are the places where
/// the feed and its site lie.
fn with_scheme(written: &str, own: &[&Url]) -> Option<String> {
    let end = written.find(['/', '?', '#']).unwrap_or(written.len());
    let (host, rest) = written.split_at(end);
    let is_own = |url: &&&Url| {
        url.host_str().is_some_and(|own| bare_host(own).eq_ignore_ascii_case(bare_host(host)))
    };
    let known = own.iter().find(is_own);
    let is_host = known.is_some() || (is_domain(host) && (rest.starts_with('/') || has_www(host)));
    let scheme = known.or(own.first())?.scheme();
    let slash = if rest.starts_with('/') { "" } else { "/" };
    let address = || iri::encode(&format!("{scheme}://{host}{slash}{rest}")).into_owned();
    (is_host && matches!(scheme, "http" | "https")).then(address)
}

/// Returns whether a text has the form of a host name with a top level domain.
fn is_domain(text: &str) -> bool {
    let is_label =
        |label: &str| !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || c == '-');
    let Some((name, top)) = text.rsplit_once('.') else { return false };
    let is_top = top.len() > 1 && top.chars().all(char::is_alphabetic);
    let is_file = FILE_ENDINGS.iter().any(|ending| ending.eq_ignore_ascii_case(top));
    name.split('.').all(is_label) && is_top && !is_file
}

fn has_www(host: &str) -> bool {
    bare_host(host).len() < host.len()
}

/// Returns a host without `www.`.
fn bare_host(host: &str) -> &str {
    match host.get(..4) {
        Some(www) if www.eq_ignore_ascii_case("www.") => &host[4..],
        _ => host,
    }
}

fn is_web(address: &str) -> bool {
    iri::scheme(address).is_some_and(|scheme| {
        scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
    })
}
