//! Items of a feed as written by authors.

use chrono::{DateTime, Utc};

use crate::xml::escaped;

/// The maximum length of a short item, in characters: "individual entries of 140-characters or
/// less" (seed 000, "The authoring tool").
pub const SHORT_CHARS: usize = 140;

/// A post to be written as an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    /// The permanent id, written as guid.
    pub id: String,
    /// The title of a longer post.
    pub title: Option<String>,
    /// The content, as plain text.
    pub text: String,
    /// The page that the post links to.
    pub link: Option<String>,
    /// The categories: "something similar to what hashtags do … without using up space in the 140
    /// characters".
    pub categories: Vec<String>,
    /// The attached picture, audio or video. It does not count towards the length.
    pub enclosure: Option<Enclosure>,
    /// The time of publication.
    pub at: DateTime<Utc>,
}

/// A media object of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enclosure {
    /// The address.
    pub url: String,
    /// The length in bytes; 0 if it is unknown.
    pub length: u64,
    /// The media type.
    pub mime: String,
}

impl Post {
    /// Returns the number of characters as readers count them.
    pub fn chars(&self) -> usize {
        self.text.trim().chars().count()
    }

    /// Serializes the item as an element called `name`, with `indent` before each line and no line
    /// end after the last.
    pub(super) fn to_xml(&self, name: &str, indent: &str) -> String {
        let mut lines = vec![format!("<{name}>")];
        let mut line = |name: &str, text: &str| lines.push(element(name, text));
        if let Some(title) = &self.title {
            line("title", title);
        }
        if let Some(link) = &self.link {
            line("link", link);
        }
        line("description", &as_html(self.text.trim()));
        line("pubDate", &date(self.at));
        lines.push(format!("  <guid isPermaLink=\"false\">{}</guid>", escaped(&self.id)));
        lines.extend(self.categories.iter().map(|category| element("category", category)));
        if let Some(Enclosure { url, length, mime }) = &self.enclosure {
            let (url, mime) = (escaped(url), escaped(mime));
            lines.push(format!("  <enclosure url=\"{url}\" length=\"{length}\" type=\"{mime}\"/>"));
        }
        lines.push(format!("</{name}>"));
        lines.join(&format!("\n{indent}"))
    }
}

/// Serializes a child of an item or channel.
fn element(name: &str, text: &str) -> String {
    format!("  <{name}>{}</{name}>", escaped(text))
}

/// Converts plain text into HTML, because descriptions are HTML (RSS Advisory Board, "Best
/// Practices", `#element-channel-item-description`).
fn as_html(text: &str) -> String {
    escaped(text).replace("\r\n", "\n").replace('\n', "<br>\n")
}

/// Formats a date as in RFC 822, with a four-digit year.
pub(super) fn date(at: DateTime<Utc>) -> String {
    at.format("%a, %d %b %Y %H:%M:%S GMT").to_string()
}
