//! A server that plays answers byte for byte, as no decent HTTP library would.
//!
//! It speaks TCP only: what it sends is what the test wrote down, and what it was asked
//! is kept as it came. A path plays its steps in turn and then the last one for ever; a
//! path without steps is a 404. Every connection and every request is counted. Instead of
//! steps a function may decide what to play; then requests are its to keep.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

/// What happens to one request.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// These bytes; the connection stays open for the next request.
    Send(Vec<u8>),
    /// These bytes, then the connection is closed.
    SendAndClose(Vec<u8>),
    /// These bytes, then one byte after each pause, without end.
    Drip(Vec<u8>, Duration),
    /// These bytes, then the other ones again and again, as fast as they are taken.
    Flood(Vec<u8>, Vec<u8>),
    /// These bytes, once somebody sends them; until then nothing. Nobody does if the sender is dropped.
    Later(watch::Receiver<Vec<u8>>),
    /// No answer; the connection stays open.
    Hang,
}

/// The server. It ends when dropped.
pub(crate) struct Origin {
    address: SocketAddr,
    shared: Arc<Shared>,
    _task: AbortOnDropHandle<()>,
}

/// Decides what happens to a request.
type Play = Box<dyn Fn(&Request) -> Step + Send + Sync>;

#[derive(Default)]
struct Shared {
    play: Option<Play>,
    scripts: Mutex<HashMap<String, Vec<Step>>>,
    requests: Mutex<Vec<Request>>,
    connections: Mutex<usize>,
    /// Requests being answered, and the most there ever were.
    concurrently: Mutex<(usize, usize)>,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// The request line and the headers, up to the empty line.
    pub(crate) head: String,
    /// The body.
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// The path and query asked for.
    pub(crate) fn target(&self) -> &str {
        self.head.split(' ').nth(1).unwrap()
    }

    /// The value of a header (name in lower case), byte for byte.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (held, value) = line.split_once(": ")?;
            held.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

impl Origin {
    /// A server on a free port of 127.0.0.1.
    pub(crate) async fn start() -> Origin {
        Origin::start_at("127.0.0.1").await
    }

    /// A server on a free port of another address of this machine.
    pub(crate) async fn start_at(ip: &str) -> Origin {
        Origin::start_shared(ip, Shared::default()).await
    }

    /// A server whose answers `play` decides.
    pub(crate) async fn playing(play: impl Fn(&Request) -> Step + Send + Sync + 'static) -> Origin {
        Origin::playing_at("127.0.0.1", play).await
    }

    /// The same, on a free port of another address of this machine. `play` decides.
    pub(crate) async fn playing_at(
        ip: &str,
        play: impl Fn(&Request) -> Step + Send + Sync + 'static,
    ) -> Origin {
        let shared = Shared { play: Some(Box::new(play)), ..Shared::default() };
        Origin::start_shared(ip, shared).await
    }

    async fn start_shared(ip: &str, shared: Shared) -> Origin {
        let listener = TcpListener::bind((ip, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(shared);
        let task = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Origin { address, shared, _task: AbortOnDropHandle::new(task) }
    }

    /// Plays `steps` at `path` from now on.
    pub(crate) fn script(&self, path: &str, steps: impl IntoIterator<Item = Step>) -> &Origin {
        let steps = steps.into_iter().collect();
        self.shared.scripts.lock().unwrap().insert(path.to_owned(), steps);
        self
    }

    /// The URL of `path`, with the address of the server.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The URL of `path` under another name for the same server.
    pub(crate) fn url_as(&self, host: &str, path: &str) -> String {
        format!("http://{host}:{}{path}", self.address.port())
    }

    /// Every request so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// The latest request.
    pub(crate) fn last(&self) -> Request {
        self.requests().pop().unwrap()
    }

    /// How many connections were made.
    pub(crate) fn connections(&self) -> usize {
        *self.shared.connections.lock().unwrap()
    }

    /// The most requests that were being answered at the same time.
    pub(crate) fn most_concurrent(&self) -> usize {
        self.shared.concurrently.lock().unwrap().1
    }
}

/// An answer of `status` with these header lines and this body.
pub(crate) fn answer(status: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Step {
    let body = body.as_ref();
    let length = format!("Content-Length: {}", body.len());
    let mut bytes = head(status, &[headers, &[&length]].concat());
    bytes.extend_from_slice(body);
    Step::Send(bytes)
}

/// The beginning of an answer, up to its body.
pub(crate) fn head(status: &str, headers: &[&str]) -> Vec<u8> {
    let lines: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
    format!("HTTP/1.1 {status}\r\n{lines}\r\n").into_bytes()
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut open = tokio::task::JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        *shared.connections.lock().unwrap() += 1;
        open.spawn(serve(stream, Arc::clone(&shared)));
    }
}

/// Serves one connection until either side has enough.
async fn serve(mut stream: TcpStream, shared: Arc<Shared>) -> std::io::Result<()> {
    let mut unread = Vec::new();
    while let Some(request) = read_request(&mut stream, &mut unread).await? {
        let step = match &shared.play {
            Some(play) => play(&request),
            None => {
                let step = next_step(&shared, request.target());
                shared.requests.lock().unwrap().push(request);
                step
            }
        };
        let answering = Answering::begin(&shared);
        match step {
            Step::Send(bytes) => {
                tokio::task::yield_now().await; // lets another begin, if there is one
                drop(answering);
                stream.write_all(&bytes).await?;
            }
            Step::SendAndClose(bytes) => {
                stream.write_all(&bytes).await?;
                return stream.shutdown().await;
            }
            Step::Drip(bytes, pause) => {
                stream.write_all(&bytes).await?;
                loop {
                    tokio::time::sleep(pause).await;
                    stream.write_all(b" ").await?;
                }
            }
            Step::Flood(bytes, more) => {
                stream.write_all(&bytes).await?;
                loop {
                    stream.write_all(&more).await?;
                }
            }
            Step::Later(mut bytes) => {
                let Ok(bytes) =
                    bytes.wait_for(|bytes| !bytes.is_empty()).await.map(|it| it.clone())
                else {
                    return Ok(());
                };
                drop(answering);
                stream.write_all(&bytes).await?;
            }
            Step::Hang => std::future::pending().await,
        }
    }
    Ok(())
}

/// One request being answered.
struct Answering<'a>(&'a Shared);

impl Answering<'_> {
    fn begin(shared: &Shared) -> Answering<'_> {
        let mut concurrently = shared.concurrently.lock().unwrap();
        concurrently.0 += 1;
        concurrently.1 = concurrently.1.max(concurrently.0);
        Answering(shared)
    }
}

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        self.0.concurrently.lock().unwrap().0 -= 1;
    }
}

fn next_step(shared: &Shared, target: &str) -> Step {
    let mut scripts = shared.scripts.lock().unwrap();
    match scripts.get_mut(target) {
        Some(steps) if steps.len() > 1 => steps.remove(0),
        Some(steps) => steps[0].clone(),
        None => answer("404 Not Found", &[], ""),
    }
}

async fn read_request(
    stream: &mut TcpStream,
    unread: &mut Vec<u8>,
) -> std::io::Result<Option<Request>> {
    let mut chunk = [0; 4096];
    loop {
        if let Some(end) = unread.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            let head = unread[..end].iter().map(|&byte| char::from(byte)).collect();
            let mut request = Request { head, body: Vec::new() };
            let length = request.header("content-length").map_or(0, |text| text.parse().unwrap());
            if unread.len() >= end + 4 + length {
                request.body = unread[end + 4..end + 4 + length].to_vec();
                unread.drain(..end + 4 + length);
                return Ok(Some(request));
            }
        }
        match stream.read(&mut chunk).await? {
            0 => return Ok(None),
            read => unread.extend_from_slice(&chunk[..read]),
        }
    }
}
