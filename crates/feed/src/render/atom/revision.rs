//! A resource that is no feed, as an entry: its content at one time.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use hmac_sha256::Hash as Sha256;

use crate::hex;
use crate::iri;
use crate::model::{Content, Entry, Link, Text, TextKind};

/// The longest content kept with each revision. Logs are never cut, and a page of a
/// megabyte may change at each look; its newest body is kept beside the log in any case.
const LONGEST_BYTES: usize = 256 * 1024;

/// The entry that stands for the content of the resource `topic` as it was found
/// `at`, and its id.
///
/// The id is a hash of the content, so the same content is the same entry (rule N12).
/// Text is kept as text if it is UTF-8, anything else in base64 (RFC 4287
/// `#rfc.section.4.1.3.3`). XML is kept as text, because an entry holds what the
/// resource said and not what a parser makes of it. Content that is too long to be kept
/// is left out: the entry then says what there was, and where.
pub fn revision(
    topic: &str,
    content_type: Option<&str>,
    bytes: &[u8],
    at: DateTime<Utc>,
) -> (String, String) {
    let id = format!("urn:sha256:{}", hex::encode(&Sha256::hash(bytes)));
    let full = content_type.unwrap_or_default();
    let essence = full.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let essence = if is_media_type(&essence) { essence } else { "application/octet-stream".into() };
    let entry = Entry {
        id: id.clone(),
        title: Some(Text::plain(topic)),
        summary: Some(Text::plain(format!("{essence}, {} bytes", bytes.len()))),
        content: (bytes.len() <= LONGEST_BYTES).then(|| content(&essence, bytes)),
        updated: Some(at.fixed_offset()),
        links: vec![Link {
            href: iri::encode(topic).into_owned(),
            rel: "alternate".to_owned(),
            mime: Some(essence),
            ..Link::default()
        }],
        ..Entry::default()
    };
    (id, super::entry(&entry))
}

fn content(essence: &str, bytes: &[u8]) -> Content {
    let texts = ["application/json", "application/xml", "application/javascript"];
    let textual = essence.starts_with("text/")
        || texts.contains(&essence)
        || essence.ends_with("+json")
        || essence.ends_with("+xml");
    match std::str::from_utf8(bytes) {
        Ok(text) if essence == "text/html" => {
            Content::Text(Text { kind: TextKind::Html, ..Text::plain(text) })
        }
        // `text/*` is the only kind of media that is inline text (RFC 4287
        // `#rfc.section.4.1.3.3`); as `text/plain` a reader sees it as it is.
        Ok(text) if textual && essence.starts_with("text/") && !essence.ends_with("xml") => {
            Content::Media { mime: essence.to_owned(), value: text.to_owned() }
        }
        Ok(text) if textual => Content::Text(Text::plain(text)),
        _ => Content::Media { mime: essence.to_owned(), value: STANDARD.encode(bytes) },
    }
}

fn is_media_type(text: &str) -> bool {
    let token = |part: &str| {
        !part.is_empty()
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "!#$&^_.+-".contains(c))
    };
    text.split_once('/').is_some_and(|(kind, subtype)| token(kind) && token(subtype))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text_and_the_rest_becomes_base64() {
        let cases: [(Option<&str>, &[u8], &str); 6] = [
            (Some("text/plain; charset=utf-8"), b"a < b", "type=\"text/plain\">a &lt; b<"),
            (Some("text/html"), b"<p>x", "type=\"html\">&lt;p&gt;x<"),
            (Some("application/json"), b"{}", "type=\"text\">{}<"),
            (Some("image/png"), &[0x89, 0x50], "type=\"image/png\">iVA=<"),
            (Some("text/plain"), &[0xff, 0xfe], "type=\"text/plain\">//4=<"),
            (None, b"?", "type=\"application/octet-stream\">Pw==<"),
        ];
        for (content_type, bytes, want) in cases {
            let (id, atom) = revision("https://a.test/x", content_type, bytes, DateTime::default());
            assert!(atom.contains(&format!("<content {want}")), "{content_type:?}: {atom}");
            assert!(atom.contains(&format!("<id>{id}</id>")), "{atom}");
        }
    }

    #[test]
    fn a_log_does_not_grow_by_megabytes() {
        for (len, is_kept) in [(LONGEST_BYTES, true), (LONGEST_BYTES + 1, false)] {
            let bytes = vec![b'x'; len];
            let found = (Some("text/plain"), bytes.as_slice(), DateTime::default());
            let (id, atom) = revision("https://a.test/x", found.0, found.1, found.2);
            assert_eq!(atom.contains("<content"), is_kept, "{len}");
            assert!(atom.contains(&id) && atom.contains(&format!("text/plain, {len} bytes")));
        }
    }
}
