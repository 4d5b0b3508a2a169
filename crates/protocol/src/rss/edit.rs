//! Adding a post to a feed, and the elements by which readers subscribe to its changes.
//!
//! Everything in the document that is not edited stays the same to the byte. Missing elements are
//! added: `cloud`, `source:cloud`, the links `hub` and `self`, and their namespaces. The newest
//! item comes first, as readers expect.

mod edits;
#[cfg(test)]
mod tests;

use std::ops::Range;

use chrono::{DateTime, Utc};
use url::Url;

use super::check::{DocumentFault, DocumentKind, check};
use super::item::{Post, date};
use super::scan::{RSSCLOUD, parts};
use crate::xml::escaped;

use edits::Edits;

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
    #[error("the feed is not valid: {0}")]
    Unsound(#[from] DocumentFault),
    /// The document is not RSS.
    #[error("the document is not RSS 2.0, or has no channel to add items to")]
    NotRss,
    /// The feed has no item that could be the parent.
    #[error("the feed has no item with the guid or link {0}")]
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
