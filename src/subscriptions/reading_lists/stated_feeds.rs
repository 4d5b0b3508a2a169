//! The feeds that the document of a reading list states.

use std::collections::HashSet;

use feedgate_core::topic::Topic;
use feedgate_feed::parse::{FeedList, read_feed_list};

/// The feeds of a list, and whether it states all of its feeds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StatedFeeds {
    /// Their addresses in the order of the document, each once. What the document includes by reference is not
    /// read.
    pub(super) urls: Vec<String>,
    /// Why the document may have stated more feeds, so that no subscription ends, as a part of a sentence.
    pub(super) problem: Option<String>,
}

impl StatedFeeds {
    /// Reads the document at `url`. Its own address in it is no feed.
    pub(super) fn read(document: &[u8], url: &str) -> StatedFeeds {
        let FeedList { feeds, fault } = match read_feed_list(document) {
            Ok(list) => list,
            Err(why) => return StatedFeeds { urls: Vec::new(), problem: Some(why.to_string()) },
        };
        let mut known = HashSet::from([url.to_owned()]);
        let urls = feeds.into_iter().map(|feed| feed.url);
        let urls = urls.filter(|url| url.len() <= Topic::LONGEST_BYTES);
        let urls: Vec<String> = urls.filter(|url| known.insert(url.clone())).collect();
        let problem = match fault {
            Some(fault) => Some(format!("the document is not well-formed ({})", fault.as_str())),
            None if urls.is_empty() => Some("the document states no feeds".to_owned()),
            None => None,
        };
        StatedFeeds { urls, problem }
    }

    /// Returns what is known of a document on which the reader failed.
    pub(super) fn unreadable() -> StatedFeeds {
        let problem = Some("the document cannot be read".to_owned());
        StatedFeeds { urls: Vec::new(), problem }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a36_a_list_states_each_feed_once_and_not_itself() {
        let outlines =
            ["https://a.test/", "https://list.test/", "https://b.test/", "https://a.test/"]
                .map(|url| format!("<outline text='feed' xmlUrl='{url}'/>"))
                .concat();
        let included = "<outline text='more' type='include' url='https://list.test/other'/>";
        let list = format!("<opml version='2.0'><body>{outlines}{included}</body></opml>");
        let read = |list: &str| StatedFeeds::read(list.as_bytes(), "https://list.test/");
        let sound = read(&list);
        assert_eq!(sound.urls, ["https://a.test/", "https://b.test/"]);
        assert_eq!(sound.problem, None);

        #[rustfmt::skip]
        let cases = [
            ("no feeds",  "<opml version='2.0'><body/></opml>", 0, "states no feeds"),
            ("cut off",   &list[..list.len() - 9],              2, "not well-formed"),
            ("no list",   "<html><body>Sorry</body></html>",    0, "not OPML"),
        ];
        for (why, list, urls, problem) in cases {
            let read = read(list);
            assert_eq!(read.urls.len(), urls, "{why}");
            assert!(read.problem.is_some_and(|text| text.contains(problem)), "{why}");
        }
    }
}
