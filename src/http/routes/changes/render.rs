//! Rendering of changes.xml (seed 002, "Retrieving Pings").
//!
//! The document is rendered piece by piece, because an hour may have millions of lines. The same
//! change always gives the same bytes: documents of completed hours are rendered for each request
//! and must never differ.

use chrono::{DateTime, TimeDelta, Utc};

use feedgate_core::ping::{TimeUnit, WeblogChange};

use feedgate_feed::render::xml::push_attribute;

/// The text after the last line.
pub const END: &str = "</weblogUpdates>\n";

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

/// Appends the line of a change. `updated` is the time of the document.
pub fn push_line(out: &mut String, change: &WeblogChange, updated: DateTime<Utc>, unit: TimeUnit) {
    let ago = (updated - change.at).max(TimeDelta::zero());
    let when = match unit {
        TimeUnit::Minutes => ago.num_minutes(),
        TimeUnit::Seconds => ago.num_seconds(),
    };
    out.push_str("<weblog");
    push_attribute(out, "name", &change.name);
    push_attribute(out, "url", &change.url);
    if let Some(feed_url) = &change.feed_url {
        push_attribute(out, "rssUrl", feed_url);
    }
    push_attribute(out, "when", &when.to_string());
    out.push_str("/>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

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
        text.push_str(END);
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
