//! Parsing of persons written as one text.
//!
//! RSS has one text for a person where Atom has three elements. The forms are `a@b.test (Name)`,
//! `Name (a@b.test)`, `Name <a@b.test>`, the address alone, the name alone, and any of these with a
//! web address instead. Some programs write it as HTML, often with a link.

use std::borrow::Cow;

use crate::model::Person;
use crate::text_extraction::{decode, plain};

/// Brackets and separators to trim from a name.
const AROUND: [char; 15] =
    ['(', ')', '<', '>', '[', ']', '"', ',', ';', ':', '（', '）', '<', '>', '\u{a0}'];

/// Parses a person; `None` if the text names nobody.
pub(super) fn person(text: &str) -> Option<Person> {
    let mut person = Person::default();
    let mut text = Cow::Borrowed(text.trim());
    // A name has no markup, no e-mail address and no web address.
    if !text.bytes().any(|byte| matches!(byte, b'<' | b'@' | b':')) {
        let name = text.into_owned();
        return (!name.is_empty()).then_some(Person { name, ..person });
    }
    if is_html(&text) {
        let target = link_target(&text);
        text = Cow::Owned(plain(&text));
        if let Some(target) = target {
            match target.strip_prefix("mailto:") {
                None => person.uri = Some(target),
                Some(address) if email(&text).is_none() => {
                    let address = address.split('?').next().unwrap_or_default();
                    text = Cow::Owned(format!("{address} {text}"));
                }
                Some(_) => {}
            }
        }
    }
    let text = text.as_ref();
    let mut rest = text.to_owned();
    if let Some((from, to)) = email(text) {
        person.email = Some(text[from..to].to_owned());
        rest = join(&text[..from], &text[to..]);
        if rest.to_ascii_lowercase().contains("mailto:") {
            let at = rest.to_ascii_lowercase().find("mailto:").unwrap_or(0);
            rest.replace_range(at..at + "mailto:".len(), "");
        }
    } else if person.uri.is_none()
        && let Some((from, to)) = address(text)
    {
        person.uri = Some(text[from..to].to_owned());
        rest = join(&text[..from], &text[to..]);
    }
    let found = person.email.is_some() || person.uri.is_some();
    person.name = if found { bare(&rest) } else { text.to_owned() };
    let somebody = found || !person.name.is_empty();
    somebody.then_some(person)
}

/// Returns whether a text is HTML: it has an end tag.
fn is_html(text: &str) -> bool {
    text.match_indices("</")
        .any(|(at, _)| text[at + 2..].starts_with(|c: char| c.is_ascii_alphabetic()))
}

/// Returns where the first link in HTML leads, if that is a web or e-mail address.
fn link_target(html: &str) -> Option<String> {
    let (_, value) = html.split_once("href=")?;
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let target = decode(value[1..].split(quote).next()?).trim().to_owned();
    let is_address =
        ["http://", "https://", "mailto:"].iter().any(|scheme| target.starts_with(scheme));
    is_address.then_some(target)
}

/// Joins the texts before and after an address; usually only one of them is a name.
fn join(before: &str, after: &str) -> String {
    let (before, after) = (before.trim(), after.trim());
    if before.is_empty() || after.is_empty() {
        return format!("{before}{after}");
    }
    format!("{before} {after}")
}

/// Returns a name without the brackets around the removed address.
fn bare(text: &str) -> String {
    let text = text.replace("()", "").replace("<>", "").replace("[]", "");
    let name = text.trim_matches(|c: char| c.is_whitespace() || AROUND.contains(&c));
    let closing = name.matches('(').count() > name.matches(')').count();
    if closing { format!("{name})") } else { name.to_owned() }
}

/// Returns the range of an e-mail address in a text.
fn email(text: &str) -> Option<(usize, usize)> {
    let local = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~.".contains(c);
    let domain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    for (at, _) in text.match_indices('@') {
        let before = &text[..at];
        let from = before
            .rfind(|c| !local(c))
            .map_or(0, |end| end + before[end..].chars().next().map_or(1, char::len_utf8));
        let after = &text[at + 1..];
        let to = after.find(|c| !domain(c)).unwrap_or(after.len());
        let host = after[..to].trim_end_matches(['.', '-']);
        if from < at && !host.is_empty() && !before[from..].contains("//") {
            return Some((from, at + 1 + host.len()));
        }
    }
    None
}

/// Returns the range of a web address in a text.
fn address(text: &str) -> Option<(usize, usize)> {
    let from = text.find("http://").or_else(|| text.find("https://"))?;
    let end = |c: char| c.is_whitespace() || matches!(c, '<' | '>' | '(' | ')' | '"' | ',');
    let to = text[from..].find(end).map_or(text.len(), |length| from + length);
    Some((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_read_out_of_one_text() {
        #[rustfmt::skip]
        let cases = [
            ("ada@tides.test (Ada L.)",       "Ada L.",       Some("ada@tides.test"), None),
            ("Ada L. (ada@tides.test)",       "Ada L.",       Some("ada@tides.test"), None),
            ("Ada L. <ada@tides.test>",       "Ada L.",       Some("ada@tides.test"), None),
            ("\"Ada L.\" <ada@tides.test>",   "Ada L.",       Some("ada@tides.test"), None),
            ("ada@tides.test",                "",             Some("ada@tides.test"), None),
            ("mailto:ada@tides.test",         "",             Some("ada@tides.test"), None),
            ("Ada L.",                        "Ada L.",       None,                   None),
            ("Ada L. (Tides)",                "Ada L. (Tides)", None,                 None),
            ("山田（yamada@tides.test）",      "山田",          Some("yamada@tides.test"), None),
            ("José\u{a0}jose@tides.test",     "José",         Some("jose@tides.test"), None),
            ("http://tides.test/ada",         "",             None,                   Some("http://tides.test/ada")),
            ("Ada (http://tides.test/ada)",   "Ada",          None,                   Some("http://tides.test/ada")),
            ("@ada",                          "@ada",         None,                   None),
            ("<b>Ada</b> &amp; Bo",           "Ada & Bo",     None,                   None),
            ("<a href=\"http://tides.test/?a&amp;b\" rel='author'>Ada</a>", "Ada", None, Some("http://tides.test/?a&b")),
            ("<a href='mailto:ada@tides.test'>Ada</a>", "Ada", Some("ada@tides.test"), None),
            ("<a href='/ada'>Ada</a>",        "Ada",          None,                   None),
        ];
        for (text, name, email, uri) in cases {
            let found = person(text).unwrap();
            let found = (found.name.as_str(), found.email.as_deref(), found.uri.as_deref());
            assert_eq!(found, (name, email, uri), "{text}");
        }
        assert_eq!(person("  "), None);
    }
}
