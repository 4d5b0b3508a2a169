//! A cursor over the text of a date.
//!
//! A step that does not apply leaves the cursor where it was. Bytes above ASCII count as letters,
//! so the cursor always stands between two characters, whatever the text.

/// A position in a text. Copies are cheap: look ahead with a copy, then assign it back.
#[derive(Clone, Copy, Debug)]
pub(super) struct DateCursor<'a> {
    text: &'a str,
    at: usize,
}

/// A run of ASCII digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    /// The value; `u32::MAX` if it is greater.
    pub(super) value: u32,
    /// The number of digits.
    pub(super) len: usize,
}

impl<'a> DateCursor<'a> {
    /// Creates a cursor at the beginning of `text`.
    pub(super) fn new(text: &'a str) -> DateCursor<'a> {
        DateCursor { text, at: 0 }
    }

    /// Returns the text that has not been read yet.
    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Returns the next byte.
    pub(super) fn byte(&self) -> Option<u8> {
        self.byte_at(0)
    }

    /// Returns the byte `ahead` bytes after the next one.
    pub(super) fn byte_at(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    /// Returns the byte before the cursor.
    pub(super) fn before(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at.checked_sub(1)?).copied()
    }

    /// Returns whether the next byte is a digit.
    pub(super) fn at_digit(&self) -> bool {
        self.byte().is_some_and(|byte| byte.is_ascii_digit())
    }

    /// Returns whether the next character is a letter of any script.
    pub(super) fn at_letter(&self) -> bool {
        self.byte().is_some_and(is_letter)
    }

    /// Skips `byte`, an ASCII character, in either case. Returns whether it was there.
    pub(super) fn eat(&mut self, byte: u8) -> bool {
        let found = self.byte().is_some_and(|next| next.eq_ignore_ascii_case(&byte));
        self.at += usize::from(found);
        found
    }

    /// Skips `text`. Returns whether it was there.
    pub(super) fn eat_str(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        self.at += if found { text.len() } else { 0 };
        found
    }

    /// Skips the next byte, which the caller has checked to be ASCII.
    pub(super) fn skip(&mut self) {
        self.at = self.text.len().min(self.at + 1);
    }

    /// Skips white space.
    pub(super) fn spaces(&mut self) {
        self.run(|byte| byte.is_ascii_whitespace());
    }

    /// Reads the digits at the cursor, if there are any.
    pub(super) fn digits(&mut self) -> Option<Number> {
        let run = self.run(|byte| byte.is_ascii_digit());
        (!run.is_empty()).then(|| number(run))
    }

    /// Reads the first `count` digits of a run that is at least that long.
    pub(super) fn take_digits(&mut self, count: usize) -> Option<Number> {
        let digits = self.rest().get(..count)?;
        let all = count > 0 && digits.bytes().all(|byte| byte.is_ascii_digit());
        self.at += if all { count } else { 0 };
        all.then(|| number(digits))
    }

    /// Reads the letters at the cursor.
    pub(super) fn word(&mut self) -> &'a str {
        self.run(is_letter)
    }

    /// Reads the name of a zone, such as `America/Port-au-Prince` or `Etc/GMT+5`.
    pub(super) fn region(&mut self) -> &'a str {
        self.run(|byte| byte.is_ascii_alphanumeric() || b"/_+-".contains(&byte))
    }

    /// Reads a comment: text in round or square brackets, which may nest. A comment without an end
    /// extends to the end of the text.
    pub(super) fn comment(&mut self) -> &'a str {
        let rest = self.rest();
        let mut depth = 0_usize;
        for (at, byte) in rest.bytes().enumerate() {
            match byte {
                b'(' | b'[' => depth += 1,
                b')' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                self.at += at + 1;
                return rest.get(1..at).unwrap_or_default();
            }
        }
        self.at = self.text.len();
        rest.get(1..).unwrap_or_default()
    }

    fn run(&mut self, belongs: impl Fn(u8) -> bool) -> &'a str {
        let rest = self.rest();
        let len = rest.bytes().position(|byte| !belongs(byte)).unwrap_or(rest.len());
        self.at += len;
        rest.get(..len).unwrap_or_default()
    }
}

/// Returns whether `byte` is an ASCII letter or part of a non-ASCII character.
pub(super) fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || !byte.is_ascii()
}

fn number(digits: &str) -> Number {
    let value = digits.bytes().fold(0_u32, |value, digit| {
        value.saturating_mul(10).saturating_add(u32::from(digit - b'0'))
    });
    Number { value, len: digits.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_does_not_apply_moves_nothing() {
        let mut cursor = DateCursor::new("12:ж)");
        assert!(!cursor.eat(b':') && !cursor.eat_str("13"));
        assert_eq!(cursor.word(), "");
        assert_eq!(cursor.take_digits(3), None);
        assert_eq!(cursor.digits(), Some(Number { value: 12, len: 2 }));
        assert!(cursor.eat(b':'));
        assert_eq!(cursor.digits(), None);
        assert_eq!(cursor.word(), "ж");
    }

    #[test]
    fn a_number_of_any_length_is_read() {
        let text = "9".repeat(300);
        assert_eq!(DateCursor::new(&text).digits(), Some(Number { value: u32::MAX, len: 300 }));
    }

    #[test]
    fn comments_nest_and_may_be_left_open() {
        let cases = [
            ("(a)b", "a", "b"),
            ("(a (b) c) d", "a (b) c", " d"),
            ("[UTC]", "UTC", ""),
            ("(a (b", "a (b", ""),
            ("(", "", ""),
            ("(ж", "ж", ""),
        ];
        for (text, want, rest) in cases {
            let mut cursor = DateCursor::new(text);
            assert_eq!((cursor.comment(), cursor.rest()), (want, rest), "{text}");
        }
    }
}
