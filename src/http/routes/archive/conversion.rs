//! Archive documents in other formats than Atom, made of the documents in Atom.

use std::time::Duration;

use http::StatusCode;
use sha2::{Digest, Sha256};

use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use feedgate_core::document_format::DocumentFormat;
use feedgate_core::resource::Resource;
use feedgate_core::status::Status;
use feedgate_core::store::StoreError;

/// How long a document waits for memory.
const ADMISSION_WAIT: Duration = Duration::from_secs(5);
/// The bytes of a document in Atom that count as a request when it is converted: reading, writing and
/// compressing them takes some 8 ms of processor time.
const BYTES_PER_REQUEST: usize = 128 << 10;
/// The version of the documents in other formats, part of their entity tags. Must be incremented
/// whenever they are rendered differently.
const RENDERING: u32 = 1;

/// The reason why a document was not rendered.
pub(super) enum NotRendered {
    Store(StoreError),
    Rejected(Rejection),
}

impl From<StoreError> for NotRendered {
    fn from(err: StoreError) -> NotRendered {
        NotRendered::Store(err)
    }
}

impl From<Rejection> for NotRendered {
    fn from(rejection: Rejection) -> NotRendered {
        NotRendered::Rejected(rejection)
    }
}

/// Returns the version of a document in a format, made of that of the document in Atom.
pub(super) fn version_in(format: DocumentFormat, version: String) -> String {
    match format {
        DocumentFormat::Atom => version,
        _ => {
            let state = format!("{RENDERING} {} {version}", format.word());
            hex::encode(&Sha256::digest(state)[..12])
        }
    }
}

/// Returns a document in a format, within the memory for documents. `status` is the status that the
/// document has, if it does.
pub(super) async fn convert(
    gateway: &Gateway,
    request: &Request,
    format: DocumentFormat,
    (resource, status): (&Resource, Option<&Status>),
    atom: String,
) -> Result<String, NotRendered> {
    if format == DocumentFormat::Atom {
        return Ok(atom);
    }
    gateway.anonymous_rate_limit.admit(request, atom.len() / BYTES_PER_REQUEST)?;
    let memory = gateway.documents.admit(atom.as_bytes(), ADMISSION_WAIT).await;
    let memory = memory.map_err(Rejection::busy)?;
    let (resource, status) = (resource.clone(), status.cloned());
    let converted =
        memory.run_blocking(move || format.convert(&resource, atom, status.as_ref())).await;
    converted.ok_or_else(|| {
        let reason = format!("The document cannot be written as {}.", format.word());
        Rejection::new(StatusCode::INTERNAL_SERVER_ERROR, reason).into()
    })
}
