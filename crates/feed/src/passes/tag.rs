//! The attributes of a start tag in HTML, read as leniently as browsers do.

use memchr::memchr;

/// A start tag that is being read, from the end of its name.
pub(super) struct StartTag<'a> {
    pub(super) html: &'a str,
    pub(super) at: usize,
}

pub(super) struct TagAttribute<'a> {
    pub(super) name: &'a str,
    /// The range of the value, without quotes; empty if the attribute has none.
    pub(super) value: (usize, usize),
    pub(super) is_quoted: bool,
}

impl<'a> StartTag<'a> {
    /// Returns the next attribute; `None` at the end of the tag.
    pub(super) fn next_attribute(&mut self) -> Option<TagAttribute<'a>> {
        loop {
            self.skip(|byte| byte.is_ascii_whitespace() || byte == b'/');
            if let None | Some(b'>' | b'<') = self.html.as_bytes().get(self.at) {
                return None;
            }
            let rest = &self.html[self.at..];
            let length = name_length(rest);
            if length == 0 {
                // A stray quote or equals sign is not a name.
                self.at += rest.chars().next().map_or(0, char::len_utf8);
                continue;
            }
            let name = &rest[..length];
            self.at += length;
            let end = self.at;
            self.skip(|byte| byte.is_ascii_whitespace());
            if self.html.as_bytes().get(self.at) != Some(&b'=') {
                return Some(TagAttribute { name, value: (end, end), is_quoted: true });
            }
            self.at += 1;
            self.skip(|byte| byte.is_ascii_whitespace());
            return self.value().map(|(value, is_quoted)| TagAttribute { name, value, is_quoted });
        }
    }

    fn value(&mut self) -> Option<((usize, usize), bool)> {
        let rest = &self.html[self.at..];
        if let Some(quote) = rest.bytes().next().filter(|byte| matches!(byte, b'"' | b'\'')) {
            let from = self.at + 1;
            let to = from + memchr(quote, &self.html.as_bytes()[from..])?;
            self.at = to + 1;
            return Some(((from, to), true));
        }
        let ends = |byte: u8| byte.is_ascii_whitespace() || byte == b'>';
        let from = self.at;
        self.at += rest.bytes().position(ends).unwrap_or(rest.len());
        Some(((from, self.at), false))
    }

    /// Skips bytes that satisfy `what`, which must be ASCII.
    fn skip(&mut self, what: impl Fn(u8) -> bool) {
        let rest = &self.html.as_bytes()[self.at..];
        self.at += rest.iter().position(|byte| !what(*byte)).unwrap_or(rest.len());
    }
}

/// The bytes that end the name of a tag or an attribute.
const ENDS_NAME: [bool; 256] = {
    let mut ends = [false; 256];
    let mut byte = 0_u8;
    while byte < 0x80 {
        ends[byte as usize] =
            byte.is_ascii_whitespace() || matches!(byte, b'=' | b'/' | b'>' | b'<' | b'"' | b'\'');
        byte += 1;
    }
    ends
};

/// Returns the length of the name of a tag or an attribute.
pub(super) fn name_length(text: &str) -> usize {
    text.bytes().position(ends_name).unwrap_or(text.len())
}

/// Returns whether a byte ends the name of a tag or an attribute.
pub(super) fn ends_name(byte: u8) -> bool {
    ENDS_NAME[usize::from(byte)]
}
