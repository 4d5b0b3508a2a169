//! Expressions over terms: what the words of an entry must be.

use std::fmt;

use super::entry_text::EntryText;
use super::words::{folded, normal_form, words};

/// An expression over terms, in its normal form: operands are sorted, no operand occurs twice, and
/// no operation has a single operand or one of its own kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Expression {
    /// One term.
    Term(Term),
    /// All of the operands; of none, every entry matches.
    All(Vec<Expression>),
    /// At least one of the operands.
    Any(Vec<Expression>),
    /// An exclusion.
    Not(Box<Expression>),
}

/// Consecutive words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Term {
    /// The words as they are compared.
    words: Vec<String>,
    /// The words as they are written, if their case is compared too.
    exact: Option<Vec<String>>,
}

impl Expression {
    /// Returns the conjunction of `operands`.
    pub(super) fn all(operands: Vec<Expression>) -> Expression {
        let mut flat = Vec::new();
        for operand in operands {
            match operand {
                Expression::All(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        normal(flat, Expression::All)
    }

    /// Returns the disjunction of `operands`.
    pub(super) fn any(operands: Vec<Expression>) -> Expression {
        let mut flat = Vec::new();
        for operand in operands {
            match operand {
                Expression::Any(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        normal(flat, Expression::Any)
    }

    /// Returns the exclusion of `operand`.
    pub(super) fn not(operand: Expression) -> Expression {
        match operand {
            Expression::Not(inner) => *inner,
            other => Expression::Not(Box::new(other)),
        }
    }

    /// Returns whether nothing is required of the words.
    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Expression::All(operands) if operands.is_empty())
    }

    /// Returns whether an entry has the words.
    pub(super) fn matches(&self, entry: &EntryText) -> bool {
        match self {
            Expression::Term(term) => entry.contains(&term.words, term.exact.as_deref()),
            Expression::All(operands) => operands.iter().all(|operand| operand.matches(entry)),
            Expression::Any(operands) => operands.iter().any(|operand| operand.matches(entry)),
            Expression::Not(operand) => !operand.matches(entry),
        }
    }

    /// Returns words of which every matching entry has at least one: the cheapest such set. `None`
    /// if no word is required.
    pub(super) fn required_keys(&self, cost: &dyn Fn(&str) -> usize) -> Option<Vec<String>> {
        match self {
            Expression::Term(term) => {
                cheapest(term.words.iter().map(|word| vec![word.clone()]), cost)
            }
            Expression::All(operands) => {
                cheapest(operands.iter().filter_map(|operand| operand.required_keys(cost)), cost)
            }
            Expression::Any(operands) => {
                let sets: Option<Vec<_>> =
                    operands.iter().map(|operand| operand.required_keys(cost)).collect();
                let mut keys = sets?.concat();
                keys.sort_unstable();
                keys.dedup();
                Some(keys)
            }
            Expression::Not(_) => None,
        }
    }
}

/// Returns the cheapest set of keys. Of sets that cost the same it is the one with the longest key,
/// because long words are rare in texts.
pub(super) fn cheapest(
    sets: impl Iterator<Item = Vec<String>>,
    cost: &dyn Fn(&str) -> usize,
) -> Option<Vec<String>> {
    sets.min_by_key(|keys| {
        let sum: usize = keys.iter().map(|key| cost(key)).sum();
        let longest = keys.iter().map(|key| key.len()).max().unwrap_or_default();
        (sum, keys.len(), usize::MAX - longest)
    })
}

impl Term {
    /// Returns the words as they are compared.
    pub(super) fn words(&self) -> &[String] {
        &self.words
    }

    /// Returns the term that a text without quotes means; `None` if it contains no word.
    pub(super) fn unquoted(text: &str) -> Option<Term> {
        let text = normal_form(text);
        let words: Vec<String> = words(&text).map(folded).collect();
        (!words.is_empty()).then_some(Term { words, exact: None })
    }

    /// Returns the term that a text in quotes means. One in capitals is compared as it is written.
    pub(super) fn quoted(text: &str) -> Option<Term> {
        let term = Term::unquoted(text)?;
        let text = normal_form(text);
        let is_in_capitals =
            text.contains(char::is_uppercase) && !text.contains(char::is_lowercase);
        let exact = is_in_capitals.then(|| words(&text).map(str::to_owned).collect());
        Some(Term { exact, ..term })
    }
}

fn normal(mut operands: Vec<Expression>, make: fn(Vec<Expression>) -> Expression) -> Expression {
    operands.sort_unstable();
    operands.dedup();
    match operands.len() {
        1 => operands.remove(0),
        _ => make(operands),
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expression::Term(term) => term.fmt(f),
            Expression::All(operands) => {
                let texts = operands.iter().map(|operand| match operand {
                    Expression::Any(_) => format!("({operand})"),
                    _ => operand.to_string(),
                });
                f.write_str(&texts.collect::<Vec<_>>().join(" "))
            }
            Expression::Any(operands) => {
                let texts = operands.iter().map(Expression::to_string);
                f.write_str(&texts.collect::<Vec<_>>().join(" | "))
            }
            Expression::Not(operand) => match **operand {
                Expression::Term(_) => write!(f, "-{operand}"),
                _ => write!(f, "-({operand})"),
            },
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.exact {
            Some(exact) => write!(f, "\"{}\"", exact.join(" ")),
            None if self.words.len() == 1 => f.write_str(&self.words[0]),
            None => write!(f, "\"{}\"", self.words.join(" ")),
        }
    }
}
