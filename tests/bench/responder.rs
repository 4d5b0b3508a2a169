//! An HTTP server of few words: one thread that reads requests and answers them.
//!
//! It reads no more of a request than it must, because its work is done on the same machine as that
//! which is measured.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, mpsc};
use std::thread;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 4_096;

/// Returns the body of the response to a request: its head and its body.
pub(crate) trait Respond: Send + Sync + 'static {
    /// Returns the body of a response with the status 200.
    fn respond(&self, request: &str) -> String;

    /// Returns the head of a response with another status and without a body, up to the empty line.
    fn refuse(&self, _request: &str) -> Option<String> {
        None
    }
}

/// Starts a server on all addresses of this machine, and returns its port. It runs until the process
/// ends.
pub(crate) fn start(
    state: Arc<impl Respond>,
) -> Result<u16, Box<dyn std::error::Error + Send + Sync>> {
    let (listens, port) = mpsc::channel();
    thread::spawn(move || run(state, &listens));
    Ok(port.recv()??)
}

/// Reports the port on which it listens, and answers until the process ends.
fn run(state: Arc<impl Respond>, listens: &mpsc::Sender<std::io::Result<u16>>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let begun = runtime.and_then(|runtime| {
        let inside = runtime.enter();
        let listener = listen()?;
        let port = listener.local_addr()?.port();
        drop(inside);
        Ok((runtime, listener, port))
    });
    match begun {
        Ok((runtime, listener, port)) => {
            if listens.send(Ok(port)).is_ok() {
                runtime.block_on(serve(listener, state));
            }
        }
        Err(err) => listens.send(Err(err)).unwrap_or_default(),
    }
}

fn listen() -> std::io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))?;
    socket.listen(BACKLOG)
}

async fn serve(listener: TcpListener, state: Arc<impl Respond>) {
    while let Ok((stream, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            // A client that closes its connection has had its response.
            let _ = talk(stream, state.as_ref()).await;
        });
    }
}

async fn talk(mut stream: TcpStream, state: &impl Respond) -> std::io::Result<()> {
    let mut buffer = Vec::with_capacity(1_024);
    while let Some(end) = read_request(&mut stream, &mut buffer).await? {
        let request = String::from_utf8_lossy(&buffer[..end]);
        let response = match state.refuse(&request) {
            Some(head) => format!("{head}\r\nContent-Length: 0\r\n\r\n"),
            None => {
                let body = state.respond(&request);
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
            }
        };
        stream.write_all(response.as_bytes()).await?;
        buffer.drain(..end);
    }
    Ok(())
}

/// Reads until a request is complete, and returns where it ends.
async fn read_request(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
) -> std::io::Result<Option<usize>> {
    loop {
        if let Some(head) = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&buffer[..head]).to_ascii_lowercase();
            let length = text.split("content-length:").nth(1).and_then(|rest| {
                rest.split_whitespace().next().and_then(|number| number.parse::<usize>().ok())
            });
            let end = head + 4 + length.unwrap_or(0);
            if buffer.len() >= end {
                return Ok(Some(end));
            }
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
}
