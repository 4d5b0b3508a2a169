//! A subscriber of every protocol: proves that it is there when asked, and remembers
//! what it was told.
//!
//! One server stands for many subscribers, told apart by the path of their callbacks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use feedgate_protocol::xmlrpc::{XmlRpcValue, response};
use hmac::{Hmac, KeyInit, Mac};
use http::{Method, StatusCode};
use sha1::Sha1;
use sha2::Sha256;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

use super::PATIENCE;
use super::feeds::between;
use super::server::{Answer, ReceivedRequest, Server, say};
use crate::schemas::assert_notification;

/// What a callback does with what it is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Behavior {
    /// Proves itself and takes everything.
    #[default]
    Accepting,
    /// Proves itself, then answers every notification with this code.
    Failing(u16),
    /// Refuses to be verified, takes nothing.
    Refusing,
    /// Never answers.
    Hanging,
    /// Agrees to be told no more, if asked so.
    Leaving,
    /// Has every procedure that is called by XML-RPC, whatever its name.
    Obeying,
}

/// Callbacks on one port. A clone is the same subscriber.
#[derive(Clone)]
pub(crate) struct Subscriber {
    server: Arc<Server>,
    callbacks: Arc<Mutex<HashMap<String, Callback>>>,
}

#[derive(Default)]
struct Callback {
    behavior: Behavior,
    received: watch::Sender<Vec<ReceivedRequest>>,
}

impl Subscriber {
    /// Starts one whose callbacks are all willing.
    pub(crate) async fn start() -> Subscriber {
        let callbacks: Arc<Mutex<HashMap<String, Callback>>> = Arc::default();
        let held = Arc::clone(&callbacks);
        let server = Server::start(move |request: ReceivedRequest| {
            let mut callbacks = held.lock().unwrap();
            let callback = callbacks.entry(request.path.clone()).or_default();
            callback.received.send_modify(|received| received.push(request.clone()));
            let behavior = callback.behavior;
            async move { answer(&request, behavior).await }
        })
        .await;
        Subscriber { server: Arc::new(server), callbacks }
    }

    /// The address of a callback.
    pub(crate) fn url(&self, path: &str) -> String {
        self.server.url(path)
    }

    /// The port, which rssCloud names apart.
    pub(crate) fn port(&self) -> u16 {
        self.server.port()
    }

    /// Changes what a callback does from now on.
    pub(crate) fn set(&self, path: &str, behavior: Behavior) {
        self.callbacks.lock().unwrap().entry(path.to_owned()).or_default().behavior = behavior;
    }

    /// What this callback was sent with POST.
    pub(crate) fn notified(&self, path: &str) -> Vec<ReceivedRequest> {
        posts(&self.received(path).borrow()).cloned().collect()
    }

    /// All that this callback was asked, by whatever method.
    pub(crate) fn requests_to(&self, path: &str) -> Vec<ReceivedRequest> {
        self.received(path).borrow().clone()
    }

    /// Waits until `enough` says so of what this callback was sent with POST.
    pub(crate) async fn until(&self, path: &str, enough: impl FnMut(&[&ReceivedRequest]) -> bool) {
        if !self.hears(path, Instant::now() + PATIENCE, enough).await {
            let lines: Vec<_> = self.notified(path).iter().map(ReceivedRequest::text).collect();
            panic!("{path} waited in vain; told {} times:\n{}", lines.len(), lines.join("\n"));
        }
    }

    /// Whether `enough` says so of what this callback was sent with POST, at the latest
    /// at `deadline`.
    pub(crate) async fn hears(
        &self,
        path: &str,
        deadline: Instant,
        mut enough: impl FnMut(&[&ReceivedRequest]) -> bool,
    ) -> bool {
        let mut received = self.received(path);
        let satisfied = received.wait_for(|received| enough(&posts(received).collect::<Vec<_>>()));
        timeout_at(deadline, satisfied).await.is_ok()
    }

    /// Waits until this callback was asked to prove itself `times` times.
    pub(crate) async fn verified(&self, path: &str, times: usize) {
        let is_get = |request: &&ReceivedRequest| request.method == Method::GET;
        let mut received = self.received(path);
        let request = received.wait_for(|received| received.iter().filter(is_get).count() >= times);
        let in_time = timeout(PATIENCE, request).await.is_ok();
        assert!(in_time, "{path} was not asked to prove itself {times} times");
    }

    fn received(&self, path: &str) -> watch::Receiver<Vec<ReceivedRequest>> {
        let mut callbacks = self.callbacks.lock().unwrap();
        callbacks.entry(path.to_owned()).or_default().received.subscribe()
    }
}

/// Requests by POST. Every notification in JSON among them must be valid by its schema.
fn posts(received: &[ReceivedRequest]) -> impl Iterator<Item = &ReceivedRequest> {
    received.iter().filter(|request| request.method == Method::POST).inspect(|request| {
        if is_json_notification(request) {
            assert_notification(&request.text());
        }
    })
}

/// Whether the body is a notification in JSON, and not a JSON document as its publisher sent it.
fn is_json_notification(request: &ReceivedRequest) -> bool {
    request.header("content-type") == Some("application/json")
        && request.text().starts_with("{\"status\":{\"code\"")
}

async fn answer(request: &ReceivedRequest, behavior: Behavior) -> Answer {
    match behavior {
        Behavior::Hanging => std::future::pending().await,
        Behavior::Refusing => return say(StatusCode::NOT_FOUND, "not here\n"),
        Behavior::Failing(code) if request.method == Method::POST => {
            return say(StatusCode::from_u16(code).unwrap(), "");
        }
        Behavior::Obeying => return say(StatusCode::OK, response(&XmlRpcValue::Boolean(true))),
        Behavior::Failing(_) | Behavior::Accepting | Behavior::Leaving => {}
    }
    let leaving = request.query("cancel").filter(|_| behavior == Behavior::Leaving);
    say(StatusCode::OK, challenge(request).or(leaving).unwrap_or("ok").to_owned())
}

/// What proves that a callback agrees.
pub(crate) fn challenge(request: &ReceivedRequest) -> Option<&str> {
    request.query("hub.challenge").or(request.query("challenge"))
}

/// Whether `X-Hub-Signature` of a notification was made with `secret`.
pub(crate) fn is_signed(request: &ReceivedRequest, secret: &str) -> bool {
    request
        .header("x-hub-signature")
        .is_some_and(|given| given == hub_signature(given, secret, &request.body))
}

/// The `X-Hub-Signature` of a body, by the method of this one.
pub(crate) fn hub_signature(given: &str, secret: &str, body: &[u8]) -> String {
    match given.starts_with("sha256=") {
        true => {
            let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
            mac.update(body);
            format!("sha256={}", hex::encode(mac.finalize().into_bytes()))
        }
        false => {
            let mut mac = Hmac::<Sha1>::new_from_slice(secret.as_bytes()).unwrap();
            mac.update(body);
            format!("sha1={}", hex::encode(mac.finalize().into_bytes()))
        }
    }
}

/// The resource that an rssCloud notification names, in whichever of its three forms.
pub(crate) fn named(request: &ReceivedRequest) -> Option<String> {
    if request.header("content-type").is_some_and(|mime| mime.contains("form")) {
        return request.form("url");
    }
    let text = request.text();
    let (_, params) = text.split_once("<value>").or(text.split_once("Body>"))?;
    let at = params.find("http")?;
    let url = params[at..].split('<').next()?;
    between(&format!("{url}\n"), "", "\n").map(|url| url.replace("&amp;", "&"))
}
