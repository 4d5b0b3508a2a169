//! The parser of queries.
//!
//! ```text
//! any     = all { "|" all }
//! all     = member { ["+"] member }
//! member  = ["-"] ( word | phrase | "(" any ")" ) | flag
//! ```
//!
//! A flag applies to the whole query, so it may not be inside parentheses.

use super::expression::{Expression, Term};
use super::places::{HostPattern, LinkPattern};
use super::{Flags, Query};

/// The most terms and flags of a query: each is looked for in every entry.
const MAX_MEMBERS: usize = 100;
/// The maximum depth of parentheses.
const MAX_DEPTH: usize = 16;
/// The names of the flags.
const FLAGS: [&str; 6] = ["site", "link", "language", "popularity", "porn", "bozo"];

/// Why a text is not a query, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// There is no query.
    #[error("the query is empty")]
    Empty,
    /// The text is too long.
    #[error("the query is longer than {} bytes", Query::MAX_BYTES)]
    TooLong,
    /// There are too many terms.
    #[error("the query has more than {MAX_MEMBERS} terms")]
    TooManyTerms,
    /// There are parentheses inside parentheses inside …
    #[error("the query has parentheses more than {MAX_DEPTH} deep")]
    TooDeep,
    /// Nothing is required of an entry.
    #[error("the query requires nothing of an entry: add a word, a phrase, site: or link:")]
    NothingRequired,
    /// A term without a letter or digit.
    #[error("{0} contains no letter or digit to search for")]
    NoWord(String),
    /// A quotation mark without its counterpart.
    #[error("a quotation mark is not closed")]
    UnclosedQuote,
    /// A parenthesis without its counterpart.
    #[error("a parenthesis is not closed")]
    UnclosedParenthesis,
    /// A closing parenthesis without an opening one.
    #[error("a parenthesis is closed that was not opened")]
    UnopenedParenthesis,
    /// An operator without an operand.
    #[error("{0} has no term to apply to")]
    NoOperand(char),
    /// A flag that may be used once is used twice.
    #[error("{0}: may be used only once")]
    Repeated(&'static str),
    /// A flag inside parentheses.
    #[error("{0}: applies to the whole query, so it may not be inside parentheses")]
    FlagInParentheses(&'static str),
    /// A flag that cannot be negated.
    #[error("-{0}: is not possible")]
    NotNegatable(&'static str),
    /// A flag with a value that it cannot have.
    #[error("{flag}: must be followed by {expected}, not {value:?}")]
    BadValue {
        /// The name of the flag.
        flag: &'static str,
        /// What its value may be.
        expected: &'static str,
        /// The value.
        value: String,
    },
    /// An unknown flag.
    #[error("{0}: is not a flag; put the text in quotation marks to search for it")]
    UnknownFlag(String),
}

/// Parses a query.
pub(super) fn parse(text: &str) -> Result<Query, QueryError> {
    if text.len() > Query::MAX_BYTES {
        return Err(QueryError::TooLong);
    }
    if text.trim().is_empty() {
        return Err(QueryError::Empty);
    }
    let tokens = tokens(text)?;
    if tokens.iter().filter(|token| matches!(token, Token::Word(_) | Token::Quoted(_))).count()
        > MAX_MEMBERS
    {
        return Err(QueryError::TooManyTerms);
    }
    let mut parser = Parser { tokens: tokens.into_iter().peekable(), flags: Flags::default() };
    let expression = parser.any(0)?;
    if parser.tokens.next().is_some() {
        return Err(QueryError::UnopenedParenthesis);
    }
    let mut flags = parser.flags;
    flags.not_sites.sort_unstable();
    flags.not_sites.dedup();
    flags.not_links.sort_unstable();
    flags.not_links.dedup();
    flags.not_languages.sort_unstable();
    flags.not_languages.dedup();
    let query = Query { expression, flags };
    if query.required_keys(&|_| 0).is_none() {
        return Err(QueryError::NothingRequired);
    }
    Ok(query)
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Open,
    Close,
    Or,
    Not,
    Quoted(String),
    Word(String),
}

/// Splits a query into its tokens. A `+` is dropped, because a space has the same meaning.
fn tokens(text: &str) -> Result<Vec<Token>, QueryError> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let mut length = first.len_utf8();
        match first {
            '(' => tokens.push(Token::Open),
            ')' => tokens.push(Token::Close),
            '|' => tokens.push(Token::Or),
            '+' => {}
            '-' => tokens.push(Token::Not),
            '"' => {
                let end = rest[1..].find('"').ok_or(QueryError::UnclosedQuote)?;
                tokens.push(Token::Quoted(rest[1..=end].to_owned()));
                length = end + 2;
            }
            _ => {
                let ends = |c: char| c.is_whitespace() || matches!(c, '(' | ')' | '|' | '"');
                length = rest.find(ends).unwrap_or(rest.len());
                tokens.push(Token::Word(rest[..length].to_owned()));
            }
        }
        rest = &rest[length..];
        if first == '-' && rest.starts_with(|c: char| c.is_whitespace() || matches!(c, '-' | '+')) {
            return Err(QueryError::NoOperand('-'));
        }
        rest = rest.trim_start();
    }
    Ok(tokens)
}

struct Parser {
    tokens: std::iter::Peekable<std::vec::IntoIter<Token>>,
    flags: Flags,
}

impl Parser {
    fn any(&mut self, depth: usize) -> Result<Expression, QueryError> {
        let mut operands = vec![self.all(depth)?];
        while self.tokens.next_if_eq(&Token::Or).is_some() {
            operands.push(self.all(depth)?);
        }
        if operands.len() > 1 && operands.iter().any(Expression::is_empty) {
            return Err(QueryError::NoOperand('|'));
        }
        Ok(Expression::any(operands))
    }

    fn all(&mut self, depth: usize) -> Result<Expression, QueryError> {
        let mut operands = Vec::new();
        loop {
            let is_negated = self.tokens.next_if_eq(&Token::Not).is_some();
            let ends = |token: &Token| matches!(token, Token::Or | Token::Close);
            if self.tokens.peek().is_none_or(ends) {
                return match is_negated {
                    true => Err(QueryError::NoOperand('-')),
                    false => Ok(Expression::all(operands)),
                };
            }
            if let Some(operand) = self.member(is_negated, depth)? {
                operands.push(match is_negated {
                    true => Expression::not(operand),
                    false => operand,
                });
            }
        }
    }

    /// Parses a member without its sign. Returns `None` for a flag.
    fn member(&mut self, is_negated: bool, depth: usize) -> Result<Option<Expression>, QueryError> {
        let term = match self.tokens.next() {
            Some(Token::Open) => return self.group(depth).map(Some),
            Some(Token::Quoted(text)) => {
                Term::quoted(&text).ok_or_else(|| QueryError::NoWord(format!("\"{text}\"")))
            }
            Some(Token::Word(text)) => match flag(&text)? {
                Some((flag, _)) if depth > 0 => return Err(QueryError::FlagInParentheses(flag)),
                Some((flag, value)) => {
                    return self.set_flag(flag, value, is_negated).map(|()| None);
                }
                None => Term::unquoted(&text).ok_or(QueryError::NoWord(text)),
            },
            _ => return Err(QueryError::NoOperand('-')),
        };
        term.map(|term| Some(Expression::Term(term)))
    }

    fn group(&mut self, depth: usize) -> Result<Expression, QueryError> {
        if depth == MAX_DEPTH {
            return Err(QueryError::TooDeep);
        }
        let inner = self.any(depth + 1)?;
        if self.tokens.next() != Some(Token::Close) {
            return Err(QueryError::UnclosedParenthesis);
        }
        match inner.is_empty() {
            true => Err(QueryError::NoWord("()".to_owned())),
            false => Ok(inner),
        }
    }

    fn set_flag(
        &mut self,
        flag: &'static str,
        value: &str,
        is_negated: bool,
    ) -> Result<(), QueryError> {
        let flags = &mut self.flags;
        let bad = |expected| QueryError::BadValue { flag, expected, value: value.to_owned() };
        let once = |is_set: bool| if is_set { Err(QueryError::Repeated(flag)) } else { Ok(()) };
        match (flag, is_negated) {
            ("site", _) => {
                let site = HostPattern::parse(value).ok_or_else(|| bad("a host name"))?;
                match is_negated {
                    true => flags.not_sites.push(site),
                    false => once(flags.site.replace(site).is_some())?,
                }
            }
            ("link", _) => {
                let link =
                    LinkPattern::parse(value).ok_or_else(|| bad("a host name or an address"))?;
                match is_negated {
                    true => flags.not_links.push(link),
                    false => once(flags.link.replace(link).is_some())?,
                }
            }
            ("language", _) => {
                let is_code = (2..=3).contains(&value.len())
                    && value.bytes().all(|byte| byte.is_ascii_alphabetic());
                let language = is_code.then(|| value.to_ascii_lowercase());
                let language = language.ok_or_else(|| bad("the code of a language such as en"))?;
                match is_negated {
                    true => flags.not_languages.push(language),
                    false => once(flags.language.replace(language).is_some())?,
                }
            }
            (_, true) => return Err(QueryError::NotNegatable(flag)),
            ("popularity", false) => {
                let number = value.strip_prefix('>').and_then(|number| number.parse::<f64>().ok());
                let number = number.filter(|number| number.is_finite());
                let number = number.ok_or_else(|| bad("> and a number"))?;
                once(flags.popularity.replace(number).is_some())?;
            }
            ("porn", false) if value == "ok" => flags.is_porn_ok = true,
            ("bozo", false) if value == "ok" => flags.is_bozo_ok = true,
            _ => return Err(bad("ok")),
        }
        Ok(())
    }
}

/// Returns the flag and its value, if a word has the form of one. A web address has not.
fn flag(word: &str) -> Result<Option<(&'static str, &str)>, QueryError> {
    let Some((name, value)) = word.split_once(':') else { return Ok(None) };
    let known = FLAGS.into_iter().find(|flag| flag.eq_ignore_ascii_case(name));
    if let Some(flag) = known {
        return Ok(Some((flag, value)));
    }
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic());
    match is_name && !value.is_empty() && !value.starts_with("//") {
        true => Err(QueryError::UnknownFlag(name.to_owned())),
        false => Ok(None),
    }
}
