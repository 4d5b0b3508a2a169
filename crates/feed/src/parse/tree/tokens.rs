//! The tokenizer: built on quick-xml's scanners, and continuing where quick-xml would fail.
//!
//! quick-xml finds the ends of tags, comments and declarations; the ends of texts, references and
//! CDATA sections take one search each. The events of quick-xml are not used, because its reader
//! would validate every token as UTF-8 again and record the names of open elements.
//!
//! A tag with a missing quote ends at its first `>`. Any other construct without an end is reported
//! as [`Token::Broken`], and reading continues after its beginning. Both happen a bounded number of
//! times.

use memchr::{memchr, memchr_iter, memchr2, memchr3};
use quick_xml::events::Event;
use quick_xml::parser::{ElementParser, Parser};
use quick_xml::reader::Reader;

/// The maximum number of restarts in one document. Each may cost a search to its end.
const RESTARTS: usize = 64;

/// The start of a CDATA section.
const SECTION: &str = "<![CDATA[";

/// The end of a CDATA section.
const SECTION_END: &str = "]]>";

/// A token of a document; its content is as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'t> {
    /// The inside of a start tag; ends with `/` if the element is empty.
    Start(&'t str),
    /// The name in an end tag.
    End(&'t str),
    /// Characters, without references.
    Text(&'t str),
    /// The content of a CDATA section.
    CData(&'t str),
    /// A reference, from `&` to `;`.
    Reference(&'t str),
    /// A document type declaration, with its internal subset.
    DocType(&'t str),
    /// A construct without an end.
    Broken,
}

/// The tokens of a document.
#[derive(Debug)]
pub(super) struct Tokens<'t> {
    text: &'t str,
    /// The offset of the last token and of the next one.
    last: usize,
    next: usize,
    restarts: usize,
    has_skipped_markup: bool,
}

impl<'t> Tokens<'t> {
    pub(super) fn new(text: &'t str) -> Tokens<'t> {
        Tokens { text, last: 0, next: 0, restarts: 0, has_skipped_markup: false }
    }

    /// Returns the next token. Comments, instructions and other declarations are skipped.
    pub(super) fn next(&mut self) -> Option<Token<'t>> {
        loop {
            self.last = self.next;
            let rest = self.rest().as_bytes();
            let token = match (rest.first()?, rest.get(1)) {
                (b'<', Some(b'!')) if begins_section(rest) => self.section(),
                (b'<', Some(b'!' | b'?')) => match self.declaration() {
                    Some(None) => continue,
                    Some(doctype) => doctype,
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

    /// Returns the next `length` bytes and moves past them.
    fn advance(&mut self, length: usize) -> &'t str {
        self.next = self.last + length;
        self.text.get(self.last..self.next).unwrap_or_default()
    }

    /// Reads a start or end tag; `None` if it has no end.
    fn tag(&mut self, is_end: bool) -> Option<Token<'t>> {
        let end = ElementParser::default().feed(self.rest().as_bytes())?;
        let tag = self.advance(end + 1);
        Some(if is_end {
            Token::End(inside(tag, "</", ">").trim())
        } else {
            Token::Start(inside(tag, "<", ">"))
        })
    }

    /// Reads a reference, or a stray ampersand with the text after it.
    fn reference(&mut self) -> Token<'t> {
        let rest = self.rest().as_bytes();
        let end = memchr3(b';', b'&', b'<', &rest[1..]).map(|end| end + 1);
        match end {
            Some(end) if rest[end] == b';' => Token::Reference(self.advance(end + 1)),
            end => Token::Text(self.advance(end.unwrap_or(rest.len()))),
        }
    }

    /// Reads a CDATA section; `None` if it has no end.
    fn section(&mut self) -> Option<Token<'t>> {
        let inside_it = self.rest().get(SECTION.len()..)?;
        let end = find_section_end(inside_it)?;
        let section = self.advance(SECTION.len() + end + SECTION_END.len());
        Some(Token::CData(inside(section, SECTION, SECTION_END)))
    }

    /// Reads a document type declaration, or skips a comment, another declaration or an instruction;
    /// `None` if there is none, or it has no end.
    fn declaration(&mut self) -> Option<Option<Token<'t>>> {
        let mut reader = Reader::from_str(self.rest());
        let event = reader.read_event().ok()?;
        let read = usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX);
        let declaration = self.advance(read.min(self.text.len() - self.last));
        match event {
            Event::DocType(_) => Some(Some(Token::DocType(declaration))),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {
                let inside = declaration.as_bytes().get(1..).unwrap_or_default();
                self.has_skipped_markup |= memchr(b'<', inside).is_some();
                Some(None)
            }
            _ => None,
        }
    }

    /// Returns the offset of the last token.
    pub(super) fn start(&self) -> usize {
        self.last
    }

    /// Returns the offset at which the next token begins.
    pub(super) fn end(&self) -> usize {
        self.next
    }

    /// Moves past the next `bytes`, which the caller has read.
    pub(super) fn skip(&mut self, bytes: usize) {
        self.next += bytes;
    }

    /// Returns whether a `<` occurred inside a comment, an instruction or another declaration.
    pub(super) fn has_skipped_markup(&self) -> bool {
        self.has_skipped_markup
    }

    /// Returns the text after the last token.
    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.next..).unwrap_or_default()
    }

    /// Continues `bytes` after the beginning of the last token. Returns `false`, without moving, if
    /// the maximum number of restarts is reached.
    pub(super) fn resume(&mut self, bytes: usize) -> bool {
        let at = self.last + bytes;
        if self.restarts >= RESTARTS || !self.text.is_char_boundary(at) {
            return false;
        }
        self.begin(at);
        true
    }

    /// Handles a construct without an end: a tag with a missing quote, or unreadable text.
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

    /// Returns where to continue after a construct without an end that begins at `at`: inside a
    /// CDATA section directly after its start, otherwise at the next `<`.
    fn behind(&self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        let next = rest.get(1..).and_then(|rest| rest.find('<')).map(|found| found + 1);
        match next {
            _ if self.restarts >= RESTARTS => self.text.len(),
            _ if begins_section(rest.as_bytes()) => at + SECTION.len(),
            Some(next) => at + next,
            None => self.text.len(),
        }
    }

    fn begin(&mut self, at: usize) {
        self.restarts += 1;
        self.next = at;
    }
}

/// Returns where a CDATA section ends. Brackets are rare in texts, so that one byte is searched for.
fn find_section_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    memchr_iter(b']', bytes).find(|at| bytes[*at..].starts_with(SECTION_END.as_bytes()))
}

/// Returns whether a CDATA section begins, whose name some programs write in small letters.
fn begins_section(rest: &[u8]) -> bool {
    rest.get(..SECTION.len()).is_some_and(|start| start.eq_ignore_ascii_case(SECTION.as_bytes()))
}

/// Returns a token without its delimiters.
fn inside<'t>(token: &'t str, begin: &str, end: &str) -> &'t str {
    token.get(begin.len()..token.len().saturating_sub(end.len())).unwrap_or_default()
}
