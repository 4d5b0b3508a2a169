//! Feeds made for a test, and what can be read off a document that came back.

use std::fmt::Write;

/// An RSS 2.0 feed called `title` with the items `numbers`, newest first.
pub(crate) fn rss(title: &str, numbers: impl DoubleEndedIterator<Item = usize>) -> String {
    let mut feed = format!(
        "<?xml version=\"1.0\"?>\n<rss version=\"2.0\"><channel><title>{title}</title>\
         <link>https://{title}.test/</link><description>Made for a test</description>\n"
    );
    for n in numbers.rev() {
        let id = entry_id(title, n);
        writeln!(feed, "<item><title>Item {n}</title><link>https://{title}.test/{n}</link>\
             <guid isPermaLink=\"false\">{id}</guid><description>The text of {n}</description></item>")
        .unwrap();
    }
    feed + "</channel></rss>\n"
}

/// The id that item `n` of [`rss`] has, before and after normalizing.
pub(crate) fn entry_id(title: &str, n: usize) -> String {
    format!("tag:{title}.test,2026:{n}")
}

/// The ids of [`entry_id`] that stand in a document of any format, in document order.
pub(crate) fn entry_ids(document: &str) -> Vec<String> {
    let ids = document.split("tag:").skip(1).filter_map(|rest| rest.split(['<', '"']).next());
    // Elements of feedgate's own, and ids of authors, which are generated if the source has none.
    let ids = ids.filter(|id| !id.starts_with("feedgate,2026:"));
    ids.map(|id| format!("tag:{id}")).collect()
}

/// The target of the document's own link with this relation.
pub(crate) fn link(atom: &str, rel: &str) -> Option<String> {
    let head = atom.split("<entry").next()?;
    let mut links = head.split("<link ").skip(1).filter_map(|rest| rest.split('>').next());
    let link = links.find(|link| between(link, "rel=\"", "\"") == Some(rel))?;
    between(link, "href=\"", "\"").map(|href| href.replace("&amp;", "&"))
}

/// What stands between the first `before` and the next `after`.
pub(crate) fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(after).map(|(found, _)| found)
}
