//! Authors: every entry gets one, as RFC 4287 requires (`#rfc.section.4.1.1`,
//! `#rfc.section.4.1.2`).
//!
//! An entry without authors gets those of its feed, written on the entry because entries are stored
//! and sent without their feed. A feed that names no author gets its title as author. That author
//! is marked as derived and set on the feed only, so that it is not mistaken for the author of an entry.
//!
//! Each author has an id, the same in Atom as in JSON, by which clients of Superfeedr know it.

use crate::context::Context;
use crate::model::{Element, Feed, Node, Person, Text};
use crate::own_elements::{self, FeedHash};
use crate::repair::{Repair, RepairCode};
use crate::short_list::push_to_short_list;
use crate::text_extraction::{self, is_printable};

use super::repeats::remove_duplicates;

/// Completes the authors and contributors of the feed and its entries.
pub(super) fn complete_authors(mut feed: Feed, context: &Context) -> Feed {
    complete_list(&mut feed.authors);
    complete_list(&mut feed.contributors);
    let stated: Vec<Person> =
        feed.authors.iter().filter(|author| !own_elements::is_derived(author)).cloned().collect();
    let inherited = first_of(&stated);
    for entry in &mut feed.entries {
        complete_list(&mut entry.authors);
        complete_list(&mut entry.contributors);
        if let Some(source) = &mut entry.source {
            complete_list(&mut source.authors);
            complete_list(&mut source.contributors);
        }
        let source_names = entry.source.as_ref().is_some_and(|source| !source.authors.is_empty());
        if entry.authors.is_empty() && !source_names {
            entry.authors = inherited.to_vec();
        }
    }
    if feed.authors.is_empty() {
        let stand_in = stand_in(&feed, context);
        let detail = stand_in.name.clone();
        feed.repairs.push(Repair::new(RepairCode::AuthorMissing, detail));
        feed.authors.push(stand_in);
    }
    identify(&mut feed);
    feed
}

/// Gives each author an id. One that is named without a URI is known by the feed that names it, which
/// is the source of a copied entry.
fn identify(feed: &mut Feed) {
    let mut of_feed = PersonIds::of_feed(&feed.id);
    for entry in &mut feed.entries {
        let mut source = entry.source.as_deref_mut();
        let id = source.as_ref().map(|source| source.id.as_str()).filter(|id| !id.is_empty());
        let mut of_other = id.map(PersonIds::of_feed);
        let ids = of_other.as_mut().unwrap_or(&mut of_feed);
        let of_source = source.iter_mut().flat_map(|source| &mut source.authors);
        entry.authors.iter_mut().chain(of_source).for_each(|author| identify_person(author, ids));
    }
    feed.authors.iter_mut().for_each(|author| identify_person(author, &mut of_feed));
}

/// The ids of the people whom one feed names.
struct PersonIds {
    home: FeedHash,
    /// The name and the URI of the person before, and its id: most entries of a feed have one author.
    last: Option<(String, Option<String>, String)>,
}

impl PersonIds {
    fn of_feed(id: &str) -> PersonIds {
        PersonIds { home: FeedHash::of_id(id), last: None }
    }

    /// Returns the id of a person who has none.
    fn generated(&mut self, person: &Person) -> String {
        if let Some((name, uri, id)) = &self.last
            && (name, uri) == (&person.name, &person.uri)
        {
            return id.clone();
        }
        let id = own_elements::generated_person_id(person, self.home);
        self.last = Some((person.name.clone(), person.uri.clone(), id.clone()));
        id
    }
}

/// Gives a person an id, or puts the one that the source states into the form of ours.
fn identify_person(person: &mut Person, ids: &mut PersonIds) {
    let Some(id) = own_elements::stated_person_id(person) else {
        let id = ids.generated(person);
        push_to_short_list(&mut person.extensions, own_elements::person_id(id));
        return;
    };
    let is_id = |element: &&mut Element| own_elements::is_person_id(element);
    if let Some(element) = person.extensions.iter_mut().find(is_id) {
        *element = own_elements::person_id(id);
    }
}

/// The maximum size of the feed's authors that are copied to each entry, in bytes: there may be
/// thousands of entries. Real feeds need a tenth of it.
const INHERITED_BYTES: usize = 16 * 1024;

/// Returns the authors that entries inherit, up to the maximum size.
fn first_of(authors: &[Person]) -> &[Person] {
    let mut bytes = 0;
    let within = authors.iter().take_while(|author| {
        bytes += size(author);
        bytes <= INHERITED_BYTES
    });
    &authors[..within.count()]
}

/// The size of a person without its texts, in bytes.
const PERSON_BYTES: usize = 256;

/// Returns the approximate size of a person, in bytes.
fn size(person: &Person) -> usize {
    fn element_size(element: &Element) -> usize {
        let attributes = element.attributes.iter();
        let attributes: usize =
            attributes.map(|held| held.namespace.len() + held.name.len() + held.value.len()).sum();
        let children = element.children.iter().map(|child| match child {
            Node::Text(text) => text.len(),
            Node::Element(child) => element_size(child),
        });
        element.namespace.len() + element.name.len() + attributes + children.sum::<usize>()
    }
    let told = [person.email.as_deref(), person.uri.as_deref()];
    let told: usize = told.into_iter().flatten().map(str::len).sum();
    PERSON_BYTES
        + person.name.len()
        + told
        + person.extensions.iter().map(element_size).sum::<usize>()
}

/// Returns the substitute author of a feed that names none: its title, or its host.
fn stand_in(feed: &Feed, context: &Context) -> Person {
    let title = feed.title.as_ref().map(Text::to_plain).filter(|title| !title.is_empty());
    let from = if title.is_some() { "title" } else { "host" };
    let host = || context.url.host_str().unwrap_or("unknown").to_owned();
    let extensions = vec![own_elements::derived_from(from)];
    Person { name: title.unwrap_or_else(host), extensions, ..Person::default() }
}

/// Drops persons without any data and duplicates, and gives each a name.
fn complete_list(people: &mut Vec<Person>) {
    people.iter_mut().for_each(complete_person);
    people.retain(|person| !person.name.is_empty());
    remove_duplicates(people);
}

/// Completes a person: a name is required, and an e-mail address must be valid (RFC 4287
/// `#rfc.section.3.2`).
fn complete_person(person: &mut Person) {
    person.name = text_extraction::collapse(&person.name);
    let tidy = |text: Option<String>| {
        text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    person.uri = tidy(person.uri.take());
    person.email = tidy(person.email.take()).filter(|email| !is_placeholder(email));
    let is_address = |email: &str| {
        let parts =
            email.split_once('@').is_some_and(|(who, host)| !who.is_empty() && !host.is_empty());
        parts && !email.contains(|c: char| c.is_whitespace() || c.is_control() || !is_printable(c))
    };
    if let Some(other) = person.email.take_if(|email| !is_address(email)) {
        // The text is not an e-mail address, so it is other information about the person.
        if person.name.is_empty() {
            person.name = text_extraction::collapse(&other);
        } else {
            person.name = text_extraction::collapse(&format!("{} ({other})", person.name));
        }
    }
    if person.name.is_empty() {
        let other = person.email.as_ref().or(person.uri.as_ref());
        let other = other.map(|other| text_extraction::collapse(other));
        person.name = other.unwrap_or_else(|| text_of(&person.extensions));
    }
}

/// Texts that programs write in place of an e-mail address.
#[rustfmt::skip]
const NO_ADDRESSES: [&str; 15] = [
    "anonymous", "email", "hidden", "n/a", "na", "nil", "no email", "noemail", "none", "null", "private",
    "undefined", "unknown", "withheld", "-",
];

/// Local parts of addresses at which nobody reads, without hyphens, dots and underscores.
const NOBODY: [&str; 5] = ["noreply", "donotreply", "noemail", "nomail", "nobody"];

/// Returns whether a text only says that there is no e-mail address.
fn is_placeholder(email: &str) -> bool {
    let email = email.to_ascii_lowercase();
    let Some((local, host)) = email.split_once('@') else {
        let word = email.trim_matches(|c: char| c != '-' && !c.is_alphanumeric());
        return word.is_empty() || NO_ADDRESSES.contains(&word);
    };
    let local: String = local.chars().filter(|c| !matches!(c, '-' | '.' | '_')).collect();
    // RFC 2606 reserves the domain for addresses that are obviously invalid.
    NOBODY.contains(&local.as_str()) || host == "invalid" || host.ends_with(".invalid")
}

/// Returns the text of extensions, for a person without any other data.
fn text_of(elements: &[Element]) -> String {
    fn gather(element: &Element, out: &mut String) {
        for child in &element.children {
            match child {
                Node::Text(text) => out.push_str(text),
                Node::Element(child) => gather(child, out),
            }
            out.push(' ');
        }
    }
    let mut out = String::new();
    elements.iter().for_each(|element| gather(element, &mut out));
    let text = text_extraction::collapse(&out);
    if text.is_empty() && !elements.is_empty() { "unknown".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Entry;
    use url::Url;

    fn person(name: &str, email: &str, uri: &str) -> Person {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Person {
            name: name.to_owned(),
            email: given(email),
            uri: given(uri),
            extensions: vec![],
            ..Person::default()
        }
    }

    fn settled(authors: Vec<Person>) -> Feed {
        let context = Context::new(Url::parse("https://a.test/feed").unwrap());
        let entries = vec![Entry::default()];
        let title = Some(Text::plain("Tides"));
        complete_authors(Feed { title, authors, entries, ..Feed::default() }, &context)
    }

    fn without_ids(people: &[Person]) -> Vec<Person> {
        let plain = |person: &Person| Person { extensions: vec![], ..person.clone() };
        people.iter().map(plain).collect()
    }

    #[test]
    fn n11_an_author_keeps_the_id_that_it_has() {
        let stated = |namespace: &str| Element {
            namespace: namespace.to_owned(),
            name: "id".to_owned(),
            children: vec![Node::Text(" urn:x:jo ".to_owned())],
            ..Element::default()
        };
        let jo = person("Jo", "", "https://jo.test/");
        let of = |person: Person| own_elements::stated_person_id(&settled(vec![person]).authors[0]);
        let known = "http://www.w3.org/2005/Atom";
        let with = |namespace| Person { extensions: vec![stated(namespace)], ..jo.clone() };
        assert_eq!(of(with(known)).as_deref(), Some("urn:x:jo"));
        assert_eq!(of(with("urn:x")).as_deref(), Some("https://jo.test/"));
        let (one, same) = (of(person("Jo", "", "")), of(person("Jo", "jo@a.test", "")));
        assert_eq!(one, same);
        assert_ne!(one, of(person("Bo", "", "")));
        let again = settled(settled(vec![with(known)]).authors);
        assert_eq!(again.authors[0].extensions.len(), 1, "{:?}", again.authors);
    }

    #[test]
    fn a_person_has_a_name() {
        let cases = [
            (person("  Jo \n Doe ", "", ""), person("Jo Doe", "", "")),
            (person("", "jo@a.test", ""), person("jo@a.test", "jo@a.test", "")),
            (person("", "", "http://a.test"), person("http://a.test", "", "http://a.test")),
            (person("Jo", "nowhere", ""), person("Jo (nowhere)", "", "")),
            (person("Jo", "-", "http://a.test"), person("Jo", "", "http://a.test")),
        ];
        for (given, want) in cases {
            assert_eq!(without_ids(&settled(vec![given]).authors), [want]);
        }
    }

    #[test]
    fn n4_a_placeholder_is_no_address() {
        let placeholders = [
            "hidden",
            "(hidden)",
            " None ",
            "N/A",
            "noreply@blogger.com",
            "No-Reply@a.test",
            "do_not_reply@a.test",
            "jo@a.invalid",
        ];
        for email in placeholders {
            let known = settled(vec![person("Jo", email, "")]).authors;
            assert_eq!(without_ids(&known), [person("Jo", "", "")]);
            let nobody = settled(vec![person("", email, "")]).authors;
            assert_eq!(without_ids(&nobody), [person("Tides", "", "")], "{email} is nobody");
        }
        for email in ["noreplies@a.test", "reply@a.test", "invalid@a.test", "none@a.test"] {
            let known = settled(vec![person("Jo", email, "")]).authors;
            assert_eq!(without_ids(&known), [person("Jo", email, "")]);
        }
    }

    #[test]
    fn an_entry_has_no_more_of_the_authors_of_its_feed_than_it_can_bear() {
        let long = person(&"J".repeat(INHERITED_BYTES), "", "");
        let named = settled(vec![person("Jo", "", ""), long]);
        assert_eq!(without_ids(&named.entries[0].authors), [person("Jo", "", "")]);
        assert_eq!(named.authors.len(), 2);
    }

    #[test]
    fn an_entry_has_the_authors_of_its_feed_but_never_the_stand_in() {
        let named = settled(vec![person("Jo", "", "")]);
        assert_eq!(named.entries[0].authors, named.authors);

        let unnamed = settled(vec![person("", "", "")]);
        assert_eq!(without_ids(&unnamed.authors), [person("Tides", "", "")]);
        assert!(unnamed.entries[0].authors.is_empty());
        let again = settled(unnamed.authors);
        assert!(again.entries[0].authors.is_empty(), "told from an author when read back");
    }
}
