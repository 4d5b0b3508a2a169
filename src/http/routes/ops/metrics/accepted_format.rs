//! Which text format of metrics a client prefers (RFC 9110 `#field.accept`).

use http::HeaderMap;
use http::header::ACCEPT;

use crate::http::kit::content_coding::weight;
use crate::metrics::TextFormat;

/// How well a format fits a client: its weight, then whether it was named more precisely.
type Fit = (u32, Precision);

/// How precisely a range names a type. The most precise range decides about the weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Precision {
    Everything,
    Type,
    Subtype,
}

/// Returns the format that the client prefers. A client that names neither, or refuses both, gets the
/// format of Prometheus, which every scraper reads and a browser shows.
pub(super) fn best(headers: &HeaderMap) -> TextFormat {
    let lists = headers.get_all(ACCEPT).iter().filter_map(|list| list.to_str().ok());
    let (mut open, mut plain) = (None, None);
    for range in lists.flat_map(|list| list.split(',')) {
        let (name, parameters) = range.split_once(';').unwrap_or((range, ""));
        let (precision, is_open, is_plain) = match name.trim().to_ascii_lowercase().as_str() {
            "application/openmetrics-text" => (Precision::Subtype, true, false),
            "text/plain" => (Precision::Subtype, false, true),
            "application/*" => (Precision::Type, true, false),
            "text/*" => (Precision::Type, false, true),
            "*/*" => (Precision::Everything, true, true),
            _ => continue,
        };
        if is_open && is_version(parameters, "1.0.0") {
            open = better(open, (weight(parameters), precision));
        }
        if is_plain && is_version(parameters, "0.0.4") {
            plain = better(plain, (weight(parameters), precision));
        }
    }
    match open {
        Some(open) if open.0 > 0 && Some(open) > plain => TextFormat::OpenMetrics,
        _ => TextFormat::Prometheus,
    }
}

/// Returns the fit that the more precise range gives; of two that are equally precise, the better.
fn better(known: Option<Fit>, new: Fit) -> Option<Fit> {
    match known {
        Some(known) if (known.1, known.0) >= (new.1, new.0) => Some(known),
        _ => Some(new),
    }
}

/// Returns whether the parameters name this version, or none.
fn is_version(parameters: &str, version: &str) -> bool {
    let named = parameters.split(';').filter_map(|parameter| parameter.split_once('='));
    let mut named = named.filter(|(name, _)| name.trim().eq_ignore_ascii_case("version"));
    named.all(|(_, named)| named.trim().trim_matches('"') == version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_that_is_preferred_is_chosen() {
        use TextFormat::{OpenMetrics, Prometheus};
        #[rustfmt::skip]
        let cases = [
            (None, Prometheus),
            (Some(""), Prometheus),
            (Some("*/*"), Prometheus),
            (Some("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"), Prometheus),
            (Some("text/plain"), Prometheus),
            (Some("text/plain;version=0.0.4;q=0.5,*/*;q=0.1"), Prometheus),
            (Some("application/openmetrics-text"), OpenMetrics),
            (Some("Application/OpenMetrics-Text; Version=\"1.0.0\"; charset=utf-8"), OpenMetrics),
            (Some("application/*"), OpenMetrics),
            (Some("application/openmetrics-text, */*"), OpenMetrics),
            (Some("application/openmetrics-text;version=0.0.1"), Prometheus),
            (Some("application/openmetrics-text;q=0"), Prometheus),
            (Some("application/openmetrics-text;q=0.3, text/plain;q=0.7"), Prometheus),
            (Some("application/openmetrics-text;q=0.7, text/plain;q=0.3"), OpenMetrics),
            (Some("*/*, text/plain;q=0.1"), OpenMetrics),
            (Some("text/*, application/openmetrics-text;q=0.9"), Prometheus),
            // Prometheus 2.42 and 3.5.
            (Some("application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"), OpenMetrics),
            (Some("application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"), OpenMetrics),
            (Some("text/plain;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5,application/openmetrics-text;version=1.0.0;q=0.4"), Prometheus),
        ];
        for (accept, want) in cases {
            let mut headers = HeaderMap::new();
            if let Some(accept) = accept {
                headers.insert(ACCEPT, accept.parse().unwrap());
            }
            assert_eq!(best(&headers), want, "{accept:?}");
        }
    }
}
