//! changes.xml: what changed lately, for those who ask (seed 002, "Retrieving Pings").

use chrono::{DateTime, Utc};

use crate::domain::ping::Change;

use super::xml::push_attribute;

/// The unit of `when`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// "The when attribute in the number of minutes since the ping was received."
    /// (seed 002)
    Minutes,
    /// As the first description of the format had it, and some readers expect.
    Seconds,
}

/// The document as of `now`, newest change first. `count` is "the total number of
/// pings received" (seed 002), ever.
pub fn changes(changes: &[Change], count: u64, now: DateTime<Utc>, unit: Unit) -> String {
    let mut newest_first: Vec<&Change> = changes.iter().collect();
    newest_first.sort_by_key(|change| std::cmp::Reverse(change.at));
    let mut out = String::with_capacity(256 + changes.len() * 128);
    out.push_str(super::atom::DECLARATION);
    out.push_str("<weblogUpdates");
    push_attribute(&mut out, "version", "2");
    push_attribute(&mut out, "updated", &now.format("%a, %d %b %Y %H:%M:%S GMT").to_string());
    push_attribute(&mut out, "count", &count.to_string());
    out.push_str(">\n");
    for change in newest_first {
        let ago = (now - change.at).max(chrono::TimeDelta::zero());
        let when = match unit {
            Unit::Minutes => ago.num_minutes(),
            Unit::Seconds => ago.num_seconds(),
        };
        out.push_str("<weblog");
        push_attribute(&mut out, "name", &change.name);
        push_attribute(&mut out, "url", &change.url);
        if let Some(feed_url) = &change.feed_url {
            push_attribute(&mut out, "rssUrl", feed_url);
        }
        push_attribute(&mut out, "when", &when.to_string());
        out.push_str("/>\n");
    }
    out.push_str("</weblogUpdates>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_stand_newest_first_with_their_age() {
        let now = DateTime::from_timestamp(1_168_715_280, 0).unwrap();
        let change = |minutes: i64, name: &str, feed_url: Option<&str>| Change {
            at: now - chrono::TimeDelta::minutes(minutes),
            name: name.to_owned(),
            url: "http://a.test/?x=1&y=2".to_owned(),
            feed_url: feed_url.map(str::to_owned),
        };
        let list = [change(2, "Two & \"a\"", None), change(1, "One", Some("http://a.test/rss"))];
        let want = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n\
            <weblogUpdates version=\"2\" updated=\"Sat, 13 Jan 2007 19:08:00 GMT\" count=\"7\">\n\
            <weblog name=\"One\" url=\"http://a.test/?x=1&amp;y=2\" rssUrl=\"http://a.test/rss\" when=\"1\"/>\n\
            <weblog name=\"Two &amp; &quot;a&quot;\" url=\"http://a.test/?x=1&amp;y=2\" when=\"2\"/>\n\
            </weblogUpdates>\n";
        assert_eq!(changes(&list, 7, now, Unit::Minutes), want);
        assert!(changes(&list, 7, now, Unit::Seconds).contains("when=\"60\""));
    }
}
