//! The feeds of an OPML subscription list.

use crate::xml::{self, BadXml, MessageElement};

/// Returns the addresses of all feeds (`xmlUrl`) that an OPML document lists, in its order.
pub fn feed_urls(bytes: &[u8]) -> Result<Vec<String>, BadOpml> {
    let root = xml::read(bytes)?;
    if !root.name.eq_ignore_ascii_case("opml") {
        return Err(BadOpml::OtherRoot(root.name));
    }
    let mut urls = Vec::new();
    collect(&root, &mut urls);
    Ok(urls)
}

/// Why bytes are not a subscription list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadOpml {
    /// The bytes are not XML that is read here.
    #[error(transparent)]
    Xml(#[from] BadXml),
    /// The document has another root element.
    #[error("the root element is \"{0}\", not \"opml\"")]
    OtherRoot(String),
}

/// Adds the feeds of all outlines in `element`. The nesting of elements is limited by the reader.
fn collect(element: &MessageElement, urls: &mut Vec<String>) {
    for outline in &element.children {
        // Some programs write xmlurl.
        let mut attributes = outline.attributes.iter();
        let url = attributes.find(|(name, _)| name.eq_ignore_ascii_case("xmlUrl"));
        if let Some((_, url)) = url
            && !url.trim().is_empty()
        {
            urls.push(url.trim().to_owned());
        }
        collect(outline, urls);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feeds_are_found_in_folders() {
        let list = br#"<?xml version="1.0"?>
            <opml version="2.0"><head><title>Feeds</title></head><body>
              <outline text="News"><outline type="rss" xmlUrl="http://a.test/?x=1&amp;y=2"/></outline>
              <outline text="no feed" htmlUrl="http://b.test/"/>
              <outline xmlurl=" http://c.test/feed "/>
            </body></opml>"#;
        assert_eq!(
            feed_urls(list),
            Ok(vec!["http://a.test/?x=1&y=2".into(), "http://c.test/feed".into()])
        );
        assert_eq!(feed_urls(b"<rss/>"), Err(BadOpml::OtherRoot("rss".to_owned())));
        assert!(matches!(feed_urls(b"not XML"), Err(BadOpml::Xml(_))));
    }
}
