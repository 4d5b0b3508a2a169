//! Decoding of bytes into text.
//!
//! Declared encodings are wrong more often than bytes are (rule P51), so the order of evidence is:
//! byte order mark; the shape of UTF-16, UTF-32 and ISO-2022-JP; valid UTF-8, whatever is declared;
//! *mostly* valid UTF-8, with its invalid bytes read as windows-1252; the HTTP charset; the XML
//! declaration or the `meta` of a page; and statistical detection. Declared Latin-1 is read as
//! windows-1252, as encoding_rs does. Only the encodings of the web are supported: no browser
//! supports EBCDIC, UTF-7 or the DOS code pages other than 866, and documents in them are reported
//! as not a feed.
//!
//! The resulting text has no byte order mark and no character that XML forbids.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, ISO_2022_JP, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use memchr::{memchr, memchr_iter, memmem};

use crate::repair::{Repair, RepairCode};
use crate::text_extraction::may_be_unprintable;

/// The number of bytes at the start of a document in which its XML declaration is searched: some
/// declarations follow a comment, blank lines or a warning of the server.
const DECLARATION_WITHIN_BYTES: usize = 2048;

/// The maximum length of a declaration, in bytes.
const DECLARATION_BYTES: usize = 256;

/// The maximum ratio of invalid bytes to valid multi-byte characters in a text that is still read
/// as UTF-8.
const GOOD_PER_BAD: usize = 4;

/// Decodes `bytes`. `content_type` is the value of the HTTP header.
pub(super) fn decode<'b>(
    bytes: &'b [u8],
    content_type: Option<&str>,
    repairs: &mut Vec<Repair>,
) -> Cow<'b, str> {
    let text = to_text(bytes, content_type, repairs);
    without_forbidden(text, repairs)
}

fn to_text<'b>(
    bytes: &'b [u8],
    content_type: Option<&str>,
    repairs: &mut Vec<Repair>,
) -> Cow<'b, str> {
    if let Some(text) = wide(bytes) {
        return text;
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let declared = declaration_label(bytes).or_else(|| meta_label(bytes));
    let labels = [content_type.and_then(charset_of), declared];
    if let Ok(text) = std::str::from_utf8(bytes) {
        if let Some(text) = shifted(bytes) {
            return text;
        }
        let told = labels.iter().flatten().next();
        let told = told.and_then(|label| encoding_of(label)).filter(|told| *told != UTF_8);
        if let Some(encoding) = told.filter(|_| !text.is_ascii()) {
            repairs.push(note(RepairCode::WrongCharset, encoding.name()));
        }
        return Cow::Borrowed(text);
    }
    if let Some(text) = join_surrogates(bytes) {
        repairs.push(note(RepairCode::BadBytes, "UTF-8"));
        return Cow::Owned(text);
    }
    let (good, bad) = if is_hardly_utf8(bytes) { (0, 1) } else { census(bytes) };
    let says_utf8 = labels.iter().flatten().all(|label| encoding_of(label) == Some(UTF_8));
    if good >= GOOD_PER_BAD * bad || (says_utf8 && good >= bad && good > 0) {
        repairs.push(note(RepairCode::BadBytes, "UTF-8"));
        return Cow::Owned(mend(bytes));
    }
    // UTF-16 would have been detected above by its zeros, so that declaration is wrong.
    let told = labels.iter().flatten().filter_map(|label| encoding_of(label));
    let told = told.filter(|told| ![UTF_8, UTF_16LE, UTF_16BE].contains(told));
    for encoding in told.clone() {
        if let Some(text) = encoding.decode_without_bom_handling_and_without_replacement(bytes) {
            return text;
        }
    }
    for encoding in told {
        let text = encoding.decode_without_bom_handling(bytes).0;
        let bad = text.matches(char::REPLACEMENT_CHARACTER).count();
        let good = text.chars().filter(|c| !c.is_ascii()).count() - bad;
        if good >= GOOD_PER_BAD * bad {
            repairs.push(note(RepairCode::BadBytes, encoding.name()));
            return text;
        }
    }
    let encoding = detect(bytes);
    repairs.push(note(RepairCode::GuessedCharset, encoding.name()));
    encoding.decode_without_bom_handling(bytes).0
}

/// Decodes ISO-2022-JP, detected by its escape sequences: the encoding has seven bits, so the bytes
/// are valid UTF-8 too, but no other text contains these sequences.
fn shifted(bytes: &[u8]) -> Option<Cow<'_, str>> {
    let begins = |window: &[u8]| matches!(window, [0x1b, b'$', b'B' | b'@']);
    // Searching for the escape character is fast, and few documents contain one.
    if !(memchr(0x1b, bytes).is_some() && bytes.windows(3).any(begins)) {
        return None;
    }
    ISO_2022_JP.decode_without_bom_handling_and_without_replacement(bytes)
}

/// Decodes UTF-16 and UTF-32, detected by their byte order mark or by the position of zeros.
fn wide(bytes: &[u8]) -> Option<Cow<'_, str>> {
    match bytes {
        [0, 0, 0xfe, 0xff, rest @ ..] => Some(utf32(rest, u32::from_be_bytes)),
        [0xff, 0xfe, 0, 0, rest @ ..] => Some(utf32(rest, u32::from_le_bytes)),
        [0, 0, 0, b'<', ..] => Some(utf32(bytes, u32::from_be_bytes)),
        [b'<', 0, 0, 0, ..] => Some(utf32(bytes, u32::from_le_bytes)),
        // A byte order mark of UTF-16 before plain ASCII: it was prepended by mistake.
        [0xfe, 0xff, b'<', b'?' | b'a'..=b'z' | b'A'..=b'Z', rest @ ..] if !rest.contains(&0) => {
            None
        }
        [0xff, 0xfe, b'<', b'?' | b'a'..=b'z' | b'A'..=b'Z', rest @ ..] if !rest.contains(&0) => {
            None
        }
        [0xfe, 0xff, rest @ ..] => Some(UTF_16BE.decode_without_bom_handling(rest).0),
        [0xff, 0xfe, rest @ ..] => Some(UTF_16LE.decode_without_bom_handling(rest).0),
        [0, b'<', ..] | [0, _, 0, b'<', ..] => Some(UTF_16BE.decode_without_bom_handling(bytes).0),
        [b'<', 0, ..] | [_, 0, b'<', 0, ..] => Some(UTF_16LE.decode_without_bom_handling(bytes).0),
        _ => None,
    }
}

fn utf32(bytes: &[u8], read: fn([u8; 4]) -> u32) -> Cow<'_, str> {
    let (units, _) = bytes.as_chunks::<4>();
    let text = units.iter().map(|unit| char::from_u32(read(*unit)).unwrap_or('\u{fffd}'));
    Cow::Owned(text.collect())
}

/// Returns the encoding declared in the first XML declaration, if there is one.
fn declaration_label(bytes: &[u8]) -> Option<&str> {
    let head = &bytes[..bytes.len().min(DECLARATION_WITHIN_BYTES)];
    let start = memmem::find(head, b"<?xml")?;
    let rest = &bytes[start..bytes.len().min(start + DECLARATION_BYTES)];
    let end = rest.iter().position(|byte| *byte == b'>')?;
    let rest = std::str::from_utf8(&rest[..end]).ok()?;
    let value = rest[rest.find("encoding")? + "encoding".len()..].trim_start();
    let value = value.strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    value[1..].split(quote).next()
}

/// Returns the encoding declared in the first `meta` of a page that declares one, as `charset` or
/// in a `Content-Type` (HTML `#determining-the-character-encoding`).
fn meta_label(bytes: &[u8]) -> Option<&str> {
    let head = &bytes[..bytes.len().min(DECLARATION_WITHIN_BYTES)];
    // Few documents have such an element, and few bytes are a `<`.
    let is_meta = |at| head[at..].get(1..5).is_some_and(|name| name.eq_ignore_ascii_case(b"meta"));
    memchr_iter(b'<', head).find(|at| is_meta(*at))?;
    let lower = head.to_ascii_lowercase();
    let find = |from: usize, wanted: &[u8]| {
        let at = lower[from..].windows(wanted.len()).position(|window| window == wanted)?;
        Some(from + at)
    };
    let mut from = 0;
    while let Some(start) = find(from, b"<meta") {
        let end = find(start, b">")?;
        if let Some(at) = find(start, b"charset").filter(|at| *at < end) {
            let value = std::str::from_utf8(&head[at + "charset".len()..end]).ok()?;
            let value = value.trim_start().strip_prefix('=')?;
            let value = value.trim_start().trim_start_matches(['"', '\'']);
            let label = |c: char| c.is_ascii_alphanumeric() || "-_:.".contains(c);
            return value.split(|c| !label(c)).next().filter(|label| !label.is_empty());
        }
        from = end;
    }
    None
}

/// Returns the `charset` of a `Content-Type`.
fn charset_of(content_type: &str) -> Option<&str> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches(['"', '\'']))
    })
}

/// Returns the encoding for a label, or for what the label usually stands for.
fn encoding_of(label: &str) -> Option<&'static Encoding> {
    let label = label.trim();
    Encoding::for_label_no_replacement(label.as_bytes()).or_else(|| {
        let plain: String = label
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .map(|c| c.to_ascii_lowercase())
            .collect();
        let usual = match plain.as_str() {
            "u8" | "utf" | "utf8" => "utf-8",
            "macroman" | "xmacroman" => "macintosh",
            "maccyrillic" | "macukrainian" => "x-mac-cyrillic",
            "big5hkscs" | "big5tw" | "cp950" | "950" => "big5",
            "cp932" | "932" | "ms932" | "mskanji" | "shiftjisx0213" | "shiftjis2004" => "shift_jis",
            "cp936" | "936" | "ms936" | "euccn" => "gbk",
            "cp949" | "949" | "ms949" | "uhc" | "johab" => "euc-kr",
            "eucjp2004" | "eucjisx0213" | "ujis" => "euc-jp",
            "koi8u" => "koi8-u",
            "koi8r" => "koi8-r",
            "cp874" => "windows-874",
            "ibm866" | "cp866" => "ibm866",
            _ => return Encoding::for_label_no_replacement(numbered(&plain)?.as_bytes()),
        };
        Encoding::for_label_no_replacement(usual.as_bytes())
    })
}

/// Returns the standard spelling of `win1252`, `cp1252`, `iso885915` and the like.
fn numbered(plain: &str) -> Option<String> {
    for prefix in ["windows", "win", "cp", "ms", "ansi", ""] {
        if let Some(page) = plain.strip_prefix(prefix).filter(|page| page.starts_with("125")) {
            return Some(format!("windows-{page}"));
        }
    }
    let part = plain.strip_prefix("iso8859").or_else(|| plain.strip_prefix("8859"))?;
    Some(format!("iso-8859-{part}"))
}

/// Returns whether there are more invalid bytes than valid multi-byte characters, judged by byte
/// counts alone: too few continuation bytes.
///
/// Each valid multi-byte character consists of one leading byte and at least one continuation byte,
/// so valid characters take at most twice as many bytes as there are continuation bytes. Any
/// further bytes are invalid.
fn is_hardly_utf8(bytes: &[u8]) -> bool {
    let beyond = bytes.iter().filter(|byte| !byte.is_ascii()).count();
    let continuing = bytes.iter().filter(|byte| matches!(byte, 0x80..=0xbf)).count();
    beyond > 3 * continuing
}

/// Counts the multi-byte characters of UTF-8, including those whose end is missing, and the other
/// invalid bytes.
fn census(bytes: &[u8]) -> (usize, usize) {
    bytes.utf8_chunks().fold((0, 0), |(good, bad), chunk| {
        let continued = chunk.valid().bytes().filter(|byte| *byte >= 0xc0).count();
        match chunk.invalid().len() {
            invalid @ (0 | 1) => (good + continued, bad + invalid),
            _ => (good + continued + 1, bad),
        }
    })
}

/// Decodes UTF-8, reading invalid bytes as windows-1252. A character whose end is missing, because a
/// text was cut by bytes, is replaced.
fn mend(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        match chunk.invalid() {
            one @ ([] | [_]) => text.push_str(&WINDOWS_1252.decode_without_bom_handling(one).0),
            _ => text.push(char::REPLACEMENT_CHARACTER),
        }
    }
    text
}

/// Decodes CESU-8: UTF-8 in which each character beyond U+FFFF is a pair of surrogates, three bytes
/// each. Returns `None` for all other bytes.
fn join_surrogates(bytes: &[u8]) -> Option<String> {
    let unit = |bytes: &[u8]| match bytes {
        [0xed, second @ 0xa0..=0xbf, third @ 0x80..=0xbf, ..] => {
            Some(0xd000 | u16::from(second & 0x3f) << 6 | u16::from(third & 0x3f))
        }
        _ => None,
    };
    let mut joined = Vec::new();
    let mut copied = 0;
    for at in memchr_iter(0xed, bytes) {
        if at < copied {
            continue;
        }
        let Some(first) = unit(&bytes[at..]) else { continue };
        let second = unit(&bytes[at + 3..])?;
        let both = char::decode_utf16([first, second]).next()?.ok()?;
        joined.extend_from_slice(&bytes[copied..at]);
        joined.extend_from_slice(both.encode_utf8(&mut [0; 4]).as_bytes());
        copied = at + 6;
    }
    if copied == 0 {
        return None;
    }
    joined.extend_from_slice(&bytes[copied..]);
    String::from_utf8(joined).ok()
}

fn detect(bytes: &[u8]) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(bytes, true);
    detector.guess(None, Utf8Detection::Allow)
}

/// Removes the characters that XML 1.0 forbids.
fn without_forbidden<'b>(text: Cow<'b, str>, repairs: &mut Vec<Repair>) -> Cow<'b, str> {
    if !may_be_unprintable(&text) {
        return text;
    }
    let kept: String = text.chars().filter(|c| is_xml_char(*c)).collect();
    if kept.len() == text.len() {
        return text;
    }
    let removed = text.chars().count() - kept.chars().count();
    repairs.push(Repair::new(RepairCode::ControlCharacters, format!("{removed} removed")));
    Cow::Owned(kept)
}

/// Returns whether XML 1.0 allows `c`. Byte order marks are excluded, because inside a text they
/// are leftovers of concatenated files.
pub(super) fn is_xml_char(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}' | '\u{10000}'..)
}

fn note(code: RepairCode, name: &str) -> Repair {
    Repair::new(code, format!("read as {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p51_labels_are_believed_only_where_bytes_leave_a_choice() {
        let utf16: Vec<u8> = "<a>é</a>".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let marked = [b"\xff\xfe".as_slice(), &utf16].concat();
        let utf32: Vec<u8> = "<a>é</a>".chars().flat_map(|c| (c as u32).to_be_bytes()).collect();
        #[rustfmt::skip]
        let cases: [(&str, &[u8], Option<&str>, &str); 22] = [
            ("plain",                         b"<a>x</a>",                    None,                              "<a>x</a>"),
            ("a mark goes",                   b"\xef\xbb\xbf<a/>",            None,                              "<a/>"),
            ("UTF-16 by its zeros",           &utf16,                         Some("text/xml; charset=utf-8"),   "<a>é</a>"),
            ("UTF-16 by its mark",            &marked,                        None,                              "<a>é</a>"),
            ("UTF-32",                        &utf32,                         None,                              "<a>é</a>"),
            ("a false Latin-1 label",         "<a>é</a>".as_bytes(),          Some("text/xml; charset=latin1"),  "<a>é</a>"),
            ("the header's charset",          b"<a>\xcf\xf0</a>",             Some("text/xml;charset=\"windows-1251\""), "<a>Пр</a>"),
            ("the declaration",               b"<?xml version='1.0' encoding='koi8-r'?><a>\xf0\xd2</a>", None,   "<?xml version='1.0' encoding='koi8-r'?><a>Пр</a>"),
            ("Latin-1 is windows-1252",       b"<?xml encoding=\"iso-8859-1\"?><a>\x93</a>", None,               "<?xml encoding=\"iso-8859-1\"?><a>\u{201c}</a>"),
            ("mostly UTF-8",                  b"<a>\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9 \xe9</a>", None,           "<a>éééé é</a>"),
            ("Latin bytes declared UTF-8",    b"<?xml encoding='utf-8'?><a>caf\xe9 cr\xe8me</a>", None,          "<?xml encoding='utf-8'?><a>café crème</a>"),
            ("odd spelling",                  b"<?xml encoding='ISO_8859-15'?><a>\xa4</a>", None,                "<?xml encoding='ISO_8859-15'?><a>€</a>"),
            ("a page's meta",                 b"<meta name=x><META CharSet=koi8-r><p>\xf0\xd2", None,                "<meta name=x><META CharSet=koi8-r><p>Пр"),
            ("in the words of a header",      b"<meta http-equiv='Content-Type' content='text/html; charset=windows-1251'><p>\xcf\xf0", None, "<meta http-equiv='Content-Type' content='text/html; charset=windows-1251'><p>Пр"),
            ("UTF-16 in single bytes",        b"<?xml encoding='utf-16'?><a>caf\xe9</a>", None,                    "<?xml encoding='utf-16'?><a>café</a>"),
            ("Japanese in seven bits",        b"<a>\x1b$B=U\x1b(B</a>",         Some("text/xml; charset=utf-8"),   "<a>春</a>"),
            ("half a character of GBK",       b"<?xml encoding='gbk'?><a>\xd6\xd0\xce\xc4\xb1\xea\xcc\xe2\xff</a>", None, "<?xml encoding='gbk'?><a>中文标题\u{fffd}</a>"),
            ("half a character of UTF-8",     b"<?xml encoding='utf-8'?><a>Rock \xe2\x80...</a>", None,      "<?xml encoding='utf-8'?><a>Rock \u{fffd}...</a>"),
            ("half characters among others",  b"<a>Caf\xc3\xa9 \xe2\x80... \xf0\x9f\x98</a>", None,      "<a>Café \u{fffd}... \u{fffd}</a>"),
            ("surrogates in UTF-8",           b"<a>\xc3\xa9 \xed\xa0\xbd\xed\xb8\x80</a>", None,         "<a>é 😀</a>"),
            ("half a pair of surrogates",     b"<a>\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9 \xed</a>", None,    "<a>éééé í</a>"),
            ("control characters go",         b"<a>x\x0by\x00</a>",           None,                              "<a>xy</a>"),
        ];
        for (why, bytes, content_type, want) in cases {
            assert_eq!(decode(bytes, content_type, &mut Vec::new()), want, "{why}");
        }
    }

    #[test]
    fn s25_markup_in_utf_7_stays_text() {
        let bytes = b"<?xml version='1.0' encoding='utf-7'?><a>+ADw-script+AD4-</a>";
        let text = decode(bytes, Some("text/xml; charset=utf-7"), &mut Vec::new());
        assert_eq!(text.as_bytes(), bytes);
    }

    #[test]
    fn what_was_mended_is_told() {
        let mut repairs = Vec::new();
        decode(b"<a>x\x0b\xe9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9</a>", None, &mut repairs);
        let codes: Vec<_> = repairs.iter().map(|repair| repair.code).collect();
        assert_eq!(codes, [RepairCode::BadBytes, RepairCode::ControlCharacters]);
    }
}
