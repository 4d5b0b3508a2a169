//! What one revision of an entry changed of another, word by word.
//!
//! Both were written by others, so each text is compared as far as [`LONGEST_BYTES`], all of them together for at
//! most [`DEADLINE`], after which the rest counts as replaced, and little of what is equal is displayed.

use std::time::{Duration, Instant};

use maud::{Markup, html};
use similar::{ChangeTag, TextDiff};

use feedgate_core::record::Record;
use feedgate_core::resource::Resource;
use feedgate_core::stored_entry::read_records;
use feedgate_feed::model::{Content, Entry, Text};

/// The most of a text that is compared, in bytes.
const LONGEST_BYTES: usize = 32 << 10;
/// How long two revisions are compared.
const DEADLINE: Duration = Duration::from_millis(100);
/// The most characters at each end of an equal part that are displayed, and of a changed part.
const CONTEXT_CHARS: usize = 80;
const CHANGED_CHARS: usize = 1_000;
/// The most parts of a field that are displayed, and the most bytes of them.
const PARTS: usize = 200;
const DISPLAYED_BYTES: usize = 12 << 10;
/// The field of the markup, which is compared if the text that people read is the same.
const MARKUP: &str = "Markup";

/// What changed.
pub(super) struct Comparison {
    fields: Vec<FieldChange>,
}

/// What changed of a field.
struct FieldChange {
    name: &'static str,
    parts: Vec<(ChangeTag, String)>,
    /// Whether more changed than is displayed.
    is_cut: bool,
}

/// Compares two revisions of an entry.
pub(super) fn compare(resource: &Resource, older: &Record, newer: &Record) -> Comparison {
    let deadline = Instant::now() + DEADLINE;
    let [old, new] = [older, newer].map(|record| {
        let feed = read_records(resource, std::slice::from_ref(record));
        feed.entries.first().map_or_else(|| texts(&Entry::default()), texts)
    });
    let fields = old.iter().zip(&new).filter_map(|((name, old), (_, new))| {
        FieldChange::between(name, (old.as_str(), new.as_str()), deadline)
    });
    let mut fields: Vec<FieldChange> = fields.collect();
    if fields.iter().any(|field| field.name == "Content") {
        fields.retain(|field| field.name != MARKUP);
    }
    Comparison { fields }
}

impl Comparison {
    /// Returns the table of the fields that differ.
    pub(super) fn table(&self) -> Markup {
        html! {
            @if self.fields.is_empty() { p { "Nothing that is displayed here differs." } } @else {
                table.records.changes {
                    thead { tr { th scope="col" { "Field" } th scope="col" { "Change" } } }
                    tbody { @for field in &self.fields {
                        tr {
                            td data-name="" { b { (field.name) } }
                            td data-name="Change" { (field.text()) }
                        }
                    } }
                }
            }
        }
    }
}

impl FieldChange {
    fn between(
        name: &'static str,
        (old, new): (&str, &str),
        deadline: Instant,
    ) -> Option<FieldChange> {
        if old == new {
            return None;
        }
        let is_long = old.len().max(new.len()) > LONGEST_BYTES;
        let (old, new) = (beginning(old), beginning(new));
        let diff = TextDiff::configure().deadline(deadline).diff_words(old, new);
        let mut parts: Vec<(ChangeTag, String)> = Vec::new();
        for change in diff.iter_all_changes() {
            match parts.last_mut() {
                Some((tag, text)) if *tag == change.tag() => text.push_str(change.value()),
                _ => parts.push((change.tag(), change.value().to_owned())),
            }
        }
        let all = parts.len();
        let parts = displayed(parts);
        Some(FieldChange { name, is_cut: is_long || parts.len() < all, parts })
    }

    fn text(&self) -> Markup {
        html! {
            @for (tag, text) in &self.parts {
                @match tag {
                    ChangeTag::Equal => (text),
                    ChangeTag::Delete => del { (text) },
                    ChangeTag::Insert => ins { (text) },
                }
            }
            @if self.is_cut { " " small { "Only the beginning is displayed." } }
        }
    }
}

/// Returns the first parts of a change, each as far as it is displayed.
fn displayed(parts: Vec<(ChangeTag, String)>) -> Vec<(ChangeTag, String)> {
    let mut bytes = 0;
    let shortened = parts.into_iter().map(|(tag, text)| {
        let chars = if tag == ChangeTag::Equal { CONTEXT_CHARS } else { CHANGED_CHARS };
        (tag, shortened(&text, chars))
    });
    let fitting = shortened.take_while(|(_, text)| {
        bytes += text.len();
        bytes <= DISPLAYED_BYTES
    });
    fitting.take(PARTS).collect()
}

/// Returns the first and the last words of a text, of so many characters each at most.
fn shortened(text: &str, chars: usize) -> String {
    if text.chars().count() <= 2 * chars {
        return text.to_owned();
    }
    let beginning: String = text.chars().take(chars).collect();
    let end = text.char_indices().rev().nth(chars - 1).map_or("", |(at, _)| &text[at..]);
    let space = char::is_whitespace;
    let beginning = beginning.rsplit_once(space).map_or(&*beginning, |(words, _)| words);
    let end = end.split_once(space).map_or(end, |(_, words)| words);
    format!("{beginning} … {end}")
}

fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST_BYTES)]
}

/// Returns the texts of an entry that people read.
fn texts(entry: &Entry) -> Vec<(&'static str, String)> {
    let plain = |text: &Option<Text>| text.as_ref().map(Text::to_plain).unwrap_or_default();
    let content = match &entry.content {
        Some(Content::Text(text)) => text.to_plain(),
        Some(Content::Media { value, .. } | Content::Xml { value, .. }) => value.clone(),
        Some(Content::Src { href, .. }) => href.clone(),
        None => String::new(),
    };
    let markup = match &entry.content {
        Some(Content::Text(text)) => text.value.clone(),
        _ => String::new(),
    };
    let time = |at: Option<chrono::DateTime<chrono::FixedOffset>>| {
        at.map(|at| at.to_rfc3339()).unwrap_or_default()
    };
    let lines = |texts: Vec<&str>| texts.join("\n");
    let links = entry.links.iter().map(|link| link.href.as_str()).collect();
    let authors = entry.authors.iter().map(|author| author.name.as_str()).collect();
    let categories = entry.categories.iter().map(|category| category.term.as_str()).collect();
    vec![
        ("Title", plain(&entry.title)),
        ("Published", time(entry.published)),
        ("Updated", time(entry.updated)),
        ("Links", lines(links)),
        ("Authors", lines(authors)),
        ("Categories", lines(categories)),
        ("Summary", plain(&entry.summary)),
        ("Content", content),
        (MARKUP, markup),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(old: &str, new: &str) -> String {
        let deadline = Instant::now() + DEADLINE;
        let change = FieldChange::between("Content", (old, new), deadline);
        change.map(|change| change.text().into_string()).unwrap_or_default()
    }

    #[test]
    fn c08_what_changed_is_marked_word_by_word_and_never_as_markup() {
        #[rustfmt::skip]
        let cases = [
            ("High at noon.",  "High at noon.", ""),
            ("High at noon.",  "Low at noon.",  "<del>High</del><ins>Low</ins> at noon."),
            ("",               "<b>new</b>",    "<ins>&lt;b&gt;new&lt;/b&gt;</ins>"),
            ("a <i>",          "a c",           "a <del>&lt;i&gt;</del><ins>c</ins>"),
        ];
        for (old, new, want) in cases {
            assert_eq!(change(old, new), want, "{old} {new}");
        }
        let long = "word ".repeat(1_000);
        let text = change(&format!("{long}old"), &format!("{long}new"));
        assert!(
            text.len() < 1_000 && text.contains(" … ") && text.contains("<ins>new</ins>"),
            "{text}"
        );
        assert!(text.starts_with("word ") && text.contains("word … word"), "{text}");
    }

    #[test]
    fn c08_a_hostile_pair_costs_little_and_is_displayed_in_part() {
        let text = |seed: usize| {
            let words = (0..200_000).map(|n| format!("{} ", (n * 7_919 + seed * n * n) % 101));
            words.collect::<String>()
        };
        let (old, new) = (text(1), text(3));
        let text = change(&old, &new);
        assert!(text.len() < 100_000 && text.contains("Only the beginning"), "{}", text.len());
    }
}
