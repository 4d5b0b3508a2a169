//! TLS for the connection to the database server.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

use feedgate_core::store::StoreError;

/// The TLS connector, for servers whose certificate this machine trusts. A private certificate is
/// trusted if `SSL_CERT_FILE` names its file.
pub(super) type Tls = MakeRustlsConnect;

/// Reads the certificates that this machine trusts.
pub(super) fn trusting() -> Result<Tls, StoreError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(ring)
        .with_safe_default_protocol_versions()
        .map_err(|err| StoreError::Database(Box::new(err)))?;
    let config = config.with_root_certificates(roots).with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}
