//! Repairs: the faults of a document that were repaired, and the reliability they indicate.
//!
//! A sound document may need to be adapted as well, because Atom requires more than its format, or
//! because this program has limits. That is no fault: see [`RepairCode::is_adaptation`].
//!
//! Codes never change once released. `docs/normalizer.md` lists them with their weights; a test
//! compares the two.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use crate::trace_id::TraceId;

/// A fault of a document that was repaired, or an adaptation of a sound one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Repair {
    /// The kind of fault.
    pub code: RepairCode,
    /// Details of the fault, in a few words.
    pub detail: String,
    /// The byte offset of the first occurrence in the text, if known.
    pub byte: Option<usize>,
    /// The value in which the fault was found; set only in an explanation.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub trace_id: TraceId,
}

impl Repair {
    /// Creates a repair of the document as a whole.
    pub fn new(code: RepairCode, detail: impl Into<String>) -> Repair {
        Repair { code, detail: detail.into(), byte: None, trace_id: TraceId::default() }
    }

    /// Returns the repair with the byte offset of its first occurrence.
    pub fn at(self, byte: usize) -> Repair {
        Repair { byte: Some(byte), ..self }
    }

    /// Returns the repair with the trace id of the value it was found in.
    pub fn within(self, trace_id: TraceId) -> Repair {
        Repair { trace_id, ..self }
    }
}

/// The weight of a kind of repair in the bozo rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RepairWeight {
    /// Counts once for the document, however often it occurs: 0 to 1.
    Once(f64),
    /// Counts by the share of affected entries: 0 to 1 if all entries are affected.
    Share(f64),
}

/// Declares one kind per line: its variant, its code and its weight.
macro_rules! codes {
    ($($name:ident $code:literal $weight:ident($heavy:literal),)*) => {
        /// The kinds of repairs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum RepairCode {
            $(#[doc = concat!("`", $code, "`")] $name,)*
        }

        impl RepairCode {
            /// All kinds, in the order of `docs/normalizer.md`.
            pub const ALL: &[RepairCode] = &[$(RepairCode::$name,)*];

            /// Returns the stable code.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(RepairCode::$name => $code,)*
                }
            }

            /// Returns the weight in the bozo rank.
            pub const fn weight(self) -> RepairWeight {
                match self {
                    $(RepairCode::$name => RepairWeight::$weight($heavy),)*
                }
            }
        }
    };
}

// The rank measures whether the content of a feed can be relied on: "probably valid syntactically
// but likely invalid semantically" (seed 003, "bozo_rank"). So syntax errors weigh little,
// unreliable ids and dates weigh much, and missing optional elements and the limits of this program
// weigh nothing.
codes! {
    WrongCharset "wrong_charset" Once(0.05),
    BadBytes "bad_bytes" Once(0.1),
    GuessedCharset "guessed_charset" Once(0.1),
    ControlCharacters "control_characters" Once(0.05),
    DoubleEncoded "double_encoded" Once(0.1),
    BareLessThan "bare_less_than" Once(0.05),
    BareAmpersand "bare_ampersand" Once(0.05),
    UnknownEntity "unknown_entity" Once(0.05),
    UndeclaredEntity "undeclared_entity" Once(0.05),
    OutsideRoot "outside_root" Once(0.05),
    LateDeclaration "late_declaration" Once(0.05),
    UnclosedToken "unclosed_token" Once(0.1),
    UnclosedQuote "unclosed_quote" Once(0.1),
    NestedCdata "nested_cdata" Once(0.05),
    LoneSurrogate "lone_surrogate" Once(0.05),
    UnmatchedEnd "unmatched_end" Once(0.1),
    MissingEnd "missing_end" Once(0.1),
    Truncated "truncated" Once(0.1),
    CutEntry "cut_entry" Once(0.1),
    UnquotedAttribute "unquoted_attribute" Once(0.05),
    DuplicateAttribute "duplicate_attribute" Once(0.05),
    AttributeWithoutValue "attribute_without_value" Once(0.05),
    OddAttribute "odd_attribute" Once(0.05),
    UndeclaredPrefix "undeclared_prefix" Once(0.05),
    TooDeep "too_deep" Once(0.1),
    PageCut "page_cut" Once(0.0),
    TooManyEntries "too_many_entries" Once(0.0),
    TooManyNodes "too_many_nodes" Once(0.0),
    OversizedExtension "oversized_extension" Once(0.0),
    BrokenJson "broken_json" Once(0.1),
    BadDate "bad_date" Share(0.3),
    LinkDropped "link_dropped" Share(0.1),
    DateMissing "date_missing" Share(0.1),
    DateInFuture "date_in_future" Share(0.3),
    DateBeforeFeeds "date_before_feeds" Share(0.3),
    IdNotAnIri "id_not_an_iri" Share(0.0),
    IdFromLink "id_from_link" Share(0.05),
    IdGenerated "id_generated" Share(0.6),
    IdRepeated "id_repeated" Share(0.6),
    EntryRepeated "entry_repeated" Share(0.2),
    AuthorMissing "author_missing" Once(0.0),
}

impl RepairCode {
    /// Returns whether a sound document was adapted, to what Atom requires or to the limits of this
    /// program. All others are faults that were repaired.
    pub fn is_adaptation(self) -> bool {
        use RepairCode as Code;
        matches!(
            self,
            Code::PageCut
                | Code::TooManyEntries
                | Code::TooManyNodes
                | Code::OversizedExtension
                | Code::DateMissing
                | Code::IdNotAnIri
                | Code::IdFromLink
                | Code::AuthorMissing
        )
    }
}

/// Returns the faults that were repaired under the word `repaired`, and the adaptations under `adapted`.
pub fn by_kind(repairs: &[Repair]) -> [(&'static str, Vec<&Repair>); 2] {
    let (adaptations, faults) = repairs.iter().partition(|repair| repair.code.is_adaptation());
    [("repaired", faults), ("adapted", adaptations)]
}

/// Returns the words of [`by_kind`], each with its codes, sorted and each once. A word without codes is left
/// out.
pub fn codes_by_kind(repairs: &[Repair]) -> Vec<(&'static str, Vec<&'static str>)> {
    let kinds = by_kind(repairs).into_iter().filter(|(_, found)| !found.is_empty());
    let codes = |found: Vec<&Repair>| -> BTreeSet<&str> {
        found.into_iter().map(|repair| repair.code.as_str()).collect()
    };
    kinds.map(|(word, found)| (word, codes(found).into_iter().collect())).collect()
}

/// Returns the codes of the faults that were repaired and of the adaptations on one line:
/// `repaired: a, b; adapted: c`. Empty if there are none.
pub fn listed_codes(repairs: &[Repair]) -> String {
    let kinds = codes_by_kind(repairs).into_iter();
    let listed = kinds.map(|(word, codes)| format!("{word}: {}", codes.join(", ")));
    listed.collect::<Vec<String>>().join("; ")
}

/// The error of a word that is not the code of a repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownRepairCode;

impl fmt::Display for UnknownRepairCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown repair code")
    }
}

impl std::error::Error for UnknownRepairCode {}

impl FromStr for RepairCode {
    type Err = UnknownRepairCode;

    fn from_str(word: &str) -> Result<RepairCode, UnknownRepairCode> {
        RepairCode::ALL.iter().find(|code| code.as_str() == word).copied().ok_or(UnknownRepairCode)
    }
}

impl fmt::Display for RepairCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Returns the bozo rank of a feed with this many entries: 0 to 1, in steps of 0.01 (seed 003). The
/// greater it is, the less reliable the feed.
///
/// Each kind of repair takes its weight off the remainder to 1, so every fault counts, however
/// grave the others are, and the rank never exceeds 1.
pub fn bozo_rank(repairs: &[Repair], entries: usize) -> f64 {
    let mut counts: BTreeMap<RepairCode, usize> = BTreeMap::new();
    for repair in repairs {
        *counts.entry(repair.code).or_default() += 1;
    }
    let entries = entries.max(1);
    let taken = counts.into_iter().map(|(code, count)| match code.weight() {
        RepairWeight::Once(weight) => weight,
        RepairWeight::Share(weight) => weight * (count.min(entries) as f64 / entries as f64),
    });
    let left: f64 = taken.map(|taken| 1.0 - taken).product();
    // No feed has the rank 1, which is nearly reached by rounding: some of it was read.
    ((1.0 - left) * 100.0).round().min(99.0) / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rank_grows_with_what_cannot_be_relied_on() {
        type Case<'c> = (&'c str, &'c [(RepairCode, usize)], usize, f64);
        use RepairCode::{AuthorMissing, DateMissing, IdGenerated, MissingEnd, TooManyEntries};
        #[rustfmt::skip]
        let cases: [Case<'_>; 9] = [
            ("nothing was wrong",             &[],                                      10, 0.0),
            ("nothing that anybody asks for", &[(AuthorMissing, 1), (TooManyEntries, 1)], 10, 0.0),
            ("a slip of the pen",             &[(MissingEnd, 1)],                       10, 0.1),
            ("however often it is told",      &[(MissingEnd, 7)],                       10, 0.1),
            ("one entry in ten",              &[(IdGenerated, 1)],                      10, 0.06),
            ("half of the entries",           &[(IdGenerated, 5)],                      10, 0.3),
            ("all of them",                   &[(IdGenerated, 10)],                     10, 0.6),
            ("and more besides",              &[(IdGenerated, 10), (DateMissing, 10)],  10, 0.64),
            ("a feed without entries",        &[(DateMissing, 3)],                       0, 0.1),
        ];
        for (why, found, entries, want) in cases {
            let repairs = found
                .iter()
                .flat_map(|(code, count)| std::iter::repeat_n(Repair::new(*code, "x"), *count));
            let repairs: Vec<Repair> = repairs.collect();
            assert_eq!(bozo_rank(&repairs, entries), want, "{why}");
        }
    }

    #[test]
    fn everything_wrong_at_once_stays_below_one() {
        let all: Vec<Repair> = RepairCode::ALL.iter().map(|code| Repair::new(*code, "x")).collect();
        let rank = bozo_rank(&all, 1);
        assert!((0.9..1.0).contains(&rank), "{rank}");
    }
}
