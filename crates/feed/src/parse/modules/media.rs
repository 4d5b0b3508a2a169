//! Media RSS. Kept whole; titles, texts and keywords serve where the entry has none.

use super::Home;
use crate::parse::tree::El;
use crate::parse::vocabulary::Vocabulary;

pub(super) static MEDIA: Vocabulary = Vocabulary {
    prefix: "media",
    uris: &[
        "http://search.yahoo.com/mrss/",
        "http://search.yahoo.com/mrss",
        "http://video.search.yahoo.com/mrss",
        "http://tools.search.yahoo.com/mrss/",
    ],
    read,
};

fn read(element: El<'_>, home: &mut Home<'_>) -> bool {
    let empty =
        |text: &Option<crate::model::Text>| text.as_ref().is_none_or(|text| text.value.is_empty());
    if element.named("title") && empty(home.title()) {
        let text = home.bases.plain(element);
        home.set_title(text);
    } else if element.named("description") && empty(home.about()) {
        let has_content = home.entry().is_some_and(|entry| entry.content.is_some());
        if !has_content {
            let text = home.bases.plain(element);
            home.set_about(text);
        }
    }
    false
}
