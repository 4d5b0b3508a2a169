//! The media of an entry: recordings, pictures and how long they take.

use super::super::page_reading::{
    OutputNamespace, PageReading, attribute, element, link, with_text,
};
use crate::model::{Entry, Link};
use crate::parse::linked_data::{Graph, LinkedItemId, PropertyValue};
use crate::parse::microformats::absolute;
use crate::parse::texts::media_type_of;

const ITUNES: OutputNamespace =
    OutputNamespace { uri: "http://www.itunes.com/dtds/podcast-1.0.dtd", prefix: "itunes" };
const MEDIA: OutputNamespace =
    OutputNamespace { uri: "http://search.yahoo.com/mrss/", prefix: "media" };

/// The properties that hold recordings.
const RECORDINGS: [&str; 4] = ["associatedMedia", "audio", "video", "encoding"];

/// The maximum number of recordings of an entry.
const MOST_RECORDINGS: usize = 64;

/// Adds the media of an item to its entry.
pub(super) fn describe(
    reading: &PageReading<'_>,
    graph: &Graph<'_>,
    node: LinkedItemId,
    entry: &mut Entry,
) {
    let mut duration = graph.short_text(node, &["duration", "timeRequired"]);
    let recordings = RECORDINGS.iter().flat_map(|name| graph.values(node, name));
    for value in recordings.take(MOST_RECORDINGS) {
        let found = match value {
            PropertyValue::Node(id) => {
                duration = duration.or(graph.short_text(*id, &["duration"]));
                recording(reading, graph, *id)
            }
            other => other.short_text().and_then(|address| enclosure(reading, address)),
        };
        let is_new = |found: &Link| !entry.links.iter().any(|held| held.href == found.href);
        let found = found.filter(is_new);
        entry.links.extend(found);
    }
    if let Some(address) = graph.short_text(node, &["contentUrl"]) {
        entry.links.extend(enclosure(reading, address));
    }
    if let Some(seconds) = duration.and_then(seconds) {
        entry.extensions.push(with_text(ITUNES, "duration", seconds.to_string()));
    }
    if let Some(number) = graph.short_text(node, &["episodeNumber"]) {
        entry.extensions.push(with_text(ITUNES, "episode", number.to_owned()));
    }
    if let Some(url) = reading.address_in(graph, node, &["image", "thumbnailUrl"]) {
        entry.extensions.push(element(MEDIA, "thumbnail", vec![attribute("url", url)]));
    }
}

/// Returns the link to a recording.
fn recording(reading: &PageReading<'_>, graph: &Graph<'_>, id: LinkedItemId) -> Option<Link> {
    let address = graph.short_text(id, &["contentUrl", "url"])?;
    let mime =
        graph.short_text(id, &["encodingFormat", "fileFormat"]).filter(|mime| mime.contains('/'));
    let length = graph.short_text(id, &["contentSize"]);
    let length = length.filter(|size| size.bytes().all(|byte| byte.is_ascii_digit()));
    let found = enclosure(reading, address)?;
    Some(Link {
        mime: mime.map(str::to_owned).or(found.mime.clone()),
        length: length.map(str::to_owned),
        title: graph.short_text(id, &["name"]).map(str::to_owned),
        ..found
    })
}

fn enclosure(reading: &PageReading<'_>, address: &str) -> Option<Link> {
    let href = absolute(reading.base, address);
    let mime = media_type_of(&href).map(str::to_owned);
    href.contains("://").then(|| Link { mime, ..link(href, "enclosure") })
}

/// Returns the seconds of a duration of ISO 8601, such as `PT1H2M3S`.
fn seconds(text: &str) -> Option<u64> {
    let rest = text.trim().strip_prefix('P')?;
    let (mut total, mut number, mut is_time) = (0_f64, String::new(), false);
    for c in rest.chars() {
        let unit_s = match (c, is_time) {
            ('0'..='9' | '.' | ',', _) => {
                number.push(if c == ',' { '.' } else { c });
                continue;
            }
            ('T', false) => {
                is_time = true;
                continue;
            }
            ('W', false) => 604_800.0,
            ('D', false) => 86_400.0,
            ('H', true) => 3_600.0,
            ('M', true) => 60.0,
            ('S', true) => 1.0,
            _ => return None,
        };
        total += number.parse::<f64>().ok()? * unit_s;
        number.clear();
    }
    (number.is_empty() && total > 0.0 && total < LONGEST_S).then_some(total as u64)
}

/// The longest duration that is believed: a year.
const LONGEST_S: f64 = 366.0 * 86_400.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_in_seconds() {
        #[rustfmt::skip]
        let cases = [
            ("PT31M7S",   Some(1_867)),
            ("PT1H",      Some(3_600)),
            ("P1DT2H",    Some(93_600)),
            ("PT90.5S",   Some(90)),
            ("PT",        None),
            ("P1M",       None),
            ("PT5",       None),
            ("31:07",     None),
            ("PT99999999999999999999H", None),
        ];
        for (text, want) in cases {
            assert_eq!(seconds(text), want, "{text}");
        }
    }
}
