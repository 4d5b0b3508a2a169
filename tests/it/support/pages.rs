//! The pages under `docs/`, and the blocks of code in them.

use std::fs;
use std::path::Path;

/// The text of a page, which is named from the root of the repository.
pub(crate) fn read(page: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(page)).unwrap()
}

/// Each block of code in a text, with the word of its fence.
pub(crate) fn blocks(text: &str) -> Vec<(&str, String)> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(fence) = line.strip_prefix("```") else { continue };
        let block = lines.by_ref().take_while(|line| *line != "```");
        blocks.push((fence, block.flat_map(|line| [line, "\n"]).collect()));
    }
    blocks
}
