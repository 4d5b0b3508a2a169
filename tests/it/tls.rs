//! HTTPS by the gateway itself: a certificate that is renewed is used without a restart.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rcgen::generate_simple_self_signed;
use rustls::RootCertStore;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::support::ports::free_port;
use crate::support::postgres::{Database, Kind};
use crate::support::until;

/// A certificate for `localhost` with its key, in PEM.
struct Pair {
    cert: String,
    key: String,
    der: CertificateDer<'static>,
}

impl Pair {
    fn new() -> Pair {
        let made = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = made.signing_key.serialize_pem();
        Pair { cert: made.cert.pem(), key, der: made.cert.der().clone() }
    }

    fn write(&self, folder: &Path) {
        fs::write(folder.join("cert.pem"), &self.cert).unwrap();
        fs::write(folder.join("key.pem"), &self.key).unwrap();
    }
}

/// A gateway that is killed when the test ends.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An open connection, and the certificate that the server has shown.
struct Connected {
    requests: SendRequest<Empty<Bytes>>,
    displayed: CertificateDer<'static>,
}

/// Connects, and trusts these certificates. `None` if nobody listens yet.
async fn connect(port: u16, trusted: &[&Pair]) -> Option<Connected> {
    let mut roots = RootCertStore::empty();
    for pair in trusted {
        roots.add(pair.der.clone()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    let displayed = stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned();
    let (requests, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    Some(Connected { requests, displayed })
}

impl Connected {
    /// Requests something on this connection.
    async fn is_alive(&mut self) -> bool {
        let request = http::Request::get("/livez").header("host", "localhost");
        let request = request.body(Empty::new()).unwrap();
        if self.requests.ready().await.is_err() {
            return false;
        }
        let Ok(answer) = self.requests.send_request(request).await else { return false };
        let is_ok = answer.status().is_success();
        is_ok && answer.into_body().collect().await.is_ok()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_certificate_is_used_and_open_connections_stay() {
    let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
    let database = Database::bare(Kind::Sqlite).await;
    let (first, second) = (Pair::new(), Pair::new());
    first.write(folder.path());
    let serving = Command::new(env!("CARGO_BIN_EXE_feedgate"))
        .args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--database", &database.url])
        .env_clear()
        .env("FEEDGATE_TLS_CERT", folder.path().join("cert.pem"))
        .env("FEEDGATE_TLS_KEY", folder.path().join("key.pem"))
        // The connection of the test is idle until the certificate is read again.
        .env("FEEDGATE_HEADER_TIMEOUT_S", "300")
        .env("FEEDGATE_LOG", "warn")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let _serving = Serving(serving);
    let both = [&first, &second];
    until("the gateway listens", async || connect(port, &both).await.is_some()).await;
    let mut open = connect(port, &both).await.unwrap();
    assert!(open.displayed == first.der && open.is_alive().await);

    // A certificate without its key cannot be used, and changes nothing.
    fs::write(folder.path().join("cert.pem"), &second.cert).unwrap();
    assert_eq!(connect(port, &both).await.unwrap().displayed, first.der);
    second.write(folder.path());
    let is_new = async || connect(port, &both).await.unwrap().displayed == second.der;
    until("the new certificate is shown", is_new).await;
    assert!(open.is_alive().await, "the connection from before is still served");
    assert!(connect(port, &[&second]).await.unwrap().is_alive().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn h20_a_gateway_with_tls_is_checked_at_its_address_and_tells_browsers_to_use_it() {
    let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
    let database = Database::bare(Kind::Sqlite).await;
    let pair = Pair::new();
    pair.write(folder.path());
    let command = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_feedgate"));
        command.args(args).env_clear();
        command
            .env("FEEDGATE_TLS_CERT", folder.path().join("cert.pem"))
            .env("FEEDGATE_TLS_KEY", folder.path().join("key.pem"))
            .env("FEEDGATE_LISTEN", format!("127.0.0.1:{port}"))
            .env("FEEDGATE_DATABASE", &database.url)
            // A name that no DNS server knows, and that is not in the certificate.
            .env("FEEDGATE_PUBLIC_URL", "https://gateway.invalid/feeds/")
            .env("FEEDGATE_LOG", "warn")
            .stdout(Stdio::null());
        command
    };
    let healthcheck = || {
        let checked = command(&["healthcheck"]).stdout(Stdio::piped()).output().unwrap();
        (checked.status.code(), String::from_utf8(checked.stdout).unwrap())
    };
    assert_eq!(healthcheck().0, Some(1), "nobody listens");
    let _serving = Serving(command(&["serve"]).spawn().unwrap());
    until("the gateway listens", async || connect(port, &[&pair]).await.is_some()).await;
    until("the gateway is ready", async || healthcheck().0 == Some(0)).await;
    assert!(healthcheck().1.starts_with("200 "), "{}", healthcheck().1);

    let mut open = connect(port, &[&pair]).await.unwrap();
    for path in ["/", "/console", "/nothing", "/feeds/1"] {
        let request = http::Request::get(path).header("host", "localhost");
        open.requests.ready().await.unwrap();
        let answer = open.requests.send_request(request.body(Empty::new()).unwrap()).await.unwrap();
        assert_eq!(answer.headers()["strict-transport-security"], "max-age=31536000", "{path}");
        answer.into_body().collect().await.unwrap();
    }
}
