//! Texts in JSON, and the repair of malformed JSON.
//!
//! Real feeds contain line ends and other control characters in strings, trailing commas, and
//! function calls around the document (JSONP).

use std::borrow::Cow;

use memchr::{memmem, memrchr};
use serde_json::Value;

/// Repairs the faults listed above and leaves everything else unchanged.
pub(super) fn repair_json(text: &str) -> String {
    let text = without_lone_surrogates(text.trim().trim_end_matches([';', ')']));
    let mut out = String::with_capacity(text.len());
    let mut quoted = false;
    let mut escaped = false;
    let mut open = Vec::new();
    let mut complete = None;
    for c in text.chars() {
        match c {
            '"' if !escaped => quoted = !quoted,
            '{' | '[' if !quoted => open.push(if c == '{' { '}' } else { ']' }),
            '}' | ']' if !quoted => {
                let kept = out.trim_end().trim_end_matches(',').len();
                out.truncate(kept);
                open.pop();
            }
            '\'' if escaped => {
                out.pop();
            }
            _ => {}
        }
        escaped = quoted && c == '\\' && !escaped;
        match c {
            '\n' if quoted => out.push_str("\\n"),
            '\t' if quoted => out.push_str("\\t"),
            '\r' if quoted => {}
            _ => out.push(c),
        }
        if c == '}' && !quoted && open == ['}', ']'] {
            complete = Some(out.len());
        }
        if matches!(c, '}' | ']') && !quoted && open.is_empty() {
            return out; // what follows the document is not part of it
        }
    }
    // The end is missing: what is complete is kept.
    if let Some(end) = complete {
        out.truncate(end);
        out.push_str("]}");
    }
    out
}

/// Returns the text of a value that is neither an array nor an object; `None` if it is empty.
pub(super) fn scalar(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Bool(truth) => truth.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    let text: String = text.chars().filter(|c| super::decode::is_xml_char(*c)).collect();
    (!text.is_empty()).then_some(text)
}

/// Replaces escapes of surrogates that are not in pairs, as a text has that was cut between them.
fn without_lone_surrogates(text: &str) -> Cow<'_, str> {
    let unit = |at: usize| {
        let digits = text.get(at..)?.strip_prefix("\\u")?.get(..4)?;
        u16::from_str_radix(digits, 16).ok()
    };
    let (mut out, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(found) = text[at..].find('\\') {
        at += found;
        match (unit(at), unit(at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => at += 12,
            (Some(0xd800..=0xdfff), _) => {
                out.push_str(&text[copied..at]);
                out.push_str("\\ufffd");
                at += 6;
                copied = at;
            }
            (Some(_), _) => at += 6,
            // The escaped character may be a backslash.
            (None, _) => at += 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// Returns the argument of a JSONP call such as `feed({…});`; `None` if the text is not one.
pub(super) fn jsonp_argument(text: &str) -> Option<&str> {
    let (name, rest) = text.trim_start().split_once('(')?;
    let is_name = !name.is_empty()
        && name.trim().chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '.'));
    (is_name && rest.trim_start().starts_with('{')).then_some(rest)
}

/// Returns a JSON feed that follows something else: a warning of PHP, or a guard against its inclusion
/// as a script.
pub(super) fn behind_other_output(text: &str) -> Option<&str> {
    let version = memmem::find(text.as_bytes(), b"jsonfeed.org/version/")?;
    let begin = memrchr(b'{', &text.as_bytes()[..version])?;
    text.get(begin..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_almost_json_becomes_json() {
        #[rustfmt::skip]
        let cases = [
            (r#"{"a": [1, 2,], }"#,      r#"{"a": [1, 2]}"#),
            ("{\"a\": \"x\ny\tz\"}",     r#"{"a": "x\ny\tz"}"#),
            (r#"{"a": "x,]\",]"}"#,      r#"{"a": "x,]\",]"}"#),
            (r#"{"a": 1});"#,            r#"{"a": 1}"#),
            (r#"{"a": 1} <!-- 1s -->"#,  r#"{"a": 1}"#),
            (r#"{"a": "it\'s"}"#,        r#"{"a": "it's"}"#),
            (r#"{"a": "\ud83d", "b": "\ud83d\ude00 \\ud83d"}"#, r#"{"a": "\ufffd", "b": "\ud83d\ude00 \\ud83d"}"#),
            (r#"{"items": [{"id": {"x": 1}}, {"id": "b"}, {"id": "c}"#, r#"{"items": [{"id": {"x": 1}}, {"id": "b"}]}"#),
        ];
        for (text, want) in cases {
            assert_eq!(repair_json(text), want);
        }
        assert_eq!(jsonp_argument("cb.feed( {}"), Some(" {}"));
        assert_eq!(jsonp_argument("see (this)"), None);
    }
}
