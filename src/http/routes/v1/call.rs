//! A call of the REST API: the account that makes it, its parameters, and replies in JSON.

use std::sync::Arc;

use http::{StatusCode, header};
use serde::Serialize;
use warp::reply::Response;

use crate::http::kit::auth;
use crate::http::kit::rate_limit::{RowCharge, RowsRead};
use crate::http::kit::rejection::Rejection;
use crate::http::kit::reply::{set_header, with_content_type};
use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use feedgate_core::account::{Access, Scope};
use feedgate_protocol::form::Form;

/// The parameter of credentials, for clients that cannot set headers.
const CREDENTIALS: &str = "authorization";
/// The maximum length of a name in a message, in characters.
const MAX_NAME_CHARS: usize = 64;

/// An authenticated call.
pub(super) struct RestCall<'c> {
    pub(super) gateway: &'c Arc<Gateway>,
    pub(super) request: &'c Request,
    /// The parameters of the query.
    pub(super) query: Form,
    /// The account and its rights.
    pub(super) access: Access,
}

impl<'c> RestCall<'c> {
    /// Authenticates a call that needs `scope`, if any, and checks that its parameters are among these.
    pub(super) async fn begin(
        gateway: &'c Arc<Gateway>,
        request: &'c Request,
        scope: impl Into<Option<Scope>>,
        parameters: &[&str],
    ) -> Result<RestCall<'c>, Rejection> {
        let query = Form::from_urlencoded(request.query.as_bytes())
            .map_err(|err| Rejection::bad_request(format!("Cannot read the parameters: {err}.")))?;
        let access = auth::authenticate(gateway, request, &query).await?;
        if let Some(scope) = scope.into() {
            auth::require(&access, scope)?;
        }
        let known = |name: &str| name == CREDENTIALS || parameters.contains(&name);
        if let Some((name, _)) = query.pairs().find(|(name, _)| !known(name)) {
            let reason = describe_unknown("parameter", name, parameters);
            let name: String = name.chars().take(MAX_NAME_CHARS).collect();
            return Err(unknown("unknown_parameter", name, reason));
        }
        Ok(RestCall { gateway, request, query, access })
    }

    /// Takes from the budget of the account what it costs to read this many rows at most.
    pub(super) fn admit_rows(&self, read: usize) -> Result<RowCharge<'_>, Rejection> {
        let most = RowsRead { read, skipped: 0 };
        self.gateway.account_rate_limit.admit_rows(self.access.account, most)
    }

    /// Returns the rejection of a parameter whose value cannot be used.
    pub(super) fn reject_parameter(name: &str, reason: String) -> Rejection {
        Rejection::unprocessable(reason).with_code("invalid_parameter").with_field(name)
    }
}

/// Returns the rejection of a field or a parameter that is not known.
pub(super) fn unknown(code: &'static str, name: String, reason: String) -> Rejection {
    Rejection::unprocessable(reason).with_code(code).with_field(name)
}

/// Returns the sentence for an unknown name, with the one that was probably meant. `what` is `field` or
/// `parameter`.
pub(super) fn describe_unknown(what: &str, name: &str, known: &[&str]) -> String {
    let displayed: String = name.chars().take(MAX_NAME_CHARS).collect();
    let distance =
        |known: &str| strsim::osa_distance(&displayed.to_lowercase(), &known.to_lowercase());
    let nearest = known.iter().min_by_key(|known| distance(known));
    match nearest.filter(|nearest| distance(nearest) <= 1 + nearest.len() / 4) {
        Some(nearest) => {
            format!("{displayed} is not a {what} of this call. Did you mean {nearest}?")
        }
        None if known.is_empty() => {
            format!("{displayed} is not a {what} of this call, which has none.")
        }
        None => {
            let known = known.join(", ");
            format!("{displayed} is not a {what} of this call, which has {known}.")
        }
    }
}

/// The text of a reply, for an answer that is stored.
#[derive(Clone)]
pub(super) struct JsonText(pub(super) Arc<str>);

/// Returns a reply in JSON, which is for the account alone.
pub(super) fn json_reply(status: StatusCode, value: &impl Serialize) -> Response {
    let text = serde_json::to_string(value).expect("replies are structs of plain values");
    json_text_reply(status, text)
}

/// Returns a reply with this text in JSON, which is for the account alone.
pub(super) fn json_text_reply(status: StatusCode, text: String) -> Response {
    let stored = JsonText(text.as_str().into());
    let mut response = with_content_type(status, "application/json", text);
    set_header(&mut response, header::CACHE_CONTROL, "private, no-store");
    set_header(&mut response, header::VARY, "Authorization");
    response.extensions_mut().insert(stored);
    response
}

/// Returns the response to a call.
pub(super) fn to_response(request: &Request, result: Result<Response, Rejection>) -> Response {
    result.unwrap_or_else(|rejection| rejection.to_response_for(request))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a02_an_unknown_name_is_told_with_the_one_that_was_meant() {
        #[rustfmt::skip]
        let cases: [(&str, &[&str], &str); 4] = [
            ("calback",  &["url", "callback"], "calback is not a field of this call. Did you mean callback?"),
            ("Callback", &["url", "callback"], "Callback is not a field of this call. Did you mean callback?"),
            ("since",    &["url", "callback"], "since is not a field of this call, which has url, callback."),
            ("since",    &[],                  "since is not a field of this call, which has none."),
        ];
        for (name, known, want) in cases {
            assert_eq!(describe_unknown("field", name, known), want);
        }
    }
}
