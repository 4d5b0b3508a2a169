//! Rendering of changes.xml (seed 002, "Retrieving Pings").
//!
//! The document is rendered piece by piece, because an hour may have millions of lines. The same
//! change always gives the same bytes: documents of completed hours are rendered for each request
//! and must never differ.

use std::borrow::Cow;

use chrono::{DateTime, TimeDelta, Utc};

use feedgate_core::ping::{TimeUnit, WeblogChange};

use feedgate_feed::render::xml::push_attribute;

/// The longest name of a weblog in a line, in bytes.
const MAX_NAME_BYTES: usize = 256;
/// The longest URL in a line, in bytes.
const MAX_URL_BYTES: usize = 1_024;

/// Appends the text after the last line. `is_cut` says that there are more changes than lines.
pub fn push_end(out: &mut String, is_cut: bool) {
    if is_cut {
        out.push_str("<!-- There are more changes than a document may list. -->\n");
    }
    out.push_str("</weblogUpdates>\n");
}

/// Appends the text before the first line. `count` is "the total number of pings received" (seed
/// 002), ever.
pub fn push_head(out: &mut String, updated: DateTime<Utc>, count: u64) {
    out.push_str(feedgate_feed::render::atom::DECLARATION);
    out.push_str("<weblogUpdates");
    push_attribute(out, "version", "2");
    push_attribute(out, "updated", &updated.format("%a, %d %b %Y %H:%M:%S GMT").to_string());
    push_attribute(out, "count", &count.to_string());
    out.push_str(">\n");
}

/// Appends the line of a change. `updated` is the time of the document. A long name is cut, a long
/// URL loses its query and fragment, and a URL that is still too long all but its host. A long URL
/// of a feed is left out, because it would be useless without its end.
pub fn push_line(out: &mut String, change: &WeblogChange, updated: DateTime<Utc>, unit: TimeUnit) {
    let ago = (updated - change.at).max(TimeDelta::zero());
    let when = match unit {
        TimeUnit::Minutes => ago.num_minutes(),
        TimeUnit::Seconds => ago.num_seconds(),
    };
    out.push_str("<weblog");
    push_attribute(out, "name", &cut_name(&change.name));
    push_attribute(out, "url", cut_url(&change.url));
    let feed_url = change.feed_url.as_ref().filter(|url| url.len() <= MAX_URL_BYTES);
    if let Some(feed_url) = feed_url {
        push_attribute(out, "rssUrl", feed_url);
    }
    push_attribute(out, "when", &when.to_string());
    out.push_str("/>\n");
}

fn cut_name(name: &str) -> Cow<'_, str> {
    if name.len() <= MAX_NAME_BYTES {
        return Cow::Borrowed(name);
    }
    let end = name.floor_char_boundary(MAX_NAME_BYTES);
    Cow::Owned(format!("{}…", &name[..end]))
}

fn cut_url(url: &str) -> &str {
    if url.len() <= MAX_URL_BYTES {
        return url;
    }
    let path = url.find(['?', '#']).map_or(url, |end| &url[..end]);
    if path.len() <= MAX_URL_BYTES {
        return path;
    }
    let host = url.find("://").map_or(0, |scheme| scheme + 3);
    let end = url[host..].find('/').map_or(url.len(), |slash| host + slash + 1);
    &url[..end.min(url.floor_char_boundary(MAX_URL_BYTES))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t06_a_line_has_a_bounded_length() {
        let at = DateTime::from_timestamp(1_168_715_280, 0).unwrap();
        let long = "&".repeat(4_000);
        #[rustfmt::skip]
        let cases = [
            (format!("http://a.test/b?{long}"),  "http://a.test/b"),
            (format!("http://a.test/b#{long}"),  "http://a.test/b"),
            (format!("http://a.test/{long}?c"),  "http://a.test/"),
            ("http://a.test/b?c".to_owned(),     "http://a.test/b?c"),
        ];
        for (url, want) in cases {
            assert_eq!(cut_url(&url), want);
        }
        let (name, url) = ("é".repeat(2_000), format!("http://a.test/?{long}"));
        let change = WeblogChange { at, name, url: url.clone(), feed_url: Some(url) };
        let mut text = String::new();
        push_line(&mut text, &change, at, TimeUnit::Minutes);
        assert!(text.len() < 400 && text.contains("é…\"") && !text.contains("rssUrl"), "{text}");
    }

    #[test]
    fn a_document_is_a_head_a_line_for_each_change_and_an_end() {
        let now = DateTime::from_timestamp(1_168_715_280, 0).unwrap();
        let change = |minutes: i64, name: &str, feed_url: Option<&str>| WeblogChange {
            at: now - TimeDelta::minutes(minutes),
            name: name.to_owned(),
            url: "http://a.test/?x=1&y=2".to_owned(),
            feed_url: feed_url.map(str::to_owned),
        };
        let list = [change(1, "One", Some("http://a.test/rss")), change(2, "Two & \"a\"", None)];
        let mut text = String::new();
        push_head(&mut text, now, 7);
        list.iter().for_each(|change| push_line(&mut text, change, now, TimeUnit::Minutes));
        push_end(&mut text, false);
        let want = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n\
            <weblogUpdates version=\"2\" updated=\"Sat, 13 Jan 2007 19:08:00 GMT\" count=\"7\">\n\
            <weblog name=\"One\" url=\"http://a.test/?x=1&amp;y=2\" rssUrl=\"http://a.test/rss\" when=\"1\"/>\n\
            <weblog name=\"Two &amp; &quot;a&quot;\" url=\"http://a.test/?x=1&amp;y=2\" when=\"2\"/>\n\
            </weblogUpdates>\n";
        assert_eq!(text, want, "what was once written must not change: hours are kept for ever");
    }

    #[test]
    fn ages_are_told_in_either_unit_and_never_negative() {
        let now = DateTime::from_timestamp(1_168_715_280, 0).unwrap();
        let cases = [(119, "1", "119"), (0, "0", "0"), (-5, "0", "0")];
        for (ago, minutes, seconds) in cases {
            let at = now - TimeDelta::seconds(ago);
            let (name, url) = (String::new(), "http://a.test/".to_owned());
            let change = WeblogChange { at, name, url, feed_url: None };
            for (unit, want) in [(TimeUnit::Minutes, minutes), (TimeUnit::Seconds, seconds)] {
                let mut text = String::new();
                push_line(&mut text, &change, now, unit);
                assert!(text.ends_with(&format!("when=\"{want}\"/>\n")), "{text}");
            }
        }
    }
}
