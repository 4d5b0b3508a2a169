//! How sound the newest document of a feed is: the faults that were repaired, and apart from them what was only
//! adapted to Atom.

use maud::{Markup, html};

use crate::http::kit::rejection::Rejection;
use crate::http::routes::console::stored_document;
use crate::http::routes::console::visit::Visit;
use crate::http::routes::repair_list::{RepairCount, lines};
use feedgate_core::resource::{Resource, ResourceKind};
use feedgate_feed::model::FeedFormat;
use feedgate_feed::{normalize, repair};

/// What the newest document of a feed needed.
pub(super) enum DocumentHealth {
    /// Nothing is known, for the reason in this sentence.
    Unknown(&'static str),
    /// The faults that were repaired, and the adaptations.
    Read([Vec<RepairCount>; 2]),
}

impl DocumentHealth {
    /// Reads the newest document of a feed again. `None` if the resource is not a feed with a document, or
    /// was made a feed by a mapping of its topic.
    pub(super) async fn read(
        visit: &Visit,
        resource: &Resource,
    ) -> Result<Option<DocumentHealth>, Rejection> {
        let Some(received_at) = resource.status.last_fetch else { return Ok(None) };
        let is_mapped = resource.polling.format == FeedFormat::MappedJson.as_str();
        if resource.kind != ResourceKind::Feed || is_mapped {
            return Ok(None);
        }
        let of = resource.clone();
        let found = stored_document::examine(visit, resource, move |body| {
            let context = stored_document::context(&of, body, received_at);
            let normalized = normalize(&body.bytes, &context).ok()?;
            Some(
                repair::by_kind(normalized.repairs())
                    .map(|(_, repairs)| RepairCount::by_code(&repairs)),
            )
        });
        Ok(Some(match found.await? {
            Err(reason) => DocumentHealth::Unknown(reason),
            Ok(None) => DocumentHealth::Unknown("The stored document is no feed."),
            Ok(Some(counts)) => DocumentHealth::Read(counts),
        }))
    }

    /// Returns the part of the page.
    pub(super) fn section(&self) -> Markup {
        html! {
            h2 { "Health of the document" }
            @match self {
                DocumentHealth::Unknown(reason) => p { (reason) },
                DocumentHealth::Read([faults, adaptations]) => {
                    dl.facts {
                        dt { "Repaired" }
                        dd { @if faults.is_empty() { "nothing: the document is sound" }
                            (lines(faults)) }
                        dt { "Adapted" }
                        dd { @if adaptations.is_empty() { "nothing" }
                            (lines(adaptations)) }
                    }
                    p.soft {
                        "What is repaired is a fault of the document. What is adapted is none: Atom requires \
                         more than the format of the document."
                    }
                }
            }
        }
    }
}
