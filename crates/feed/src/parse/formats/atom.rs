//! Atom 1.0 (RFC 4287) and 0.3, and the drafts before it.
//!
//! The elements of both versions are read alike, under the names of either: mixtures are
//! common. They are also read where an RSS feed carries them.

use chrono::SecondsFormat;

use super::{Reading, XML, is_atom, is_plain, items, rss, rss_vocabulary};
use crate::model::{
    Attribute, Category, Content, Element, Entry, Feed, Generator, Link, Node, Person, TextKind,
};
use crate::parse::modules::{Home, Of};
use crate::parse::person::person;
use crate::parse::texts::kind_of;
use crate::parse::tree::{El, Items, Tree, is_item};
use crate::parse::vocabulary::Vocabulary;
use crate::tombstone::TOMBSTONES;

pub(super) static ATOM: Vocabulary = Vocabulary {
    prefix: "atom",
    uris: &[
        "http://www.w3.org/2005/Atom",
        "http://www.w3.org/2005/Atom/ns",
        "http://purl.org/atom",
    ],
    read: read_element,
};

pub(in crate::parse) static ATOM03: Vocabulary = Vocabulary {
    prefix: "atom03",
    uris: &[
        "http://purl.org/atom/ns#",
        "http://purl.org/pie/",
        "http://purl.org/echo/",
        "http://example.com/newformat#",
        "http://example.com/necho",
        "uri/of/echo/namespace#",
        "http://purl.org/atom/ns#draft-ietf-atompub-format-05",
    ],
    read: read_element,
};

const DCTERMS: &str = "http://purl.org/dc/terms/";

/// What registered relations may be prefixed with (RFC 4287 `#rfc.section.4.2.7.2`).
const IANA: &str = "http://www.iana.org/assignments/relation/";

/// Reads a feed; `root` is its element, or what the entries lie in if there is none.
pub(super) fn read<'t>(tree: &'t Tree<'t>, root: El<'t>, reading: &mut Reading<'_>) -> Feed {
    let old = root.of(&ATOM03) || root.attr("version").is_some_and(|version| version == "0.3");
    let mut feed = Feed { format: if old { "atom0.3" } else { "atom1.0" }, ..Feed::default() };
    if root.named("feed") {
        let mut home = reading.home(Of::Feed(&mut feed));
        read_head(root, &mut home);
    }
    let own = |element: El<'_>| {
        is_atom(element) || is_plain(element) || element.space().uri() == root.space().uri()
    };
    let is_entry =
        |element: El<'_>| (element.named("entry") || element.named("item")) && own(element);
    let entries = items(tree, is_entry, reading.repairs);
    let taken_back = root.elements().filter(|child| is_tombstone(*child));
    let before = |gone: El<'_>| entries.partition_point(|entry| entry.number() < gone.number());
    feed.taken_back = taken_back.map(before).collect();
    for element in entries {
        let mut entry = Entry {
            lang: element.lang().map(str::to_owned),
            base: reading.bases.base(element).map(String::from),
            ..Entry::default()
        };
        let mut home = reading.home(Of::Entry(&mut entry));
        home.begin(element);
        read_children(element, root, &mut home);
        feed.entries.push(entry);
    }
    feed
}

/// Whether it says that an entry was taken back.
fn is_tombstone(element: El<'_>) -> bool {
    element.space().uri() == TOMBSTONES
        && element.name() == "deleted-entry"
        && element.attr("ref").is_some()
}

/// Reads what a feed says of itself.
fn read_head(root: El<'_>, home: &mut Home<'_>) {
    home.begin(root);
    *home.lang() = root.lang().map(str::to_owned);
    let base = home.bases.base(root).map(String::from);
    if let Some(feed) = home.feed() {
        feed.base = base;
    }
    read_children(root, root, home);
}

/// Reads what `around` holds: Atom's own elements, those in no namespace, and those in
/// whatever `root` took for Atom's; then all others.
fn read_children(around: El<'_>, root: El<'_>, home: &mut Home<'_>) {
    let own = |element: El<'_>| {
        is_atom(element)
            || element.space().uri().is_empty()
            || (root.named("feed") && element.space().uri() == root.space().uri())
    };
    let entries =
        |element: El<'_>| own(element) && (element.named("entry") || element.named("item"));
    for child in around.elements().filter(|child| own(*child) && !entries(*child)) {
        home.own(child, read_element);
    }
    for child in around.elements().filter(|child| !own(*child)) {
        home.foreign(child);
    }
}

/// Reads an element of Atom. `false` says that it has no home.
pub(super) fn read_element(element: El<'_>, home: &mut Home<'_>) -> bool {
    let name = element.lower_name();
    match name.as_ref() {
        "title" => {
            let text = home.bases.atom(element);
            home.set_title(text)
        }
        "rights" | "copyright" => {
            let text = home.bases.atom(element);
            home.set_rights(text)
        }
        "id" => {
            let id = home.bases.href(element, &element.text());
            if home.id().is_empty() {
                home.id().clone_from(&id);
            }
            *home.id() == id
        }
        "updated" | "modified" => home.set_updated(element),
        "published" | "issued" if home.entry().is_some() => home.set_published(element),
        "created" => read_created(element, home),
        "author" => {
            let person = read_person(element, home);
            home.add_author(person)
        }
        "contributor" => {
            let person = read_person(element, home);
            home.add_contributor(person)
        }
        "link" => {
            let link = read_link(element, home);
            home.add_link(link)
        }
        "category" => home.add_category(read_category(element)),
        _ if home.entry().is_some() => read_of_entry(&name, element, home),
        _ => read_of_feed(&name, element, home),
    }
}

fn read_of_entry(name: &str, element: El<'_>, home: &mut Home<'_>) -> bool {
    match name {
        "summary" => {
            let text = home.bases.atom(element);
            home.set_about(text)
        }
        "content" => {
            let content = read_content(element, home);
            home.set_content(content)
        }
        "source" => {
            let source = read_source(element, home);
            let Some(entry) = home.entry() else { return false };
            if entry.source.is_some() {
                return false;
            }
            entry.source = Some(Box::new(source));
            true
        }
        _ => false,
    }
}

fn read_of_feed(name: &str, element: El<'_>, home: &mut Home<'_>) -> bool {
    match name {
        "subtitle" | "tagline" => {
            let text = home.bases.atom(element);
            home.set_about(text)
        }
        "generator" => set_generator(element, home),
        "info" => {
            let info = kept_text(element, home);
            home.extensions().push(info);
            true
        }
        "icon" | "logo" => {
            let href = home.bases.href(element, &element.text());
            let Some(feed) = home.feed() else { return false };
            let slot = if name == "icon" { &mut feed.icon } else { &mut feed.logo };
            *slot.get_or_insert_with(|| href.clone()) == href
        }
        _ => false,
    }
}

/// A text construct that Atom 1.0 dropped, as an element: escaped where it is markup, with
/// the `type` that a text of Atom 1.0 has.
fn kept_text(element: El<'_>, home: &Home<'_>) -> Element {
    let text = home.bases.atom(element);
    let kind = if text.kind == TextKind::Text { "text" } else { "html" };
    let told = |prefix: &str, name: &str, value: String| Attribute {
        namespace: if prefix.is_empty() { String::new() } else { XML.uri().to_owned() },
        prefix: prefix.to_owned(),
        name: name.to_owned(),
        value,
    };
    let attributes = std::iter::once(told("", "type", kind.to_owned()))
        .chain(text.lang.map(|lang| told("xml", "lang", lang)))
        .chain(text.base.map(|base| told("xml", "base", base)));
    let rss = rss_vocabulary();
    Element {
        namespace: rss.uri().to_owned(),
        prefix: rss.prefix.to_owned(),
        name: element.name().to_ascii_lowercase(),
        attributes: attributes.collect(),
        children: vec![Node::Text(text.value)],
        ..Element::default()
    }
}

/// Sets the generator of a feed, unless it has one.
pub(super) fn set_generator(element: El<'_>, home: &mut Home<'_>) -> bool {
    let uri = element.attr("uri").or(element.attr("url")).or(element.attr("href"));
    let generator = Generator {
        name: element.text().into_owned(),
        uri: uri.map(|uri| home.bases.href(element, uri)),
        version: element.attr("version").map(str::to_owned),
    };
    let Some(feed) = home.feed() else { return false };
    *feed.generator.get_or_insert_with(|| generator.clone()) == generator
}

/// Atom 0.3 has a date of creation, which went to Dublin Core's terms.
fn read_created(element: El<'_>, home: &mut Home<'_>) -> bool {
    let Some(date) = home.date(element) else { return false };
    let text = date.to_rfc3339_opts(SecondsFormat::AutoSi, true);
    home.extensions().push(Element {
        namespace: DCTERMS.into(),
        prefix: "dcterms".into(),
        name: "created".into(),
        attributes: Vec::new(),
        children: vec![Node::Text(text)],
        ..Element::default()
    });
    true
}

/// Reads a person construct; one without elements is read as RSS writes persons.
pub(super) fn read_person(element: El<'_>, home: &mut Home<'_>) -> Option<Person> {
    if !element.has_elements() {
        return person(&element.text());
    }
    let uri = ["uri", "url", "homepage"].iter().find_map(|name| {
        let child = element.child(name)?;
        child.filled().map(|uri| home.bases.href(child, &uri))
    });
    // What is no address becomes part of the name; that must not happen again when somebody
    // else's element, which is kept as well, is read again.
    let own_email = |child: &El<'_>| {
        let own = is_atom(*child) || is_plain(*child);
        child.named("email") && (own || child.space().uri() == element.space().uri())
    };
    let mut person = Person {
        name: element.filled_child("name").unwrap_or_default(),
        email: element.elements().filter(own_email).find_map(El::filled),
        uri,
        extensions: Vec::new(),
        ..Person::default()
    };
    let items = home.items();
    for child in element.elements() {
        let known = ["name", "email", "uri", "url", "homepage"];
        let own = is_atom(child) || is_plain(child);
        if items == Items::Read && is_item(child) {
            continue;
        }
        if !(own && known.iter().any(|name| child.named(name))) {
            person.extensions.extend(child.keep(items));
        }
    }
    let somebody = !person.name.is_empty() || person.email.is_some() || person.uri.is_some();
    (somebody || !person.extensions.is_empty()).then_some(person)
}

/// Reads a link, its address in an attribute or, as in RSS, in its text.
pub(super) fn read_link(element: El<'_>, home: &Home<'_>) -> Link {
    let named = |name: &str| element.attr(name).filter(|value| !value.is_empty());
    let href = named("href").or_else(|| named("url")).or_else(|| named("uri"));
    let text = element.text();
    let rel = named("rel").unwrap_or("alternate");
    let foreign = element.attributes().iter().filter(|a| !matches!(a.prefix, "" | "xml"));
    let attributes = foreign.map(|attribute| element.keep_attribute(attribute, &attribute.value));
    Link {
        href: home.bases.href(element, href.unwrap_or(&text)),
        rel: rel.strip_prefix(IANA).unwrap_or(rel).to_owned(),
        mime: named("type").map(str::to_owned),
        hreflang: named("hreflang").map(str::to_owned),
        title: named("title").map(str::to_owned),
        length: named("length").map(str::to_owned),
        attributes: attributes.collect(),
        // Where the address is a text, what stands in it is no part of the link.
        extensions: href.map_or_else(Vec::new, |_| element.keep_inside(home.items())),
        ..Link::default()
    }
}

/// Reads a category, its term in an attribute or, as in RSS, in its text.
pub(super) fn read_category(element: El<'_>) -> Category {
    let named = |name: &str| element.attr(name).filter(|value| !value.is_empty());
    let label = named("label").map(str::to_owned);
    let term = named("term").map(str::to_owned).or_else(|| element.filled());
    Category {
        term: term.or_else(|| label.clone()).unwrap_or_default(),
        scheme: named("scheme").or_else(|| named("domain")).map(str::to_owned),
        label,
        ..Category::default()
    }
}

/// Reads the feed that an entry comes from: an Atom source, or the one line of RSS.
pub(super) fn read_source(element: El<'_>, home: &mut Home<'_>) -> Feed {
    if !element.has_elements() {
        return rss::source(element, home);
    }
    let mut feed = Feed { format: "atom1.0", ..Feed::default() };
    let (repairs, trace) = (&mut *home.repairs, &mut *home.trace);
    let mut inner = Home { of: Of::Feed(&mut feed), bases: home.bases, repairs, trace };
    read_head(element, &mut inner);
    // What holds for the whole entry is said there.
    let around = element.parent();
    feed.lang.take_if(|lang| around.and_then(El::lang) == Some(lang));
    feed.base.take_if(|base| {
        around.and_then(|around| home.bases.base(around)).is_some_and(|held| held.as_str() == *base)
    });
    feed
}

/// Reads the content of an entry.
fn read_content(element: El<'_>, home: &Home<'_>) -> Content {
    let label = element.attr("type").unwrap_or_default();
    let kind = kind_of(label);
    if let Some(src) = element.attr("src").or(element.attr("url")).filter(|src| !src.is_empty()) {
        let mime = (!label.is_empty()).then(|| label.to_owned());
        return Content::Src { mime, href: home.bases.href(element, src) };
    }
    if kind.is_some() || !label.contains('/') {
        return Content::Text(home.bases.atom(element));
    }
    let mime = label.to_owned();
    if element.has_elements() {
        let base = home.bases.base(element).map(String::from);
        return Content::Xml { mime, value: home.bases.xml(element), base };
    }
    let value = element.text().into_owned();
    Content::Media { mime, value }
}
