//! Who reads the output of a gateway may stop, or be slow: nothing else changes (H19).

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write, pipe};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::support::feeds::rss;
use crate::support::ports::free_port;
use crate::support::publisher::Publisher;
use crate::support::server::client;
use crate::support::subscriber::Subscriber;
use crate::support::until;

/// What a pipe holds.
const PIPE_BYTES: usize = 64 << 10;

/// `feedgate serve 2>&1 | …`, with the reading side of the pipe; killed when dropped.
struct Program {
    child: Child,
    output: Option<BufReader<PipeReader>>,
    url: String,
    _folder: TempDir,
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Program {
    fn start(log: &str) -> Program {
        Program::start_with(log, |_, _| {})
    }

    /// Starts it in a folder and with a pipe that `prepare` has prepared.
    fn start_with(log: &str, prepare: impl FnOnce(&Path, &mut PipeWriter)) -> Program {
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let (output, mut written) = pipe().unwrap();
        prepare(folder.path(), &mut written);
        let child = Command::new(env!("CARGO_BIN_EXE_feedgate"))
            .args(["serve", "--listen", &format!("127.0.0.1:{port}")])
            .current_dir(folder.path())
            .env_clear()
            .env("FEEDGATE_EGRESS_ALLOW_TOPIC_CIDRS", "127.0.0.0/8")
            .env("FEEDGATE_EGRESS_ALLOW_CALLBACK_CIDRS", "127.0.0.0/8")
            .env("FEEDGATE_HOST_MIN_INTERVAL_MS", "0")
            .env("FEEDGATE_PING_MIN_INTERVAL_MS", "0")
            .env("FEEDGATE_LOG", log)
            .stdin(Stdio::null())
            .stdout(written.try_clone().unwrap())
            .stderr(written)
            .spawn()
            .unwrap();
        let url = format!("http://127.0.0.1:{port}");
        Program { child, output: Some(BufReader::new(output)), url, _folder: folder }
    }

    /// Reads the first lines, as `head` does.
    fn head(&mut self, count: usize) -> Vec<String> {
        let output = self.output.as_mut().unwrap();
        output.lines().take(count).collect::<Result<_, _>>().unwrap()
    }

    async fn is_ready(&self) -> bool {
        let response = client().get(format!("{}/readyz", self.url)).send().await;
        response.is_ok_and(|response| response.status().is_success())
    }

    /// Notifies a subscriber of an entry, which is logged.
    async fn delivers(&self) {
        let (publisher, subscriber) = (Publisher::start().await, Subscriber::start().await);
        publisher.put_rss("/feed", rss("tides", 1..2));
        let (topic, callback) = (publisher.url("/feed"), subscriber.url("/cb"));
        let subscribe =
            [("hub.mode", "subscribe"), ("hub.topic", &topic), ("hub.callback", &callback)];
        assert!(self.post("/hub", &subscribe).await);
        until("the feed was fetched", async || !publisher.fetches("/feed").is_empty()).await;
        publisher.put_rss("/feed", rss("tides", 1..3));
        until("the entry is delivered", async || {
            assert!(self.post("/ping", &[("url", &topic)]).await);
            !subscriber.notified("/cb").is_empty()
        })
        .await;
    }

    async fn post(&self, path: &str, form: &[(&str, &str)]) -> bool {
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        let request = client().post(format!("{}{path}", self.url));
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        let response = request.body(body.extend_pairs(form).finish()).send().await.unwrap();
        response.status().is_success()
    }

    /// Asks it to stop, and returns the code that it ends with.
    async fn stop(&mut self) -> Option<i32> {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        until("the program ends", async || self.child.try_wait().unwrap().is_some()).await;
        self.child.wait().unwrap().code()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn h19_a_gateway_goes_on_and_ends_in_order_when_nobody_reads_its_log() {
    for (log, lines) in [("debug", 3), ("debug", 1), ("off", 0)] {
        let mut program = Program::start(log);
        program.head(lines);
        program.output = None;
        until("the gateway is ready", async || program.is_ready().await).await;
        program.delivers().await;
        assert!(program.is_ready().await);
        assert_eq!(program.stop().await, Some(0), "{log}, {lines} lines were read");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn h19_a_gateway_goes_on_when_its_log_is_read_too_slowly() {
    let mut program = Program::start("trace");
    until("the gateway is ready", async || program.is_ready().await).await;
    // More than a pipe holds.
    for _ in 0..200 {
        assert!(program.is_ready().await);
    }
    program.delivers().await;
    assert_eq!(program.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn h19_a_gateway_that_cannot_start_ends_although_nobody_reads_its_output() {
    let mut program = Program::start_with("info", |folder, written| {
        // The folder of the database cannot be a file.
        std::fs::write(folder.join("feedgate-data"), "").unwrap();
        written.write_all(&[b'x'; PIPE_BYTES]).unwrap();
    });
    until("the program ends", async || program.child.try_wait().unwrap().is_some()).await;
    assert_eq!(program.child.wait().unwrap().code(), Some(1));
}
