//! feedgate itself, as the real program in a process of its own, on a free port.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use feedgate_core::account::{NewToken, Scopes, TokenHash};
use http::StatusCode;
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use tokio::time::{sleep, timeout};

use super::PATIENCE;
use super::ports::free_port;
use super::postgres::Database;
use super::reader::Reader;
use super::server::client;
use super::subscriber::Subscriber;
use super::validator::assert_sound;

/// Between two looks at what cannot be awaited: another process.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// An account that every gateway of the tests has.
pub(crate) const LOGIN: &str = "tester";
pub(crate) const TOKEN: &str = "s3cret";

/// A running `feedgate serve`, killed when dropped.
pub(crate) struct Gateway {
    url: String,
    program: PathBuf,
    child: Child,
    settings: Vec<(String, String)>,
}

impl Gateway {
    /// Starts one on `database`, and waits until it is ready. It may reach this machine,
    /// and waits for nothing between two requests to a host. Its gauges are never old.
    pub(crate) async fn start(database: &Database, settings: &[(&str, &str)]) -> Gateway {
        Gateway::start_at(free_port(), database, settings).await
    }

    /// The same; it knows that others can reach it, and so asks hubs and clouds to tell it
    /// of changes.
    pub(crate) async fn start_reachable(database: &Database) -> Gateway {
        let port = free_port();
        let public_url = format!("http://127.0.0.1:{port}/");
        let settings = [("FEEDGATE_PUBLIC_URL", public_url.as_str())];
        Gateway::start_at(port, database, &settings).await
    }

    /// The same as `start`, at this port.
    pub(crate) async fn start_at(
        port: u16,
        database: &Database,
        settings: &[(&str, &str)],
    ) -> Gateway {
        make_account(database).await;
        let program = Path::new(env!("CARGO_BIN_EXE_feedgate"));
        Gateway::start_program(program, port, database, settings).await
    }

    /// Another version of feedgate, at this port. Its accounts are those of the database.
    pub(crate) async fn start_program(
        program: &Path,
        port: u16,
        database: &Database,
        settings: &[(&str, &str)],
    ) -> Gateway {
        let url = format!("http://127.0.0.1:{port}");
        let listen = format!("127.0.0.1:{port}");
        let cells = database.cells.to_string();
        let defaults = [
            ("FEEDGATE_LISTEN", listen.as_str()),
            ("FEEDGATE_DATABASE", database.url.as_str()),
            ("FEEDGATE_CELLS", cells.as_str()),
            ("FEEDGATE_EGRESS_ALLOW_TOPIC_CIDRS", "127.0.0.0/8"),
            ("FEEDGATE_EGRESS_ALLOW_CALLBACK_CIDRS", "127.0.0.0/8"),
            ("FEEDGATE_HOST_MIN_INTERVAL_MS", "0"),
            ("FEEDGATE_PING_MIN_INTERVAL_MS", "0"),
            ("FEEDGATE_PING_WAIT_S", "60"),
            ("FEEDGATE_GAUGES_MAX_AGE_S", "0"),
            ("FEEDGATE_LOG", "warn"),
        ];
        let all = defaults.iter().chain(settings);
        let settings: Vec<(String, String)> =
            all.map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let child = spawn(program, &settings);
        let mut gateway = Gateway { url, program: program.to_owned(), child, settings };
        gateway.ready().await;
        gateway
    }

    /// Its address and this path, which begins with a slash.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// A number of kilobytes that the system has on its memory: `VmRSS`, what it has now, or
    /// `VmHWM`, the most it ever had. In bytes.
    pub(crate) fn memory_bytes(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let value = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        let kilobytes = value.unwrap().split_whitespace().next().unwrap();
        kilobytes.parse::<u64>().unwrap() * 1_024
    }

    /// `kill -9`, without a chance to finish anything.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Makes the system refuse to write beyond this size of any file; `None`: it writes again.
    pub(crate) fn limit_files(&self, bytes: Option<u64>) {
        let limit = Rlimit { current: bytes, maximum: None };
        prlimit(Some(Pid::from_child(&self.child)), Resource::Fsize, limit).unwrap();
    }

    /// Asks it to stop, as an operator does.
    pub(crate) fn terminate(&self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
    }

    /// Stops its process until it is [resumed](Gateway::resume), as a suspended machine does.
    pub(crate) fn suspend(&self) {
        kill_process(Pid::from_child(&self.child), Signal::STOP).unwrap();
    }

    /// Lets a suspended process run on.
    pub(crate) fn resume(&self) {
        kill_process(Pid::from_child(&self.child), Signal::CONT).unwrap();
    }

    /// Starts it again after it was killed: same address, same database.
    pub(crate) async fn restart(&mut self) {
        self.child = spawn(&self.program, &self.settings);
        self.ready().await;
    }

    /// Starts it again after it has ended, and waits until it refuses: the code that it ends with.
    pub(crate) async fn refuses_to_start(&mut self) -> Option<i32> {
        self.child = spawn(&self.program, &self.settings);
        self.ended().await;
        self.child.wait().unwrap().code()
    }

    /// Starts it again while its database may be out of reach: a node that ends for that reason is
    /// started again, as a service manager would.
    pub(crate) async fn restart_until_ready(&mut self) {
        let wait = async {
            loop {
                self.child = spawn(&self.program, &self.settings);
                while self.child.try_wait().unwrap().is_none() {
                    let answer = client().get(self.url("/readyz")).send().await;
                    if answer.is_ok_and(|answer| answer.status() == StatusCode::OK) {
                        return;
                    }
                    sleep(LOOK_AGAIN).await;
                }
            }
        };
        timeout(PATIENCE, wait).await.expect("feedgate is ready in time");
    }

    /// Waits until it has ended.
    pub(crate) async fn ended(&mut self) {
        let wait = async {
            while self.child.try_wait().unwrap().is_none() {
                sleep(LOOK_AGAIN).await;
            }
        };
        timeout(PATIENCE, wait).await.expect("feedgate ends in time");
    }

    /// Waits until it takes requests.
    async fn ready(&mut self) {
        let wait = async {
            loop {
                if let Some(status) = self.child.try_wait().unwrap() {
                    panic!("feedgate ended before it was ready: {status}");
                }
                let answer = client().get(self.url("/readyz")).send().await;
                if answer.is_ok_and(|answer| answer.status() == StatusCode::OK) {
                    return;
                }
                sleep(LOOK_AGAIN).await;
            }
        };
        timeout(PATIENCE, wait).await.expect("feedgate is ready in time");
    }

    /// Posts a form; status code and text of the answer.
    pub(crate) async fn post(&self, path: &str, form: &[(&str, &str)]) -> (StatusCode, String) {
        self.try_post(path, form).await.unwrap()
    }

    /// Posts a form to a gateway that may not be there.
    pub(crate) async fn try_post(
        &self,
        path: &str,
        form: &[(&str, &str)],
    ) -> Result<(StatusCode, String), reqwest::Error> {
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        let request = client()
            .post(self.url(path))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body.extend_pairs(form).finish());
        let answer = request.send().await?;
        Ok((answer.status(), answer.text().await?))
    }

    /// Waits until a line of `/metrics` says so.
    pub(crate) async fn measures(&self, line: &str) {
        let mut metrics = String::new();
        let wait = async {
            while !metrics.lines().any(|held| held == line) {
                sleep(LOOK_AGAIN).await;
                metrics = self.get("/metrics").await.1;
            }
        };
        let in_time = timeout(PATIENCE, wait).await.is_ok();
        assert!(in_time, "{line} was never measured:\n{metrics}");
    }

    /// Gets `path`; status code and text of the answer.
    pub(crate) async fn get(&self, path: &str) -> (StatusCode, String) {
        self.fetch(&self.url(path)).await
    }

    /// Gets a whole address; status code and text of the answer.
    pub(crate) async fn fetch(&self, url: &str) -> (StatusCode, String) {
        let answer = client().get(url).send().await.unwrap();
        let (status, url) = (answer.status(), answer.url().clone());
        let text = answer.text().await.unwrap();
        if url.path().starts_with("/feeds/") && status == StatusCode::OK {
            assert_sound(url.as_str(), &text);
        }
        (status, text)
    }

    /// Gets `path` as the account of the tests; the JSON that it answers.
    pub(crate) async fn own(&self, path: &str) -> serde_json::Value {
        let request = client().get(self.url(path)).basic_auth(LOGIN, Some(TOKEN));
        let text = request.send().await.unwrap().text().await.unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Asks something of Superfeedr's API, as the account of the tests.
    pub(crate) async fn superfeedr(&self, form: &[(&str, &str)]) -> (StatusCode, String) {
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        let request = client()
            .post(self.url("/"))
            .basic_auth(LOGIN, Some(TOKEN))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body.extend_pairs(form).finish());
        let answer = request.send().await.unwrap();
        (answer.status(), answer.text().await.unwrap())
    }

    /// Subscribes by Superfeedr's API: the callback is sent the new entries.
    pub(crate) async fn subscribe_superfeedr(&self, topic: &str, callback: &str, format: &str) {
        let form = [
            ("hub.mode", "subscribe"),
            ("hub.topic", topic),
            ("hub.callback", callback),
            ("format", format),
        ];
        let (status, text) = self.superfeedr(&form).await;
        assert_eq!(status, StatusCode::NO_CONTENT, "{text}");
    }

    /// Subscribes by WebSub, with further parameters, and waits until the callback has
    /// proved itself.
    pub(crate) async fn subscribe_websub(
        &self,
        topic: &str,
        callback: &str,
        further: &[(&str, &str)],
    ) {
        let form = [
            ("hub.mode", "subscribe"),
            ("hub.topic", topic),
            ("hub.callback", callback),
            ("hub.verify", "sync"),
        ];
        let (status, text) = self.post("/hub", &[&form, further].concat()).await;
        assert!(status.is_success(), "{status}: {text}");
    }

    /// Makes a feed of this machine one for everybody, as it is once somebody without an account
    /// subscribes to it. The callback is never called.
    pub(crate) async fn open_to_anonymous(&self, topic: &str) {
        self.subscribe_websub(topic, "http://127.0.0.1:9/dev/null", &[]).await;
    }

    /// Subscribes by rssCloud; `protocol` as it stands on the wire.
    pub(crate) async fn subscribe_rsscloud(
        &self,
        protocol: &str,
        topic: &str,
        subscriber: &Subscriber,
        path: &str,
    ) {
        let form = [
            ("notifyProcedure", "river.changed"),
            ("port", &subscriber.port().to_string()),
            ("path", path),
            ("protocol", protocol),
            ("url1", topic),
        ];
        let (status, text) = self.post("/rsscloud/pleaseNotify", &form).await;
        assert!(status.is_success() && text.contains("success=\"true\""), "{status}: {text}");
    }

    /// Waits until nobody is owed anything and nobody waits to be verified. A test that
    /// ends otherwise has found a leak.
    pub(crate) async fn comes_to_rest(&self) {
        let mut metrics = String::new();
        let wait = async {
            let at_rest =
                ["\nfeedgate_subscriptions_due 0\n", "\nfeedgate_pending_verifications 0\n"];
            while !at_rest.iter().all(|line| metrics.contains(line)) {
                sleep(LOOK_AGAIN).await;
                metrics = self.get("/metrics").await.1;
            }
        };
        let in_time = timeout(PATIENCE, wait).await.is_ok();
        assert!(in_time, "something is left to do:\n{metrics}");
    }

    /// Where the archive of `topic` begins.
    pub(crate) fn archive_of(&self, topic: &str) -> String {
        let query: String = url::form_urlencoded::byte_serialize(topic.as_bytes()).collect();
        self.url(&format!("/feeds?topic={query}"))
    }

    /// Waits until the recent document of the archive of `topic` has this entry.
    pub(crate) async fn archive_holds(&self, topic: &str, entry_id: &str) {
        let recent = self.archive_of(topic);
        let wait = async {
            loop {
                let mut reader = Reader::default();
                let read = reader.catch_up(&recent).await;
                if read.is_ok() && reader.processed.iter().any(|id| id == entry_id) {
                    return;
                }
                sleep(LOOK_AGAIN).await;
            }
        };
        let in_time = timeout(PATIENCE, wait).await.is_ok();
        assert!(in_time, "the archive of {topic} never had {entry_id}");
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // It may have been killed already.
        self.child.kill().unwrap_or_default();
        self.child.wait().map(|_| ()).unwrap_or_default();
    }
}

async fn make_account(database: &Database) {
    let store = database.open().await;
    let hash = TokenHash::from_token(TOKEN);
    let now = feedgate::jobs::runner::now();
    if store.authenticate(LOGIN, &hash, now).await.unwrap().is_none() {
        let (login, name, scopes) = (LOGIN.to_owned(), "tests".to_owned(), Scopes::all());
        store
            .create_token(&NewToken { login, name, scopes, hash, expires_at: None }, now)
            .await
            .unwrap();
    }
    store.close().await;
}

fn spawn(program: &Path, settings: &[(String, String)]) -> Child {
    Command::new(program)
        .arg("serve")
        .env_clear()
        .envs(settings.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}
