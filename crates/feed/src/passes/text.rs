//! Cleaning of texts: trimming, removal of empty ones, and correction of media types.

use crate::model::{Category, Content, Entry, Feed, Link, Text};
use crate::text_extraction::printable;

use super::repeats::remove_duplicates;

/// Cleans every text of the feed.
pub(super) fn clean_texts(mut feed: Feed) -> Feed {
    clean_metadata(&mut feed);
    for entry in &mut feed.entries {
        clean_entry(entry);
    }
    feed
}

fn clean_metadata(feed: &mut Feed) {
    trim(feed.title.as_mut());
    trim(feed.subtitle.as_mut());
    clean_optional(&mut feed.rights);
    clean_links(&mut feed.links);
    clean_categories(&mut feed.categories);
    let generator = feed.generator.as_mut().map(|generator| &mut generator.name);
    if let Some(name) = generator {
        trim_string(name);
    }
    if feed.generator.as_ref().is_some_and(|made| made.name.is_empty() && made.uri.is_none()) {
        feed.generator = None;
    }
}

fn clean_entry(entry: &mut Entry) {
    trim(entry.title.as_mut());
    clean_optional(&mut entry.summary);
    clean_optional(&mut entry.rights);
    clean_links(&mut entry.links);
    clean_categories(&mut entry.categories);
    if let Some(source) = &mut entry.source {
        clean_metadata(source);
    }
    match &mut entry.content {
        Some(Content::Text(text)) => {
            trim(Some(text));
            if text.value.is_empty() {
                entry.content = None;
            }
        }
        Some(Content::Src { mime, .. }) => *mime = mime.take().and_then(media_type),
        Some(Content::Media { mime, .. } | Content::Xml { mime, .. }) => {
            let told = media_type(std::mem::take(mime));
            *mime = told.unwrap_or_else(|| "application/octet-stream".to_owned());
        }
        None => {}
    }
}

/// Returns `text` as a media type. The types of text constructs are replaced by their media types.
fn media_type(text: String) -> Option<String> {
    match text.trim() {
        "text" => Some("text/plain".to_owned()),
        "html" => Some("text/html".to_owned()),
        "xhtml" => Some("application/xhtml+xml".to_owned()),
        trimmed if !is_media_type(trimmed) => None,
        trimmed if trimmed.len() == text.len() => Some(text),
        trimmed => Some(trimmed.to_owned()),
    }
}

/// Removes an empty text. Titles are kept, because Atom requires them, and so is the description of
/// a feed, which RSS requires.
fn clean_optional(text: &mut Option<Text>) {
    trim(text.as_mut());
    if text.as_ref().is_some_and(|text| text.value.is_empty()) {
        *text = None;
    }
}

fn trim(text: Option<&mut Text>) {
    if let Some(text) = text {
        trim_string(&mut text.value);
    }
}

/// Removes the characters that no XML document may contain, and trims the rest.
pub(super) fn trim_string(text: &mut String) {
    let clean = printable(text);
    let trimmed = clean.trim();
    if trimmed.len() != text.len() {
        *text = trimmed.to_owned();
    }
}

fn clean_links(links: &mut [Link]) {
    for link in links {
        link.mime = link.mime.take().and_then(media_type);
        link.title = link.title.take().filter(|title| !title.trim().is_empty());
        link.length.take_if(|length| {
            let trimmed = length.trim();
            if trimmed.len() < length.len() {
                *length = trimmed.to_owned();
            }
            length.is_empty()
        });
    }
}

/// Completes the term or label of categories: a category that has only a label uses it as its term.
fn clean_categories(categories: &mut Vec<Category>) {
    for category in &mut *categories {
        trim_string(&mut category.term);
        category.label = category.label.take().filter(|label| !label.trim().is_empty());
        if category.term.is_empty() {
            category.term = category.label.clone().unwrap_or_default();
            trim_string(&mut category.term);
        }
    }
    categories.retain(|category| !category.term.is_empty());
    remove_duplicates(categories);
}

/// Returns whether `text` is `type/subtype` with optional parameters (RFC 6838 `#section-4.2`).
fn is_media_type(text: &str) -> bool {
    let token = |part: &str| {
        !part.is_empty()
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "!#$&^_.+-".contains(c))
    };
    let essence = text.split(';').next().unwrap_or_default().trim_end();
    essence.split_once('/').is_some_and(|(kind, subtype)| token(kind) && token(subtype))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_are_told_from_other_words() {
        let cases = [
            ("text/html", true),
            ("application/atom+xml; type=entry", true),
            ("html", false),
            ("audio/", false),
            ("a b/c", false),
        ];
        for (text, want) in cases {
            assert_eq!(is_media_type(text), want, "{text}");
        }
    }
}
