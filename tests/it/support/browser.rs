//! A real browser: Debian's Chromium, driven by its `chromedriver` over WebDriver.
//!
//! Starting one takes seconds, so tests of one file share one where they can, each with
//! its own page. Nothing it does leaves this machine; its profile is gone with it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use super::PATIENCE;
use super::server::client;

/// Between two looks at a page.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// How long the browser may take to end; it is killed then.
const FAREWELL: Duration = Duration::from_secs(10);

/// What Chromium is started with, besides a profile of its own.
const FLAGS: [&str; 13] = [
    "--headless",
    "--no-sandbox", // tests run as root in containers, where it cannot be had
    "--disable-gpu",
    "--hide-scrollbars", // a screenshot would end where they were
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--no-proxy-server",
    "--window-size=1000,800",
];

/// A browser with one page open; it ends when dropped.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    _profile: TempDir,
}

impl Browser {
    /// Starts one. Its first page is empty.
    pub(crate) async fn start() -> Browser {
        let (driver, port) = tokio::task::spawn_blocking(start_driver).await.unwrap();
        let profile = tempfile::tempdir().unwrap();
        let mut browser = Browser { driver, port, session: String::new(), _profile: profile };
        let folder = format!("--user-data-dir={}", browser._profile.path().display());
        let flags: Vec<&str> = FLAGS.into_iter().chain([folder.as_str()]).collect();
        let wanted = json!({
            "browserName": "chrome",
            "pageLoadStrategy": "normal",
            "goog:chromeOptions": { "args": flags },
            "goog:loggingPrefs": { "browser": "ALL" },
        });
        let wanted = json!({ "capabilities": { "alwaysMatch": wanted } });
        let made = browser.tell("/session", &wanted).await;
        made["sessionId"].as_str().unwrap().clone_into(&mut browser.session);
        browser
    }

    /// Opens `url` and waits until it is loaded. Credentials may stand in it, as in
    /// `http://login:token@host/`.
    pub(crate) async fn open(&self, url: &str) {
        self.ask("/url", &json!({ "url": url })).await;
    }

    /// What `script`, the body of a function, returns on this page.
    pub(crate) async fn run(&self, script: &str) -> Value {
        self.ask("/execute/sync", &json!({ "script": script, "args": [] })).await
    }

    /// Waits until `expression` is true on this page.
    pub(crate) async fn until(&self, expression: &str) {
        let script = format!("return Boolean({expression})");
        let wait = async {
            while self.run(&script).await != json!(true) {
                sleep(LOOK_AGAIN).await;
            }
        };
        if timeout(PATIENCE, wait).await.is_err() {
            panic!("{expression} was never true; the page says:\n{}", self.text("body").await);
        }
    }

    /// The text that a person sees in the first element that `css` selects.
    pub(crate) async fn text(&self, css: &str) -> String {
        let element = self.find(css).await;
        let address = format!("/session/{}/element/{element}/text", self.session);
        let text = self.send(client().get(self.url(&address))).await;
        text.as_str().unwrap().to_owned()
    }

    /// Clicks on the first element that `css` selects.
    pub(crate) async fn click(&self, css: &str) {
        let element = self.find(css).await;
        self.ask(&format!("/element/{element}/click"), &json!({})).await;
    }

    /// Empties the first field that `css` selects, and types `text` into it.
    pub(crate) async fn fill(&self, css: &str, text: &str) {
        let element = self.find(css).await;
        self.ask(&format!("/element/{element}/clear"), &json!({})).await;
        self.ask(&format!("/element/{element}/value"), &json!({ "text": text })).await;
    }

    /// Shows pages from now on in a window of this width in pixels, to somebody who prefers this theme.
    pub(crate) async fn emulate(&self, width: u32, theme: &str) {
        let size =
            json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.command("Emulation.setDeviceMetricsOverride", &size).await;
        let theme = json!([{ "name": "prefers-color-scheme", "value": theme }]);
        self.command("Emulation.setEmulatedMedia", &json!({ "features": theme })).await;
    }

    /// A picture of the whole page, as PNG.
    pub(crate) async fn screenshot(&self) -> Vec<u8> {
        let all = json!({ "format": "png", "captureBeyondViewport": true });
        let taken = self.command("Page.captureScreenshot", &all).await;
        STANDARD.decode(taken["data"].as_str().unwrap()).unwrap()
    }

    /// Sends a command of the DevTools protocol.
    async fn command(&self, name: &str, parameters: &Value) -> Value {
        self.ask("/goog/cdp/execute", &json!({ "cmd": name, "params": parameters })).await
    }

    /// Continues in the first frame of this page.
    pub(crate) async fn enter_frame(&self) {
        self.ask("/frame", &json!({ "id": 0 })).await;
    }

    /// Continues in the page around the frame.
    pub(crate) async fn leave_frame(&self) {
        self.ask("/frame/parent", &json!({})).await;
    }

    /// What the page complained of since the last time it was asked: scripts that fail, and
    /// what its policy forbids. That there is no icon, of the gateway or of a site, is no fault.
    pub(crate) async fn complaints(&self) -> Vec<String> {
        let told = self.ask("/se/log", &json!({ "type": "browser" })).await;
        let told = told.as_array().unwrap().iter();
        let told = told.map(|line| line["message"].as_str().unwrap().to_owned());
        let is_of_icon = |line: &String| {
            ["/favicon.ico", "/console/icons/"].iter().any(|path| line.contains(path))
        };
        told.filter(|line| !is_of_icon(line)).collect()
    }

    async fn find(&self, css: &str) -> String {
        let wanted = json!({ "using": "css selector", "value": css });
        let found = self.ask("/element", &wanted).await;
        let reference = found.as_object().unwrap().values().next().unwrap();
        reference.as_str().unwrap().to_owned()
    }

    /// Asks the session for something.
    async fn ask(&self, path: &str, body: &Value) -> Value {
        self.tell(&format!("/session/{}{path}", self.session), body).await
    }

    async fn tell(&self, path: &str, body: &Value) -> Value {
        let request = client().post(self.url(path)).header("content-type", "application/json");
        self.send(request.body(body.to_string())).await
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Value {
        let answer = timeout(PATIENCE, request.send()).await.expect("the browser answers in time");
        let text = answer.unwrap().text().await.unwrap();
        let mut answer: Value = serde_json::from_str(&text).unwrap();
        let value = answer["value"].take();
        assert!(value.get("error").is_none(), "the browser says no: {value}");
        value
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Ends the session, and Chromium with it. Written by hand, because the runtime of the
    /// test may be ending.
    fn end_session(&self) -> std::io::Result<()> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(FAREWELL))?;
        let (session, port) = (&self.session, self.port);
        write!(
            stream,
            "DELETE /session/{session} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\
             Connection: close\r\n\r\n"
        )?;
        stream.read(&mut [0; 64]).map(drop)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // A test that fails has something better to say than that this did.
        let _ = self.end_session();
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// Starts `chromedriver`, which says where it listens.
fn start_driver() -> (Child, u16) {
    let mut driver = Command::new("chromedriver")
        .arg("--port=0")
        .env_remove("http_proxy")
        .env_remove("https_proxy")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Chromium and its chromedriver are installed: tests/run does it");
    let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
    let port = lines.by_ref().map_while(Result::ok).find_map(|line| {
        let port = line.split_once("started successfully on port ")?.1;
        port.trim_end_matches('.').parse().ok()
    });
    // It must not be stopped by a pipe that nobody reads.
    std::thread::spawn(move || lines.for_each(drop));
    (driver, port.expect("chromedriver says where it listens"))
}
