//! Repair of texts that were damaged before they were put into the document.

use std::cell::OnceCell;

use memchr::{memchr, memmem};

use super::faults::Faults;
use crate::double_encoding::{DamageCount, decoded};
use crate::own_elements;
use crate::repair::RepairCode;

/// The private-use characters that represent the first halves of surrogate pairs.
pub(super) const HIGH: u32 = 0x10_f800;
pub(super) const HIGH_LAST: u32 = HIGH + 0x3ff;

/// The first byte, in UTF-8, of every character from [`HIGH`] to [`HIGH_LAST`].
const HIGH_BYTE: u8 = 0xf4;

/// The repair of the texts of one document. All of them are counted first, then each is repaired.
#[derive(Debug, Default)]
pub(super) struct TextRepair<'t> {
    count: DamageCount,
    has_halves: bool,
    /// The XML document. What this program has written is a part of the document that was examined, so
    /// that its texts alone say nothing.
    document: &'t str,
    /// Whether the document was damaged as a whole, once all of its texts are examined.
    is_damaged: OnceCell<bool>,
}

impl<'t> TextRepair<'t> {
    /// Returns the repair of an XML document.
    pub(super) fn of_document(document: &'t str) -> TextRepair<'t> {
        TextRepair { document, ..TextRepair::default() }
    }

    /// Examines a text or an attribute of the document.
    pub(super) fn examine(&mut self, text: &str) {
        let is_beyond_ascii = self.count.add(text);
        self.has_halves |= is_beyond_ascii && has_half(text);
    }

    /// Returns whether any text of the document is to be repaired.
    pub(super) fn is_needed(&self) -> bool {
        self.has_halves || self.is_damaged()
    }

    fn is_damaged(&self) -> bool {
        let own = own_elements::NAMESPACE.as_bytes();
        let is_own = || memmem::find(self.document.as_bytes(), own).is_some();
        *self.is_damaged.get_or_init(|| self.count.is_nearly_all() && !is_own())
    }

    /// Repairs a text and counts the fault; `None` if it stays as it is.
    pub(super) fn mend(&self, text: &str, faults: &mut Faults) -> Option<String> {
        let (mended, fault) = if has_half(text) {
            (text.replace(is_half, "\u{fffd}"), RepairCode::LoneSurrogate)
        } else if self.is_damaged() {
            (decoded(text)?, RepairCode::DoubleEncoded)
        } else {
            return None;
        };
        faults.count(fault);
        Some(mended)
    }
}

fn has_half(text: &str) -> bool {
    memchr(HIGH_BYTE, text.as_bytes()).is_some() && text.contains(is_half)
}

fn is_half(c: char) -> bool {
    (HIGH..=HIGH_LAST).contains(&u32::from(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_a_pair_is_replaced_in_every_document() {
        let mut repair = TextRepair::default();
        let texts = ["half \u{10f83d} a pair", "café"];
        texts.iter().for_each(|text| repair.examine(text));
        let mut faults = Faults::default();
        let mended = texts.map(|text| repair.mend(text, &mut faults));
        assert_eq!(mended, [Some("half \u{fffd} a pair".to_owned()), None]);
    }
}
