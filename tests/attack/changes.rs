//! What a request for the list of changes costs when it is as long as strangers can make it soon.

use std::time::Duration;

use futures_util::StreamExt;

use super::program::Program;
use super::publisher::Publisher;
use super::{AnyError, Finding, floods};

/// Pings of as many weblogs. Their lines have 320 bytes each: 7.7 MB in all.
const PINGS: usize = 24_000;
const NAME_CHARS: usize = 130;
const URL_CHARS: usize = 110;
/// Pings that are sent at the same time.
const TOGETHER: usize = 32;
/// Requests by which each form of the document is measured. The kernel counts in units of 10 ms.
const REQUESTS: usize = 60;
/// The time between two of them: many more are made than the document is rendered.
const INTERVAL: Duration = Duration::from_millis(50);
/// The highest cost of a request, in milliseconds of processor time.
const MOST_MS: f64 = 20.0;
const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

const WHOLE: fn(usize) -> String = |_| "/changes.xml".to_owned();
const GZIP: &[(&str, &str)] = &[("accept-encoding", "gzip")];

/// A form in which the document is requested.
struct Variant {
    name: &'static str,
    path: fn(usize) -> String,
    headers: &'static [(&'static str, &'static str)],
    /// Whether a ping precedes each request.
    is_pinged: bool,
}

const VARIANTS: [Variant; 7] = [
    Variant { name: "plain", path: WHOLE, headers: &[], is_pinged: false },
    Variant { name: "plain, after a ping each", path: WHOLE, headers: &[], is_pinged: true },
    Variant { name: "compressed", path: WHOLE, headers: GZIP, is_pinged: false },
    Variant { name: "compressed, after a ping each", path: WHOLE, headers: GZIP, is_pinged: true },
    Variant {
        name: "of another time each",
        path: |number| format!("/changes.xml?last={}", 3_000 + number),
        headers: &[],
        is_pinged: false,
    },
    Variant {
        name: "in seconds, of another time each, compressed",
        path: |number| format!("/changes.xml?when=seconds&last={}", 3_000 + number),
        headers: GZIP,
        is_pinged: false,
    },
    Variant { name: "as a page", path: WHOLE, headers: &[("accept", BROWSER)], is_pinged: false },
];

/// Sends pings, and measures each form of the document: as it is, and while pings go on.
pub(crate) async fn attack(publisher: &Publisher) -> Result<Vec<Finding>, AnyError> {
    let folder = tempfile::tempdir()?;
    let gateway = floods::start(folder.path(), &[]).await?;
    let ping = |number| ping(&gateway, publisher, number);
    let mut pings = futures_util::stream::iter((0..PINGS).map(ping)).buffer_unordered(TOGETHER);
    while let Some(answer) = pings.next().await {
        answer?;
    }
    drop(pings);
    let mut findings = Vec::new();
    for variant in VARIANTS {
        let (length, cost) = measure(&gateway, publisher, &variant).await?;
        findings.push(Finding {
            attack: format!("GET changes.xml after {PINGS} pings, {}", variant.name),
            measured: format!("{cost:.2} ms; {length} bytes"),
            bound: format!("{MOST_MS} ms"),
            is_held: cost <= MOST_MS,
        });
    }
    Ok(findings)
}

/// Sends a ping of a weblog.
async fn ping(gateway: &Program, publisher: &Publisher, number: usize) -> Result<(), AnyError> {
    let name = format!("{number}{}", "n".repeat(NAME_CHARS));
    let site = publisher.url(5, number, &format!("/{}", "u".repeat(URL_CHARS)));
    let answer = gateway.post("/pingSiteForm", &[("name", &name), ("url", &site)]).await?;
    if answer.contains("accepted") { Ok(()) } else { Err(answer.into()) }
}

/// Returns the length of the first response, and the milliseconds of processor time for each request
/// after it.
async fn measure(
    gateway: &Program,
    publisher: &Publisher,
    variant: &Variant,
) -> Result<(usize, f64), AnyError> {
    let get = async |number| {
        let request = gateway.client().get(gateway.url().to_owned() + &(variant.path)(number));
        let request = variant
            .headers
            .iter()
            .fold(request, |request, (name, value)| request.header(*name, *value));
        Ok::<_, AnyError>(request.send().await?.error_for_status()?.bytes().await?.len())
    };
    let length = get(0).await?;
    let mut ticks = tokio::time::interval(INTERVAL);
    let before = gateway.cpu()?;
    for number in 1..=REQUESTS {
        ticks.tick().await;
        if variant.is_pinged {
            ping(gateway, publisher, PINGS + number).await?;
        }
        get(number).await?;
    }
    Ok((length, (gateway.cpu()? - before) * 1_000.0 / REQUESTS as f64))
}
