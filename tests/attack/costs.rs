//! What each endpoint costs, and whether that grows with what is stored.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt;

use super::program::{LOOK_AGAIN, Program};
use super::publisher::Publisher;
use super::{AnyError, Finding};

/// Feeds of the gateway with little and of that with much: both more than the longest page lists.
const FEW: usize = 1_000;
const MANY: usize = 2_000;
/// Requests by which an endpoint is measured. The kernel counts in units of 10 ms.
const REQUESTS: usize = 40;
/// The processor time in a second, in seconds, of a gateway that has nothing to do.
const QUIET_S: f64 = 0.02;
/// Feeds that are added at the same time.
const TOGETHER: usize = 16;
/// The highest cost of a request, in milliseconds of processor time.
const MOST_MS: f64 = 20.0;
/// What a request to the gateway with much may cost more than twice as much, in milliseconds: what
/// the measurement cannot tell apart.
const UNCLEAR_MS: f64 = 1.5;
/// Endless responses, and what needs more than an address.
const NOT_MEASURED: [&str; 2] = ["/log/stream", "/upstream/{token}"];
/// Queries that read what is stored.
const QUERIES: [&str; 12] = [
    "/feeds/1?count=100",
    "/feeds/1?format=json",
    "/feeds/2/recent",
    "/feeds/2/documents/1",
    "/feeds/2?count=100",
    "/log.json?feed=1",
    "/log.json?count=1000",
    "/viewLog?feed=1",
    "/subscriptions.json?cursor=zzzz",
    "/feeds.opml",
    "/stats.json",
    "/readyz",
];

/// Measures all endpoints of two gateways.
pub(crate) async fn attack(publisher: &Publisher) -> Result<Vec<Finding>, AnyError> {
    let few = measure(publisher, FEW).await?;
    let many = measure(publisher, MANY).await?;
    let compare = |(request, cost): (String, f64)| {
        let before = few.get(&request).copied().unwrap_or_default();
        Finding {
            attack: request,
            measured: format!("{cost:.2} ms; {before:.2} ms with {FEW} feeds instead of {MANY}"),
            bound: format!("{MOST_MS} ms, flat"),
            is_held: cost <= MOST_MS && cost <= 2.0 * before + UNCLEAR_MS,
        }
    };
    Ok(many.into_iter().map(compare).collect())
}

async fn measure(publisher: &Publisher, feeds: usize) -> Result<BTreeMap<String, f64>, AnyError> {
    let folder = tempfile::tempdir()?;
    let database = format!("sqlite:{}", folder.path().join("feedgate.db").display());
    let gateway = Program::start(&database, &[]).await?;
    fill(&gateway, publisher, feeds).await?;
    let mut costs = BTreeMap::new();
    for path in paths(&gateway).await? {
        let cost = cost_of(&gateway, || gateway.client().get(gateway.url().to_owned() + &path));
        costs.insert(format!("GET {path}"), cost.await?);
    }
    for (path, body) in posts(publisher) {
        let cost = cost_of(&gateway, || {
            let kind = if body.starts_with('<') { "text/xml" } else { FORM };
            let request = gateway.client().post(gateway.url().to_owned() + path);
            request.header("content-type", kind).body(body.clone())
        });
        let displayed: String = body.chars().take(40).collect();
        costs.insert(format!("POST {path} `{displayed}`, {} bytes", body.len()), cost.await?);
    }
    Ok(costs)
}

const FORM: &str = "application/x-www-form-urlencoded";

/// Subscribes to feeds, waits until their entries are stored, and pings changes.xml.
async fn fill(gateway: &Program, publisher: &Publisher, feeds: usize) -> Result<(), AnyError> {
    let one = |number| async move {
        let topic = publisher.url(1, number, &format!("/feed/{number}"));
        let callback = publisher.url(2, number, "/callback");
        let form = [("hub.mode", "subscribe"), ("hub.topic", &topic), ("hub.callback", &callback)];
        gateway.post("/hub", &form).await?;
        let site = publisher.url(5, number, &format!("/site/{number}"));
        let form = [("name", "A site of tides"), ("url", &*site)];
        gateway.post("/pingSiteForm", &form).await
    };
    let mut all = futures_util::stream::iter((0..feeds).map(one)).buffer_unordered(TOGETHER);
    while let Some(answer) = all.next().await {
        answer?;
    }
    // Nothing is fetched any more, so that only what is measured takes processor time.
    while fetched(gateway).await? < feeds {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    // Nor is the search index written any more.
    let mut before = 0.0;
    while gateway.cpu()? - before > QUIET_S {
        before = gateway.cpu()?;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    Ok(())
}

/// Returns how many feeds were fetched for the first time.
async fn fetched(gateway: &Program) -> Result<usize, AnyError> {
    let url = format!("{}/metrics", gateway.url());
    let metrics = gateway.client().get(url).send().await?.text().await?;
    let first = metrics.lines().filter(|line| {
        line.starts_with("feedgate_polls_total{") && line.contains("outcome=\"ok_new\"")
    });
    Ok(first.filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok()).sum())
}

/// The paths of the description of the API that can be read, with values for their parameters.
async fn paths(gateway: &Program) -> Result<Vec<String>, AnyError> {
    let url = format!("{}/openapi.json", gateway.url());
    let api: serde_json::Value =
        serde_json::from_str(&gateway.client().get(url).send().await?.text().await?)?;
    let paths = api["paths"].as_object().ok_or("no paths are described")?;
    let values = [
        ("{id}", "1"),
        ("{number}", "1"),
        ("{year}/{month}/{day}/{hour}", "2026/01/01/00"),
        ("{login}", "nobody"),
        ("{file}", "a.xml"),
        ("{name}", "notification"),
    ];
    let described = paths.keys().filter(|path| !NOT_MEASURED.contains(&path.as_str()));
    let mut paths: Vec<String> = described
        .map(|path| {
            values.iter().fold(path.clone(), |path, (name, value)| path.replace(name, value))
        })
        .collect();
    paths.extend(QUERIES.map(str::to_owned));
    paths.push("/nothing".to_owned());
    Ok(paths)
}

/// Bodies that are large, deep or wrong.
fn posts(publisher: &Publisher) -> Vec<(&'static str, String)> {
    let topic = publisher.url(1, 0, "/feed/0");
    let call = |method: &str, values: &str| {
        format!(
            "<?xml version='1.0'?><methodCall><methodName>{method}</methodName><params>{values}</params></methodCall>"
        )
    };
    let deep = "<param><value><array><data>".repeat(10_000);
    vec![
        ("/hub", "hub.mode=subscribe&hub.topic=nothing".to_owned()),
        ("/hub", "hub.mode=publish&hub.url=".to_owned() + &topic),
        ("/hub", "a=1&".repeat(250_000)),
        ("/", "hub.mode=list".to_owned()),
        ("/", "hub.mode=%ff%fe&".repeat(60_000)),
        ("/rsscloud/pleaseNotify", "port=1&path=/&protocol=http-post".to_owned()),
        ("/rsscloud/ping", "url=http://unknown.test/feed".to_owned()),
        ("/rsscloud/ping", format!("url={topic}")),
        ("/RPC2", call("rssCloud.hello", "")),
        ("/RPC2", call("rssCloud.pleaseNotify", &deep)),
        (
            "/RPC2",
            call("weblogUpdates.ping", &"<param><value>&lt;a&gt;</value></param>".repeat(25_000)),
        ),
        ("/RPC2", "<?xml version='1.0'?>".to_owned() + &"<a>".repeat(300_000)),
        ("/pingSiteForm", format!("name={}&url=http://long.test/", "n".repeat(60_000))),
        ("/author", "login=nobody&token=nothing".to_owned()),
    ]
}

/// Returns the milliseconds of processor time for each of [`REQUESTS`], after a first one.
async fn cost_of(
    gateway: &Program,
    request: impl Fn() -> reqwest::RequestBuilder,
) -> Result<f64, AnyError> {
    // A server may refuse a body while it is still being sent.
    let send = async || match request().send().await {
        Ok(answer) => drop(answer.bytes().await),
        Err(refused) => drop(refused),
    };
    send().await;
    let before = gateway.cpu()?;
    for _ in 0..REQUESTS {
        send().await;
    }
    Ok((gateway.cpu()? - before) * 1_000.0 / REQUESTS as f64)
}
