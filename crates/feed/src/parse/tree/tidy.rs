//! Escaping of stray `<` characters before the text is tokenized.
//!
//! The tokenizer reads everything up to the next `>` as a tag, so a `<` that begins no tag would
//! swallow the text after it. Such a `<` is replaced with `&lt;`, except inside CDATA, comments and
//! processing instructions.

use std::borrow::Cow;

use memchr::{memchr, memmem};

use crate::repair::{Repair, RepairCode};

/// The replacement of a `<` that begins no tag.
const ESCAPED: &str = "&lt;";

/// Escapes each `<` that begins no tag.
pub(in super::super) fn tidy<'b>(text: Cow<'b, str>, repairs: &mut Vec<Repair>) -> Cow<'b, str> {
    let mut mended = String::new();
    let mut kept = 0; // everything before this offset is in `mended`
    let mut at = 0;
    let mut count = 0;
    let mut first = 0;
    let mut ends = Ends::default();
    while let Some(found) = memchr(b'<', &text.as_bytes()[at..]) {
        let open = at + found;
        let after = &text[open + 1..];
        at = open + 1;
        match after.as_bytes().first() {
            Some(b'!' | b'?') => at += ends.past(after),
            Some(b'/') if begins_name(&after[1..]) => {}
            _ if begins_name(after) => {}
            _ => {
                mended.push_str(&text[kept..open]);
                mended.push_str(ESCAPED);
                kept = at;
                first = if count == 0 { open } else { first };
                count += 1;
            }
        }
    }
    if count == 0 {
        return text;
    }
    mended.push_str(&text[kept..]);
    repairs.push(Repair::new(RepairCode::BareLessThan, format!("{count} escaped")).at(first));
    Cow::Owned(mended)
}

/// A mapping from offsets in the tidied text to offsets in the original text.
#[derive(Debug)]
pub(in super::super) struct OriginalOffsets(Vec<usize>);

impl OriginalOffsets {
    /// Creates the mapping by comparing a text with its tidied form.
    pub(in super::super) fn new(text: &str, tidied: &str) -> OriginalOffsets {
        let mut escapes = Vec::new();
        let mut at = 0;
        if text.len() != tidied.len() {
            for byte in text.bytes() {
                let is_escape = byte == b'<' && tidied.as_bytes().get(at) == Some(&b'&');
                at += if is_escape { ESCAPED.len() } else { 1 };
                escapes.extend(is_escape.then_some(at));
            }
        }
        OriginalOffsets(escapes)
    }

    /// Returns the original offset of a byte of the tidied text.
    pub(in super::super) fn original(&self, at: usize) -> usize {
        let escapes = self.0.partition_point(|end| *end <= at);
        at.saturating_sub(escapes * (ESCAPED.len() - 1))
    }
}

/// The ends of comments, CDATA sections and processing instructions, and whether one is known not
/// to occur any more. Without that flag, a document of nothing but unclosed comments would be
/// searched to its end for each of them.
#[derive(Debug, Default)]
struct Ends {
    missing: [bool; 3],
}

impl Ends {
    const CLOSED_BY: [(&'static str, &'static str); 3] =
        [("!--", "-->"), ("![CDATA[", "]]>"), ("?", "?>")];

    /// Returns the length of the construct at the start of `text`.
    fn past(&mut self, text: &str) -> usize {
        for ((open, close), missing) in Self::CLOSED_BY.iter().zip(&mut self.missing) {
            if text.starts_with(open) && !*missing {
                match memmem::find(text.as_bytes(), close.as_bytes()) {
                    Some(end) => return end + close.len(),
                    None => *missing = true,
                }
            }
        }
        1
    }
}

/// Returns whether a name can begin here.
pub(super) fn begins_name(text: &str) -> bool {
    match text.as_bytes().first() {
        Some(byte) if byte.is_ascii() => byte.is_ascii_alphabetic() || matches!(byte, b'_' | b':'),
        Some(_) => text.chars().next().is_some_and(char::is_alphabetic),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_begins_no_tag_is_escaped() {
        #[rustfmt::skip]
        let cases = [
            ("<a>x</a>",               "<a>x</a>"),
            ("<a>1 < 2</a>",           "<a>1 &lt; 2</a>"),
            ("<a>x<3</a>",             "<a>x&lt;3</a>"),
            ("<a><![CDATA[1 < 2]]></a>", "<a><![CDATA[1 < 2]]></a>"),
            ("<!-- 1 < 2 --><a/>",     "<!-- 1 < 2 --><a/>"),
            ("<?php 1 < 2 ?><a/>",     "<?php 1 < 2 ?><a/>"),
            ("<a>x<</a>",              "<a>x&lt;</a>"),
            ("<é/><",                  "<é/>&lt;"),
        ];
        for (text, want) in cases {
            assert_eq!(tidy(Cow::Borrowed(text), &mut Vec::new()), want);
        }
    }

    #[test]
    fn a_place_in_the_tidied_text_is_one_in_the_text() {
        let text = "<a>1 < 2 & 3<4</a>";
        let mut repairs = Vec::new();
        let tidied = tidy(Cow::Borrowed(text), &mut repairs);
        let offsets = OriginalOffsets::new(text, &tidied);
        for sought in ["<a>", " 2", " & ", "4", "</a>"] {
            let (was, is) = (text.find(sought).unwrap(), tidied.find(sought).unwrap());
            assert_eq!(offsets.original(is), was, "{sought:?}");
        }
        assert_eq!(repairs[0].byte, text.find("< "));
    }
}
