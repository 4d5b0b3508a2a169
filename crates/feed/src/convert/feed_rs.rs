//! From `feed-rs`, as if this crate had parsed the document: [`passes::run`](crate::passes::run)
//! normalizes the result.
//!
//! Ratings, credits and the statistics of communities are not converted.

use chrono::{DateTime, FixedOffset, Utc};
use feed_rs::model as other;

use crate::model::{
    Attribute, Category, Content, Element, Entry, Feed, FeedFormat, Generator, Hints, Link, Node,
    Person, Text, TextKind,
};

/// Media RSS.
const MEDIA: (&str, &str) = ("http://search.yahoo.com/mrss/", "media");
/// Podcasting 2.0.
const PODCAST: (&str, &str) = ("https://podcastindex.org/namespace/1.0", "podcast");

impl From<other::Feed> for Feed {
    fn from(feed: other::Feed) -> Feed {
        let format = match feed.feed_type {
            other::FeedType::Atom => FeedFormat::Atom10,
            other::FeedType::JSON => FeedFormat::JsonFeed11,
            other::FeedType::RSS0 => FeedFormat::Rss091,
            other::FeedType::RSS1 => FeedFormat::Rss10,
            other::FeedType::RSS2 => FeedFormat::Rss20,
        };
        Feed {
            format,
            id: feed.id,
            title: feed.title.map(text),
            subtitle: feed.description.map(text),
            rights: feed.rights.map(text),
            updated: feed.updated.or(feed.published).map(with_offset),
            authors: feed.authors.into_iter().map(person).collect(),
            contributors: feed.contributors.into_iter().map(person).collect(),
            links: feed.links.into_iter().map(link).collect(),
            categories: categories(feed.categories),
            generator: feed.generator.map(generator),
            icon: feed.icon.map(|image| image.uri),
            logo: feed.logo.map(|image| image.uri),
            lang: feed.language,
            extensions: feed.people.into_iter().map(podcast_person).collect(),
            entries: feed.entries.into_iter().map(entry).collect(),
            hints: Hints { ttl_min: feed.ttl, ..Hints::default() },
            ..Feed::default()
        }
    }
}

fn entry(entry: other::Entry) -> Entry {
    let mut links: Vec<Link> = entry.links.into_iter().map(link).collect();
    let mut extensions = Vec::new();
    for object in entry.media {
        links.extend(object.content.into_iter().filter_map(enclosure));
        extensions.extend(object.thumbnails.into_iter().map(thumbnail));
        extensions.extend(object.people.into_iter().map(podcast_person));
    }
    let source = entry.source.map(|href| {
        let itself = Link { href, rel: "self".to_owned(), ..Link::default() };
        Box::new(Feed { links: vec![itself], ..Feed::default() })
    });
    Entry {
        id: entry.id,
        title: entry.title.map(text),
        summary: entry.summary.map(text),
        content: entry.content.and_then(content),
        rights: entry.rights.map(text),
        published: entry.published.map(with_offset),
        updated: entry.updated.map(with_offset),
        authors: entry.authors.into_iter().map(person).collect(),
        contributors: entry.contributors.into_iter().map(person).collect(),
        links,
        categories: categories(entry.categories),
        source,
        lang: entry.language,
        base: entry.base,
        extensions,
        ..Entry::default()
    }
}

fn text(text: other::Text) -> Text {
    Text { kind: kind(text.content_type.as_str()), value: text.content, ..Text::default() }
}

/// Returns the type of a text with this media type. `feed-rs` does not promise that XHTML is
/// well-formed, so it is read as HTML.
fn kind(mime: &str) -> TextKind {
    if matches!(mime, "text/html" | "application/xhtml+xml") {
        TextKind::Html
    } else {
        TextKind::Text
    }
}

fn content(content: other::Content) -> Option<Content> {
    let mime = content.content_type.to_string();
    if let Some(src) = content.src {
        return Some(Content::Src { mime: Some(mime), href: src.href });
    }
    let value = content.body?;
    let is_text = matches!(&*mime, "text/plain" | "text/html" | "application/xhtml+xml");
    if is_text {
        return Some(Content::Text(Text { kind: kind(&mime), value, ..Text::default() }));
    }
    Some(Content::Media { mime, value })
}

fn person(person: other::Person) -> Person {
    let other::Person { name, uri, email, .. } = person;
    Person { name: name.unwrap_or_default(), email, uri, ..Person::default() }
}

fn generator(generator: other::Generator) -> Generator {
    let other::Generator { content, uri, version } = generator;
    Generator { name: content, uri, version }
}

fn link(link: other::Link) -> Link {
    let usual = if link.target.is_some() { "replies" } else { "alternate" };
    Link {
        href: link.href,
        rel: link.rel.unwrap_or_else(|| usual.to_owned()),
        mime: link.media_type,
        hreflang: link.href_lang,
        title: link.title,
        length: link.length.map(|length| length.to_string()),
        ..Link::default()
    }
}

/// Returns the categories with those inside of them.
fn categories(given: Vec<other::Category>) -> Vec<Category> {
    let mut found = Vec::new();
    let mut left: Vec<other::Category> = given.into_iter().rev().collect();
    while let Some(other::Category { term, scheme, label, subcategories }) = left.pop() {
        found.push(Category { term, scheme, label, ..Category::default() });
        left.extend(subcategories.into_iter().rev());
    }
    found
}

fn enclosure(content: other::MediaContent) -> Option<Link> {
    Some(Link {
        href: content.url?.to_string(),
        rel: "enclosure".to_owned(),
        mime: content.content_type.map(|mime| mime.to_string()),
        length: content.size.map(|size| size.to_string()),
        ..Link::default()
    })
}

fn thumbnail(thumbnail: other::MediaThumbnail) -> Element {
    let image = thumbnail.image;
    let size = |size: Option<u32>| size.map(|size| size.to_string());
    let attributes =
        [("url", Some(image.uri)), ("width", size(image.width)), ("height", size(image.height))];
    element(MEDIA, "thumbnail", attributes, None)
}

fn podcast_person(person: other::PodcastPerson) -> Element {
    let address = |url: Option<url::Url>| url.map(String::from);
    let attributes = [("img", address(person.img)), ("href", address(person.href))];
    element(PODCAST, "person", attributes, Some(person.name))
}

fn element<const N: usize>(
    (namespace, prefix): (&str, &str),
    name: &str,
    attributes: [(&str, Option<String>); N],
    text: Option<String>,
) -> Element {
    let attributes = attributes.into_iter().filter_map(|(name, value)| {
        Some(Attribute { name: name.to_owned(), value: value?, ..Attribute::default() })
    });
    Element {
        namespace: namespace.to_owned(),
        prefix: prefix.to_owned(),
        name: name.to_owned(),
        attributes: attributes.collect(),
        children: text.map(Node::Text).into_iter().collect(),
        ..Element::default()
    }
}

fn with_offset(date: DateTime<Utc>) -> DateTime<FixedOffset> {
    date.fixed_offset()
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;
    use crate::{Context, normalize, passes};

    #[test]
    fn a_feed_of_feed_rs_says_the_same_as_one_of_ours() {
        let documents = [
            "<rss version='2.0'><channel><title>Tides</title><link>https://tides.test/</link>
                <description>Water</description><language>en</language><ttl>60</ttl><item>
                <title>Spring</title><link>https://tides.test/spring</link>
                <guid isPermaLink='false'>urn:tides:1</guid><description>&lt;p>High</description>
                <pubDate>Sat, 07 Sep 2002 10:00:00 GMT</pubDate><category>moon</category>
                <enclosure url='https://tides.test/a.mp3' type='audio/mpeg' length='7'/>
                </item></channel></rss>",
            "<feed xmlns='http://www.w3.org/2005/Atom'><id>urn:tides</id><title>Tides</title>
                <updated>2002-09-07T10:00:00Z</updated><link href='https://tides.test/'/>
                <entry><id>urn:tides:1</id><title type='html'>&lt;b>Spring&lt;/b></title>
                <updated>2002-09-07T10:00:00Z</updated><link href='https://tides.test/spring'/>
                <author><name>Ada</name><email>ada@tides.test</email></author>
                <content type='html'>&lt;p>High</content></entry></feed>",
        ];
        let context = Context::new(Url::parse("https://tides.test/feed").unwrap());
        for document in documents {
            let theirs = feed_rs::parser::parse(document.as_bytes()).unwrap();
            let theirs = passes::run(Feed::from(theirs), &context);
            let ours = normalize(document.as_bytes(), &context).unwrap().into_feed();
            assert_eq!(theirs.format, ours.format);
            assert_eq!(theirs.title, ours.title);
            assert_eq!((theirs.lang, theirs.hints), (ours.lang, ours.hints));
            let ([theirs], [ours]) = (theirs.entries.as_slice(), ours.entries.as_slice()) else {
                panic!("one entry: {document}")
            };
            assert_eq!((&theirs.id, &theirs.title), (&ours.id, &ours.title));
            assert_eq!((&theirs.summary, &theirs.content), (&ours.summary, &ours.content));
            assert_eq!((theirs.published, theirs.updated), (ours.published, ours.updated));
            assert_eq!(theirs.categories, ours.categories);
            let names = |entry: &Entry| -> Vec<(String, Option<String>)> {
                let authors = entry.authors.iter();
                authors.map(|author| (author.name.clone(), author.email.clone())).collect()
            };
            assert_eq!(names(theirs), names(ours));
            let links = |entry: &Entry| -> Vec<(String, String, Option<String>)> {
                let links = entry.links.iter();
                links
                    .map(|link| (link.rel.clone(), link.href.clone(), link.length.clone()))
                    .collect()
            };
            assert_eq!(links(theirs), links(ours));
        }
    }
}
