//! Repairs and adaptations of a document on a page: in the words of `docs/normalizer.md`, with their codes.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use maud::{Markup, html};

use crate::http::kit::html::parts::counted;
use feedgate_core::redaction;
use feedgate_feed::repair::Repair;

const DOCUMENT: &str = include_str!("../../../docs/normalizer.md");
/// The maximum length of the detail of a repair, in characters.
const DETAIL_CHARS: usize = 160;

/// What was wrong, by the code of the repair: the second cell of the rows of the table.
static CAUSES: LazyLock<HashMap<&str, String>> = LazyLock::new(|| {
    let (_, repairs) = DOCUMENT.split_once("\n## Repairs\n").unwrap_or_default();
    let rows = repairs.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    rows.filter_map(|(code, row)| Some((code, row.split_once(" | ")?.0.replace('`', "")))).collect()
});

/// Returns what was wrong with a document in which a repair has this code, or the code if that is not known.
pub(crate) fn cause(code: &str) -> &str {
    CAUSES.get(code).map_or(code, String::as_str)
}

/// How often a document needed the same.
pub(crate) struct RepairCount {
    code: &'static str,
    count: u64,
    /// The detail of the first one.
    detail: String,
}

impl RepairCount {
    /// Counts repairs by their codes.
    pub(crate) fn by_code(repairs: &[&Repair]) -> Vec<RepairCount> {
        let mut counts: BTreeMap<&'static str, RepairCount> = BTreeMap::new();
        for repair in repairs {
            let code = repair.code.as_str();
            let detail = || redaction::line(&repair.detail, DETAIL_CHARS);
            let counted = counts.entry(code);
            let counted =
                counted.or_insert_with(|| RepairCount { code, count: 0, detail: detail() });
            counted.count += 1;
        }
        counts.into_values().collect()
    }
}

/// Returns repairs of one kind, each on a line.
pub(crate) fn lines(counts: &[RepairCount]) -> Markup {
    html! {
        @for (n, RepairCount { code, count, detail }) in counts.iter().enumerate() {
            @if n > 0 { br; }
            (cause(code))
            @if !detail.is_empty() { ": " (detail) }
            @if *count > 1 { small { " (" (counted(*count, "time")) ")" } }
            " " code { (code) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedgate_feed::repair::RepairCode;

    #[test]
    fn every_code_has_words() {
        for code in RepairCode::ALL {
            let words = cause(code.as_str());
            assert!(words.contains(' ') && !words.contains(['`', '|', '[']), "{code}: {words}");
        }
        assert_eq!(cause("id_not_an_iri"), "an id is not an IRI");
        assert_eq!(cause("no_such_code"), "no_such_code");
    }

    #[test]
    fn the_same_repair_is_listed_once() {
        let repairs = [1, 2].map(|n| Repair::new(RepairCode::IdNotAnIri, format!("<{n}>")));
        let counts = RepairCount::by_code(&repairs.iter().collect::<Vec<_>>());
        let text = lines(&counts).into_string().replace('\u{a0}', " ");
        assert!(text.contains("an id is not an IRI: &lt;1&gt;<small> (2 times)"), "{text}");
        assert!(text.ends_with("<code>id_not_an_iri</code>"), "{text}");
    }
}
