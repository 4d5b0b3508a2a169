//! Repair of malformed JSON.
//!
//! Real feeds contain line ends and other control characters in strings, trailing commas, and
//! function calls around the document (JSONP).

/// Repairs the faults listed above and leaves everything else unchanged.
pub(super) fn repair_json(text: &str) -> String {
    let text = text.trim().trim_end_matches([';', ')']);
    let mut out = String::with_capacity(text.len());
    let mut quoted = false;
    let mut escaped = false;
    for c in text.chars() {
        match c {
            '"' if !escaped => quoted = !quoted,
            '}' | ']' if !quoted => {
                let kept = out.trim_end().trim_end_matches(',').len();
                out.truncate(kept);
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
    }
    out
}

/// Returns the argument of a JSONP call such as `feed({…});`; `None` if the text is not one.
pub(super) fn jsonp_argument(text: &str) -> Option<&str> {
    let (name, rest) = text.trim_start().split_once('(')?;
    let is_name = !name.is_empty()
        && name.trim().chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '.'));
    (is_name && rest.trim_start().starts_with('{')).then_some(rest)
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
        ];
        for (text, want) in cases {
            assert_eq!(repair_json(text), want);
        }
        assert_eq!(jsonp_argument("cb.feed( {}"), Some(" {}"));
        assert_eq!(jsonp_argument("see (this)"), None);
    }
}
