//! The formats in which entries are retrieved and found: those of notifications, and those of feed
//! readers.

use super::params;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use feedgate_core::document_format::DocumentFormat;
use feedgate_core::subscription::Format;
use feedgate_protocol::form::Form;

/// A format of a document of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntriesFormat {
    /// One of notifications: Atom, the JSON of Superfeedr, or the unchanged content of the topic.
    Notification(Format),
    /// One that only feed readers know.
    Reader(DocumentFormat),
}

impl EntriesFormat {
    /// Returns the format that is requested by `format`, which takes precedence, or by `Accept`; `None` if
    /// it prefers none. Whoever likes a format of notifications, or everything, as well as others gets a
    /// format of notifications: clients of Superfeedr that send `application/rss+xml, */*` expect Atom.
    pub(super) fn requested(
        request: &Request,
        form: &Form,
    ) -> Result<Option<EntriesFormat>, Rejection> {
        EntriesFormat::choose(form.get("format"), request.header("accept"))
    }

    fn choose(word: Option<&str>, accept: &str) -> Result<Option<EntriesFormat>, Rejection> {
        if let Some(word) = word {
            let known = DocumentFormat::from_word(word);
            let reader = known.filter(|format| *format != DocumentFormat::Atom);
            let named = Format::from_word(word).filter(|format| *format != Format::Fitting);
            let named = named.map(EntriesFormat::Notification);
            return reader.map(EntriesFormat::Reader).or(named).map(Some).ok_or_else(|| {
                Rejection::unprocessable(format!(
                    "format must be atom, json, rss, json-feed or raw, not {word}."
                ))
            });
        }
        let known = ["application/json", DocumentFormat::Atom.media_type(), "*/*"];
        let known =
            known.into_iter().map(|media_type| params::media_type_weight(accept, media_type)).max();
        let best = |best: (u32, Option<DocumentFormat>), format: DocumentFormat| {
            let weight = params::media_type_weight(accept, format.media_type());
            if weight > best.0 { (weight, Some(format)) } else { best }
        };
        let readers = [DocumentFormat::Rss, DocumentFormat::JsonFeed];
        let (_, reader) = readers.into_iter().fold((known.unwrap_or_default(), None), best);
        let notification = || params::accepted_format(accept).map(EntriesFormat::Notification);
        Ok(reader.map(EntriesFormat::Reader).or_else(notification))
    }

    /// Returns the word in entity tags.
    pub(super) fn word(self) -> &'static str {
        match self {
            EntriesFormat::Notification(format) => format.as_str(),
            EntriesFormat::Reader(format) => format.word(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a03_the_format_is_named_or_preferred_to_those_of_notifications() {
        let reader = |format| Ok(Some(EntriesFormat::Reader(format)));
        let known = |format| Ok(Some(EntriesFormat::Notification(format)));
        let (rss, json_feed) = (DocumentFormat::Rss, DocumentFormat::JsonFeed);
        #[rustfmt::skip]
        let cases = [
            (Some("RSS"),       "application/json",                          reader(rss)),
            (Some("json-feed"), "",                                          reader(json_feed)),
            (Some("json"),      "application/rss+xml",                       known(Format::Json)),
            (Some("atom"),      "",                                          known(Format::Atom)),
            (None,               "application/rss+xml, */*",                  Ok(None)),
            (None,               "application/rss+xml, */*;q=.8",             reader(rss)),
            (None,               "application/feed+json",                     reader(json_feed)),
            (None,               "application/rss+xml, application/atom+xml", known(Format::Atom)),
            (None,               "application/json, application/feed+json",   known(Format::Json)),
            (None,               "application/json;q=.5, application/feed+json;q=.8", reader(json_feed)),
            (None,               "*/*",                                       Ok(None)),
            (Some("fitting"),   "",                                          Err(())),
            (Some("csv"),       "",                                          Err(())),
        ];
        for (word, accept, want) in cases {
            let found = EntriesFormat::choose(word, accept).map_err(drop);
            assert_eq!(found, want, "{word:?} {accept}");
        }
    }
}
