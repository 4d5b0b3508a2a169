//! Texts in UTF-8 that were taken for windows-1252 and encoded a second time: "Ã©" instead of "é".
//!
//! A single text does not tell whether that was an accident: articles about encodings quote such
//! characters. Whoever reads a document repairs it if nearly all of its texts are damaged
//! (`DamageCount`); whoever compares entries compares repaired texts ([`repaired`]), so that it does
//! not matter whether they were.

use std::borrow::Cow;
use std::iter;

use encoding_rs::WINDOWS_1252;

use crate::model::Text;

/// The share of the texts beyond ASCII that must be damaged, as a fraction.
const NEARLY_ALL: (usize, usize) = (9, 10);

/// The number of texts beyond ASCII in a document, and of those that appear to be encoded twice.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DamageCount {
    texts: usize,
    damaged: usize,
}

impl DamageCount {
    /// Counts a text. Returns whether it has characters beyond ASCII.
    pub(crate) fn add(&mut self, text: &str) -> bool {
        let counts = first_beyond_ascii(text).is_some();
        if counts {
            self.texts += 1;
            self.damaged += usize::from(decoded_once(text).is_some());
        }
        counts
    }

    /// Returns whether nearly all texts are damaged, so that the document was damaged as a whole.
    pub(crate) fn is_nearly_all(self) -> bool {
        let (share, of) = NEARLY_ALL;
        self.damaged > 0 && self.damaged * of >= self.texts * share
    }
}

/// Decodes a text that was encoded twice, or more often; `None` if it was not.
pub(crate) fn decoded(text: &str) -> Option<String> {
    let mut decoded = decoded_once(text)?;
    while let Some(again) = decoded_once(&decoded).filter(|again| *again != decoded) {
        decoded = again;
    }
    Some(decoded)
}

/// Returns a text as it is compared with another: decoded, if it appears to be encoded twice.
pub fn repaired(text: &str) -> Cow<'_, str> {
    decoded(text).map_or(Cow::Borrowed(text), Cow::Owned)
}

impl Text {
    /// Returns the text without markup, as it is compared with another.
    pub fn to_comparable(&self) -> String {
        // The source is decoded as when a document is read, where references of HTML are not characters yet.
        match decoded(&self.value) {
            Some(value) => Text { kind: self.kind, value, ..Text::default() }.to_plain(),
            None => self.to_plain(),
        }
    }
}

/// Decodes a text that was encoded twice. White space at its ends does not last, and what is left must
/// not be decoded only when it is read again.
fn decoded_once(text: &str) -> Option<String> {
    first_beyond_ascii(text)?;
    let trimmed = Some(text.trim()).filter(|trimmed| trimmed.len() < text.len());
    let mut candidates = iter::once(text).chain(trimmed).filter(|text| may_be_encoded_twice(text));
    candidates.find_map(decoded_once_more)
}

/// Returns whether the first non-ASCII characters, taken as windows-1252 bytes, begin a UTF-8
/// character. This rules out nearly every undamaged text before the slow attempt to decode it.
fn may_be_encoded_twice(text: &str) -> bool {
    let Some(at) = first_beyond_ascii(text) else { return false };
    let mut chars = text[at..].chars();
    let leads = chars.next().is_some_and(|c| matches!(c, '\u{c2}'..='\u{f4}'));
    leads && chars.next().is_some_and(|c| !matches!(c, '\0'..='\u{7f}' | '\u{c0}'..='\u{ff}'))
}

/// The number of bytes that are examined together.
const RUN_BYTES: usize = 64;

/// Returns where the first character beyond ASCII begins.
fn first_beyond_ascii(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (runs, _) = bytes.as_chunks::<RUN_BYTES>();
    let whole = runs.iter().take_while(|run| run.is_ascii()).count() * RUN_BYTES;
    bytes[whole..].iter().position(|byte| !byte.is_ascii()).map(|at| whole + at)
}

/// The number of consecutive three-byte characters that cannot be a coincidence.
const IN_A_ROW: usize = 3;

/// Decodes UTF-8 that was read as windows-1252 and encoded again; `None` if the text is not of that
/// kind.
fn decoded_once_more(text: &str) -> Option<String> {
    let (bytes, _, unmappable) = WINDOWS_1252.encode(text);
    let mended = String::from_utf8(bytes.into_owned()).ok().filter(|_| !unmappable)?;
    // "é »" with a no-break space is valid French and would decode as one Chinese character, so
    // three-byte characters count only if several are consecutive.
    let mut in_a_row = 0;
    let mut rare = 0;
    for c in mended.chars() {
        match c {
            '\u{0}'..='\u{7f}' => in_a_row = 0,
            '\u{80}'..='\u{7ff}' | '\u{2000}'..='\u{2bff}' | '\u{1f000}'.. => in_a_row += 1,
            _ => {
                in_a_row += 1;
                rare = if in_a_row < IN_A_ROW { rare + 1 } else { 0 };
            }
        }
        if in_a_row == 0 && rare > 0 {
            return None;
        }
    }
    (rare == 0).then_some(mended)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_encoded_twice_are_told_from_sound_ones() {
        #[rustfmt::skip]
        let cases = [
            ("plain",                              None),
            ("café Ã",                             None),
            ("« le café\u{a0}» — oui",             None),
            ("cafÃ©",                              Some("café")),
            ("cafÃƒÂ©",                            Some("café")),
            ("cafÃ© \u{a0}",                       Some("café")),
            ("\u{a0}cafÃ©",                        Some("café")),
            ("cafÃ\u{a0}",                         Some("cafà")),
            ("wait â€¦",                           Some("wait …")),
            ("ç™½ç\u{90}´ã\u{81}®",                Some("白琴の")),
        ];
        for (text, want) in cases {
            assert_eq!(decoded(text).as_deref(), want, "{text}");
        }
    }

    #[test]
    fn n6_a_document_is_damaged_if_nearly_all_of_its_texts_are() {
        let cases: [(&[(&str, usize)], bool); 6] = [
            (&[], false),
            (&[("plain", 9), ("cafÃ©", 1)], true),
            (&[("café", 1), ("cafÃ©", 1)], false),
            (&[("café", 1), ("cafÃ©", 8)], false),
            (&[("café", 1), ("cafÃ©", 9)], true),
            (&[("café", 9)], false),
        ];
        for (texts, want) in cases {
            let mut count = DamageCount::default();
            let texts = texts.iter().flat_map(|(text, times)| iter::repeat_n(text, *times));
            texts.for_each(|text| _ = count.add(text));
            assert_eq!(count.is_nearly_all(), want, "{count:?}");
        }
    }
}
