//! Text → tokens, on quick-xml's scanners, going on where it would give up.
//!
//! All quick-xml does for us is to find where tags, comments and declarations end; where
//! texts, references and CDATA sections do is one search each. That is why its events are
//! not used for those: it would check every token for being UTF-8 once more, and keep the
//! names of open elements.
//!
//! A tag in which a quote is missing ends at its first `>`; anything else that never ends
//! is reported as [`Token::Broken`], and reading goes on behind its beginning. Both are
//! done a bounded number of times.

use memchr::memmem;
use memchr::{memchr2, memchr3};
use quick_xml::events::Event;
use quick_xml::parser::{ElementParser, Parser};
use quick_xml::reader::Reader;

/// How often reading begins anew in one document. Each time may cost a search to its
/// end.
const RESTARTS: usize = 64;

/// What begins a CDATA section.
const SECTION: &str = "<![CDATA[";

/// What ends it.
const SECTION_END: &str = "]]>";

/// A piece of a document. What is in it is as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'t> {
    /// What is inside a start tag; it ends with `/` if the element is empty.
    Start(&'t str),
    /// The name in an end tag.
    End(&'t str),
    /// Characters, without references.
    Text(&'t str),
    /// What is inside a CDATA section.
    CData(&'t str),
    /// A reference, from `&` to `;`.
    Reference(&'t str),
    /// Something that never ends.
    Broken,
}

/// The tokens of a document.
#[derive(Debug)]
pub(super) struct Tokens<'t> {
    text: &'t str,
    /// Where in the text the last token began, and where the next one begins.
    last: usize,
    next: usize,
    restarts: usize,
}

impl<'t> Tokens<'t> {
    pub(super) fn new(text: &'t str) -> Tokens<'t> {
        Tokens { text, last: 0, next: 0, restarts: 0 }
    }

    /// The next token; comments and the like are passed over.
    pub(super) fn next(&mut self) -> Option<Token<'t>> {
        loop {
            self.last = self.next;
            let rest = self.rest().as_bytes();
            let token = match (rest.first()?, rest.get(1)) {
                (b'<', Some(b'!')) if rest.starts_with(SECTION.as_bytes()) => self.section(),
                (b'<', Some(b'!' | b'?')) => match self.passed_over() {
                    Some(()) => continue,
                    None => None,
                },
                (b'<', second) => self.tag(second == Some(&b'/')),
                (b'&', _) => Some(self.reference()),
                _ => {
                    let length = memchr2(b'<', b'&', rest).unwrap_or(rest.len());
                    Some(Token::Text(self.advance(length)))
                }
            };
            return Some(token.unwrap_or_else(|| self.broken()));
        }
    }

    /// The next `length` bytes.
    fn advance(&mut self, length: usize) -> &'t str {
        self.next = self.last + length;
        self.text.get(self.last..self.next).unwrap_or_default()
    }

    /// A start or an end tag; `None` if it does not end.
    fn tag(&mut self, is_end: bool) -> Option<Token<'t>> {
        let end = ElementParser::default().feed(self.rest().as_bytes())?;
        let tag = self.advance(end + 1);
        Some(if is_end {
            Token::End(inside(tag, "</", ">").trim())
        } else {
            Token::Start(inside(tag, "<", ">"))
        })
    }

    /// A reference, or an ampersand with the text behind it.
    fn reference(&mut self) -> Token<'t> {
        let rest = self.rest().as_bytes();
        let end = memchr3(b';', b'&', b'<', &rest[1..]).map(|end| end + 1);
        match end {
            Some(end) if rest[end] == b';' => Token::Reference(self.advance(end + 1)),
            end => Token::Text(self.advance(end.unwrap_or(rest.len()))),
        }
    }

    /// A CDATA section; `None` if it does not end.
    fn section(&mut self) -> Option<Token<'t>> {
        let inside_it = self.rest().get(SECTION.len()..)?;
        let end = memmem::find(inside_it.as_bytes(), SECTION_END.as_bytes())?;
        let section = self.advance(SECTION.len() + end + SECTION_END.len());
        Some(Token::CData(inside(section, SECTION, SECTION_END)))
    }

    /// A comment, a declaration or an instruction; `None` if it is none, or does not end.
    fn passed_over(&mut self) -> Option<()> {
        let mut reader = Reader::from_str(self.rest());
        let event = reader.read_event().ok()?;
        let read = usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX);
        self.advance(read.min(self.text.len() - self.last));
        let known =
            matches!(event, Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_));
        known.then_some(())
    }

    /// Where the last token begins.
    pub(super) fn start(&self) -> usize {
        self.last
    }

    /// What follows the last token.
    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.next..).unwrap_or_default()
    }

    /// Reads on `bytes` behind the beginning of the last token. `false` says that this
    /// was done too often: reading goes on where it was.
    pub(super) fn resume(&mut self, bytes: usize) -> bool {
        let at = self.last + bytes;
        if self.restarts >= RESTARTS || !self.text.is_char_boundary(at) {
            return false;
        }
        self.begin(at);
        true
    }

    /// What never ends: a tag in which a quote is missing, or nothing that can be read.
    fn broken(&mut self) -> Token<'t> {
        let rest = self.text.get(self.last..).unwrap_or_default();
        let tag = rest.get(1..).filter(|tag| tag.starts_with(char::is_alphabetic));
        let end =
            tag.and_then(|tag| tag.find(['<', '>']).filter(|end| tag[*end..].starts_with('>')));
        if let (Some(tag), Some(end)) = (tag, end)
            && self.resume(1 + end + 1)
        {
            return Token::Start(&tag[..end]);
        }
        let next = self.behind(self.last);
        self.begin(next);
        Token::Broken
    }

    /// Where to go on after something that never ends and begins at `at`: inside a
    /// CDATA section, at the next `<` otherwise.
    fn behind(&self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        let next = rest.get(1..).and_then(|rest| rest.find('<')).map(|found| found + 1);
        match next {
            _ if self.restarts >= RESTARTS => self.text.len(),
            _ if rest.starts_with(SECTION) => at + SECTION.len(),
            Some(next) => at + next,
            None => self.text.len(),
        }
    }

    fn begin(&mut self, at: usize) {
        self.restarts += 1;
        self.next = at;
    }
}

/// A token without what it begins and ends with.
fn inside<'t>(token: &'t str, begin: &str, end: &str) -> &'t str {
    token.get(begin.len()..token.len().saturating_sub(end.len())).unwrap_or_default()
}
