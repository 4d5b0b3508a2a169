//! The redirect document, which names the new address of a feed (seed 002, "Redirect").
//!
//! ```xml
//! <redirect><newLocation>http://…</newLocation></redirect>
//! ```
//!
//! An empty `newLocation` means that the feed is gone. The example in the seed lacks the slash in
//! the end tag, so a `newLocation` inside a `newLocation` is accepted.

use crate::model::{Feed, FeedFormat};
use crate::parse::tree::XmlElement;

/// Returns whether `element` is a redirect.
pub(super) fn is(element: XmlElement<'_>) -> bool {
    element.named("newLocation") && element.parent().is_some_and(|around| around.named("redirect"))
        || element.named("redirect") && element.child("newLocation").is_some()
}

/// Reads a redirect as a feed that has moved.
pub(super) fn read(element: XmlElement<'_>) -> Feed {
    let location = element.text().into_owned();
    Feed { format: FeedFormat::Redirect, moved_to: Some(location), ..Feed::default() }
}

#[cfg(test)]
mod tests {
    use url::Url;

    use crate::context::Context;
    use crate::parse::parse;

    #[test]
    fn a_redirect_says_where_to_go_or_that_there_is_nowhere() {
        let context = Context::new(Url::parse("https://tides.test/feed").unwrap());
        #[rustfmt::skip]
        let cases = [
            ("<redirect><newLocation>https://ebb.test/</newLocation></redirect>", "https://ebb.test/"),
            ("<redirect>\n<newLocation>https://ebb.test/<newLocation>\n</redirect>", "https://ebb.test/"),
            ("<redirect><newLocation/></redirect>",                               ""),
        ];
        for (text, want) in cases {
            let feed = parse(text.as_bytes(), &context).unwrap();
            assert_eq!(feed.moved_to.as_deref(), Some(want), "{text}");
        }
    }
}
