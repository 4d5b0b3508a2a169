//! Each request under `fixtures/wire` must get the reply beside it.
//!
//! The bytes go over a socket to the real program: what is tested is what a client of
//! any language sees. `fixtures/wire/README.md` says what stands in the files; `UPDATE_FIXTURES=1` writes
//! the replies anew, with the headers each of them had: read them before committing.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine;
use http::{HeaderValue, StatusCode, header};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::PATIENCE;
use crate::support::feeds::rss;
use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;
use crate::support::server::{Answer, ReceivedRequest, Server, say};

#[tokio::test]
async fn requests_get_the_replies_beside_them() {
    let publisher = Publisher::start().await;
    publisher.put_rss("/feed", rss("tides", 1..4));
    let subscriber =
        Server::start(|request: ReceivedRequest| async move { answer(&request) }).await;
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[]).await;
    let names = [
        ("{publisher}", publisher.url("")),
        ("{subscriber}", subscriber.url("")),
        ("{port}", subscriber.port().to_string()),
        ("{basic}", base64::engine::general_purpose::STANDARD.encode("tester:s3cret")),
        ("{mebibyte}", "x".repeat(1 << 20)),
    ];

    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/wire");
    let requests = requests_under(&root);
    assert!(!requests.is_empty(), "no requests under {}", root.display());
    let update = std::env::var_os("UPDATE_FIXTURES").is_some();
    let mut wrong = Vec::new();
    for path in &requests {
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        let request = filled(&fs::read(path).unwrap(), &names);
        let beside = path.with_extension("reply");
        let want = fs::read(&beside).unwrap_or_default();
        let got = timeless(&exchange(&gateway, &request).await);
        if update {
            fs::write(&beside, bytes(&unfilled(&Reply::read(&got).like(&want), &names))).unwrap();
        } else {
            let want = Reply::read(&bytes(&filled(&want, &names)));
            wrong.extend(want.differences(&Reply::read(&got)).map(|why| format!("{name}: {why}")));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), requests.len(), wrong.join("\n"));
}

/// What a subscriber does is told by the path of its callback.
fn answer(request: &ReceivedRequest) -> Answer {
    let challenge = request.query("hub.challenge").or(request.query("challenge"));
    let challenge = challenge.unwrap_or("").to_owned();
    let no = "<fault><value><struct><member><name>faultCode</name><value><int>1</int></value>\
              </member><member><name>faultString</name><value>no such procedure</value></member>\
              </struct></value></fault>";
    let yes = "<params><param><value><boolean>1</boolean></value></param></params>";
    let response = |inner: &str| format!("<methodResponse>{inner}</methodResponse>");
    let envelope = |inner: &str| format!("<S:Envelope><S:Body>{inner}</S:Body></S:Envelope>");
    let kind = request.path.split('/').nth(1).unwrap_or_default();
    let (status, text) = match kind {
        "echo" => (StatusCode::OK, challenge),
        "newline" => (StatusCode::OK, format!("{challenge}\n")),
        "created" => (StatusCode::CREATED, challenge),
        "html" => (StatusCode::OK, format!("<p>{challenge}</p>")),
        "moved" => (StatusCode::FOUND, challenge),
        "ok" => (StatusCode::OK, "ok".to_owned()),
        "rpc" => (StatusCode::OK, response(yes)),
        "rpcfault" => (StatusCode::OK, response(no)),
        "soap" => (StatusCode::OK, envelope("<changedResponse/>")),
        "soapfault" => {
            (StatusCode::OK, envelope("<S:Fault><faultstring>no</faultstring></S:Fault>"))
        }
        _ => (StatusCode::NOT_FOUND, String::new()),
    };
    let mut answer = say(status, text);
    if status == StatusCode::FOUND {
        answer.headers_mut().insert(header::LOCATION, HeaderValue::from_static("/echo"));
    }
    answer
}

fn requests_under(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(requests_under(&path));
        } else if path.extension().is_some_and(|extension| extension == "request") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Bytes as characters one to one, so that files of any charset can be filled in.
fn filled(file: &[u8], names: &[(&str, String)]) -> String {
    let mut text: String = file.iter().map(|byte| char::from(*byte)).collect();
    for (name, value) in names {
        text = text.replace(name, value);
    }
    text.strip_suffix('\n').map(str::to_owned).unwrap_or(text)
}

fn unfilled(text: &str, names: &[(&str, String)]) -> String {
    names.iter().fold(text.to_owned(), |text, (name, value)| match *name {
        "{port}" => text,
        _ => text.replace(value, name),
    })
}

fn bytes(text: &str) -> Vec<u8> {
    text.chars().map(|c| u8::try_from(c).unwrap_or(b'?')).collect()
}

/// A reply with `{time}` for every moment in it (RFC 3339, in UTC, to the second).
fn timeless(reply: &[u8]) -> Vec<u8> {
    const SHAPE: &[u8] = b"dddd-dd-ddTdd:dd:ddZ";
    let mut rest = reply;
    let mut told = Vec::new();
    while let Some(first) = rest.first() {
        let moment = rest.get(..SHAPE.len()).filter(|text| {
            let alike = |(is, like): (&u8, &u8)| is == like || *like == b'd' && is.is_ascii_digit();
            text.iter().zip(SHAPE).all(alike)
        });
        match moment {
            Some(_) => told.extend(b"{time}"),
            None => told.push(*first),
        }
        rest = &rest[moment.map_or(1, <[u8]>::len)..];
    }
    told
}

/// Sends a request as it stands, with the headers that no file needs to repeat.
async fn exchange(gateway: &Gateway, request: &str) -> Vec<u8> {
    let address = gateway.url("").replace("http://", "");
    let (head, body) = request.split_once("\n\n").unwrap_or((request.trim_end(), ""));
    let mut head = head.replace('\n', "\r\n");
    head.push_str(&format!("\r\nHost: {address}\r\nConnection: close\r\n"));
    if !body.is_empty() {
        head.push_str(&format!("Content-Length: {}\r\n", body.chars().count()));
    }
    let mut stream = TcpStream::connect(&address).await.unwrap();
    stream.write_all(&bytes(&format!("{head}\r\n{body}"))).await.unwrap();
    let mut reply = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut reply)).await.expect("a reply in time").unwrap();
    reply
}

/// A reply, taken apart.
struct Reply {
    status: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl Reply {
    fn read(bytes: &[u8]) -> Reply {
        let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n");
        let (head, body) = text.split_once("\n\n").unwrap_or((text.trim_end(), ""));
        let mut lines = head.lines();
        let status = lines.next().unwrap_or_default().to_owned();
        let headers = lines.filter_map(|line| line.split_once(": "));
        let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
        Reply { status, headers: headers.collect(), body: body.trim_end().to_owned() }
    }

    /// What of `self` is not so in `got`.
    fn differences(self, got: &Reply) -> impl Iterator<Item = String> {
        let mut wrong = Vec::new();
        if self.status != got.status {
            wrong.push(format!("{} instead of {}", got.status, self.status));
        }
        for (name, value) in &self.headers {
            let held = got.headers.iter().find(|(held, _)| held == name);
            if held.is_none_or(|(_, held)| held != value) {
                wrong.push(format!("{name} is {held:?} instead of {value}"));
            }
        }
        if self.body != got.body {
            wrong.push(format!("the body is\n{}\ninstead of\n{}", got.body, self.body));
        }
        wrong.into_iter()
    }

    /// As a file, with the headers that the file had before.
    fn like(&self, before: &[u8]) -> String {
        let before = Reply::read(before);
        let is_named = |name: &str| before.headers.iter().any(|(held, _)| held == name);
        let mut text = format!("{}\n", self.status);
        for (name, value) in self.headers.iter().filter(|(name, _)| is_named(name)) {
            text.push_str(&format!("{name}: {value}\n"));
        }
        format!("{text}\n{}\n", self.body)
    }
}
