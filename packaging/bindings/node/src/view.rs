//! A feed as the objects of `index.d.ts`: names as JavaScript has them, `null` for what is missing,
//! dates in RFC 3339.

use feedgate_feed::chrono::{DateTime, FixedOffset, SecondsFormat};
use feedgate_feed::{Normalized, Repair as ModelRepair, model};
use serde::Serialize;

/// A feed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Feed<'f> {
    format: &'static str,
    id: &'f str,
    title: Option<Text<'f>>,
    subtitle: Option<Text<'f>>,
    rights: Option<Text<'f>>,
    updated: Option<String>,
    link: Option<&'f str>,
    links: Vec<Link<'f>>,
    authors: Vec<Person<'f>>,
    contributors: Vec<Person<'f>>,
    categories: Vec<Category<'f>>,
    generator: Option<Generator<'f>>,
    icon: Option<&'f str>,
    logo: Option<&'f str>,
    language: Option<&'f str>,
    extensions: Vec<Element<'f>>,
    entries: Vec<Entry<'f>>,
    repairs: Vec<Repair<'f>>,
    bozo_rank: f64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'f> {
    id: &'f str,
    title: Option<Text<'f>>,
    summary: Option<Text<'f>>,
    content: Option<Content<'f>>,
    rights: Option<Text<'f>>,
    published: Option<String>,
    updated: Option<String>,
    is_date_assumed: bool,
    link: Option<&'f str>,
    links: Vec<Link<'f>>,
    enclosures: Vec<Link<'f>>,
    authors: Vec<Person<'f>>,
    contributors: Vec<Person<'f>>,
    categories: Vec<Category<'f>>,
    language: Option<&'f str>,
    extensions: Vec<Element<'f>>,
}

#[derive(Debug, Serialize)]
struct Text<'f> {
    kind: &'static str,
    value: &'f str,
    language: Option<&'f str>,
    base: Option<&'f str>,
}

#[derive(Debug, Default, Serialize)]
struct Content<'f> {
    kind: &'f str,
    value: Option<&'f str>,
    src: Option<&'f str>,
    language: Option<&'f str>,
    base: Option<&'f str>,
}

#[derive(Debug, Serialize)]
struct Person<'f> {
    name: &'f str,
    email: Option<&'f str>,
    uri: Option<&'f str>,
}

#[derive(Debug, Serialize)]
struct Link<'f> {
    href: &'f str,
    rel: &'f str,
    r#type: Option<&'f str>,
    hreflang: Option<&'f str>,
    title: Option<&'f str>,
    length: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Category<'f> {
    term: &'f str,
    scheme: Option<&'f str>,
    label: Option<&'f str>,
}

#[derive(Debug, Serialize)]
struct Generator<'f> {
    name: &'f str,
    uri: Option<&'f str>,
    version: Option<&'f str>,
}

#[derive(Debug, Serialize)]
struct Element<'f> {
    namespace: &'f str,
    prefix: &'f str,
    name: &'f str,
    attributes: Vec<Attribute<'f>>,
    children: Vec<Node<'f>>,
}

#[derive(Debug, Serialize)]
struct Attribute<'f> {
    namespace: &'f str,
    prefix: &'f str,
    name: &'f str,
    value: &'f str,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Node<'f> {
    Text(&'f str),
    Element(Element<'f>),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Repair<'f> {
    code: &'static str,
    detail: &'f str,
    is_adaptation: bool,
}

impl<'f> From<&'f Normalized> for Feed<'f> {
    fn from(normalized: &'f Normalized) -> Feed<'f> {
        let feed = normalized.feed();
        Feed {
            format: feed.format.as_str(),
            id: &feed.id,
            title: feed.title.as_ref().map(Text::from),
            subtitle: feed.subtitle.as_ref().map(Text::from),
            rights: feed.rights.as_ref().map(Text::from),
            updated: feed.updated.map(date),
            link: page(&feed.links),
            links: all(&feed.links),
            authors: all(&feed.authors),
            contributors: all(&feed.contributors),
            categories: all(&feed.categories),
            generator: feed.generator.as_ref().map(Generator::from),
            icon: feed.icon.as_deref(),
            logo: feed.logo.as_deref(),
            language: feed.lang.as_deref(),
            extensions: all(&feed.extensions),
            entries: all(&feed.entries),
            repairs: all(normalized.repairs()),
            bozo_rank: normalized.bozo_rank(),
        }
    }
}

impl<'f> From<&'f model::Entry> for Entry<'f> {
    fn from(entry: &'f model::Entry) -> Entry<'f> {
        let enclosures = entry.links.iter().filter(|link| link.rel == "enclosure");
        Entry {
            id: &entry.id,
            title: entry.title.as_ref().map(Text::from),
            summary: entry.summary.as_ref().map(Text::from),
            content: entry.content.as_ref().map(Content::from),
            rights: entry.rights.as_ref().map(Text::from),
            published: entry.published.map(date),
            updated: entry.updated.map(date),
            is_date_assumed: entry.date_assumed,
            link: page(&entry.links),
            links: all(&entry.links),
            enclosures: enclosures.map(Link::from).collect(),
            authors: all(&entry.authors),
            contributors: all(&entry.contributors),
            categories: all(&entry.categories),
            language: entry.lang.as_deref(),
            extensions: all(&entry.extensions),
        }
    }
}

/// Converts all values of a list.
fn all<'f, M, V: From<&'f M>>(values: &'f [M]) -> Vec<V> {
    values.iter().map(V::from).collect()
}

/// Returns the address of the first page among the links.
fn page(links: &[model::Link]) -> Option<&str> {
    links.iter().find(|link| link.rel == "alternate").map(|link| link.href.as_str())
}

fn date(date: DateTime<FixedOffset>) -> String {
    date.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

/// Returns the `type` of a text construct.
fn kind(kind: model::TextKind) -> &'static str {
    match kind {
        model::TextKind::Text => "text",
        model::TextKind::Html => "html",
        model::TextKind::Xhtml => "xhtml",
    }
}

impl<'f> From<&'f model::Text> for Text<'f> {
    fn from(text: &'f model::Text) -> Text<'f> {
        let (language, base) = (text.lang.as_deref(), text.base.as_deref());
        Text { kind: kind(text.kind), value: &text.value, language, base }
    }
}

impl<'f> From<&'f model::Content> for Content<'f> {
    fn from(content: &'f model::Content) -> Content<'f> {
        match content {
            model::Content::Text(text) => {
                let Text { kind, value, language, base } = Text::from(text);
                Content { kind, value: Some(value), src: None, language, base }
            }
            model::Content::Media { mime, value } => {
                Content { kind: mime, value: Some(value), ..Content::default() }
            }
            model::Content::Xml { mime, value, base } => {
                let base = base.as_deref();
                Content { kind: mime, value: Some(value), base, ..Content::default() }
            }
            model::Content::Src { mime, href } => {
                let kind = mime.as_deref().unwrap_or_default();
                Content { kind, src: Some(href), ..Content::default() }
            }
        }
    }
}

impl<'f> From<&'f model::Person> for Person<'f> {
    fn from(person: &'f model::Person) -> Person<'f> {
        let (email, uri) = (person.email.as_deref(), person.uri.as_deref());
        Person { name: &person.name, email, uri }
    }
}

impl<'f> From<&'f model::Link> for Link<'f> {
    fn from(link: &'f model::Link) -> Link<'f> {
        Link {
            href: &link.href,
            rel: &link.rel,
            r#type: link.mime.as_deref(),
            hreflang: link.hreflang.as_deref(),
            title: link.title.as_deref(),
            length: link.length.as_ref().and_then(|length| length.trim().parse().ok()),
        }
    }
}

impl<'f> From<&'f model::Category> for Category<'f> {
    fn from(category: &'f model::Category) -> Category<'f> {
        let (scheme, label) = (category.scheme.as_deref(), category.label.as_deref());
        Category { term: &category.term, scheme, label }
    }
}

impl<'f> From<&'f model::Generator> for Generator<'f> {
    fn from(generator: &'f model::Generator) -> Generator<'f> {
        let (uri, version) = (generator.uri.as_deref(), generator.version.as_deref());
        Generator { name: &generator.name, uri, version }
    }
}

impl<'f> From<&'f model::Element> for Element<'f> {
    fn from(element: &'f model::Element) -> Element<'f> {
        Element {
            namespace: &element.namespace,
            prefix: &element.prefix,
            name: &element.name,
            attributes: all(&element.attributes),
            children: all(&element.children),
        }
    }
}

impl<'f> From<&'f model::Attribute> for Attribute<'f> {
    fn from(attribute: &'f model::Attribute) -> Attribute<'f> {
        let model::Attribute { namespace, prefix, name, value } = attribute;
        Attribute { namespace, prefix, name, value }
    }
}

impl<'f> From<&'f model::Node> for Node<'f> {
    fn from(node: &'f model::Node) -> Node<'f> {
        match node {
            model::Node::Text(text) => Node::Text(text),
            model::Node::Element(element) => Node::Element(Element::from(element)),
        }
    }
}

impl<'f> From<&'f ModelRepair> for Repair<'f> {
    fn from(repair: &'f ModelRepair) -> Repair<'f> {
        let (code, detail) = (repair.code.as_str(), repair.detail.as_str());
        Repair { code, detail, is_adaptation: repair.code.is_adaptation() }
    }
}
