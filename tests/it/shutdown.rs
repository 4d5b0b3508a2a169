//! Starting and stopping the real program: what it says, and what it finishes.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use feedgate_core::host_groups::HostGroups;
use feedgate_core::page::PageLimits;
use feedgate_core::store::SubscriptionFilter;
use feedgate_store as store;
use http::StatusCode;
use rustix::process::{Pid, Signal};
use tempfile::TempDir;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::support::PATIENCE;
use crate::support::feeds::rss;
use crate::support::publisher::Publisher;
use crate::support::server::{Server, client, say};

/// `feedgate serve` on a free port, in a folder of its own; killed when dropped.
struct Program {
    child: Child,
    lines: BufReader<ChildStdout>,
    url: String,
    folder: Arc<TempDir>,
}

impl Program {
    fn start(folder: Arc<TempDir>) -> Program {
        let mut child = Command::new(env!("CARGO_BIN_EXE_feedgate"))
            .args(["serve", "--listen", "127.0.0.1:0"])
            .current_dir(folder.path())
            .env_clear()
            .env("FEEDGATE_EGRESS_ALLOW_TOPIC_CIDRS", "127.0.0.0/8")
            .env("FEEDGATE_EGRESS_ALLOW_CALLBACK_CIDRS", "127.0.0.0/8")
            .env("FEEDGATE_HOST_MIN_INTERVAL_MS", "0")
            .env("FEEDGATE_LOG", "warn")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        lines.read_line(&mut first).unwrap();
        let url = first.trim().rsplit_once(' ').unwrap().1.to_owned();
        Program { child, lines, url, folder }
    }

    /// Reads what it prints until a line that contains `end`.
    fn prints(&mut self, end: &str) -> String {
        let mut text = String::new();
        while !text.lines().next_back().is_some_and(|line| line.contains(end)) {
            assert_ne!(self.lines.read_line(&mut text).unwrap(), 0, "no {end:?} in:\n{text}");
        }
        text
    }

    fn signal(&self, signal: Signal) {
        rustix::process::kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    async fn ended(mut self) -> ExitStatus {
        let folder = Arc::clone(&self.folder);
        let wait = tokio::task::spawn_blocking(move || self.child.wait().unwrap());
        let status = timeout(PATIENCE, wait).await.expect("it ends in time").unwrap();
        drop(folder);
        status
    }

    async fn post(&self, path: &str, form: &[(&str, &str)]) -> StatusCode {
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        let request = client()
            .post(format!("{}{path}", self.url))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body.extend_pairs(form).finish());
        request.send().await.unwrap().status()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.child.kill().unwrap_or_default();
        self.child.wait().map(|_| ()).unwrap_or_default();
    }
}

/// A callback that proves itself, and answers notifications when it is given leave.
struct Slow {
    server: Server,
    begun: Arc<Semaphore>,
    leave: Arc<Semaphore>,
    answered: Arc<AtomicUsize>,
}

impl Slow {
    async fn start() -> Slow {
        let (begun, leave) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let answered = Arc::new(AtomicUsize::new(0));
        let (tells, waits, counts) = (begun.clone(), leave.clone(), answered.clone());
        let server = Server::start(move |request| {
            let (tells, waits, counts) = (tells.clone(), waits.clone(), counts.clone());
            async move {
                if let Some(challenge) = request.query("hub.challenge") {
                    return say(StatusCode::OK, challenge.to_owned());
                }
                tells.add_permits(1);
                waits.acquire().await.unwrap().forget();
                counts.fetch_add(1, Ordering::SeqCst);
                say(StatusCode::OK, "")
            }
        })
        .await;
        Slow { server, begun, leave, answered }
    }

    async fn is_called(&self) {
        timeout(PATIENCE, self.begun.acquire()).await.expect("it is called").unwrap().forget();
    }
}

/// A program with one subscription, whose callback has just been called.
async fn delivering(publisher: &Publisher, slow: &Slow) -> Program {
    let program = Program::start(Arc::new(tempfile::tempdir().unwrap()));
    publisher.put_rss("/feed", rss("tides", 1..=1));
    let (topic, callback) = (publisher.url("/feed"), slow.server.url("/"));
    let form = [
        ("hub.mode", "subscribe"),
        ("hub.verify", "sync"),
        ("hub.topic", topic.as_str()),
        ("hub.callback", callback.as_str()),
    ];
    assert!(program.post("/hub", &form).await.is_success());
    publisher.put_rss("/feed", rss("tides", 1..=2));
    assert!(program.post("/ping", &[("url", topic.as_str())]).await.is_success());
    slow.is_called().await;
    program
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_in_hand_is_finished_and_kept() {
    let (publisher, slow) = (Publisher::start().await, Slow::start().await);
    let mut program = delivering(&publisher, &slow).await;
    let folder = Arc::clone(&program.folder);
    program.signal(Signal::TERM);
    program.prints("stopping");
    slow.leave.add_permits(1);
    assert!(program.ended().await.success());
    assert_eq!(slow.answered.load(Ordering::SeqCst), 1);

    let url = format!("sqlite:{}", folder.path().join("feedgate-data/feedgate.db").display());
    let (groups, page_limits) = (HostGroups::new(Duration::ZERO), PageLimits::default());
    let settings = store::StoreSettings {
        url,
        connections: 1,
        groups,
        page_limits,
        listed: Default::default(),
        forwarding: Default::default(),
        anonymous_bytes_per_day: 256 << 20,
        account_bytes_per_day: 32 << 30,
        cells: 1,
        secret_keys: Default::default(),
    };
    let store = store::open(&settings).await.unwrap();
    let (listed, _) = store
        .list(&SubscriptionFilter { limit: 9, ..SubscriptionFilter::default() })
        .await
        .unwrap();
    let resource = &listed[0].resource;
    assert!(resource.head.0 > 0);
    let owed = match listed[0].subscription.format {
        feedgate_core::subscription::Format::Raw => resource.body_version,
        _ => resource.head.0,
    };
    assert_eq!(listed[0].subscription.cursor.0, owed, "what was acknowledged is kept");
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_it_at_once() {
    let (publisher, slow) = (Publisher::start().await, Slow::start().await);
    let mut program = delivering(&publisher, &slow).await;
    program.signal(Signal::INT);
    program.prints("stopping");
    program.signal(Signal::INT);
    assert_eq!(program.ended().await.code(), Some(1));
    assert_eq!(slow.answered.load(Ordering::SeqCst), 0, "it did not wait for the callback");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_start_prints_a_token_and_commands_that_work() {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let mut program = Program::start(Arc::clone(&folder));
    let text = program.prints("/ping").replace("\\\n", " ");
    let commands: Vec<&str> =
        text.lines().map(str::trim).filter(|line| line.starts_with("curl ")).collect();
    assert_eq!(commands.len(), 4, "{text}");
    for command in commands {
        // As printed, with the status code told apart from the answer.
        let command = command.replacen("curl ", "curl -sw '\\n%{http_code}' ", 1);
        let run = Command::new("sh").args(["-c", &command]).output().unwrap();
        let answer = String::from_utf8(run.stdout).unwrap();
        let (_, code) = answer.rsplit_once('\n').unwrap();
        assert!(code.starts_with('2'), "{command}\n{answer}");
    }
    program.signal(Signal::TERM);
    assert!(program.ended().await.success());

    let mut again = Program::start(folder);
    again.signal(Signal::TERM);
    let text = again.prints("stopping");
    assert!(!text.contains("curl"), "the token is shown once:\n{text}");
}
