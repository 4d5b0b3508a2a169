//! Adds an entry to any feed, as text, so that nothing else about the feed changes: not
//! its encoding, nor what is wrong with it.

use encoding_rs::{UTF_16BE, UTF_16LE};
use feedgate::jobs::runner;

/// The feed with one entry more, that holds `mark`; `None` if there is no place for one.
pub(crate) fn with_one_more(feed: &[u8], mark: &str) -> Option<Vec<u8>> {
    for (encoding, bom) in [(UTF_16LE, [0xff, 0xfe]), (UTF_16BE, [0xfe, 0xff])] {
        if feed.starts_with(&bom) {
            let text = encoding.decode(feed).0.into_owned();
            let changed = String::from_utf8(with_one_more(text.as_bytes(), mark)?).ok()?;
            let units = changed.encode_utf16();
            let bytes = |unit: u16| match bom {
                [0xff, _] => unit.to_le_bytes(),
                _ => unit.to_be_bytes(),
            };
            return Some(bom.into_iter().chain(units.flat_map(bytes)).collect());
        }
    }
    let looks_like_json = feed.trim_ascii_start().starts_with(b"{");
    let (at, entry) =
        if looks_like_json { json_place(feed, mark)? } else { xml_place(feed, mark)? };
    Some([&feed[..at], entry.as_bytes(), &feed[at..]].concat())
}

/// Before the first item of a JSON Feed, which there must be.
fn json_place(feed: &[u8], mark: &str) -> Option<(usize, String)> {
    let text = String::from_utf8_lossy(feed);
    let items = text.find("\"items\"")?;
    let at = items + text[items..].find('[')? + 1;
    let is_empty = text[at..].trim_start().starts_with(']');
    let comma = if is_empty { "" } else { "," };
    let url = address(mark);
    let entry = format!("{{\"id\": \"{url}\", \"url\": \"{url}\", \"content_text\": \"{mark}\"}}");
    Some((at, entry + comma))
}

/// Before the first entry, or else before the end of what holds entries, or else, where
/// the feed was cut off, at the end.
fn xml_place(feed: &[u8], mark: &str) -> Option<(usize, String)> {
    let tags = |at: &usize| feed[*at] == b'<';
    for at in (0..feed.len()).filter(tags) {
        let tag = Tag::read(&feed[at + 1..])?;
        if matches!(tag.name.as_str(), "item" | "entry") {
            return Some((at, entry(feed, &tag, mark)));
        }
    }
    let ends = (0..feed.len()).filter(tags).filter(|at| feed.get(at + 1) == Some(&b'/'));
    for at in ends {
        let mut tag = Tag::read(&feed[at + 2..])?;
        let is_rdf = String::from_utf8_lossy(feed).contains("<rdf:RDF");
        tag.name = match (tag.name.as_str(), is_rdf) {
            ("feed", _) => "entry".to_owned(),
            ("channel", false) => "item".to_owned(),
            ("RDF", true) => "item".to_owned(),
            _ => continue,
        };
        if is_rdf {
            tag.prefix.clear();
        }
        return Some((at, entry(feed, &tag, mark)));
    }
    let is_cut = feed.windows(8).any(|bytes| bytes == b"<channel");
    let like = Tag { prefix: String::new(), name: "item".to_owned(), namespaces: String::new() };
    is_cut.then(|| (feed.len(), entry(feed, &like, mark)))
}

/// The start of a tag.
struct Tag {
    /// With its colon.
    prefix: String,
    name: String,
    /// Declarations of namespaces, which a neighbour needs as well.
    namespaces: String,
}

impl Tag {
    fn read(bytes: &[u8]) -> Option<Tag> {
        let end = bytes.iter().position(|byte| *byte == b'>').unwrap_or(bytes.len());
        let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let (full, attributes) = text.split_once(char::is_whitespace).unwrap_or((&text, ""));
        let (prefix, name) = full
            .rsplit_once(':')
            .map_or((String::new(), full), |(prefix, name)| (format!("{prefix}:"), name));
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':');
        let namespaces = attributes
            .split_inclusive(['"', '\''])
            .collect::<Vec<_>>()
            .chunks(2)
            .filter(|chunk| chunk[0].trim_start().starts_with("xmlns"))
            .map(|chunk| chunk.concat())
            .collect();
        // What is no element, such as a comment, is read as one without a name.
        let name = if full.chars().all(is_word) { name.to_owned() } else { String::new() };
        Some(Tag { prefix, name, namespaces })
    }
}

fn entry(feed: &[u8], like: &Tag, mark: &str) -> String {
    let (p, url) = (&like.prefix, address(mark));
    let namespaces = &like.namespaces;
    if like.name == "entry" {
        // An entry with an old date would not be sent (rule N5).
        let updated = runner::now().to_rfc3339();
        return format!(
            "<{p}entry {namespaces}><{p}id>{url}</{p}id><{p}title>{mark}</{p}title>\
             <{p}updated>{updated}</{p}updated></{p}entry>\n"
        );
    }
    let is_rdf = String::from_utf8_lossy(feed).contains("<rdf:RDF");
    let about = if is_rdf { format!("rdf:about=\"{url}\"") } else { String::new() };
    format!(
        "<{p}item {about} {namespaces}><{p}title>{mark}</{p}title><{p}link>{url}</{p}link>\
         <{p}guid>{url}</{p}guid></{p}item>\n"
    )
}

fn address(mark: &str) -> String {
    format!("https://mark.test/{mark}")
}
