//! TLS of the listener: the certificate and its key, which are read again when their files change.
//!
//! New connections get the certificate that was read last, and open ones keep theirs. Files that cannot
//! be used change nothing, such as a new certificate whose key is not written yet.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// How often the files are read. Certificates are renewed weeks before they end.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// The reason why a certificate or its key cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use {}: {reason}", path.display())]
pub(super) struct BadTlsFile {
    pub(super) path: PathBuf,
    pub(super) reason: String,
}

/// The certificate of a listener.
#[derive(Debug)]
pub(super) struct ListenerCertificate {
    /// The certificate chain and the private key, both PEM files.
    files: (PathBuf, PathBuf),
    current: watch::Sender<Arc<ServerConfig>>,
    /// What was read first.
    first: FilesDigest,
}

/// A hash of the contents of both files.
type FilesDigest = [u8; 32];

impl ListenerCertificate {
    /// Reads the certificate chain and the private key.
    pub(super) fn read(cert: &Path, key: &Path) -> Result<ListenerCertificate, BadTlsFile> {
        let files = TlsFiles::read(cert, key)?;
        let (current, _) = watch::channel(Arc::new(files.config(cert, key)?));
        Ok(ListenerCertificate {
            files: (cert.to_owned(), key.to_owned()),
            current,
            first: files.digest(),
        })
    }

    /// Returns what accepts the next connection.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.current.borrow()))
    }

    /// Reads the files again whenever they have changed, until `stop` is cancelled.
    pub(super) async fn reload_changes(self: Arc<ListenerCertificate>, stop: CancellationToken) {
        let mut known = Some(self.first);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = sleep(CHECK_INTERVAL) => {}
            }
            let tls = Arc::clone(&self);
            let checked = spawn_blocking(move || tls.reload(known)).await;
            known = checked.unwrap_or(known);
        }
    }

    /// Uses the files if they have changed. Returns a hash of what they contain, `None` if they cannot
    /// be read.
    fn reload(&self, known: Option<FilesDigest>) -> Option<FilesDigest> {
        let (cert, key) = &self.files;
        let files = TlsFiles::read(cert, key);
        let found = files.as_ref().ok().map(TlsFiles::digest);
        if found == known {
            return found;
        }
        match files.and_then(|files| files.config(cert, key)) {
            Ok(config) => {
                self.current.send_replace(Arc::new(config));
                info!("the TLS certificate was read again, because its files have changed");
            }
            Err(err) => warn!(
                error = &err as &dyn std::error::Error,
                "the files of the TLS certificate have changed and cannot be used; the certificate \
                 before stays in use"
            ),
        }
        found
    }
}

/// The contents of both files.
struct TlsFiles {
    cert: Vec<u8>,
    key: Vec<u8>,
}

impl TlsFiles {
    fn read(cert: &Path, key: &Path) -> Result<TlsFiles, BadTlsFile> {
        let read = |path: &Path| fs::read(path).map_err(|err| bad(path, err.to_string()));
        Ok(TlsFiles { cert: read(cert)?, key: read(key)? })
    }

    fn digest(&self) -> FilesDigest {
        let mut digest = Sha256::new();
        digest.update((self.cert.len() as u64).to_be_bytes());
        digest.update(&self.cert);
        digest.update(&self.key);
        digest.finalize().into()
    }

    /// Returns the configuration of a server with this certificate. The paths are for errors.
    fn config(&self, cert: &Path, key: &Path) -> Result<ServerConfig, BadTlsFile> {
        let chain = CertificateDer::pem_slice_iter(&self.cert).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|err| bad(cert, err.to_string()))?;
        if chain.is_empty() {
            return Err(bad(cert, "it contains no PEM certificate".to_owned()));
        }
        let secret = PrivateKeyDer::from_pem_slice(&self.key).map_err(|err| match err {
            pem::Error::NoItemsFound => bad(key, "it contains no PEM private key".to_owned()),
            err => bad(key, err.to_string()),
        })?;

        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|err| bad(cert, err.to_string()))?
            .with_no_client_auth()
            .with_single_cert(chain, secret);
        let mut config = config.map_err(|err| bad(cert, err.to_string()))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

fn bad(path: &Path, reason: String) -> BadTlsFile {
    BadTlsFile { path: path.to_owned(), reason }
}
