//! Text for terminals. What servers and senders wrote may contain characters that control the terminal,
//! or that make text look different from what it is: those that write from right to left, for instance
//! (S42). Every line that a command prints goes through here.

use std::borrow::Cow;
use std::fmt::Write;

/// Returns whether a character controls a terminal, or changes how the text around it is displayed.
fn is_hidden(c: char) -> bool {
    c.is_control() || is_format(c)
}

/// Returns whether a character changes the direction of the text around it, ends a line, or is not
/// visible at all. Characters that join others in scripts and emoji are left alone.
fn is_format(c: char) -> bool {
    matches!(
        c,
        '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
    )
}

/// Returns text in one line, with hidden characters replaced.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if is_hidden(c) { '\u{fffd}' } else { c }).collect()
}

/// Returns lines with hidden characters written as in JSON, so that a JSON document keeps its value.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    escape(text, |c| is_hidden(c) && !matches!(c, '\n' | '\t'))
}

/// The same for lines whose control characters are escaped already, or their colors.
pub(crate) fn escaped_formats(text: &str) -> Cow<'_, str> {
    escape(text, is_format)
}

fn escape(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if text.is_ascii() && !text.bytes().any(|byte| is_escaped(char::from(byte))) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match is_escaped(c) {
            true => write!(escaped, "\\u{:04x}", u32::from(c)).unwrap_or_default(),
            false => escaped.push(c),
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h20_hidden_characters_are_shown() {
        #[rustfmt::skip]
        let cases = [
            ("plain, ä and 漢字",       "plain, ä and 漢字",       "plain, ä and 漢字"),
            ("a\u{202e}b",             "a\u{fffd}b",             "a\\u202eb"),
            ("a\u{2066}b\u{2069}",     "a\u{fffd}b\u{fffd}",     "a\\u2066b\\u2069"),
            ("\u{1b}[31m\u{7}\u{9b}m", "\u{fffd}[31m\u{fffd}\u{fffd}m", "\\u001b[31m\\u0007\\u009bm"),
            ("a\tb\nc\rd",             "a\u{fffd}b\u{fffd}c\u{fffd}d", "a\tb\nc\\u000dd"),
            ("👩\u{200d}🚀",            "👩\u{200d}🚀",            "👩\u{200d}🚀"),
        ];
        for (text, in_line, in_lines) in cases {
            assert_eq!(printable(text), in_line);
            assert_eq!(escaped(text), in_lines);
        }
        let json = serde_json::json!({ "title": "a\u{202e}\u{85}\u{feff}b\n" });
        let printed = escaped(&json.to_string()).into_owned();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&printed).unwrap(), json);
        assert_eq!(
            escaped_formats("\u{1b}[2mlog\u{1b}[0m \u{202e}\n"),
            "\u{1b}[2mlog\u{1b}[0m \\u202e\n"
        );
    }
}
