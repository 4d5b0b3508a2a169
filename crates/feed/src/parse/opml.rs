//! Subscription lists in OPML (<http://opml.org/spec2.opml>), which readers export.
//!
//! They are read with the tree of feeds, so that bare ampersands, missing end tags, wrong encodings
//! and documents that break off do not matter.

use std::borrow::Cow;
use std::fmt;

use super::memory_bound::max_nodes;
use super::tree::XmlElement;
use super::{decode, tree};
use crate::repair::{Repair, RepairCode};

/// A feed in a subscription list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedFeed {
    /// The address as written, without surrounding space.
    pub url: String,
    /// The title; empty if the list has none.
    pub title: String,
    /// The line of the document on which the outline begins, from 1.
    pub line: usize,
}

/// The reason why a document is not read as a subscription list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotAList {
    /// The document is not OPML.
    Other,
    /// Parts of the document were left out, because its outlines are nested too deeply.
    TooDeep,
}

impl fmt::Display for NotAList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotAList::Other => "the document is not OPML",
            NotAList::TooDeep => "its outlines are nested too deeply, or have no end tags",
        })
    }
}

impl std::error::Error for NotAList {}

/// A subscription list, with what was wrong with its document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedList {
    /// The feeds in the order of the document.
    pub feeds: Vec<ListedFeed>,
    /// The first fault of the document, because of which it may state more feeds than were found; `None`: it is
    /// sound.
    pub fault: Option<RepairCode>,
}

/// The beginning of a document in which the element `opml` is looked for, in bytes: a declaration and
/// comments may precede it.
const PROLOG_BYTES: usize = 4 << 10;

/// Returns whether a document probably is a subscription list, by its beginning.
pub fn is_feed_list(bytes: &[u8]) -> bool {
    let start = &bytes[..bytes.len().min(PROLOG_BYTES)];
    decode::decode(start, None, &mut Vec::new()).to_ascii_lowercase().contains("<opml")
}

/// Returns the feeds of an OPML document in its order, whatever outlines they are nested in.
/// Outlines without the address of a feed, such as folders, are left out.
///
/// ```
/// use feedgate_feed::parse::listed_feeds;
///
/// let list = b"<opml><body><outline text='Sea'><outline xmlUrl='https://tides.test/feed'>";
/// assert_eq!(listed_feeds(list)?[0].url, "https://tides.test/feed");
/// # Ok::<(), feedgate_feed::parse::NotAList>(())
/// ```
pub fn listed_feeds(bytes: &[u8]) -> Result<Vec<ListedFeed>, NotAList> {
    let (is_list, feeds, repairs) = read(bytes);
    if repairs.iter().any(|repair| is_left_out(repair.code)) {
        return Err(NotAList::TooDeep);
    }
    if is_list { Ok(feeds) } else { Err(NotAList::Other) }
}

/// Returns the feeds of an OPML document, as [`listed_feeds`] does, as far as they can be read.
pub fn read_feed_list(bytes: &[u8]) -> Result<FeedList, NotAList> {
    let (is_list, feeds, repairs) = read(bytes);
    let mut codes = repairs.iter().map(|repair| repair.code);
    let fault = codes.find(|code| is_left_out(*code) || !code.is_adaptation());
    if is_list { Ok(FeedList { feeds, fault }) } else { Err(NotAList::Other) }
}

/// Returns whether parts of a document with this repair were left out.
fn is_left_out(code: RepairCode) -> bool {
    matches!(code, RepairCode::TooDeep | RepairCode::TooManyNodes)
}

/// Returns whether a document is a subscription list, its feeds, and what was repaired.
fn read(bytes: &[u8]) -> (bool, Vec<ListedFeed>, Vec<Repair>) {
    let mut repairs = Vec::new();
    let text = decode::decode(bytes, None, &mut repairs);
    let tidy = tree::tidy(Cow::Borrowed(&*text), &mut repairs);
    let tree = tree::build(&tidy, max_nodes(tidy.len()), &mut repairs);
    let mut is_list = false;
    let mut lines =
        Lines { text: &text, offsets: tree::OriginalOffsets::new(&text, &tidy), at: (0, 1) };
    let mut feeds = Vec::new();
    for element in tree.document().descendants() {
        is_list |= element.named("opml") || element.named("outline");
        if element.named("outline")
            && let Some(url) = feed_address(element)
        {
            let title = [element.attr("title"), element.attr("text")].into_iter().flatten();
            let title = title.map(str::to_owned).find(|title| !title.is_empty());
            let line = lines.line_of(element);
            feeds.push(ListedFeed { url: url.to_owned(), title: title.unwrap_or_default(), line });
        }
    }
    (is_list, feeds, repairs)
}

/// Returns the address of the feed of an outline. Some programs write it as `url`, with a type.
fn feed_address(outline: XmlElement<'_>) -> Option<&str> {
    let is_feed = || {
        let kind = outline.attr("type").unwrap_or_default();
        ["rss", "atom"].iter().any(|feed| kind.eq_ignore_ascii_case(feed))
    };
    let url = outline.attr("xmlUrl").filter(|url| !url.is_empty());
    url.or_else(|| outline.attr("url").filter(|url| !url.is_empty() && is_feed()))
}

/// Counts the lines of a text up to elements, which are visited in order.
struct Lines<'t> {
    text: &'t str,
    offsets: tree::OriginalOffsets,
    /// The offset up to which lines are counted, and the line there.
    at: (usize, usize),
}

impl Lines<'_> {
    fn line_of(&mut self, element: XmlElement<'_>) -> usize {
        let start = element.start().map_or(0, |start| self.offsets.original(start));
        let (at, line) = self.at;
        let between = self.text.as_bytes().get(at..start).unwrap_or_default();
        let line = line + between.iter().filter(|byte| **byte == b'\n').count();
        self.at = (start.max(at), line);
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feeds_are_found_in_sound_and_broken_lists() {
        let urls = |list: &str| -> Result<Vec<String>, NotAList> {
            let feeds = listed_feeds(list.as_bytes())?;
            Ok(feeds.into_iter().map(|feed| feed.url).collect())
        };
        #[rustfmt::skip]
        let cases: [(&str, &str, &[&str]); 8] = [
            ("nested",           "<opml><body><outline text='a'><outline text='b'><outline xmlUrl='http://a.test/'/></outline></outline></body></opml>", &["http://a.test/"]),
            ("folders only",     "<opml><body><outline text='a'/></body></opml>",                           &[]),
            ("other spelling",   "<opml><body><outline xmlurl=' http://a.test/ '/></body></opml>",         &["http://a.test/"]),
            ("url with a type",  "<OPML><body><outline type='RSS' url='http://a.test/'/></body></OPML>",    &["http://a.test/"]),
            ("url of a link",    "<opml><body><outline type='link' url='http://a.test/'/></body></opml>",   &[]),
            ("bare ampersands",  "<opml><body><outline text='R&D' xmlUrl='http://a.test/?x=1&y=2'/></body></opml>", &["http://a.test/?x=1&y=2"]),
            ("missing end tags", "<opml><body><outline xmlUrl='http://a.test/'><outline xmlUrl='http://b.test/'>", &["http://a.test/", "http://b.test/"]),
            ("a bracket",        "<opml><body><outline text='a < b' xmlUrl='http://a.test/'/></body></opml>",  &["http://a.test/"]),
        ];
        for (why, list, want) in cases {
            let want: Vec<String> = want.iter().map(|url| (*url).to_owned()).collect();
            assert_eq!(urls(list), Ok(want), "{why}");
        }
        for other in [" ", "{}", "<rss><channel><title>t</title></channel></rss>"] {
            assert_eq!(urls(other), Err(NotAList::Other), "{other}");
        }
        let unclosed = "<outline xmlUrl='http://a.test/'>".repeat(1_000);
        assert_eq!(urls(&format!("<opml><body>{unclosed}")), Err(NotAList::TooDeep));
    }

    #[test]
    fn a36_the_feeds_of_a_broken_list_are_read_with_its_fault() {
        let sound = "<?xml version='1.0'?><opml version='2.0'><head><title>a</title></head><body>\
                     <outline text='a'><outline text='b' xmlUrl='http://a.test/?x=1&amp;y=2'/></outline>\
                     </body></opml>";
        let cut = &sound[..sound.len() - 20];
        let deep = format!("<opml>{}", "<outline>".repeat(1_000));
        let bare = sound.replace("&amp;", "&");
        #[rustfmt::skip]
        let cases = [
            ("sound",    sound,                                Some((1, true))),
            ("empty",    "<opml version='2.0'><body/></opml>", Some((0, true))),
            ("cut off",  cut,                                  Some((1, false))),
            ("bare",     bare.as_str(),                        Some((1, false))),
            ("too deep", deep.as_str(),                        Some((0, false))),
            ("a page",   "<html><body>Sorry</body></html>",    None),
        ];
        for (why, list, want) in cases {
            let read = read_feed_list(list.as_bytes()).ok();
            let read = read.map(|list| (list.feeds.len(), list.fault.is_none()));
            assert_eq!(read, want, "{why}");
            assert_eq!(is_feed_list(list.as_bytes()), want.is_some(), "{why}");
        }
    }

    #[test]
    fn a_feed_has_its_title_and_line() {
        let list = "<opml>\n<body>\n<outline text='1 < 2' title=''\n xmlUrl='http://a.test/'/>\n\
                    <outline title='B' text='b' xmlUrl='http://b.test/'/></body></opml>";
        let feeds = listed_feeds(list.as_bytes()).unwrap();
        let found: Vec<_> = feeds.iter().map(|feed| (feed.title.as_str(), feed.line)).collect();
        assert_eq!(found, [("1 < 2", 3), ("B", 5)]);
    }
}
