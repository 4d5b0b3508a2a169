//! Conversion of errors of the HTTP library into [`FetchError`]s.
//!
//! The classes are as fine as subscribers may know (rule S13): a closed, filtered or silent port is
//! always "the connection failed", because the difference would let them scan networks that only
//! this gateway can reach. The trace of the hop holds the exact cause for the operator ([`exact`]).

use std::error::Error;
use std::io;

use rustls::CertificateError;
use url::Url;

use super::FetchError;
use super::guarded_client::LookupError;
use crate::document_budget::GatewayBusy;
use feedgate_core::schedule::FailureClass;

/// Returns the error for a request to `url` that failed with `err`.
pub(super) fn from_client(err: &reqwest::Error, url: &Url) -> FetchError {
    let host = url.host_str().unwrap_or_default().to_owned();
    let causes = causes(err);
    let refused = causes.iter().find_map(|cause| cause.downcast_ref::<LookupError>());
    if let Some(refused) = refused {
        return match refused {
            LookupError::Forbidden => FetchError::Forbidden { host },
            LookupError::Busy => FetchError::GatewayBusy(GatewayBusy::for_now()),
            other => {
                let class = if matches!(other, LookupError::NoName) {
                    FailureClass::NoName
                } else {
                    FailureClass::Lookup
                };
                FetchError::Unreachable { host, detail: other.to_string(), class }
            }
        };
    }
    let tls = causes.iter().find_map(|cause| cause.downcast_ref::<rustls::Error>());
    let detail = if let Some(tls) = tls {
        format!("tls: {}", tls_class(tls))
    } else if err.is_connect() {
        "connect: the connection failed".to_owned()
    } else if is_http2(err, url) {
        "h2: the server violated the HTTP/2 protocol".to_owned()
    } else if causes.iter().any(has_too_long_headers) {
        "http: the response has more than 100 headers, or they are too long".to_owned()
    } else if causes.iter().any(is_parse) {
        "http: the response is not HTTP".to_owned()
    } else {
        "http: the connection was closed before the response was complete".to_owned()
    };
    let class = if tls.is_some() { FailureClass::Tls } else { FailureClass::Network };
    FetchError::Unreachable { host, detail, class }
}

/// Returns all causes in one line, for the operator. The outermost is left out, because it says
/// only that a request to a URL failed.
pub(super) fn exact(err: &reqwest::Error) -> String {
    let mut causes_text: Vec<String> = Vec::new();
    for cause in causes(err).into_iter().skip(1) {
        let text = cause.to_string();
        if causes_text.last().is_none_or(|last| !last.contains(&text)) {
            causes_text.push(text);
        }
    }
    causes_text.join(": ")
}

/// Returns whether the server at `url` violated HTTP/2, or refuses to speak it.
///
/// A server may also close a new connection before or while the request is sent. The library then
/// reports only that the request was not sent, in one of four ways, depending on when it noticed.
pub(super) fn is_http2(err: &reqwest::Error, url: &Url) -> bool {
    let broken = |cause: &&(dyn Error + 'static)| {
        let never_sent = cause
            .downcast_ref::<hyper::Error>()
            .is_some_and(|err| err.is_canceled() || err.is_closed());
        never_sent || is_reset(cause) || cause.to_string().starts_with("http2 error")
    };
    url.scheme() == "https" && !err.is_connect() && causes(err).iter().any(broken)
}

/// Returns whether the connection was closed before the response began.
pub(super) fn is_connection_closed(err: &reqwest::Error) -> bool {
    let closed = |cause: &&(dyn Error + 'static)| {
        is_reset(cause)
            || cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_incomplete_message)
    };
    !err.is_connect() && causes(err).iter().any(closed)
}

fn is_reset(cause: &&(dyn Error + 'static)) -> bool {
    let by_peer = cause.downcast_ref::<io::Error>().map(io::Error::kind);
    matches!(by_peer, Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe))
}

fn is_parse(cause: &&(dyn Error + 'static)) -> bool {
    cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse)
}

/// Returns whether the headers of the response exceed the limits of the library, which are 100 headers
/// and about 400 KB.
fn has_too_long_headers(cause: &&(dyn Error + 'static)) -> bool {
    cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse_too_large)
}

fn tls_class(err: &rustls::Error) -> &'static str {
    use CertificateError::{
        Expired, ExpiredContext, NotValidForName, NotValidForNameContext, NotValidYet,
        NotValidYetContext, Revoked, UnknownIssuer,
    };
    let rustls::Error::InvalidCertificate(err) = err else { return "the handshake failed" };
    match err {
        Expired | ExpiredContext { .. } => "the certificate has expired",
        NotValidYet | NotValidYetContext { .. } => "the certificate is not valid yet",
        NotValidForName | NotValidForNameContext { .. } => "the certificate is for another name",
        UnknownIssuer => "the certificate is from an unknown issuer",
        Revoked => "the certificate was revoked",
        _ => "the certificate is not valid",
    }
}

/// Returns the error and all its sources. An [`io::Error`] hides the error that it wraps from
/// `source`, and TLS errors are wrapped in one, so it is unwrapped.
fn causes(err: &reqwest::Error) -> Vec<&(dyn Error + 'static)> {
    let mut all: Vec<&(dyn Error + 'static)> = Vec::new();
    let mut next: Option<&(dyn Error + 'static)> = Some(err);
    while let Some(cause) = next {
        all.push(cause);
        let wrapped = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = match wrapped {
            Some(inner) => Some(inner as &(dyn Error + 'static)),
            None => cause.source(),
        };
    }
    all
}
