//! Where the fields of an entry came from: the elements of the document, and what was repaired. This is
//! known as long as the newest document of the feed contains the entry. Also for entries that are not
//! stored: [`DocumentOrigins`].

use maud::{Markup, html};
use serde_json::Value;

use crate::http::kit::html::parts::counted;
use crate::http::kit::rejection::Rejection;
use crate::http::routes::console::stored_document;
use crate::http::routes::console::visit::Visit;
use crate::http::routes::normalizer_words::{cause, change_of_field};
use feedgate_core::record::Record;
use feedgate_core::redaction;
use feedgate_core::resource::{Resource, ResourceKind};
use feedgate_feed::{Body, Context, explain};

/// The maximum length of an excerpt, in characters.
const EXCERPT_CHARS: usize = 120;
/// The maximum number of fields, and of repairs of each kind, on a page. An entry has some twenty fields,
/// but may have thousands of categories.
const MOST_LISTED: usize = 60;

/// What is known of the origin of an entry.
pub(super) enum Explained {
    /// Nothing, for the reason in this sentence.
    Unknown(&'static str),
    /// The origin of each field, and the repairs.
    Found(EntrySource),
}

/// The origin of an entry.
pub(crate) struct EntrySource {
    /// The element of the entry.
    place: Option<Place>,
    /// The first fields.
    fields: Vec<FieldOrigin>,
    /// The number of all fields.
    field_count: usize,
    repairs: Vec<EntryRepair>,
    adaptations: Vec<EntryRepair>,
}

/// A place in a document.
struct Place {
    path: String,
    line: Option<u64>,
    column: Option<u64>,
    /// The beginning of the element.
    excerpt: String,
}

/// The origin of a field.
struct FieldOrigin {
    name: String,
    place: Option<Place>,
    /// The steps that changed the field: in which way, and with the pass before it.
    steps: Vec<(String, String)>,
}

/// A repair of the entry, or an adaptation.
struct EntryRepair {
    code: String,
    detail: String,
    place: Option<Place>,
}

impl Explained {
    /// Reads the newest document of a feed and finds the entry in it.
    pub(super) async fn read(
        visit: &Visit,
        resource: &Resource,
        record: &Record,
    ) -> Result<Explained, Rejection> {
        if resource.kind == ResourceKind::Collection {
            return Ok(Explained::Unknown(
                "The entry was received from another feed, whose page explains it.",
            ));
        }
        let (of, record) = (resource.clone(), record.clone());
        let found = stored_document::examine(visit, resource, move |body| find(body, &of, &record));
        Ok(match found.await? {
            Err(reason) => Explained::Unknown(reason),
            Ok(None) => Explained::Unknown(
                "The document that had the entry is no longer stored: the newest one does not \
                 contain it.",
            ),
            Ok(Some(source)) => Explained::Found(source),
        })
    }

    /// Returns the origin as a part of the page.
    pub(super) fn section(&self) -> Markup {
        match self {
            Explained::Unknown(reason) => html! { p { (reason) } },
            Explained::Found(origin) => html! {
                (origin.section("newest document"))
                (origin.repair_list())
            },
        }
    }
}

fn find(body: &Body, resource: &Resource, record: &Record) -> Option<EntrySource> {
    let context = stored_document::context(resource, body, record.at);
    DocumentOrigins::read(&body.bytes, &context)?.find_entry(&record.entry_id)
}

/// The origins of all entries of a document.
pub(crate) struct DocumentOrigins<'d> {
    document: Document<'d>,
    /// The ids of the entries, in their order.
    ids: Vec<String>,
    explained: Value,
}

impl<'d> DocumentOrigins<'d> {
    /// Reads a document; `None` if it is not a feed.
    pub(crate) fn read(bytes: &'d [u8], context: &Context) -> Option<DocumentOrigins<'d>> {
        let explained = explain(bytes, context).ok()?;
        let ids = explained.feed().entries.iter().map(|entry| entry.id.clone()).collect();
        let document = Document { text: std::str::from_utf8(bytes).ok() };
        Some(DocumentOrigins { document, ids, explained: explained.to_json() })
    }

    /// Returns the origin of the entry with this id.
    pub(crate) fn find_entry(&self, id: &str) -> Option<EntrySource> {
        let at = self.ids.iter().position(|held| held == id)?;
        let (document, entry) = (&self.document, &self.explained["entries"][at]);
        let place = document.place(&entry["from"]);
        let fields = entry["fields"].as_object()?;
        let listed = fields.iter().take(MOST_LISTED);
        let path = place.as_ref().map_or("", |place| place.path.as_str());
        Some(EntrySource {
            fields: listed.map(|(name, field)| document.field(name, field)).collect(),
            field_count: fields.len(),
            repairs: self.repairs_within(path, "repairs"),
            adaptations: self.repairs_within(path, "adaptations"),
            place,
        })
    }

    /// Returns the repairs of one kind inside of the element with this path.
    fn repairs_within(&self, path: &str, kind: &str) -> Vec<EntryRepair> {
        let is_own = |repair: &&Value| {
            let within = repair["in"]["path"].as_str().unwrap_or_default().strip_prefix(path);
            !path.is_empty() && within.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let all = self.explained[kind].as_array().into_iter().flatten();
        let own = all.filter(is_own).take(MOST_LISTED);
        own.map(|repair| self.document.repair(repair)).collect()
    }
}

/// A document, as far as excerpts can be taken from it.
struct Document<'d> {
    /// The text; `None` in another encoding than UTF-8, where positions are those of the decoded text.
    text: Option<&'d str>,
}

impl Document<'_> {
    fn place(&self, from: &Value) -> Option<Place> {
        let path = from["path"].as_str()?.to_owned();
        let byte = from["byte"].as_u64().and_then(|byte| usize::try_from(byte).ok());
        let excerpt = byte.map_or_else(String::new, |byte| self.excerpt(byte));
        Some(Place { path, line: from["line"].as_u64(), column: from["column"].as_u64(), excerpt })
    }

    fn field(&self, name: &str, field: &Value) -> FieldOrigin {
        let steps = field["steps"].as_array().into_iter().flatten();
        let steps = steps.filter_map(|step| {
            let (pass, how) = (step["pass"].as_str()?, step["how"].as_str()?);
            Some((how.to_owned(), format!("{pass}: {how}")))
        });
        FieldOrigin {
            name: redaction::line(name, EXCERPT_CHARS),
            place: self.place(&field["from"]),
            steps: steps.collect(),
        }
    }

    fn repair(&self, repair: &Value) -> EntryRepair {
        let text = |name: &str| repair[name].as_str().unwrap_or_default().to_owned();
        EntryRepair {
            code: text("code"),
            detail: redaction::line(&text("detail"), EXCERPT_CHARS),
            place: self.place(&repair["in"]),
        }
    }

    /// Returns the element that begins at an offset, or its beginning, on one line.
    fn excerpt(&self, byte: usize) -> String {
        let text = self.text.map(|text| text.strip_prefix('\u{feff}').unwrap_or(text));
        let rest = text.and_then(|text| text.get(byte..)).unwrap_or_default();
        if !rest.starts_with('<') {
            return String::new();
        }
        let name_end = rest[1..].find(|c: char| c.is_whitespace() || matches!(c, '>' | '/'));
        let name = &rest[1..name_end.map_or(rest.len(), |end| end + 1)];
        let most: usize = rest.chars().take(4 * EXCERPT_CHARS).map(char::len_utf8).sum();
        let head = &rest[..most];
        let end = head.find(&format!("</{name}>")).map(|end| end + name.len() + 3);
        redaction::line(&head[..end.unwrap_or(head.len())], EXCERPT_CHARS)
    }
}

impl Place {
    fn reference(&self) -> Markup {
        html! {
            code { (redaction::line(&self.path, 2 * EXCERPT_CHARS)) }
            @if let (Some(line), Some(column)) = (self.line, self.column) {
                " " small { "line " (line) ", column " (column) }
            }
        }
    }
}

impl EntrySource {
    /// Returns the origin as a part of a page, which calls the document by this name.
    pub(crate) fn section(&self, document: &str) -> Markup {
        html! {
            @if let Some(place) = &self.place {
                p { "The entry in the " (document) " is " (place.reference()) "." }
            }
            (self.table())
        }
    }

    fn table(&self) -> Markup {
        html! {
            table.records {
                thead { tr { @for name in ["Field", "Element", "Text", "Changed by"] {
                    th scope="col" { (name) }
                } } }
                tbody {
                    @for FieldOrigin { name, place, steps } in &self.fields {
                        tr {
                            td data-name="" { b { (name) } }
                            td data-name="Element" {
                                @match place {
                                    Some(place) => (place.reference()),
                                    None => span.absent { "none in the document" },
                                }
                            }
                            td data-name="Text" {
                                @if let Some(place) = place && !place.excerpt.is_empty() {
                                    code { (place.excerpt) }
                                }
                            }
                            td data-name="Changed by" {
                                @for (n, (how, code)) in steps.iter().enumerate() {
                                    @if n > 0 { br; }
                                    (change_of_field(how)) " " small { (code) }
                                }
                            }
                        }
                    }
                    @if self.field_count > self.fields.len() {
                        tr { td colspan="4" {
                            (counted((self.field_count - self.fields.len()) as u64, "more field"))
                        } }
                    }
                }
            }
        }
    }

    fn repair_list(&self) -> Markup {
        html! {
            h3 { "Repairs" }
            @if self.repairs.is_empty() { p { "Nothing had to be repaired." } }
            (list(&self.repairs))
            @if !self.adaptations.is_empty() {
                h3 { "Adaptations" }
                p { "These are no faults: Atom requires more than the format of the document." }
                (list(&self.adaptations))
            }
        }
    }
}

fn list(repairs: &[EntryRepair]) -> Markup {
    html! {
        ul {
            @for repair in repairs {
                li {
                    (cause(&repair.code))
                    @if !repair.detail.is_empty() { ": " (repair.detail) }
                    " " code { (repair.code) }
                    @if let Some(place) = &repair.place { " " (place.reference()) }
                }
            }
        }
    }
}
