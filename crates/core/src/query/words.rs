//! Words of texts and queries.
//!
//! A word is a run of letters and digits, compared without regard to case. Scripts that do not
//! separate words by spaces have words of one character each; a longer term of a query is then a
//! phrase, which finds the term inside longer texts.

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

/// The blocks of scripts without spaces between words, and of Korean, where endings follow a word
/// without a space.
const UNSPACED: [(char, char); 9] = [
    ('\u{0e00}', '\u{0eff}'),   // Thai, Lao
    ('\u{1000}', '\u{109f}'),   // Myanmar
    ('\u{1780}', '\u{17ff}'),   // Khmer
    ('\u{3040}', '\u{30ff}'),   // Hiragana, Katakana
    ('\u{3400}', '\u{4dbf}'),   // Han, extension A
    ('\u{4e00}', '\u{9fff}'),   // Han
    ('\u{ac00}', '\u{d7a3}'),   // Hangul
    ('\u{f900}', '\u{faff}'),   // Han, compatibility
    ('\u{20000}', '\u{3ffff}'), // Han, further extensions
];

/// Returns `text` in the normal form in which equal characters are equal (Unicode UAX 15, NFKC).
pub(crate) fn normal_form(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || is_nfkc_quick(text.chars()) == IsNormalized::Yes {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.nfkc().collect())
}

/// Returns the words of a text in normal form, as they are written.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let start = rest.find(char::is_alphanumeric)?;
        rest = &rest[start..];
        let first = rest.chars().next()?;
        let end = match is_unspaced(first) {
            true => first.len_utf8(),
            false => {
                let ends = |c: char| !c.is_alphanumeric() || is_unspaced(c);
                rest.find(ends).unwrap_or(rest.len())
            }
        };
        let (word, after) = rest.split_at(end);
        rest = after;
        Some(word)
    })
}

/// Returns a word as it is compared. It contains nothing but letters and digits.
pub(crate) fn folded(word: &str) -> String {
    if word.is_ascii() {
        return word.to_ascii_lowercase();
    }
    let letters = word.to_lowercase();
    // The lower-case sigma has another form at the end of a word.
    let letters = letters.chars().map(|c| if c == 'ς' { 'σ' } else { c });
    letters.filter(|c| c.is_alphanumeric()).collect()
}

fn is_unspaced(c: char) -> bool {
    c >= UNSPACED[0].0 && UNSPACED.iter().any(|(first, last)| (*first..=*last).contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_runs_of_letters_and_digits() {
        let cases: [(&str, &[&str]); 8] = [
            ("The quick, brown-fox!", &["the", "quick", "brown", "fox"]),
            ("Node.js 3.14 (C++)", &["node", "js", "3", "14", "c"]),
            ("don\u{2019}t", &["don", "t"]),
            ("Cafe\u{301} CAF\u{c9}", &["caf\u{e9}", "caf\u{e9}"]),
            ("\u{130}stanbul", &["istanbul"]),
            ("東京タワー2", &["東", "京", "タ", "ワ", "ー", "2"]),
            ("뉴스를 ab뉴", &["뉴", "스", "를", "ab", "뉴"]),
            (" .,- ", &[]),
        ];
        for (text, want) in cases {
            let text = normal_form(text);
            assert_eq!(words(&text).map(folded).collect::<Vec<_>>(), want, "{text}");
        }
    }
}
