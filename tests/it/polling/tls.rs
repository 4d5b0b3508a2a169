//! Servers that speak TLS, and HTTP/2 over it: rules P38 and P39.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;

use super::ATOM;

/// For `stranger.test` and 127.0.0.1, signed by itself.
const CERTIFICATE: &str = "fixtures/fetch/stranger.cert.pem";

/// A server that hands each connection to `greet`, one after the other.
pub(super) async fn greeter<G, F>(greet: G) -> (u16, AbortOnDropHandle<()>)
where
    G: Fn(TcpStream) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + Send,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        loop {
            greet(listener.accept().await.unwrap().0).await;
        }
    });
    (port, AbortOnDropHandle::new(task))
}

/// Speaks TLS with [`CERTIFICATE`], and HTTP/2 to whoever wants it.
pub(super) fn acceptor() -> TlsAcceptor {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let certificate = CertificateDer::from_pem_file(root.join(CERTIFICATE)).unwrap();
    let key = PrivateKeyDer::from_pem_file(root.join("fixtures/fetch/stranger.key.pem")).unwrap();
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(ring);
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let mut config = config.with_single_cert(vec![certificate], key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

async fn answer(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, std::convert::Infallible> {
    Ok(Response::new(Full::new(Bytes::from_static(ATOM.as_bytes()))))
}

/// Polls the server at `port` of this machine, trusting its certificate.
async fn poll(port: u16) -> Value {
    let mut poll = Command::new(env!("CARGO_BIN_EXE_feedgate"));
    poll.args(["poll", "--json", &format!("https://127.0.0.1:{port}/")]).env_clear();
    poll.env("FEEDGATE_EGRESS_ALLOW_TOPIC_CIDRS", "127.0.0.0/8");
    poll.env("SSL_CERT_FILE", Path::new(env!("CARGO_MANIFEST_DIR")).join(CERTIFICATE));
    let polled = tokio::task::spawn_blocking(move || poll.output()).await.unwrap().unwrap();
    serde_json::from_slice(&polled.stdout).unwrap()
}

#[tokio::test]
async fn p38_a_server_that_breaks_http_2_is_asked_again_in_http_1() {
    let tls = acceptor();
    let (port, _stop) = greeter(move |stream| {
        let accepting = tls.accept(stream);
        async move {
            let mut stream = accepting.await.unwrap();
            if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
                stream.shutdown().await.unwrap_or_default();
                return;
            }
            let http = auto::Builder::new(TokioExecutor::new());
            http.serve_connection(TokioIo::new(stream), service_fn(answer)).await.ok();
        }
    })
    .await;
    let told = poll(port).await;
    let hops = told["hops"].as_array().unwrap();
    let versions: Vec<_> = hops.iter().map(|hop| hop["version"].as_str()).collect();
    assert_eq!(versions, [None, Some("HTTP/1.1")], "{told:#}");
    assert_eq!(hops[1]["status"], 200);
}

#[tokio::test]
async fn p38_a_trusted_server_is_polled_over_http_2() {
    let tls = acceptor();
    let (port, _stop) = greeter(move |stream| {
        let accepting = tls.accept(stream);
        async move {
            let io = TokioIo::new(accepting.await.unwrap());
            let http = auto::Builder::new(TokioExecutor::new());
            http.serve_connection(io, service_fn(answer)).await.ok();
        }
    })
    .await;
    let told = poll(port).await;
    assert_eq!(told["hops"][0]["status"], 200, "{told:#}");
    assert_eq!(told["hops"][0]["version"], "HTTP/2.0");
}
