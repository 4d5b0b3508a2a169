//! Callbacks at a few hosts. They answer as they are told, well or badly, and note when each notification
//! came.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep, timeout};

use crate::support::feeds::entry_ids;
use crate::support::origin::{Origin, Request, Step, answer, head};

/// What is before the path of a callback that another one redirects to.
const ELSEWHERE: &str = "/elsewhere";
/// The addresses at which callbacks are, each a host of its own.
pub(super) const HOSTS: [&str; 5] =
    ["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"];
/// The pause between two bytes of an answer that drips.
const DRIP: Duration = Duration::from_millis(50);

/// The notifications among which an entry is looked for that was published lately.
const LATELY: usize = 50;

/// How a callback answers notifications. Requests to verify it are always confirmed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Behaviour {
    /// With 200.
    #[default]
    Accepting,
    /// With this status.
    Failing(u16),
    /// Never.
    Hanging,
    /// With an answer whose headers do not end.
    Dripping,
    /// With 200 after this time.
    Late(Duration),
    /// With 500 after this time.
    FailingLate(Duration),
    /// With a redirect, which must not be followed.
    Redirecting,
}

/// A notification, and when it came.
#[derive(Clone, Debug)]
pub(super) struct Received {
    pub(super) at: Instant,
    pub(super) request: Request,
    /// The ids of its entries, newest first.
    pub(super) ids: Vec<String>,
}

/// A notification that waits for its answer; without one, the connection is closed.
pub(super) struct Held(watch::Sender<Vec<u8>>);

impl Held {
    /// Answers with this status.
    pub(super) fn answer(self, status: &str) {
        self.0.send_replace(bytes(answer(status, &[], "")));
    }
}

#[derive(Default)]
struct Callback {
    behaviour: Behaviour,
    received: Vec<Received>,
    /// Receives the next notification instead of being answered.
    holding: Option<oneshot::Sender<Held>>,
}

/// All callbacks. Their paths tell them apart, at whichever host they are.
pub(super) struct Callbacks {
    hosts: Vec<Origin>,
    callbacks: Arc<Mutex<HashMap<String, Callback>>>,
}

impl Callbacks {
    pub(super) async fn start() -> Callbacks {
        let callbacks: Arc<Mutex<HashMap<String, Callback>>> = Arc::default();
        let mut hosts = Vec::new();
        for ip in HOSTS {
            let held = Arc::clone(&callbacks);
            let play = move |request: &Request| {
                let path = request.target().split('?').next().unwrap();
                let mut callbacks = held.lock().unwrap();
                callbacks.entry(path.to_owned()).or_default().play(request)
            };
            hosts.push(Origin::playing_at(ip, play).await);
        }
        Callbacks { hosts, callbacks }
    }

    pub(super) fn url(&self, host: usize, path: &str) -> String {
        self.hosts[host].url(path)
    }

    /// The address of a host.
    pub(super) fn address(&self, host: usize) -> String {
        self.hosts[host].url("").trim_start_matches("http://").to_owned()
    }

    /// Changes how a callback answers from now on.
    pub(super) fn set(&self, path: &str, behaviour: Behaviour) {
        self.callbacks.lock().unwrap().entry(path.to_owned()).or_default().behaviour = behaviour;
    }

    /// What a callback received, in the order in which it came.
    pub(super) fn received(&self, path: &str) -> Vec<Received> {
        let callbacks = self.callbacks.lock().unwrap();
        callbacks.get(path).map(|callback| callback.received.clone()).unwrap_or_default()
    }

    /// When a callback received an entry first.
    pub(super) fn first_received(&self, path: &str, id: &str) -> Option<Instant> {
        let callbacks = self.callbacks.lock().unwrap();
        let received = &callbacks.get(path)?.received;
        received.iter().find(|one| one.ids.iter().any(|it| it == id)).map(|one| one.at)
    }

    /// Whether a callback has received an entry lately.
    pub(super) fn has_received(&self, path: &str, id: &str) -> bool {
        let callbacks = self.callbacks.lock().unwrap();
        let Some(callback) = callbacks.get(path) else { return false };
        let lately = callback.received.iter().rev().take(LATELY);
        lately.into_iter().any(|one| one.ids.iter().any(|it| it == id))
    }

    /// How many notifications were received.
    pub(super) fn count(&self) -> usize {
        self.callbacks.lock().unwrap().values().map(|callback| callback.received.len()).sum()
    }

    /// Holds the next notification to a callback back; `None` if none comes for `longest`. All others are
    /// answered as before.
    pub(super) async fn hold(&self, path: &str, longest: Duration) -> Option<Held> {
        let (holding, held) = oneshot::channel();
        self.callbacks.lock().unwrap().entry(path.to_owned()).or_default().holding = Some(holding);
        let held = timeout(longest, held).await;
        self.callbacks.lock().unwrap().entry(path.to_owned()).or_default().holding = None;
        held.ok()?.ok()
    }

    /// The notifications that were sent where a callback redirected to.
    pub(super) fn followed(&self) -> Vec<String> {
        let callbacks = self.callbacks.lock().unwrap();
        callbacks.keys().filter(|path| path.starts_with(ELSEWHERE)).cloned().collect()
    }
}

impl Callback {
    fn play(&mut self, request: &Request) -> Step {
        if let Some(challenge) = challenge(request.target()) {
            return answer("200 OK", &[], challenge);
        }
        let ids = entry_ids(&String::from_utf8_lossy(&request.body));
        self.received.push(Received { at: Instant::now(), request: request.clone(), ids });
        if let Some(holding) = self.holding.take() {
            let (sender, receiver) = watch::channel(Vec::new());
            holding.send(Held(sender)).unwrap_or_default();
            return Step::Later(receiver);
        }
        match self.behaviour {
            Behaviour::Accepting => answer("200 OK", &[], ""),
            Behaviour::Failing(code) => answer(&format!("{code} No"), &[], "not now"),
            Behaviour::Hanging => Step::Hang,
            Behaviour::Dripping => Step::Drip(head("200 OK", &[])[..12].to_vec(), DRIP),
            Behaviour::Late(after) => later(after, "200 OK"),
            Behaviour::FailingLate(after) => later(after, "500 No"),
            Behaviour::Redirecting => {
                let elsewhere = format!("Location: {ELSEWHERE}{}", request.target());
                answer("302 Found", &[&elsewhere], "")
            }
        }
    }
}

fn later(after: Duration, status: &'static str) -> Step {
    let (sender, receiver) = watch::channel(Vec::new());
    tokio::spawn(async move {
        sleep(after).await;
        sender.send_replace(bytes(answer(status, &[], "")));
    });
    Step::Later(receiver)
}

/// What a request to verify a callback wants to read.
fn challenge(target: &str) -> Option<String> {
    let (_, query) = target.split_once('?')?;
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    pairs.find(|(name, _)| name == "hub.challenge").map(|(_, value)| value.into_owned())
}

fn bytes(step: Step) -> Vec<u8> {
    match step {
        Step::Send(bytes) => bytes,
        _ => unreachable!("an answer is sent"),
    }
}
