//! Revisions: the content of a resource that is not a feed at one time, as an entry.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use hmac_sha256::Hash as Sha256;

use crate::hex;
use crate::iri;
use crate::model::{Content, Entry, Link, Text, TextKind};

/// The maximum length of the content stored with each revision, in bytes. Logs are never truncated,
/// and a large page may change at every poll; the newest body is stored separately.
const LONGEST_BYTES: usize = 256 * 1024;

/// Returns the entry, and its id, for the content that the resource `topic` had `at` this time.
///
/// The id is a hash of the content, so the same content is the same entry (rule N12). UTF-8 text is
/// stored as text, anything else in base64 (RFC 4287 `#rfc.section.4.1.3.3`). XML is stored as
/// text, because an entry preserves what the resource sent, not the result of parsing it. Content
/// that is too long is left out: the entry then describes it and links to it.
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
        // `text/*` is the only media type whose inline content is text (RFC 4287
        // `#rfc.section.4.1.3.3`), and as `text/plain` readers display it unchanged.
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
