//! What is wrong with a document that somebody wants stored.

/// What is wrong with a document, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {what}")]
pub struct DocumentFault {
    /// Counted from 1.
    pub line: usize,
    /// Characters from the start of the line, counted from 1.
    pub column: usize,
    /// A clause without a full stop.
    pub what: String,
}

impl DocumentFault {
    /// At this byte of the text.
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
