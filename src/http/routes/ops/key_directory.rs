//! `/.well-known/http-message-signatures-directory`: the public keys that requests to publishers are
//! signed with, as a JSON Web Key Set (draft-ietf-webbotauth-httpsig-protocol).
//!
//! The response is signed with each of the keys, for the host of the public URL, so that nobody else
//! can serve it as his own.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, StatusCode, header};
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::paths;
use crate::http::kit::reply::{plain_text, set_header, with_content_type};
use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use crate::jobs::runner;
use crate::net::{Signer, authority};
use feedgate_protocol::message_signatures::{Component, SignatureParams, content_digest, key_set};

const ENDPOINT: Endpoint =
    Endpoint { name: "key-directory", methods: &["GET"], body_limit_bytes: 1_024 };

/// The path of the directory at the root of a host.
pub(super) const PATH: &str = ".well-known/http-message-signatures-directory";
/// The media type of the directory, which has no parameters.
const MEDIA_TYPE: &str = "application/http-message-signatures-directory+json";
/// What the signature of the directory is for.
const TAG: &str = "http-message-signatures-directory";
/// How long the signature of the directory is valid: longer than caches keep the directory.
const VALID_FOR: Duration = Duration::from_secs(86_400);

/// Returns the routes of this endpoint.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let path = paths::exact(".well-known/http-message-signatures-directory");
    ENDPOINT.route(gateway, path, |gateway, _: Request| async move {
        match gateway.request_signer.signer() {
            Some(signer) => directory(&gateway, &signer),
            None => {
                let reason =
                    "This gateway does not sign its requests, because it has no public URL.";
                plain_text(StatusCode::NOT_FOUND, reason)
            }
        }
    })
}

fn directory(gateway: &Gateway, signer: &Signer) -> Response {
    let keys = || signer.keys().iter().map(|published| &published.key);
    let body = key_set(keys());
    let digest = content_digest(body.as_bytes());
    let authority = authority(&gateway.settings.public_url).unwrap_or_default();
    let components = [
        Component { id: "\"@authority\";req", value: &authority },
        Component { id: "\"content-digest\"", value: &digest },
    ];
    let created = runner::now().timestamp();
    let params = SignatureParams {
        created,
        has_algorithm: true,
        expires: Some(created + VALID_FOR.as_secs().cast_signed()),
        nonce: None,
        tag: Some(TAG),
    };
    let (mut inputs, mut signatures) = (Vec::new(), Vec::new());
    for (number, key) in keys().enumerate() {
        let signed = key.sign(&components, &params);
        inputs.push(format!("sig{}={}", number + 1, signed.input));
        signatures.push(format!("sig{}={}", number + 1, signed.signature));
    }
    let mut response = with_content_type(StatusCode::OK, MEDIA_TYPE, body);
    set_header(&mut response, header::CACHE_CONTROL, "public, max-age=3600");
    let name = HeaderName::from_static;
    set_header(&mut response, name("content-digest"), &digest);
    set_header(&mut response, name("signature-input"), &inputs.join(", "));
    set_header(&mut response, name("signature"), &signatures.join(", "));
    response
}
