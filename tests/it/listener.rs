//! Where connections come in: what a client can rely on, and what it cannot do to us.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use feedgate::http::PeerAddr;
use feedgate::http::serve::listener::{ListenError, Listener, ListenerSettings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_util::sync::CancellationToken;
use warp::{Filter, Reply};

use crate::support::PATIENCE;

/// Timeouts that no test has to sit out for long.
fn settings() -> ListenerSettings {
    ListenerSettings {
        max_connections: 100,
        max_connections_per_client: 100,
        trusted_proxies: Vec::new(),
        header_timeout: Duration::from_millis(300),
        drain: Duration::from_secs(60),
        tls: None,
    }
}

/// A listener with two doors: `/who` names the peer, `/slow` waits for leave.
struct Bench {
    addr: SocketAddr,
    leave: Arc<Semaphore>,
    begun: Arc<Semaphore>,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

impl Bench {
    async fn start(settings: ListenerSettings) -> Bench {
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), settings).await.unwrap();
        let addr = listener.local_addr();
        let (leave, begun) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let who = warp::path("who").and(warp::ext::get::<PeerAddr>());
        let who = who.map(|PeerAddr(peer): PeerAddr| peer.to_string().into_response());
        let (waits, tells) = (Arc::clone(&leave), Arc::clone(&begun));
        let slow = warp::path("slow").then(move || {
            let (waits, tells) = (Arc::clone(&waits), Arc::clone(&tells));
            async move {
                tells.add_permits(1);
                waits.acquire().await.unwrap().forget();
                "done".into_response()
            }
        });
        let stop = CancellationToken::new();
        let serving = tokio::spawn(listener.serve(who.or(slow).unify().boxed(), stop.clone()));
        Bench { addr, leave, begun, stop, serving }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.addr).await.unwrap()
    }

    /// Waits until a request is in hand behind `/slow`.
    async fn in_hand(&self) {
        timeout(PATIENCE, self.begun.acquire()).await.unwrap().unwrap().forget();
    }
}

/// Everything until the other side closes.
async fn rest(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut text = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut text)).await.expect("it is closed").unwrap_or(0);
    String::from_utf8(text).unwrap()
}

#[tokio::test]
async fn doors_learn_who_is_asking_in_http_1_0_too() {
    let bench = Bench::start(settings()).await;
    let mut stream = bench.connect().await;
    stream.write_all(b"GET /who HTTP/1.0\r\n\r\n").await.unwrap();
    // As nc does: nothing more to say, but still listening.
    stream.shutdown().await.unwrap();
    let peer = stream.local_addr().unwrap().to_string();
    let text = rest(&mut stream).await;
    assert!(text.starts_with("HTTP/1.0 200 OK\r\n") && text.ends_with(&peer), "{text}");
}

#[tokio::test]
async fn clients_that_do_not_come_to_the_point_are_sent_away() {
    let bench = Bench::start(settings()).await;
    let beginnings = ["", "P", "PRI * HTTP/2.0\r\n", "GET /who HTTP/1.1\r\nHost: a.te"];
    for beginning in beginnings {
        let mut stream = bench.connect().await;
        stream.write_all(beginning.as_bytes()).await.unwrap();
        let text = rest(&mut stream).await;
        assert!(!text.contains("200 OK"), "{beginning:?}: {text}");
    }
    // One that was answered and stays idle is sent away too.
    let mut stream = bench.connect().await;
    stream.write_all(b"GET /who HTTP/1.1\r\nHost: a.test\r\n\r\n").await.unwrap();
    assert!(rest(&mut stream).await.starts_with("HTTP/1.1 200 OK\r\n"));
}

#[tokio::test]
async fn a_slow_answer_is_no_reason_to_hang_up() {
    let bench = Bench::start(settings()).await;
    let mut stream = bench.connect().await;
    stream.write_all(b"GET /slow HTTP/1.1\r\nHost: a.test\r\n\r\n").await.unwrap();
    bench.in_hand().await;
    tokio::time::sleep(settings().header_timeout * 2).await; // what must not matter
    bench.leave.add_permits(1);
    assert!(rest(&mut stream).await.contains("done"));
}

#[tokio::test]
async fn connections_beyond_the_bound_wait_for_their_turn() {
    let bench = Bench::start(ListenerSettings { max_connections: 1, ..settings() }).await;
    let mut first = bench.connect().await;
    first.write_all(b"GET /slow HTTP/1.0\r\n\r\n").await.unwrap();
    bench.in_hand().await;
    let mut second = bench.connect().await;
    second.write_all(b"GET /slow HTTP/1.0\r\n\r\n").await.unwrap();
    let waited = timeout(Duration::from_millis(200), bench.in_hand()).await;
    assert!(waited.is_err(), "the second is not served beside the first");
    bench.leave.add_permits(2);
    assert!(rest(&mut first).await.contains("done"));
    assert!(rest(&mut second).await.contains("done"));
}

#[tokio::test]
async fn told_to_stop_it_finishes_what_it_has_and_takes_nobody_new() {
    let bench = Bench::start(settings()).await;
    let mut idle = bench.connect().await;
    let mut busy = bench.connect().await;
    busy.write_all(b"GET /slow HTTP/1.1\r\nHost: a.test\r\n\r\n").await.unwrap();
    bench.in_hand().await;
    bench.stop.cancel();
    assert_eq!(rest(&mut idle).await, "", "who asks nothing is not waited for");
    while TcpStream::connect(bench.addr).await.is_ok() {
        tokio::task::yield_now().await; // until the socket is closed
    }
    bench.leave.add_permits(1);
    let text = rest(&mut busy).await;
    assert!(text.contains("connection: close") && text.contains("done"), "{text}");
    timeout(PATIENCE, bench.serving).await.unwrap().unwrap();
}

#[tokio::test]
async fn what_does_not_finish_in_time_is_cut() {
    let drain = Duration::from_millis(200);
    let bench = Bench::start(ListenerSettings { drain, ..settings() }).await;
    let mut stream = bench.connect().await;
    stream.write_all(b"GET /slow HTTP/1.1\r\nHost: a.test\r\n\r\n").await.unwrap();
    bench.in_hand().await;
    bench.stop.cancel();
    assert_eq!(rest(&mut stream).await, "");
    timeout(PATIENCE, bench.serving).await.unwrap().unwrap();
}

#[tokio::test]
async fn with_a_certificate_the_doors_speak_tls() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/fetch");
    let (cert, key) = (fixtures.join("stranger.cert.pem"), fixtures.join("stranger.key.pem"));
    let bench =
        Bench::start(ListenerSettings { tls: Some((cert.clone(), key)), ..settings() }).await;

    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(cert).unwrap()).unwrap();
    let ring = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let client = ClientConfig::builder_with_provider(ring).with_safe_default_protocol_versions();
    let client = client.unwrap().with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from("stranger.test").unwrap();
    let stream = bench.connect().await;
    let mut stream = TlsConnector::from(Arc::new(client)).connect(name, stream).await.unwrap();
    stream.write_all(b"GET /who HTTP/1.0\r\n\r\n").await.unwrap();
    assert!(rest(&mut stream).await.starts_with("HTTP/1.0 200 OK\r\n"));

    // Who does not speak it, or says nothing, is sent away.
    for beginning in ["GET /who HTTP/1.0\r\n\r\n", ""] {
        let mut stream = bench.connect().await;
        stream.write_all(beginning.as_bytes()).await.unwrap();
        let mut got = Vec::new();
        timeout(PATIENCE, stream.read_to_end(&mut got)).await.unwrap().unwrap_or(0);
        assert!(!got.starts_with(b"HTTP"), "{beginning:?}");
    }
}

#[tokio::test]
async fn what_cannot_be_listened_with_is_said_in_a_sentence() {
    let bench = Bench::start(settings()).await;
    let taken = Listener::bind(bench.addr, settings()).await.unwrap_err();
    assert!(matches!(taken, ListenError::Bind { .. }));
    assert_eq!(taken.to_string(), format!("cannot listen on {}", bench.addr));

    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let settings = ListenerSettings { tls: Some((readme.clone(), readme)), ..settings() };
    let no_cert = Listener::bind("127.0.0.1:0".parse().unwrap(), settings).await.unwrap_err();
    assert_eq!(no_cert.code(), "bad_certificate");
}
