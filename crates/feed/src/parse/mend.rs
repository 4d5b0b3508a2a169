//! Repair of texts that were damaged before they were put into the document.

use std::iter;

use encoding_rs::WINDOWS_1252;
use memchr::memchr;

use super::faults::Faults;
use crate::repair::RepairCode;

/// The private-use characters that represent the first halves of surrogate pairs.
pub(super) const HIGH: u32 = 0x10_f800;
pub(super) const HIGH_LAST: u32 = HIGH + 0x3ff;

impl Faults {
    /// Repairs a text and counts the fault; `None` if it is undamaged.
    pub(super) fn mend(&mut self, text: &str) -> Option<String> {
        let (mended, fault) = mend(text)?;
        self.count(fault);
        Some(mended)
    }
}

/// Repairs a text. Returns the repaired text and the fault; `None` if it is undamaged.
pub(super) fn mend(text: &str) -> Option<(String, RepairCode)> {
    if text.is_ascii() {
        return None;
    }
    let half = |c: char| (HIGH..=HIGH_LAST).contains(&u32::from(c));
    if memchr(HIGH_BYTE, text.as_bytes()).is_some() && text.contains(half) {
        return Some((text.replace(half, "\u{fffd}"), RepairCode::LoneSurrogate));
    }
    let mut mended = decoded(text)?;
    while let Some(again) = decoded(&mended).filter(|again| *again != mended) {
        mended = again;
    }
    Some((mended, RepairCode::DoubleEncoded))
}

/// The first byte, in UTF-8, of every character from [`HIGH`] to [`HIGH_LAST`].
const HIGH_BYTE: u8 = 0xf4;

/// Decodes a text that was encoded twice. White space at its ends does not last, and what is left must
/// not be decoded only when it is read again.
fn decoded(text: &str) -> Option<String> {
    let trimmed = Some(text.trim()).filter(|trimmed| trimmed.len() < text.len());
    let mut candidates = iter::once(text).chain(trimmed).filter(|text| may_be_encoded_twice(text));
    candidates.find_map(decoded_once_more)
}

/// Returns whether the first non-ASCII characters, taken as windows-1252 bytes, begin a UTF-8
/// character. This rules out nearly every undamaged text before the slow attempt to decode it.
fn may_be_encoded_twice(text: &str) -> bool {
    let Some(at) = text.bytes().position(|byte| !byte.is_ascii()) else { return false };
    let mut chars = text[at..].chars();
    let leads = chars.next().is_some_and(|c| matches!(c, '\u{c2}'..='\u{f4}'));
    leads && chars.next().is_some_and(|c| !matches!(c, '\0'..='\u{7f}' | '\u{c0}'..='\u{ff}'))
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
            ("half \u{10f83d} a pair",             Some("half \u{fffd} a pair")),
        ];
        for (text, want) in cases {
            assert_eq!(mend(text).map(|(mended, _)| mended).as_deref(), want, "{text}");
        }
    }
}
