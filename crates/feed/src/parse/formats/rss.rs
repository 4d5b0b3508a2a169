//! RSS in all its versions: 0.90 and 1.0 (RDF), 0.91 to 0.94, 1.1, 2.0.
//!
//! They differ in where the items lie and in which elements exist, and feeds keep to
//! neither, so all are read alike: items wherever they are, elements by their names, in
//! whatever namespace the document took for its own. Elements without a home in Atom
//! are kept under the vocabulary [`RSS`].

use super::{RDF, Reading, atom, is_atom, is_plain, items, outline};
use crate::model::{Category, Content, Entry, Feed, Link, Text, TextKind};
use crate::parse::hints;
use crate::parse::modules::{Home, Of};
use crate::parse::person::person;
use crate::parse::tree::{El, Tree};
use crate::parse::vocabulary::Vocabulary;

/// RSS has no namespace in most of its versions; the elements that we keep get the one
/// that was in use for 2.0 while it had one.
pub(super) static RSS: Vocabulary = Vocabulary {
    prefix: "rss",
    uris: &[
        "http://backend.userland.com/rss2",
        "http://backend.userland.com/rss",
        "http://backend.userland.com/rss091",
        "http://backend.userland.com/rss092",
        "http://backend.userland.com/rss093",
        "http://blogs.law.harvard.edu/tech/rss",
        "http://cyber.law.harvard.edu/rss/rss.html",
        "http://purl.org/rss/1.0/",
        "http://purl.org/rss/1.1/",
        "http://purl.org/net/rss1.1#",
        "http://my.netscape.com/rdf/simple/0.9/",
        "http://channel.netscape.com/rdf/simple/0.9/",
        "http://my.netscape.com/publish/formats/rss-0.91.dtd",
        "http://purl.org/rss/1.0/modules/rss091#",
    ],
    read: read_kept,
};

/// Elements of a channel that are read elsewhere, or say nothing by themselves.
const ELSEWHERE: [&str; 5] = ["item", "items", "entry", "channel", "li"];

/// Reads a feed; `root` is its element, or what the items lie in if there is none.
pub(super) fn read<'t>(tree: &'t Tree<'t>, root: El<'t>, reading: &mut Reading<'_>) -> Feed {
    let channel = if root.named("channel") { root } else { root.child("channel").unwrap_or(root) };
    let own = Own { root, channel };
    let mut feed = Feed {
        format: version(root),
        lang: channel.lang().map(str::to_owned),
        base: reading.bases.base(channel).map(String::from),
        ..Feed::default()
    };
    let mut home = reading.home(Of::Feed(&mut feed));
    home.begin(channel);
    read_channel(&own, &mut home);
    let is_item = |element: El<'t>| {
        (element.named("item") && own.holds(element))
            || (element.named("entry") && (is_plain(element) || is_atom(element)))
    };
    let found = items(tree, is_item, reading.repairs);
    for (element, under) in outline::flattened(found, reading.repairs) {
        let mut entry = Entry {
            under,
            lang: element.lang().map(str::to_owned),
            base: reading.bases.base(element).map(String::from),
            ..Entry::default()
        };
        let mut home = reading.home(Of::Entry(&mut entry));
        home.begin(element);
        read_item(&own, element, &mut home);
        feed.entries.push(entry);
    }
    feed
}

/// What the document takes for RSS.
#[derive(Clone, Copy, Debug)]
struct Own<'t> {
    root: El<'t>,
    channel: El<'t>,
}

impl<'t> Own<'t> {
    fn holds(&self, element: El<'t>) -> bool {
        let same = |other: El<'t>| {
            !other.of(&RDF)
                && !other.space().uri().is_empty()
                && other.space().uri() == element.space().uri()
        };
        is_plain(element) || same(self.root) || same(self.channel)
    }
}

fn version(root: El<'_>) -> &'static str {
    if root.named("rdf") {
        let newest = |element: El<'_>| element.space().uri() == RSS.uri();
        let old = root.elements().any(|child| newest(child) && child.child("dc:date").is_none());
        return if old { "rss1.0" } else { "rdf" };
    }
    match root.attr("version").unwrap_or_default() {
        "0.90" => "rss0.90",
        "0.91" => "rss0.91",
        "0.92" => "rss0.92",
        "0.93" => "rss0.93",
        "0.94" => "rss0.94",
        "1.0" => "rss1.0",
        "1.1" => "rss1.1",
        _ => "rss2.0",
    }
}

fn read_channel<'t>(own: &Own<'t>, home: &mut Home<'_>) {
    read_about(own.channel, home);
    // RSS 0.90 and 1.0 have image and text input beside the channel, 2.0 in it.
    let beside =
        own.root.elements().filter(|child| *child != own.channel && own.root != own.channel);
    let children: Vec<El<'t>> = own.channel.elements().chain(beside).collect();
    let built = children.iter().any(|child| child.named("lastBuildDate"));
    let skipped = |child: El<'_>| ELSEWHERE.iter().any(|name| child.named(name));
    for child in children.iter().copied().filter(|child| own.holds(*child) && !skipped(*child)) {
        home.own(child, |child, home| read_of_channel(child, built, home));
    }
    for child in children.iter().copied().filter(|child| !own.holds(*child)) {
        let atom_entry = child.named("entry") && is_atom(child);
        if !(atom_entry || child.of(&RDF)) {
            home.foreign(child);
        }
    }
}

/// Reads an element of a channel, of which is known whether it says when it was `built`.
fn read_of_channel(child: El<'_>, built: bool, home: &mut Home<'_>) -> bool {
    let name = child.lower_name();
    match name.as_ref() {
        "description" | "tagline" | "subtitle" => {
            let text = home.bases.html(child);
            home.set_about(text)
        }
        "managingeditor" => home.add_author(person(&child.text())),
        "language" => match child.filled() {
            Some(lang) => {
                *home.lang() = Some(lang);
                true
            }
            None => true,
        },
        "lastbuilddate" => {
            // It wins over a pubDate that came first, which is then kept.
            match home.date(child) {
                Some(date) => {
                    *home.updated() = Some(date);
                    true
                }
                None => false,
            }
        }
        "pubdate" => !built && home.set_updated(child),
        "generator" => atom::set_generator(child, home),
        "image" => read_image(child, home),
        _ => {
            hints::read(child, home);
            read_common(&name, child, home)
        }
    }
}

/// A channel's picture: its address is the logo; if more is said of it, all is kept.
fn read_image(image: El<'_>, home: &mut Home<'_>) -> bool {
    let url = image.child("url").or_else(|| image.child("href"));
    let href = url.and_then(|url| url.filled().map(|text| home.bases.href(url, &text)));
    let href = href.or_else(|| image.attr("href").or(image.attr("url")).map(str::to_owned));
    let href = href.or_else(|| if image.has_elements() { None } else { image.filled() });
    let reference = image.attr_of(&RDF, "resource").is_some();
    if let (Some(feed), Some(href)) = (home.feed(), href) {
        feed.logo.get_or_insert(href);
    }
    let more = image.elements().any(|child| !child.named("url"));
    !more || reference
}

fn read_item<'t>(own: &Own<'t>, item: El<'t>, home: &mut Home<'_>) {
    read_about(item, home);
    for child in item.elements().filter(|child| own.holds(*child)) {
        home.own(child, read_of_item);
    }
    // The outline is kept once, by the item at its top.
    let is_told = outline::is_below(item);
    let foreign = item.elements().filter(|child| !own.holds(*child));
    for child in foreign.filter(|child| !(is_told && outline::is_below(*child))) {
        home.foreign(child);
    }
    permalink(item, home);
}

/// What RDF says that an element is about is its id.
fn read_about(element: El<'_>, home: &mut Home<'_>) {
    if let Some(about) = element.attr_of(&RDF, "about").or(element.attr("about")) {
        home.reading(element, |home| *home.id() = about.to_owned());
    }
}

fn read_of_item(child: El<'_>, home: &mut Home<'_>) -> bool {
    let name = child.lower_name();
    match name.as_ref() {
        "description" | "abstract" => {
            let text = home.bases.html(child);
            home.set_about(text)
        }
        "guid" => {
            let id = child.text().into_owned();
            if !id.is_empty() {
                *home.id() = id;
            }
            true
        }
        "pubdate" => home.set_published(child),
        "enclosure" => {
            let link = Link { rel: "enclosure".into(), ..atom::read_link(child, home) };
            home.add_link(link)
        }
        "comments" => {
            let mut link = atom::read_link(child, home);
            link.rel = "replies".into();
            link.mime.get_or_insert_with(|| "text/html".into());
            home.add_link(link)
        }
        "source" => {
            let source = atom::read_source(child, home);
            let Some(entry) = home.entry() else { return false };
            entry.source.get_or_insert_with(|| Box::new(source));
            true
        }
        "body" | "fullitem" => {
            let content = body(child, home);
            home.set_content(content)
        }
        _ => read_common(&name, child, home),
    }
}

/// What channels and items have in common, under the names of RSS and, because some
/// mix them in, of Atom.
fn read_common(name: &str, child: El<'_>, home: &mut Home<'_>) -> bool {
    match name {
        "title" => {
            let text = home.bases.plain(child);
            home.set_title(text)
        }
        "copyright" | "rights" => {
            let text = home.bases.plain(child);
            home.set_rights(text)
        }
        "keywords" | "tags" => {
            let text = child.text();
            for term in text.split(',').map(str::trim) {
                home.add_category(Category { term: term.to_owned(), ..Category::default() });
            }
            !child.has_elements()
        }
        _ => atom::read_element(child, home),
    }
}

/// An item whose guid is an address, as it is unless it says otherwise, and that has no
/// link is found there.
fn permalink(item: El<'_>, home: &mut Home<'_>) {
    let Some(guid) = item.elements().find(|child| child.named("guid")) else { return };
    let denied = guid.attr("isPermaLink").is_some_and(|value| !value.eq_ignore_ascii_case("true"));
    let text = guid.text();
    let address = text.starts_with("http://") || text.starts_with("https://");
    let linked = home.links().iter().any(|link| link.rel == "alternate");
    if !denied && address && !linked {
        let href = home.bases.href(guid, &text);
        let link = Link { href, rel: "alternate".into(), ..Link::default() };
        home.reading(guid, |home| {
            home.add_link(link);
        });
    }
}

/// A body of real or escaped markup.
pub(super) fn body(element: El<'_>, home: &Home<'_>) -> Content {
    if !element.has_elements() {
        return Content::Text(home.bases.html(element));
    }
    let lang = element.lang().filter(|lang| element.parent().and_then(El::lang) != Some(lang));
    Content::Text(Text {
        kind: TextKind::Xhtml,
        value: home.bases.xhtml(element),
        lang: lang.map(str::to_owned),
        base: home.bases.base(element).map(String::from),
    })
}

/// The one line that RSS says of where an item comes from.
pub(super) fn source(element: El<'_>, home: &Home<'_>) -> Feed {
    let mut feed = Feed { format: "rss2.0", ..Feed::default() };
    feed.title = element.filled().map(|_| home.bases.plain(element));
    if let Some(url) = element.attr("url").or(element.attr("href")).filter(|url| !url.is_empty()) {
        let href = home.bases.href(element, url);
        feed.links.push(Link { href, rel: "self".into(), ..Link::default() });
    }
    feed
}

/// Elements of RSS that stand in a feed of another format: kept, but heard.
fn read_kept(element: El<'_>, home: &mut Home<'_>) -> bool {
    hints::read(element, home);
    false
}
