//! The content module of RSS: `content:encoded`, and `content:items` before it.

use super::Home;
use crate::model::Content;
use crate::parse::tree::El;
use crate::parse::vocabulary::Vocabulary;

pub(super) static CONTENT: Vocabulary =
    Vocabulary { prefix: "content", uris: &["http://purl.org/rss/1.0/modules/content/"], read };

fn read(element: El<'_>, home: &mut Home<'_>) -> bool {
    if !element.named("encoded") {
        return false;
    }
    let text = home.bases.html(element);
    if home.feed().is_some() {
        return home.set_about(text);
    }
    text.value.is_empty() || home.set_content(Content::Text(text))
}
