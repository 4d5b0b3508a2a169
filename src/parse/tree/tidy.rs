//! What has to be put right in the text before it can be taken apart.
//!
//! The tokenizer takes everything up to the next `>` for a tag, so a `<` that begins no
//! tag would swallow what follows. It is written as `&lt;`, except inside CDATA,
//! comments and processing instructions.

use std::borrow::Cow;

use crate::domain::feed::Repair;

/// Escapes each `<` that begins nothing.
pub(in super::super) fn tidy<'b>(text: Cow<'b, str>, repairs: &mut Vec<Repair>) -> Cow<'b, str> {
    let mut mended = String::new();
    let mut kept = 0; // everything before this is in `mended`
    let mut at = 0;
    let mut count = 0;
    let mut ends = Ends::default();
    while let Some(found) = text[at..].find('<') {
        let open = at + found;
        let after = &text[open + 1..];
        at = open + 1;
        match after.as_bytes().first() {
            Some(b'!' | b'?') => at += ends.past(after),
            Some(b'/') if begins_name(&after[1..]) => {}
            _ if begins_name(after) => {}
            _ => {
                mended.push_str(&text[kept..open]);
                mended.push_str("&lt;");
                kept = at;
                count += 1;
            }
        }
    }
    if count == 0 {
        return text;
    }
    mended.push_str(&text[kept..]);
    repairs.push(Repair { code: "bare_less_than", detail: format!("{count} escaped") });
    Cow::Owned(mended)
}

/// What closes the things that are not tags, and whether it is known to come no more:
/// without that, a document of nothing but opened comments would be searched to its end
/// once for each.
#[derive(Debug, Default)]
struct Ends {
    missing: [bool; 3],
}

impl Ends {
    const CLOSED_BY: [(&'static str, &'static str); 3] =
        [("!--", "-->"), ("![CDATA[", "]]>"), ("?", "?>")];

    /// How far goes what begins with `text`.
    fn past(&mut self, text: &str) -> usize {
        for ((open, close), missing) in Self::CLOSED_BY.iter().zip(&mut self.missing) {
            if text.starts_with(open) && !*missing {
                match text.find(close) {
                    Some(end) => return end + close.len(),
                    None => *missing = true,
                }
            }
        }
        1
    }
}

/// Whether a name can begin here.
fn begins_name(text: &str) -> bool {
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
}
