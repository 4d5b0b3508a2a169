//! The readiness of a gateway on this machine that serves TLS itself.
//!
//! The request goes to the address that the gateway listens on, whatever DNS says about its public name.
//! The certificate is not verified: it may be signed by itself, or expired, and be what is to be
//! noticed elsewhere. Nothing secret is sent, and the answer is one of this machine.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// The longest response that is read.
const MAX_RESPONSE_BYTES: u64 = 64 * 1024;

/// Requests `/readyz` of the gateway that listens at `listen`. Returns the status and the text.
pub(super) async fn request(
    listen: SocketAddr,
    patience: Duration,
) -> io::Result<(StatusCode, String)> {
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, "the gateway did not respond in time");
    let response = timeout(patience, exchange(reachable(listen))).await.map_err(late)??;
    parse(&response).ok_or_else(|| io::Error::other("the response is not one of HTTP"))
}

/// Returns the address of this machine at which a listener for all addresses is reached.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

async fn exchange(addr: SocketAddr) -> io::Result<Vec<u8>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        .with_no_client_auth();
    let stream = TcpStream::connect(addr).await?;
    let name = ServerName::IpAddress(addr.ip().into());
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    let request = format!("GET /readyz HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut response = Vec::new();
    match stream.take(MAX_RESPONSE_BYTES).read_to_end(&mut response).await {
        // The end of the connection need not be announced.
        Err(err) if err.kind() != io::ErrorKind::UnexpectedEof => Err(err),
        _ => Ok(response),
    }
}

/// Parses a response whose body ends with the connection or has a length, as that of `/readyz` does.
fn parse(response: &[u8]) -> Option<(StatusCode, String)> {
    let text = String::from_utf8_lossy(response);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?;
    Some((status.parse().ok()?, body.trim().to_owned()))
}

/// Accepts any certificate whose key the server has.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_its_status_and_its_text() {
        let ready = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nready\n";
        assert_eq!(parse(ready), Some((StatusCode::OK, "ready".to_owned())));
        let other: [&[u8]; 3] = [b"", b"HTTP/1.1 200 OK\r\n", b"220 mail.test ESMTP\r\n\r\n"];
        for response in other {
            assert_eq!(parse(response), None);
        }
    }
}
