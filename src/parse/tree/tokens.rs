//! Text → tokens, by quick-xml, going on where it would give up.
//!
//! All quick-xml does for us is to find where tags, texts and references begin and end.
//! A tag in which a quote is missing ends at its first `>`; anything else that never ends
//! is reported as [`Token::Broken`], and reading goes on behind its beginning. Both are
//! done a bounded number of times.

use quick_xml::events::Event;
use quick_xml::reader::Reader;

/// How often reading begins anew in one document. Each time may cost a search to its
/// end.
const RESTARTS: usize = 64;

/// A piece of a document. What is in it is as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'t> {
    /// What is inside a start tag.
    Start(&'t str),
    /// What is inside the tag of an empty element.
    Empty(&'t str),
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
    reader: Reader<&'t [u8]>,
    /// Where in the text the reader began.
    origin: usize,
    /// Where in the text the last token began, and where the next one begins.
    last: usize,
    next: usize,
    restarts: usize,
}

impl<'t> Tokens<'t> {
    pub(super) fn of(text: &'t str) -> Tokens<'t> {
        Tokens { text, reader: reader(text), origin: 0, last: 0, next: 0, restarts: 0 }
    }

    /// The next token; comments and the like are passed over.
    pub(super) fn next(&mut self) -> Option<Token<'t>> {
        loop {
            self.last = self.next;
            let event = self.reader.read_event();
            let read = usize::try_from(self.reader.buffer_position()).unwrap_or(usize::MAX);
            self.next = self.origin.saturating_add(read).min(self.text.len());
            let token = self.text.get(self.last..self.next).unwrap_or_default();
            return Some(match event {
                Ok(Event::Start(_)) => Token::Start(inside(token, 1, 1)),
                Ok(Event::Empty(_)) => Token::Empty(inside(token, 1, 1)),
                Ok(Event::End(_)) => Token::End(inside(token, 2, 1).trim()),
                Ok(Event::Text(_)) => Token::Text(token),
                Ok(Event::CData(_)) => Token::CData(inside(token, 9, 3)),
                Ok(Event::GeneralRef(_)) => Token::Reference(token),
                Ok(Event::Eof) => return None,
                Ok(Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_)) => {
                    continue;
                }
                Err(_) => return Some(self.broken()),
            });
        }
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
            _ if rest.starts_with("<![CDATA[") => at + "<![CDATA[".len(),
            Some(next) => at + next,
            None => self.text.len(),
        }
    }

    fn begin(&mut self, at: usize) {
        self.restarts += 1;
        (self.origin, self.next) = (at, at);
        self.reader = reader(self.text.get(at..).unwrap_or_default());
    }
}

fn reader(text: &str) -> Reader<&[u8]> {
    let mut reader = Reader::from_str(text);
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    config.allow_dangling_amp = true;
    reader
}

/// A token without what it begins and ends with.
fn inside(token: &str, begin: usize, end: usize) -> &str {
    token.get(begin..token.len().saturating_sub(end)).unwrap_or_default()
}
