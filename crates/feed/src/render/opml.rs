//! Lists of feeds as OPML 2.0 (<http://opml.org/spec2.opml>), for import into readers.
//!
//! Lists are written piece by piece, because they may be very long. The document is well-formed
//! whatever the titles of feeds contain.

use chrono::{DateTime, Utc};

use super::xml::{push_attribute, push_element};

/// The text after the last outline.
pub const END: &str = "</body>\n</opml>\n";

/// A feed in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpmlOutline<'o> {
    /// The title as plain text; empty if it is unknown.
    pub title: &'o str,
    /// The address of the feed.
    pub url: &'o str,
    /// The address of the web site.
    pub site: Option<&'o str>,
    /// Whether the resource is a feed. Resources of other kinds are listed as links, so that
    /// readers that import the list do not subscribe to them.
    pub is_feed: bool,
}

/// Appends the document up to the first outline. `at` is the time of the last change of the list.
pub fn push_head(out: &mut String, title: &str, at: DateTime<Utc>) {
    let at = at.format("%a, %d %b %Y %H:%M:%S GMT").to_string();
    out.push_str(super::atom::DECLARATION);
    out.push_str("<opml version=\"2.0\">\n<head>\n");
    push_element(out, "title", title);
    push_element(out, "dateCreated", &at);
    push_element(out, "dateModified", &at);
    push_element(out, "docs", "http://opml.org/spec2.opml");
    out.push_str("</head>\n<body>\n");
}

/// Appends a feed. "Required attributes: type, text, xmlUrl" ("Subscription lists").
pub fn push_outline(out: &mut String, outline: &OpmlOutline<'_>) {
    let text = if outline.title.is_empty() { outline.url } else { outline.title };
    out.push_str("<outline");
    push_attribute(out, "type", if outline.is_feed { "rss" } else { "link" });
    push_attribute(out, "text", text);
    if !outline.title.is_empty() {
        push_attribute(out, "title", outline.title);
    }
    push_attribute(out, if outline.is_feed { "xmlUrl" } else { "url" }, outline.url);
    if let Some(site) = outline.site {
        push_attribute(out, "htmlUrl", site);
    }
    out.push_str("/>\n");
}

/// Appends an outline that is a note, for an empty list: "A body contains one or more outline
/// elements".
pub fn push_note(out: &mut String, text: &str) {
    out.push_str("<outline");
    push_attribute(out, "text", text);
    out.push_str("/>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s23_a_list_is_well_formed_whatever_feeds_are_called() {
        let mut text = String::new();
        push_head(
            &mut text,
            "Feeds & \"more\"",
            DateTime::from_timestamp(1_168_715_280, 0).unwrap(),
        );
        let feed = OpmlOutline {
            title: "<b>A</b> & \"b\"\u{7}\u{0}\n]]>",
            url: "https://a.test/?x=1&y=\"2\"",
            site: Some("https://a.test/<"),
            is_feed: true,
        };
        push_outline(&mut text, &feed);
        push_outline(&mut text, &OpmlOutline { title: "", site: None, is_feed: false, ..feed });
        push_note(&mut text, "No more");
        text.push_str(END);
        let want = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<opml version=\"2.0\">\n<head>\n\
            <title>Feeds &amp; \"more\"</title>\n\
            <dateCreated>Sat, 13 Jan 2007 19:08:00 GMT</dateCreated>\n\
            <dateModified>Sat, 13 Jan 2007 19:08:00 GMT</dateModified>\n\
            <docs>http://opml.org/spec2.opml</docs>\n</head>\n<body>\n\
            <outline type=\"rss\" text=\"&lt;b&gt;A&lt;/b&gt; &amp; &quot;b&quot;&#10;]]&gt;\" \
            title=\"&lt;b&gt;A&lt;/b&gt; &amp; &quot;b&quot;&#10;]]&gt;\" \
            xmlUrl=\"https://a.test/?x=1&amp;y=&quot;2&quot;\" htmlUrl=\"https://a.test/&lt;\"/>\n\
            <outline type=\"link\" text=\"https://a.test/?x=1&amp;y=&quot;2&quot;\" \
            url=\"https://a.test/?x=1&amp;y=&quot;2&quot;\"/>\n\
            <outline text=\"No more\"/>\n</body>\n</opml>\n";
        assert_eq!(text, want);
    }
}
