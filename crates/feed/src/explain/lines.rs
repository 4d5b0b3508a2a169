//! Conversion of byte offsets into lines and columns.

/// The distance between cached character counts, in bytes. A whole document may be one line, so
/// counting from the start of the line would be too slow.
const BLOCK_BYTES: usize = 1024;

/// A text with an index of its lines.
#[derive(Debug)]
pub(super) struct LineIndex<'t> {
    text: &'t str,
    /// The byte offsets at which lines begin.
    begins: Vec<usize>,
    /// The number of characters before each block.
    characters: Vec<usize>,
}

/// A position in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// The line, from 1.
    pub(super) line: usize,
    /// The column in characters, from 1.
    pub(super) column: usize,
    /// The offset in bytes, from 0.
    pub(super) byte: usize,
}

impl<'t> LineIndex<'t> {
    pub(super) fn new(text: &'t str) -> LineIndex<'t> {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let begins = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        let mut characters = vec![0];
        for block in text.as_bytes().chunks(BLOCK_BYTES) {
            let before = characters.last().copied().unwrap_or_default();
            characters.push(before + starts(block));
        }
        LineIndex { text, begins, characters }
    }

    pub(super) fn position(&self, byte: usize) -> Position {
        let byte = byte.min(self.text.len());
        let line = self.begins.partition_point(|begin| *begin <= byte).max(1);
        let begin = self.begins.get(line - 1).copied().unwrap_or_default();
        Position { line, column: self.before(byte) - self.before(begin) + 1, byte }
    }

    /// Returns the number of characters that begin before a byte offset.
    fn before(&self, byte: usize) -> usize {
        let block = byte / BLOCK_BYTES;
        let known = self.characters.get(block).copied().unwrap_or_default();
        known + starts(&self.text.as_bytes()[block * BLOCK_BYTES..byte])
    }
}

/// Returns the number of characters that begin in `bytes`.
fn starts(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_however_long_the_line() {
        let long = "é".repeat(3 * BLOCK_BYTES);
        let text = format!("ab\n{long}<x>\n");
        let lines = LineIndex::new(&text);
        #[rustfmt::skip]
        let cases = [
            ("the beginning", 0,                        1, 1),
            ("in a line",     1,                        1, 2),
            ("its end",       2,                        1, 3),
            ("the next line", 3,                        2, 1),
            ("far out",       text.find('<').unwrap(),  2, 3 * BLOCK_BYTES + 1),
            ("the last line", text.len(),               3, 1),
            ("beyond",        text.len() + 9,           3, 1),
        ];
        for (why, byte, line, column) in cases {
            let found = lines.position(byte);
            assert_eq!((found.line, found.column), (line, column), "{why}");
        }
        assert_eq!(LineIndex::new("").position(0), Position { line: 1, column: 1, byte: 0 });
    }
}
