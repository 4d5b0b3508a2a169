//! Repairs and adaptations of a document on a page: in the words of `docs/normalizer.md`, with their codes.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::normalizer_words::cause;
use crate::http::kit::html::parts::counted;
use feedgate_core::redaction;
use feedgate_feed::repair::Repair;

/// The maximum length of the detail of a repair, in characters.
const DETAIL_CHARS: usize = 160;

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
    fn the_same_repair_is_listed_once() {
        let repairs = [1, 2].map(|n| Repair::new(RepairCode::IdNotAnIri, format!("<{n}>")));
        let counts = RepairCount::by_code(&repairs.iter().collect::<Vec<_>>());
        let text = lines(&counts).into_string().replace('\u{a0}', " ");
        assert!(text.contains("an id is not an IRI: &lt;1&gt;<small> (2 times)"), "{text}");
        assert!(text.ends_with("<code>id_not_an_iri</code>"), "{text}");
    }
}
