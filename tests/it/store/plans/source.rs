//! The SQL constants in the source of the store.

use super::statements::plain;
use crate::architecture::{Source, sources};

/// A constant, or a text in a function, that is a statement or a part of statements.
#[derive(Debug)]
pub(super) struct Constant {
    /// The file and the name; that of the function or the macro, if it has no name.
    pub(super) name: String,
    /// Whether it is part of several statements.
    pub(super) is_shared: bool,
    /// The texts in it, with single spaces.
    texts: Vec<String>,
}

impl Constant {
    /// Whether all its texts are part of a statement.
    pub(super) fn is_in(&self, statement: &str) -> bool {
        self.texts.iter().all(|text| statement.contains(text.as_str()))
    }

    fn is_sql(&self) -> bool {
        let text = format!("{} ", self.texts.join(" "));
        let words = WORDS.iter().filter(|word| text.contains(*word)).count();
        words > 1 || VERBS.iter().any(|verb| text.starts_with(verb))
    }

    /// The length of its texts.
    pub(super) fn len(&self) -> usize {
        self.texts.iter().map(String::len).sum()
    }
}

/// The words with which a statement begins.
const VERBS: [&str; 5] = ["select ", "update ", "insert into ", "delete from ", "with recursive "];
/// Words of which a part of a statement has at least two.
const WORDS: [&str; 9] = [
    " from ",
    " where ",
    " order by ",
    " limit ",
    " and ",
    " case when ",
    " end",
    " join ",
    " set ",
];
/// Files without statements of the store: `sql.rs` has the words of templates, and the files of
/// `engine/postgres` name no table.
const LEFT_OUT: [&str; 2] = ["engine/sql.rs", "engine/postgres"];

/// All SQL constants of the store.
pub(super) fn constants() -> Vec<Constant> {
    let files = sources("crates/store/src").into_iter();
    let files = files.filter(|source| !LEFT_OUT.iter().any(|file| source.name.contains(file)));
    files.flat_map(|source| constants_of(&source)).collect()
}

fn constants_of(source: &Source) -> Vec<Constant> {
    let file = source.name.trim_start_matches("crates/store/src/").to_owned();
    let mut constants = Vec::new();
    let (mut is_named, mut is_shared, mut around) = (false, false, String::new());
    for item in items(&source.text) {
        match item {
            Item::Constant(name) => {
                let name = format!("{file} {name}");
                constants.push(Constant { name, is_shared: false, texts: Vec::new() });
                is_named = true;
            }
            Item::Begin { name, is_macro } => (around, is_shared) = (name, is_macro),
            Item::End => is_named = false,
            Item::Text { text, is_format } => {
                if !is_named {
                    let name = format!("{file} {around}");
                    constants.push(Constant { name, is_shared, texts: Vec::new() });
                }
                let texts = parts(&text, is_format);
                constants.last_mut().unwrap().texts.extend(texts);
            }
        }
    }
    constants.retain(Constant::is_sql);
    constants
}

/// The parts of a text between its placeholders; one without placeholders is its only part.
fn parts(text: &str, is_format: bool) -> Vec<String> {
    if !is_format {
        return vec![plain(text)];
    }
    let text = text.replace("{{", "\u{1}").replace("}}", "\u{2}");
    let mut parts = Vec::new();
    for part in text.split('{') {
        let part = part.split_once('}').map_or(part, |(_, rest)| rest);
        parts.push(plain(&part.replace('\u{1}', "{").replace('\u{2}', "}")));
    }
    parts
}

/// What is looked for in a source file.
enum Item {
    /// A constant whose type is a text begins.
    Constant(String),
    /// A function or a macro begins.
    Begin { name: String, is_macro: bool },
    /// A statement of Rust ends.
    End,
    /// A text between quotes.
    Text { text: String, is_format: bool },
}

/// The items of a source file above its tests, in their order. Texts about failures, which only
/// people read, are left out.
fn items(source: &str) -> Vec<Item> {
    let source = source.split("#[cfg(test)]").next().unwrap_or_default();
    let mut items = Vec::new();
    let mut at = 0;
    while let Some(first) = source[at..].chars().next() {
        let rest = &source[at..];
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if let Some(name) = rest.strip_prefix("const ") {
            let (name, kind) = name.split_once(':').unwrap_or_default();
            if kind.trim_start().starts_with("&str") {
                items.push(Item::Constant(name.to_owned()));
            }
            at += "const ".len();
        } else if let Some(name) =
            ["fn ", "macro_rules! "].iter().find_map(|w| rest.strip_prefix(w))
        {
            let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(0);
            let is_macro = rest.starts_with("macro_rules!");
            items.push(Item::Begin { name: name[..end].to_owned(), is_macro });
            at += "fn ".len();
        } else if first == '"' {
            let before = source[..at].trim_end();
            let is_format = before.ends_with("format!(");
            let is_failure = ["Corrupt(", "#[error(", "expect(", "Err(", "error!("];
            let (text, length) = quoted(rest);
            if !is_failure.iter().any(|call| before.ends_with(call)) {
                items.push(Item::Text { text, is_format });
            }
            at += length;
        } else if rest.starts_with("'\"'") {
            at += 3;
        } else {
            if first == ';' {
                items.push(Item::End);
            }
            at += first.len_utf8();
        }
    }
    items
}

/// The text between the quotes with which `rest` begins, and its length with the quotes.
fn quoted(rest: &str) -> (String, usize) {
    let (mut text, mut chars) = (String::new(), rest.char_indices().skip(1));
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (text, at + 1),
            '\\' => match chars.next() {
                // A backslash at the end of a line swallows the spaces of the next.
                Some((_, '\n')) => text.push(' '),
                Some((_, c)) => text.push(c),
                None => {}
            },
            c => text.push(c),
        }
    }
    (text, rest.len())
}
