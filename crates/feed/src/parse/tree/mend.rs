//! Texts that were damaged before they came into the document.

use encoding_rs::WINDOWS_1252;
use memchr::memchr;

use super::entities::{HIGH, HIGH_LAST};
use crate::repair::RepairCode;

/// Mends a text; `None` if nothing is wrong with it, else what was.
pub(super) fn mend(text: &str) -> Option<(String, RepairCode)> {
    if text.is_ascii() {
        return None;
    }
    let half = |c: char| (HIGH..=HIGH_LAST).contains(&u32::from(c));
    if memchr(HIGH_BYTE, text.as_bytes()).is_some() && text.contains(half) {
        return Some((text.replace(half, "\u{fffd}"), RepairCode::LoneSurrogate));
    }
    if !may_be_encoded_twice(text) {
        return None;
    }
    let mut mended = decoded_once_more(text)?;
    while let Some(again) = decoded_once_more(&mended).filter(|again| *again != mended) {
        mended = again;
    }
    Some((mended, RepairCode::DoubleEncoded))
}

/// What every character from [`HIGH`] to [`HIGH_LAST`] begins with in UTF-8.
const HIGH_BYTE: u8 = 0xf4;

/// Whether the first characters beyond ASCII would begin one in UTF-8 if they were
/// windows-1252. For nearly every sound text they would not, and trying is slow.
fn may_be_encoded_twice(text: &str) -> bool {
    let Some(at) = text.bytes().position(|byte| !byte.is_ascii()) else { return false };
    let mut chars = text[at..].chars();
    let leads = chars.next().is_some_and(|c| matches!(c, '\u{c2}'..='\u{f4}'));
    leads && chars.next().is_some_and(|c| !matches!(c, '\0'..='\u{7f}' | '\u{c0}'..='\u{ff}'))
}

/// So many characters of three bytes in a row are no accident.
const IN_A_ROW: usize = 3;

/// Undoes what happens to UTF-8 that somebody took for windows-1252 and encoded again;
/// `None` if that is not what happened.
fn decoded_once_more(text: &str) -> Option<String> {
    let (bytes, _, unmappable) = WINDOWS_1252.encode(text);
    let mended = String::from_utf8(bytes.into_owned()).ok().filter(|_| !unmappable)?;
    // "é »" with a space that does not break is sound French, and would be one Chinese
    // character: those are believed only in a row.
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
            ("wait â€¦",                           Some("wait …")),
            ("ç™½ç\u{90}´ã\u{81}®",                Some("白琴の")),
            ("half \u{10f83d} a pair",             Some("half \u{fffd} a pair")),
        ];
        for (text, want) in cases {
            assert_eq!(mend(text).map(|(mended, _)| mended).as_deref(), want, "{text}");
        }
    }
}
