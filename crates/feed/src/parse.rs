//! Bytes → feed: any feed, however broken.
//!
//! ```text
//! bytes ──► decode ──► text ──► tidy, build ──► tree ──► formats, modules ──► feed
//! ```
//!
//! * Text that holds at least one recognizable item never fails; what had to be mended
//!   is told as repairs (`docs/normalizer.md` lists their codes).
//! * What has a home in Atom is mapped, everything else is kept as extensions. Nothing is
//!   dropped silently: what a limit cuts off is told as a repair as well.
//! * Nothing recurses over input, nothing a document declares for itself is expanded, and
//!   no network is touched (rules S14, S16).
//!
//! A format is one file in `formats`, a module one file in `modules`. What is no feed, or
//! only a part of a document, is read by `content`.

mod bases;
mod content;
mod dates;
mod decode;
mod formats;
mod hints;
mod html;
mod json;
mod microformats;
mod modules;
mod offers;
mod part;
mod path;
mod person;
mod target;
mod texts;
mod trace;
mod tree;
mod vocabulary;

pub use content::{Content, NoPart, content};
pub use formats::PAGE;
pub use offers::WELL_KNOWN;
pub use part::{BadPart, Part};
pub use trace::{Place, Trace};

use std::borrow::Cow;

use crate::context::Context;
use crate::model::Feed;
use crate::repair::Repair;

/// Entries read from one document (rule S16).
const MAX_ENTRIES: usize = 5000;

/// Why a document gave no feed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAFeed {
    /// There is nothing in it.
    #[error("the document is empty")]
    Empty,
    /// It is something else.
    #[error("not a feed: looks like {0}")]
    Other(&'static str),
}

/// Reads any feed.
pub fn parse(bytes: &[u8], context: &Context) -> Result<Feed, NotAFeed> {
    read(bytes, context, &mut Trace::default())
}

/// The same, and where everything in the feed came from.
pub fn traced(bytes: &[u8], context: &Context) -> Result<(Feed, Trace), NotAFeed> {
    let mut trace = Trace::kept();
    let feed = read(bytes, context, &mut trace)?;
    Ok((feed, trace))
}

fn read(bytes: &[u8], context: &Context, trace: &mut Trace) -> Result<Feed, NotAFeed> {
    let mut repairs = Vec::new();
    let text = decode::decode(bytes, context.content_type(), &mut repairs);
    let mut feed = match text.trim_start().chars().next() {
        None => return Err(NotAFeed::Empty),
        Some('{' | '[') => formats::read_json(&text, (&mut repairs, &mut *trace))?,
        Some(c)
            if c != '<'
                && let Some(text) = json::argument(&text) =>
        {
            formats::read_json(text, (&mut repairs, &mut *trace))?
        }
        Some(_) => read_markup(&text, context, (&mut repairs, &mut *trace))?,
    };
    trace.finish(&text);
    feed.repairs = repairs;
    Ok(feed)
}

fn read_markup(
    text: &str,
    context: &Context,
    (repairs, trace): (&mut Vec<Repair>, &mut Trace),
) -> Result<Feed, NotAFeed> {
    let url = context.base();
    let told = repairs.len();
    let tidy = tree::tidy(Cow::Borrowed(text), repairs);
    let of_tidy = repairs.len();
    let tree = tree::build(&tidy, repairs);
    match formats::read(
        &tree,
        bases::Bases { url: &url, known: &bases::Known::default() },
        (&mut *repairs, &mut *trace),
    ) {
        Ok(feed) => {
            // Whoever looks for it has the text before it was tidied.
            let before = tree::Before::of(text, &tidy);
            let bytes = repairs[of_tidy..].iter_mut().filter_map(|repair| repair.byte.as_mut());
            bytes.chain(trace.bytes()).for_each(|byte| *byte = before.was(*byte));
            Ok(feed)
        }
        Err(why) => {
            // What is wrong with a page as XML is not wrong with it as HTML.
            repairs.truncate(told);
            formats::read_page(text, &url, (repairs, trace)).ok_or(why)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use url::Url;

    use super::*;
    use crate::model::Text;
    use crate::repair::Code;

    fn context() -> Context {
        Context::of(Url::parse("https://tides.test/feed").unwrap())
    }

    /// Pieces of documents, sound and broken.
    #[rustfmt::skip]
    const PIECES: [&str; 52] = [
        "<?xml version='1.0' encoding='koi8-r'?>", "<rss version='2.0'>", "<channel>", "<item>",
        "<feed xmlns='http://www.w3.org/2005/Atom' xml:base='/a/'>", "<entry xml:lang=''>",
        "<title>", "</title>", "<title type='xhtml'>", "<link>", "</link>", "<link href='x' rel=self/>",
        "<description>", "</description>", "<content type='xhtml'>", "<content type='a/b' mode='base64'>",
        "</content>", "<div>", "</div>", "<p title=\"", "<b>", "</b>", "<br>", "</item>", "</entry>",
        "</channel>", "</rss>", "</feed>", "<![CDATA[", "]]>", "<!--", "-->", "<", ">", "&", ";",
        "&eacute;", "&#xd83d;", "&#0;", "\"", "'", "=", "é\u{a0}»", "Ã©", " ", "\r\n", "\u{0}",
        "<pubDate>31 Feb 2004 24:61</pubDate>", "<guid>x</guid>", "<author>a@b（山）</author>",
        "<media:group><itunes:image href='javascript:x'/>", "<x:y xmlns:x='urn:x' x:z='1'>",
    ];

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
            let _ = parse(&bytes, &context());
        }

        #[test]
        fn any_document_is_read_or_refused(at in prop::collection::vec(0..PIECES.len(), 0..64)) {
            let text: String = at.into_iter().map(|at| PIECES[at]).collect();
            let _ = parse(text.as_bytes(), &context());
        }

        #[test]
        fn a_feed_that_breaks_off_keeps_what_came_whole(length in 0..1200_usize) {
            let items: String = (0..10)
                .map(|n| format!("<item><title>Tide {n}</title><guid>urn:x:{n}</guid></item>\n"))
                .collect();
            let whole = format!("<rss><channel><title>Tides</title>{items}</channel></rss>");
            let broken = &whole[..length.min(whole.len())];
            let came_whole = broken.matches("</item>").count();
            let found = parse(broken.as_bytes(), &context()).map_or(0, |feed| feed.entries.len());
            prop_assert!(found >= came_whole, "{found} of {came_whole}");
        }
    }

    #[test]
    fn hostile_documents_do_no_harm() {
        let many = |piece: &str| piece.repeat(20_000);
        let cases = [
            many("<item>"),
            many("<media:group>"),
            many("<a b=\""),
            many("<![CDATA[<"),
            many("<!--<"),
            many("</a>"),
            many("&#x"),
            many("<a:b xmlns:a='"),
            format!("<rss><channel><item><title>{}", many("<b>")),
            format!("<rss {}>", many("a='b' ")),
            format!("<feed>{}", many("<entry/>")),
        ];
        for text in cases {
            let _ = parse(text.as_bytes(), &context());
        }
    }

    #[test]
    fn what_is_said_once_is_not_said_a_million_times() {
        let long = "x/".repeat(10_000);
        let entries = "<entry xml:lang='l'><link href='y'/><n:z n:w=''/></entry>".repeat(100);
        let texts = [
            format!("<feed xml:base='{long}'>{entries}</feed>"),
            format!("<feed xml:lang='{long}'>{}</feed>", entries.replace(" xml:lang='l'", "")),
            format!("<feed xmlns:n='{long}'>{entries}</feed>"),
            format!("<a xmlns:n='u'>{}{entries}", "<b xml:base='c/'>".repeat(200)),
        ];
        for text in texts {
            let feed = parse(text.as_bytes(), &context()).unwrap();
            let entry = format!("{:?}", feed.entries[50]);
            assert!(entry.len() < 3_000, "{entry}");
        }
    }

    #[test]
    fn only_so_many_entries_are_read() {
        let text = format!("<feed>{}</feed>", "<entry/>".repeat(MAX_ENTRIES + 7));
        let feed = parse(text.as_bytes(), &context()).unwrap();
        assert_eq!(feed.entries.len(), MAX_ENTRIES);
        assert!(feed.repairs.iter().any(|repair| repair.code == Code::TooManyEntries));
    }

    #[test]
    fn what_is_no_feed_says_what_it_is() {
        #[rustfmt::skip]
        let cases = [
            ("",                                   NotAFeed::Empty),
            (" \r\n",                              NotAFeed::Empty),
            ("<!doctype html><html><body/></html>", NotAFeed::Other("an HTML page")),
            ("<opml version='2.0'/>",              NotAFeed::Other("an OPML outline")),
            ("<x/>",                               NotAFeed::Other("XML of another kind")),
            ("tides",                              NotAFeed::Other("text")),
            ("{\"a\": 1}",                         NotAFeed::Other("JSON of another kind")),
            ("{\"a\": ",                           NotAFeed::Other("broken JSON")),
        ];
        for (text, want) in cases {
            assert_eq!(parse(text.as_bytes(), &context()), Err(want), "{text}");
        }
        let feed = parse(b"<rss><channel><title>Tides", &context()).unwrap();
        assert_eq!(feed.title, Some(Text::plain("Tides")));
    }
}
