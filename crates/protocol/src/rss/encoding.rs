//! Decoding of a document by its byte order mark and its XML declaration.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8};

use super::fault::DocumentFault;

/// Rewrites the encoding in the XML declaration of a text to UTF-8. `saveRss` has a text parameter,
/// which is UTF-8 in whatever encoding the author's file was.
pub fn as_utf8(text: &str) -> Cow<'_, str> {
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    let declaration = text.strip_prefix("<?xml").and_then(|rest| rest.split_once("?>"));
    let Some((declaration, _)) = declaration else { return Cow::Borrowed(text) };
    let Some(label) = label(declaration).filter(|label| !label.eq_ignore_ascii_case("utf-8"))
    else {
        return Cow::Borrowed(text);
    };
    // The label is a slice of the text.
    let from = label.as_ptr().addr() - text.as_ptr().addr();
    Cow::Owned(format!("{}utf-8{}", &text[..from], &text[from + label.len()..]))
}

/// Decodes a document by its byte order mark or its declaration, otherwise as UTF-8. Also returns
/// whether the bytes are UTF-8.
pub(super) fn decode(bytes: &[u8]) -> Result<(Cow<'_, str>, bool), DocumentFault> {
    let (marked, skip) = Encoding::for_bom(bytes).map_or((None, 0), |(e, skip)| (Some(e), skip));
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(256)]);
    let declared = head.strip_prefix("<?xml").and_then(|rest| rest.split_once("?>"));
    let declared = declared.and_then(|(declaration, _)| label(declaration));
    let encoding = match (marked, declared) {
        (Some(marked), _) => marked,
        (None, Some(label)) => {
            Encoding::for_label(label.as_bytes()).ok_or_else(|| DocumentFault {
                line: 1,
                column: 1,
                what: format!("the encoding \"{label}\" is not supported"),
            })?
        }
        (None, None) => UTF_8,
    };
    if encoding == UTF_8 {
        return match str::from_utf8(&bytes[skip..]) {
            Ok(text) => Ok((Cow::Borrowed(text), true)),
            Err(err) => {
                let sound = &bytes[skip..skip + err.valid_up_to()];
                let what = "the bytes are not valid UTF-8".to_owned();
                Err(DocumentFault::at(&String::from_utf8_lossy(sound), sound.len(), what))
            }
        };
    }
    match encoding.decode_without_bom_handling_and_without_replacement(&bytes[skip..]) {
        Some(text) => Ok((text, false)),
        None => {
            let what = format!("the bytes are not valid {}", encoding.name());
            Err(DocumentFault { line: 1, column: 1, what })
        }
    }
}

/// Returns the encoding named in an XML declaration.
fn label(declaration: &str) -> Option<&str> {
    let rest = declaration.split_once("encoding")?.1.trim_start().strip_prefix('=')?.trim_start();
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    rest[1..].split(quote).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_says_that_it_is_utf_8() {
        #[rustfmt::skip]
        let cases = [
            ("<?xml version='1.0' encoding='ISO-8859-1'?><rss/>", "<?xml version='1.0' encoding='utf-8'?><rss/>"),
            ("\n<?xml version=\"1.0\" encoding=\"UTF-8\"?><rss/>", "<?xml version=\"1.0\" encoding=\"UTF-8\"?><rss/>"),
            ("<?xml version='1.0'?><rss encoding='x'/>",          "<?xml version='1.0'?><rss encoding='x'/>"),
            ("<rss/>",                                            "<rss/>"),
        ];
        for (text, want) in cases {
            assert_eq!(as_utf8(text), want);
        }
    }
}
