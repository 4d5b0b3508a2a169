//! One item as an author writes it.

use chrono::{DateTime, Utc};

use crate::xml::escaped;

/// "individual entries of 140-characters or less" (seed 000, "The authoring tool").
pub const SHORT_CHARS: usize = 140;

/// What an author says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    /// What it is known by, for ever.
    pub id: String,
    /// A title, for what is longer than a line.
    pub title: Option<String>,
    /// What is said, as plain text.
    pub text: String,
    /// What it is about.
    pub link: Option<String>,
    /// "something similar to what hashtags do … without using up space in the 140
    /// characters".
    pub categories: Vec<String>,
    /// A picture, a recording or a film; it takes no space either.
    pub enclosure: Option<Enclosure>,
    /// When.
    pub at: DateTime<Utc>,
}

/// A media object of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enclosure {
    /// Where it is.
    pub url: String,
    /// How long it is, in bytes; 0 if nobody knows.
    pub length: u64,
    /// Its media type.
    pub mime: String,
}

impl Post {
    /// How many characters it has, as its readers count them.
    pub fn chars(&self) -> usize {
        self.text.trim().chars().count()
    }

    /// The item, under this name, each line behind `indent`; there is no line end behind
    /// the last.
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

/// A child of an item or of a channel.
fn element(name: &str, text: &str) -> String {
    format!("  <{name}>{}</{name}>", escaped(text))
}

/// A description is HTML (RSS Advisory Board, "Best Practices", `#element-channel-item-description`).
fn as_html(text: &str) -> String {
    escaped(text).replace("\r\n", "\n").replace('\n', "<br>\n")
}

/// As RFC 822 has it, with a year of four digits.
pub(super) fn date(at: DateTime<Utc>) -> String {
    at.format("%a, %d %b %Y %H:%M:%S GMT").to_string()
}
