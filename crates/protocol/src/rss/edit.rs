//! Adding a post to a feed, and the elements by which readers subscribe to its changes.
//!
//! Everything in the document that is not edited stays the same to the byte. Missing elements are
//! added: `cloud`, `source:cloud`, the links `hub` and `self`, and their namespaces. The newest
//! item comes first, as readers expect.

use std::ops::Range;

use chrono::{DateTime, Utc};
use url::Url;

use super::check::{DocumentFault, DocumentKind, check};
use super::item::{Post, date};
use super::scan::{ATOM, ChannelParts, RSSCLOUD, SOURCE, parts};
use crate::xml::escaped;

/// The channel elements that a feed should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelInfo {
    /// The public address of the feed, if it is known.
    pub url: Option<String>,
    /// The gateway at which readers can subscribe, if there is one.
    pub cloud: Option<Url>,
    /// The title for a new feed.
    pub title: String,
    /// The description for a new feed.
    pub description: String,
}

/// A change to a feed.
#[derive(Clone, Copy, Debug)]
pub struct FeedEdit<'c> {
    /// The post to add.
    pub post: &'c Post,
    /// The guid or link of the parent item in the outline.
    pub parent: Option<&'c str>,
    /// The maximum number of items in the channel, including the new one. The oldest are removed,
    /// except the parent of the new item.
    pub keep: Option<usize>,
}

/// The notification elements of a feed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EditedFeed {
    /// The address in the `self` link.
    pub url: Option<String>,
    /// The address of `<source:cloud>`.
    pub source_cloud: Option<String>,
    /// The attributes of `<cloud>`.
    pub cloud: Vec<(String, String)>,
}

/// An item, as listed for its author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutlineLine {
    /// The guid, or the link if there is no guid; empty if there is neither.
    pub id: String,
    /// The nesting depth in the outline.
    pub depth: usize,
    /// The title, or the description as written, which is HTML.
    pub text: String,
    /// The date, as written.
    pub date: String,
}

/// The reason why a post cannot be added to a feed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadFeed {
    /// The feed is not well-formed.
    #[error("the feed is not sound: {0}")]
    Unsound(#[from] DocumentFault),
    /// The document is not RSS.
    #[error("this is no RSS 2.0: it has no channel that items could be added to")]
    NotRss,
    /// The feed has no item that could be the parent.
    #[error("there is no item with the guid or link {0} in the feed")]
    NoParent(String),
}

impl BadFeed {
    /// Returns a stable code, listed in `docs/errors.md`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unsound(_) => "unsound_xml",
            Self::NotRss => "not_rss",
            Self::NoParent(_) => "no_parent",
        }
    }
}

/// Adds a post to a feed. Creates a new feed if there is none.
pub fn add(
    feed: Option<&str>,
    change: &FeedEdit<'_>,
    about: &ChannelInfo,
) -> Result<String, BadFeed> {
    let new;
    let text = match feed.filter(|feed| !feed.trim().is_empty()) {
        Some(text) => text,
        None => {
            new = empty(about);
            &new
        }
    };
    if check(text.as_bytes())?.kind != DocumentKind::Rss {
        return Err(BadFeed::NotRss);
    }
    // Offsets are relative to the text after the byte order mark.
    let text = text.trim_start_matches('\u{feff}');
    let parts = parts(text);
    let end = parts.channel_end.ok_or(BadFeed::NotRss)?;
    let parent = match change.parent {
        Some(id) => {
            let found = parts.items.iter().find(|item| item.guid == id || item.link == id);
            Some(found.ok_or_else(|| BadFeed::NoParent(id.to_owned()))?)
        }
        None => None,
    };
    let mut edits = Edits::new(&parts);
    let mut before = edits.missing(about);
    match &parts.built {
        Some(range) => edits.list.push((range.clone(), built(change.post.at))),
        None => before.push(built(change.post.at)),
    }
    let first = parts.items.first().map(|item| item.range.start);
    let outer = indent(text, first.unwrap_or(end));
    // In an empty channel, items are indented more than the channel's end tag.
    let indent = if first.is_some() { outer.clone() } else { format!("{outer}  ") };
    let post = change.post;
    match parent {
        None => before.push(post.to_xml("item", &indent)),
        Some(parent) => {
            let name = format!("{}:item", edits.prefix(RSSCLOUD, "rssCloud"));
            let around = self::indent(text, parent.end_tag);
            let item = post.to_xml(&name, &format!("{around}  "));
            edits.list.push((parent.end_tag..parent.end_tag, format!("  {item}\n{around}")));
        }
    }
    if !before.is_empty() {
        let lines = before.join(&format!("\n{indent}"));
        let place = first.unwrap_or(end);
        edits.list.push((place..place, format!("{}{lines}\n{outer}", &indent[outer.len()..])));
    }
    if let Some(keep) = change.keep {
        let tops = parts.items.iter().filter(|item| item.depth == 0);
        let room = keep.max(1) - usize::from(parent.is_none());
        let holds = |range: &Range<usize>| parent.is_some_and(|p| range.contains(&p.end_tag));
        let gone = tops.skip(room).map(|item| item.range.clone()).filter(|range| !holds(range));
        edits.list.extend(gone.map(|range| (range, String::new())));
    }
    Ok(edits.apply(text))
}

/// Returns the notification elements of a well-formed feed.
pub fn told(feed: &str) -> EditedFeed {
    let parts = parts(feed);
    EditedFeed {
        url: parts.itself,
        source_cloud: parts.source_cloud.filter(|url| !url.is_empty()),
        cloud: parts.cloud.unwrap_or_default(),
    }
}

/// Returns the title of a well-formed feed, and its items in document order, newest first.
pub fn lines(feed: &str) -> (String, Vec<OutlineLine>) {
    let parts = parts(feed);
    let line = |item: super::scan::ItemSpan| OutlineLine {
        id: if item.guid.is_empty() { item.link } else { item.guid },
        depth: item.depth,
        text: if item.title.is_empty() { item.description } else { escaped(&item.title) },
        date: item.date,
    };
    (parts.title, parts.items.into_iter().map(line).collect())
}

/// Returns a feed without items.
fn empty(about: &ChannelInfo) -> String {
    let (title, description) = (escaped(&about.title), escaped(&about.description));
    // RSS requires the address of a web site; the address of the feed replaces it.
    let link = about.url.as_ref().map(|url| escaped(url)).unwrap_or_default();
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<rss version=\"2.0\">\n  <channel>\n    \
         <title>{title}</title>\n    <link>{link}</link>\n    \
         <description>{description}</description>\n  </channel>\n</rss>\n"
    )
}

fn built(at: DateTime<Utc>) -> String {
    format!("<lastBuildDate>{}</lastBuildDate>", date(at))
}

/// Returns the white space between the start of the line and `place`.
fn indent(text: &str, place: usize) -> String {
    let line = text[..place].rfind('\n').map_or(0, |newline| newline + 1);
    let space = &text[line..place];
    if space.trim().is_empty() { space.to_owned() } else { String::new() }
}

/// The changes to a document, by position.
struct Edits<'p> {
    parts: &'p ChannelParts,
    list: Vec<(Range<usize>, String)>,
    /// The prefixes to declare on the root element.
    declared: Vec<(String, &'static str)>,
}

impl<'p> Edits<'p> {
    fn new(parts: &'p ChannelParts) -> Edits<'p> {
        Edits { parts, list: Vec::new(), declared: Vec::new() }
    }

    /// Returns the prefix of a namespace in the channel, and declares one if needed.
    fn prefix(&mut self, namespace: &'static str, usual: &str) -> String {
        let held = self.parts.prefixes.iter().rev();
        let mut known = held.filter(|(_, space)| space == namespace).map(|(prefix, _)| prefix);
        if let Some(prefix) = known.next() {
            return prefix.clone();
        }
        if let Some((prefix, _)) = self.declared.iter().find(|(_, space)| *space == namespace) {
            return prefix.clone();
        }
        let is_free = |wanted: &String| self.parts.prefixes.iter().all(|(held, _)| held != wanted);
        let numbered = (1..).map(|n| format!("{usual}{n}"));
        let prefix = std::iter::once(usual.to_owned()).chain(numbered).find(is_free);
        let prefix = prefix.unwrap_or_else(|| usual.to_owned());
        self.declared.push((prefix.clone(), namespace));
        prefix
    }

    /// Returns the missing channel elements, each as one line.
    fn missing(&mut self, about: &ChannelInfo) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(url) = about.url.as_ref().filter(|_| self.parts.itself.is_none()) {
            let (atom, url) = (self.prefix(ATOM, "atom"), escaped(url));
            lines.push(format!(
                "<{atom}:link rel=\"self\" type=\"application/rss+xml\" href=\"{url}\"/>"
            ));
        }
        let Some(cloud) = &about.cloud else { return lines };
        let public = cloud.as_str().trim_end_matches('/');
        if self.parts.hub.is_none() {
            let (atom, hub) = (self.prefix(ATOM, "atom"), escaped(&format!("{public}/hub")));
            lines.push(format!("<{atom}:link rel=\"hub\" href=\"{hub}\"/>"));
        }
        let register = "/rsscloud/pleaseNotify";
        if self.parts.cloud.is_none() {
            let path = escaped(&format!("{}{register}", cloud.path().trim_end_matches('/')));
            let domain = escaped(cloud.host_str().unwrap_or_default());
            let port = cloud.port_or_known_default().unwrap_or(80);
            let protocol = if cloud.scheme() == "https" { "https-post" } else { "http-post" };
            lines.push(format!(
                "<cloud domain=\"{domain}\" port=\"{port}\" path=\"{path}\" \
                 registerProcedure=\"\" protocol=\"{protocol}\"/>"
            ));
        }
        if self.parts.source_cloud.is_none() {
            let source = self.prefix(SOURCE, "source");
            let url = escaped(&format!("{public}{register}"));
            lines.push(format!("<{source}:cloud>{url}</{source}:cloud>"));
        }
        lines
    }

    /// Returns the document with all changes applied.
    fn apply(mut self, text: &str) -> String {
        let declared = self.declared.iter();
        let declared: String =
            declared.map(|(prefix, space)| format!(" xmlns:{prefix}=\"{space}\"")).collect();
        let root = self.parts.root_tag;
        self.list.push((root..root, declared));
        self.list.sort_by_key(|(range, _)| (range.start, range.end));
        let mut out = String::with_capacity(text.len() + 1_024);
        let mut done = 0;
        for (range, new) in self.list {
            // Changes inside a removed item are dropped.
            if range.start >= done {
                out.push_str(&text[done..range.start]);
                out.push_str(&new);
                done = range.end;
            }
        }
        out.push_str(&text[done..]);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rss::Enclosure;

    fn post(id: &str, text: &str) -> Post {
        Post {
            id: id.to_owned(),
            title: None,
            text: text.to_owned(),
            link: None,
            categories: Vec::new(),
            enclosure: None,
            at: DateTime::from_timestamp(1_790_000_000, 0).unwrap(),
        }
    }

    fn about() -> ChannelInfo {
        ChannelInfo {
            url: Some("https://a.test/rss.xml".to_owned()),
            cloud: Url::parse("https://cloud.test/").ok(),
            title: "A & B".to_owned(),
            description: String::new(),
        }
    }

    fn change<'c>(post: &'c Post, parent: Option<&'c str>) -> FeedEdit<'c> {
        FeedEdit { post, parent, keep: None }
    }

    #[test]
    fn a_new_feed_says_all_that_its_readers_need() {
        let full = Post {
            title: Some("T".to_owned()),
            link: Some("https://a.test/?a&b".to_owned()),
            categories: vec!["x".to_owned(), "y".to_owned()],
            enclosure: Some(Enclosure {
                url: "https://a.test/a.mp3".to_owned(),
                length: 7,
                mime: "audio/mpeg".to_owned(),
            }),
            ..post("urn:x:1", "1 < 2 &\nso on")
        };
        let made = add(None, &change(&full, None), &about()).unwrap();
        let want = "<?xml version=\"1.0\" encoding=\"utf-8\"?>
<rss xmlns:atom=\"http://www.w3.org/2005/Atom\" xmlns:source=\"http://source.scripting.com/\" version=\"2.0\">
  <channel>
    <title>A &amp; B</title>
    <link>https://a.test/rss.xml</link>
    <description></description>
    <atom:link rel=\"self\" type=\"application/rss+xml\" href=\"https://a.test/rss.xml\"/>
    <atom:link rel=\"hub\" href=\"https://cloud.test/hub\"/>
    <cloud domain=\"cloud.test\" port=\"443\" path=\"/rsscloud/pleaseNotify\" registerProcedure=\"\" protocol=\"https-post\"/>
    <source:cloud>https://cloud.test/rsscloud/pleaseNotify</source:cloud>
    <lastBuildDate>Mon, 21 Sep 2026 14:13:20 GMT</lastBuildDate>
    <item>
      <title>T</title>
      <link>https://a.test/?a&amp;b</link>
      <description>1 &amp;lt; 2 &amp;amp;&lt;br&gt;
so on</description>
      <pubDate>Mon, 21 Sep 2026 14:13:20 GMT</pubDate>
      <guid isPermaLink=\"false\">urn:x:1</guid>
      <category>x</category>
      <category>y</category>
      <enclosure url=\"https://a.test/a.mp3\" length=\"7\" type=\"audio/mpeg\"/>
    </item>
  </channel>
</rss>
";
        assert_eq!(made, want);
    }

    #[test]
    fn what_is_there_survives_and_is_not_said_twice() {
        let feed = "<rss version='2.0' xmlns:a='http://www.w3.org/2005/Atom' xmlns:source='urn:other' \
            xmlns:x='urn:x'><!-- mine --><channel x:y='1'>\n<a:link rel='hub' href='h'/><cloud domain='d'/>\
            <x:odd>&#233;<![CDATA[<b>]]></x:odd><lastBuildDate>once</lastBuildDate>\n\
            <item x:z=''><guid>old</guid></item>\n</channel></rss>";
        let made = add(Some(feed), &change(&post("new", "t"), None), &about()).unwrap();
        for piece in
            ["<!-- mine -->", "x:y='1'", "<x:odd>&#233;<![CDATA[<b>]]></x:odd>", "<item x:z=''>"]
        {
            assert!(made.contains(piece), "{piece}: {made}");
        }
        assert_eq!(made.matches("<cloud ").count(), 1, "{made}");
        assert_eq!(made.matches("rel=\"hub\"").count(), 0, "{made}");
        assert!(made.contains("<a:link rel=\"self\""), "the document's own prefix: {made}");
        assert!(made.contains("xmlns:source1=\"http://source.scripting.com/\""), "{made}");
        assert!(!made.contains("once") && made.matches("<lastBuildDate>").count() == 1, "{made}");
        assert!(made.find("new").unwrap() < made.find("old").unwrap(), "the newest is first");
        let again = add(Some(&made), &change(&post("newer", "t"), None), &about()).unwrap();
        assert_eq!(again.matches("<source1:cloud>").count(), 1);
        assert_eq!(again.matches("<item").count(), 3);
        check(again.as_bytes()).unwrap();
    }

    #[test]
    fn an_item_may_stand_under_another_at_any_depth() {
        let one = add(None, &change(&post("1", "one"), None), &about()).unwrap();
        let two = add(Some(&one), &change(&post("2", "two"), Some("1")), &about()).unwrap();
        let three = add(Some(&two), &change(&post("3", "three"), Some("2")), &about()).unwrap();
        check(three.as_bytes()).unwrap();
        let (_, lines) = lines(&three);
        let found: Vec<_> = lines.iter().map(|line| (line.id.as_str(), line.depth)).collect();
        assert_eq!(found, [("1", 0), ("2", 1), ("3", 2)]);
        assert_eq!(three.matches("<rssCloud:item>").count(), 2, "{three}");
        assert_eq!(three.matches("xmlns:rssCloud").count(), 1, "{three}");
        let nowhere = add(Some(&three), &change(&post("4", "x"), Some("9")), &about());
        assert_eq!(nowhere, Err(BadFeed::NoParent("9".to_owned())));
    }

    #[test]
    fn the_oldest_leave_where_few_are_kept() {
        let mut feed = None;
        for n in 0..5 {
            let post = post(&format!("n{n}"), "t");
            let change = FeedEdit { post: &post, parent: None, keep: Some(3) };
            feed = Some(add(feed.as_deref(), &change, &about()).unwrap());
        }
        let (_, lines) = lines(&feed.unwrap());
        let ids: Vec<_> = lines.iter().map(|line| line.id.as_str()).collect();
        assert_eq!(ids, ["n4", "n3", "n2"]);
    }

    #[test]
    fn what_a_post_stands_under_does_not_leave() {
        let mut feed = None;
        for n in 0..3 {
            let post = post(&format!("n{n}"), "t");
            feed = Some(add(feed.as_deref(), &change(&post, None), &about()).unwrap());
        }
        let answer = post("answer", "t");
        let change = FeedEdit { post: &answer, parent: Some("n0"), keep: Some(1) };
        let (_, lines) = lines(&add(feed.as_deref(), &change, &about()).unwrap());
        let ids: Vec<_> = lines.iter().map(|line| line.id.as_str()).collect();
        assert_eq!(ids, ["n2", "n0", "answer"]);
    }

    #[test]
    fn what_is_no_rss_is_left_alone() {
        // In RSS 1.0, items are siblings of the channel, which lists them separately.
        let old = "<r:RDF xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#'><channel>\
            <title>t</title></channel><item/></r:RDF>";
        let atom = "<feed xmlns='http://www.w3.org/2005/Atom'/>";
        for feed in [atom, "<rss><channel/></rss>", old] {
            let made = add(Some(feed), &change(&post("1", "t"), None), &about());
            assert_eq!(made, Err(BadFeed::NotRss), "{feed}");
        }
        let broken =
            add(Some("<rss><channel>&</channel></rss>"), &change(&post("1", "t"), None), &about());
        assert!(matches!(broken, Err(BadFeed::Unsound(_))));
    }

    #[test]
    fn whom_a_feed_wants_told_is_found() {
        let made = add(None, &change(&post("1", "t"), None), &about()).unwrap();
        let told = told(&made);
        assert_eq!(told.url.as_deref(), Some("https://a.test/rss.xml"));
        assert_eq!(told.source_cloud.as_deref(), Some("https://cloud.test/rsscloud/pleaseNotify"));
        assert!(told.cloud.contains(&("domain".to_owned(), "cloud.test".to_owned())));
    }
}
