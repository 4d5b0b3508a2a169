//! Authors, contributors and publishers.

use feedgate_feed::model::{Element, Person};
use pyo3::prelude::*;

use super::dictionary::Writer;
use super::namespaces::{OWN, is_in};

/// Sets `authors`, and the last author as `author` and `author_detail`.
pub(super) fn set_authors(authors: &[Person], writer: &Writer<'_, '_>) -> PyResult<()> {
    let stated = authors.iter().filter(|author| !is_derived(author));
    for author in stated {
        let filled = dictionary(author, writer)?;
        writer.append("authors", &filled)?;
        set_detail("author", author, writer)?;
    }
    Ok(())
}

/// Sets `contributors`.
pub(super) fn set_contributors(people: &[Person], writer: &Writer<'_, '_>) -> PyResult<()> {
    people.iter().try_for_each(|person| {
        let filled = dictionary(person, writer)?;
        writer.append("contributors", &filled)
    })
}

/// Sets a person under `key`, as one text, and under `key` and `_detail`.
pub(super) fn set_detail(key: &str, person: &Person, writer: &Writer<'_, '_>) -> PyResult<()> {
    let filled = dictionary(person, writer)?;
    writer.set_dictionary(&format!("{key}_detail"), &filled)?;
    let text = match (name(person), person.email.as_deref()) {
        (Some(name), Some(email)) => format!("{name} ({email})"),
        (Some(one), None) | (None, Some(one)) => one.to_owned(),
        (None, None) => return Ok(()),
    };
    writer.set(key, &text)
}

/// Returns the person that a text names: `ada@example.org (Ada)`, `Ada <ada@example.org>`.
pub(super) fn from_text(text: &str) -> Person {
    let marks = |c: char| c.is_whitespace() || matches!(c, '(' | ')' | '<' | '>');
    let is_email = |word: &&str| word.contains('@') && word.contains('.');
    let Some(email) = text.split(marks).find(is_email) else {
        return Person { name: text.trim().to_owned(), ..Person::default() };
    };
    let rest = text.replace(email, "").replace("()", "").replace("<>", "");
    let rest = rest.trim();
    let bare = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or(rest);
    let email = email.strip_prefix("mailto:").unwrap_or(email);
    Person { name: bare.trim().to_owned(), email: Some(email.to_owned()), ..Person::default() }
}

fn dictionary<'d, 'py>(person: &Person, writer: &Writer<'d, 'py>) -> PyResult<Writer<'d, 'py>> {
    let filled = writer.dictionary()?;
    filled.set_if_some("name", name(person))?;
    filled.set_if_some("email", person.email.as_deref())?;
    filled.set_if_some("href", person.uri.as_deref())?;
    Ok(filled)
}

/// Returns the name, unless it repeats the address.
fn name(person: &Person) -> Option<&str> {
    let name = Some(person.name.as_str()).filter(|name| !name.is_empty());
    name.filter(|_| name != person.email.as_deref() && name != person.uri.as_deref())
}

fn is_derived(person: &Person) -> bool {
    let is_mark = |element: &Element| is_in(element, OWN) && element.name == "derived";
    person.extensions.iter().any(is_mark)
}
