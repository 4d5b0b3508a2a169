//! Folding of text beyond plain ASCII into the few characters that the date readers know.
//!
//! Only texts with non-ASCII characters or with `&` are folded, so the common forms cost nothing.
//! Letters become lower case without accents (`ź` is `z`, `ή` is `η`, `й` is `и`), so that the
//! tables of names need one spelling each. Digits, punctuation and spaces of any width become
//! ASCII. Entities that were escaped twice are decoded. Han and Hangul are left as they are.

use quick_xml::escape::resolve_html5_entity;

/// Folds `text` into the characters that the tables are written in.
pub(super) fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if c == '&'
            && let Some((entity, after)) = rest[1..].split_once(';')
            && push_entity(entity, &mut folded)
        {
            rest = after;
            continue;
        }
        push(c, &mut folded);
        rest = &rest[c.len_utf8()..];
    }
    folded
}

/// Appends the character of `entity`, the part between `&` and `;`. `&amp;nbsp;` was escaped twice,
/// so `amp` is dropped and the name after it decoded.
fn push_entity(entity: &str, folded: &mut String) -> bool {
    if entity == "amp" {
        return true;
    }
    if let Some(code) = entity.strip_prefix('#') {
        let code = match code.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok(),
            None => code.parse().ok(),
        };
        return code.and_then(char::from_u32).map(|c| push(c, folded)).is_some();
    }
    let Some(text) = resolve_html5_entity(entity) else { return false };
    text.chars().for_each(|c| push(c, folded));
    true
}

fn push(c: char, folded: &mut String) {
    if c.is_ascii() {
        folded.push(c.to_ascii_lowercase());
        return;
    }
    c.to_lowercase().filter_map(plain).for_each(|c| folded.push(c));
}

/// Returns the tables' character for a lower-case letter or a punctuation mark; `None` if the
/// character carries no meaning.
fn plain(c: char) -> Option<char> {
    Some(match c {
        // Combining accents, zero-width characters and direction marks.
        '\u{300}'..='\u{36F}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' => return None,
        '\u{2060}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}' | '\u{AD}' => return None,
        c if c.is_whitespace() => ' ',
        // Full-width forms of ASCII, as East Asian keyboards write them.
        '\u{FF01}'..='\u{FF5E}' => {
            char::from_u32(u32::from(c) - 0xFEE0).unwrap_or(c).to_ascii_lowercase()
        }
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '、' | '。' | '·' | '•' | '‧' | '،' | '’' | '‘' | '«' | '»' => ',',
        'à' | 'á' | 'â' | 'ã' | 'ä' | 'å' | 'ā' | 'ă' | 'ą' | 'ạ' | 'ª' => 'a',
        'ç' | 'ć' | 'č' | 'ċ' => 'c',
        'ď' | 'đ' => 'd',
        'è' | 'é' | 'ê' | 'ë' | 'ē' | 'ė' | 'ę' | 'ě' => 'e',
        'ğ' | 'ģ' => 'g',
        'ì' | 'í' | 'î' | 'ï' | 'ī' | 'į' | 'ı' => 'i',
        'ķ' => 'k',
        'ĺ' | 'ļ' | 'ľ' | 'ł' => 'l',
        'ñ' | 'ń' | 'ņ' | 'ň' => 'n',
        'ò' | 'ó' | 'ô' | 'õ' | 'ö' | 'ø' | 'ō' | 'ő' | 'º' | '°' => 'o',
        'ŕ' | 'ř' => 'r',
        'ś' | 'ş' | 'š' | 'ș' => 's',
        'ţ' | 'ť' | 'ț' => 't',
        'ù' | 'ú' | 'û' | 'ü' | 'ū' | 'ů' | 'ű' | 'ų' | 'ư' | 'ứ' => 'u',
        'ý' | 'ÿ' => 'y',
        'ź' | 'ż' | 'ž' => 'z',
        'ά' => 'α',
        'έ' => 'ε',
        'ή' => 'η',
        'ί' | 'ϊ' | 'ΐ' => 'ι',
        'ό' => 'ο',
        'ύ' | 'ϋ' | 'ΰ' => 'υ',
        'ώ' => 'ω',
        'ς' => 'σ',
        'й' => 'и',
        'ё' => 'е',
        'ї' => 'і',
        'أ' | 'إ' => 'ا',
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_the_same_name_become_one() {
        #[rustfmt::skip]
        let cases = [
            ("JÚLIUS",             "julius",       "Latin accents"),
            ("ju\u{301}lius",      "julius",       "the same, decomposed"),
            ("j&uacute;lius",      "julius",       "the same, as an entity"),
            ("Μαΐου",              "μαιου",        "Greek accents"),
            ("Май",                "маи",          "Cyrillic"),
            ("Ма\u{438}\u{306}",   "маи",          "the same, decomposed"),
            ("２００４年１：０５", "2004年1:05",   "full width"),
            ("5\u{A0}Jan",         "5 jan",        "a space that does not break"),
            ("5&nbsp;Jan",         "5 jan",        "the same, as an entity"),
            ("5&amp;nbsp;Jan",     "5nbsp;jan",    "escaped twice: the name is left to be refused"),
            ("5&#160;Jan&#x2B;1",  "5 jan+1",      "character references"),
            ("\u{200E}5",          "5",            "a direction mark"),
            ("−0500",              "-0500",        "a minus that is not a hyphen"),
            ("a & b; c",           "a & b; c",     "not an entity"),
            ("&#xD800;",           "&#xd800;",     "no character"),
            ("&",                  "&",            "nothing after it"),
        ];
        for (text, want, reason) in cases {
            assert_eq!(fold(text), want, "{reason}: {text}");
        }
    }
}
