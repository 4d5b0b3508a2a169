//! One stranger who makes the gateway store as much as it can: feeds whose entries are all new with
//! each fetch and that are pinged, or many topics whose first documents are large. Meanwhile an account
//! subscribes and pings. On SQLite, and on the empty database that `FEEDGATE_BENCH_POSTGRES` names, if it
//! is set.

use std::env;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::time::{interval, sleep};

use super::program::{Program, command};
use super::publisher::Publisher;
use super::{AnyError, Finding};

/// What the stranger subscribes to.
#[derive(Clone, Copy)]
struct Flood {
    name: &'static str,
    /// The number of feeds with 4,900 new entries at each fetch.
    feeds: usize,
    /// How often all are pinged.
    ping_interval: Duration,
}

const FLOODS: [Flood; 2] = [
    Flood {
        name: "two flooding feeds, pinged each second",
        feeds: 2,
        ping_interval: Duration::from_secs(1),
    },
    Flood {
        name: "100 topics with large documents",
        feeds: 100,
        ping_interval: Duration::from_secs(30),
    },
];
/// How long the attack lasts.
const ATTACK: Duration = Duration::from_secs(45);
/// The interval between two writes of the account, and between two looks at `/readyz`.
const INTERVAL: Duration = Duration::from_millis(250);
/// The longest time that a write of an account may take.
const SLOWEST: Duration = Duration::from_secs(1);

/// What the account and the operator saw during the attack.
#[derive(Default)]
struct Seen {
    subscribes: Latencies,
    pings: Latencies,
    ready: Latencies,
    /// How often `/readyz` did not say that the gateway is ready.
    red: usize,
}

#[derive(Default)]
struct Latencies {
    count: usize,
    worst: Duration,
}

impl Latencies {
    fn add(&mut self, begun: Instant) {
        self.count += 1;
        self.worst = self.worst.max(begun.elapsed());
    }

    fn to_text(&self) -> String {
        format!("{} ms at worst of {}", self.worst.as_millis(), self.count)
    }
}

/// All floods on each database (H1).
pub(crate) async fn attack(publisher: &Publisher) -> Result<Vec<Finding>, AnyError> {
    let mut findings = Vec::new();
    for flood in FLOODS {
        let folder = tempfile::tempdir()?;
        let file = format!("sqlite:{}", folder.path().join("feedgate.db").display());
        findings.extend(attack_on(publisher, (&file, "SQLite"), flood).await?);
        if let Some(url) = env::var_os("FEEDGATE_BENCH_POSTGRES") {
            let url = url.into_string().map_err(|_| "FEEDGATE_BENCH_POSTGRES is no text")?;
            findings.extend(attack_on(publisher, (&url, "PostgreSQL"), flood).await?);
        }
    }
    Ok(findings)
}

/// Anonymous subscriptions to flooding feeds, and pings.
async fn attack_on(
    publisher: &Publisher,
    (database, engine): (&str, &str),
    flood: Flood,
) -> Result<Vec<Finding>, AnyError> {
    let gateway = Program::start(database, &[]).await?;
    let token = create_token(database)?;
    let Flood { name, feeds, ping_interval } = flood;
    // Two floods on one database do not share topics.
    let path = |number: usize| format!("/flood?{}-{number}", flood.feeds);
    let topics: Vec<String> =
        (0..feeds).map(|number| publisher.url(3, number, &path(number))).collect();
    for topic in &topics {
        let callback = publisher.url(2, 0, "/callback");
        let form = [("hub.mode", "subscribe"), ("hub.topic", topic), ("hub.callback", &callback)];
        gateway.post("/hub", &form).await?;
    }
    let cpu_before = gateway.cpu()?;
    let mut seen = Seen::default();
    tokio::select! {
        failed = ping(&gateway, &topics, ping_interval) => failed?,
        failed = watch(&gateway, publisher, &token, &mut seen) => failed?,
        () = sleep(ATTACK) => {}
    }
    let cpu_s = gateway.cpu()? - cpu_before;
    let held = |latencies: &Latencies| latencies.count > 0 && latencies.worst < SLOWEST;
    let attack = |what: &str| format!("{engine}, {name}: {what}");
    let bound = format!("{} ms", SLOWEST.as_millis());
    Ok(vec![
        Finding {
            attack: attack("an account subscribes"),
            measured: seen.subscribes.to_text(),
            bound: bound.clone(),
            is_held: held(&seen.subscribes),
        },
        Finding {
            attack: attack("an account pings"),
            measured: seen.pings.to_text(),
            bound,
            is_held: held(&seen.pings),
        },
        Finding {
            attack: attack("/readyz"),
            measured: format!(
                "{} red of {}; {} ms at worst; {cpu_s:.1} s of processor time in {} s",
                seen.red,
                seen.ready.count,
                seen.ready.worst.as_millis(),
                ATTACK.as_secs()
            ),
            bound: "0 red".to_owned(),
            is_held: seen.red == 0 && seen.ready.count > 0,
        },
    ])
}

/// Pings the feeds without end. The stranger does not wait for answers.
async fn ping(gateway: &Program, topics: &[String], every: Duration) -> Result<(), AnyError> {
    let mut ticks = interval(every);
    loop {
        ticks.tick().await;
        for topic in topics {
            let body = url::form_urlencoded::Serializer::new(String::new())
                .append_pair("url", topic)
                .finish();
            let ping = gateway.client().post(format!("{}/rsscloud/ping", gateway.url())).body(body);
            tokio::spawn(ping.header("content-type", FORM).send());
        }
    }
}

/// Subscribes and pings for an account, and looks at `/readyz`, without end.
async fn watch(
    gateway: &Program,
    publisher: &Publisher,
    token: &str,
    seen: &mut Seen,
) -> Result<(), AnyError> {
    let mut ticks = interval(INTERVAL);
    for number in 0.. {
        ticks.tick().await;
        let topic = publisher.url(1, number, &format!("/feed/{number}"));
        let callback = publisher.url(2, number, "/callback");
        let form = [("hub.mode", "subscribe"), ("hub.topic", &topic), ("hub.callback", &callback)];
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let begun = Instant::now();
        let subscribe = gateway.client().post(format!("{}/", gateway.url())).body(body);
        let subscribe = subscribe.basic_auth("owner", Some(token)).header("content-type", FORM);
        let answered = timed(subscribe, &mut seen.subscribes, begun).await?;
        if answered.is_some_and(|status| status.is_client_error()) {
            return Err(format!("the account could not subscribe: {answered:?}").into());
        }
        let ping = [("name", "A site"), ("url", &topic)];
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(ping).finish();
        let ping = gateway.client().post(format!("{}/pingSiteForm", gateway.url())).body(body);
        timed(ping.header("content-type", FORM), &mut seen.pings, Instant::now()).await?;
        let ready = gateway.client().get(format!("{}/readyz", gateway.url()));
        let answered = timed(ready, &mut seen.ready, Instant::now()).await?;
        if !answered.is_some_and(|status| status.is_success()) {
            seen.red += 1;
        }
    }
    Ok(())
}

/// The media type of forms.
const FORM: &str = "application/x-www-form-urlencoded";
/// The time after which a request counts as hanging.
const HANGS: Duration = Duration::from_secs(20);

/// Sends a request and notes how long it took. `None` if it hangs.
async fn timed(
    request: reqwest::RequestBuilder,
    latencies: &mut Latencies,
    begun: Instant,
) -> Result<Option<reqwest::StatusCode>, AnyError> {
    let sent = request.timeout(HANGS).send().await;
    latencies.add(begun);
    match sent {
        Ok(answer) => Ok(Some(answer.status())),
        Err(err) if err.is_timeout() => Ok(None),
        Err(err) => Err(err.into()),
    }
}

/// Creates an account with a token.
fn create_token(database: &str) -> Result<String, AnyError> {
    let created = command()
        .args(["token", "create", "--login", "owner", "--database", database])
        .stderr(Stdio::inherit())
        .output()?;
    let credentials = String::from_utf8(created.stdout)?;
    let (_, token) = credentials.trim().split_once(':').ok_or("no token was created")?;
    Ok(token.to_owned())
}
