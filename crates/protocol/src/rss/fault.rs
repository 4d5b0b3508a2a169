//! Faults of a document that is submitted for storage.

/// A fault of a document, with its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {what}")]
pub struct DocumentFault {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The fault, as a clause without a full stop.
    pub what: String,
}

impl DocumentFault {
    /// Creates a fault at a byte offset of `text`.
    pub(super) fn at(text: &str, at: usize, what: String) -> DocumentFault {
        let mut at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let before = &text[..at];
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        DocumentFault { line, column: before[start..].chars().count() + 1, what }
    }
}
