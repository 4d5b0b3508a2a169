//! Authentication of accounts: HTTP Basic with a login and a token, or the token alone as
//! Bearer (RFC 6750).
//!
//! Clients that cannot set headers send the same as a parameter, `authorization`. Tokens are looked
//! up by their hash, so that the time that takes says nothing about them (rule S33).

use std::fmt;
use std::sync::{Arc, OnceLock};

use base64::Engine;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use http::{Method, StatusCode};

use crate::http::kit::bearer::parse_bearer;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use crate::jobs::runner;
use feedgate_core::account::{Access, AccountId, Scope, TokenHash};
use feedgate_core::store::StoreError;
use feedgate_protocol::form::Form;

/// Base64 with or without padding: clients send both.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The hash of a token, and the login if it was sent with the token.
#[derive(Clone)]
pub(crate) struct Credentials {
    login: Option<String>,
    token: TokenHash,
    /// Where the account of the request is remembered.
    account: Arc<OnceLock<AccountId>>,
}

/// Does not print the token.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("login", &self.login).finish_non_exhaustive()
    }
}

impl Credentials {
    /// Reads the credentials of a request.
    pub(crate) fn read(request: &Request, form: &Form) -> Result<Credentials, Rejection> {
        let Some(credentials) = credentials(request, form) else {
            let reason = "Please authenticate with your login and a token, by HTTP Basic, or with \
                          the token alone as Bearer.";
            return Err(unauthorized(reason));
        };
        refuse_cross_site(request)?;
        let (login, token) = match parse_bearer(credentials) {
            Some(token) => (None, token.to_owned()),
            None => {
                let (login, token) = parse_basic(credentials).ok_or_else(|| {
                    let reason = "The credentials are neither a login and a token in HTTP Basic, nor a \
                                  token as Bearer.";
                    unauthorized(reason)
                })?;
                (Some(login), token)
            }
        };
        let account = Arc::clone(&request.account);
        Ok(Credentials { login, token: TokenHash::from_token(&token), account })
    }

    /// Returns whether the credentials are still those of an account.
    pub(crate) async fn are_valid(&self, gateway: &Gateway) -> Result<bool, StoreError> {
        match self.find_access(gateway).await {
            Err(StoreError::AccountDeactivated(_)) => Ok(false),
            found => Ok(found?.is_some()),
        }
    }

    /// Authenticates the account with these credentials. The request is taken from its budget.
    pub(crate) async fn authenticate(&self, gateway: &Gateway) -> Result<Access, Rejection> {
        match self.find_access(gateway).await {
            Ok(Some(access)) => {
                self.account.get_or_init(|| access.account);
                gateway.account_rate_limit.admit(access.account, 1)?;
                Ok(access)
            }
            Ok(None) if self.login.is_none() => Err(unauthorized("The token is wrong.")),
            Ok(None) => Err(unauthorized("The login or the token is wrong.")),
            Err(err @ StoreError::AccountDeactivated(_)) => {
                let reason = "This account is deactivated, please contact the operator.";
                Err(Rejection::new(StatusCode::FORBIDDEN, reason).with_code(err.code()))
            }
            Err(err) => Err(Rejection::unavailable(&err)),
        }
    }

    async fn find_access(&self, gateway: &Gateway) -> Result<Option<Access>, StoreError> {
        let now = runner::now();
        match &self.login {
            Some(login) => gateway.store.authenticate(login, &self.token, now).await,
            None => gateway.store.authenticate_bearer(&self.token, now).await,
        }
    }
}

/// Rejects credentials that a browser added to a request of another site's page. A browser that has
/// once been given a login and a token sends them with every request to this gateway, whoever causes
/// it. Credentials in a parameter were written by the page itself.
pub(crate) fn refuse_cross_site(request: &Request) -> Result<(), Rejection> {
    match request.has_stored_credentials() && request.is_cross_site() {
        true => Err(Rejection::new(
            StatusCode::FORBIDDEN,
            "Pages of other sites cannot use the login that a browser has stored.",
        )
        .with_code("cross_site")),
        false => Ok(()),
    }
}

/// Rejects a change that a link could cause in a browser which has stored a login. Programs, such as old
/// clients of Superfeedr's API, make changes by GET.
pub(crate) fn require_no_link(request: &Request) -> Result<(), Rejection> {
    let is_link = request.method == Method::GET && request.is_from_browser();
    match request.has_stored_credentials() && is_link {
        true => Err(Rejection::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "A link cannot make changes with the login that a browser has stored, please send a \
             POST request.",
        )
        .with_code("cross_site")),
        false => Ok(()),
    }
}

/// Rejects a response in the form of a script for a page of another site, whose browser has stored a
/// login. Scripts of this site's pages have no need of that form.
pub(crate) fn require_no_foreign_script(request: &Request) -> Result<(), Rejection> {
    let is_own = request.header("sec-fetch-site") == "same-origin";
    match request.has_stored_credentials() && request.is_from_browser() && !is_own {
        true => Err(Rejection::new(
            StatusCode::FORBIDDEN,
            "Pages of other sites cannot use the login that a browser has stored.",
        )
        .with_code("cross_site")),
        false => Ok(()),
    }
}

fn unauthorized(reason: &str) -> Rejection {
    Rejection::new(StatusCode::UNAUTHORIZED, reason)
}

/// Authenticates the account that sends this request.
pub(crate) async fn authenticate(
    gateway: &Gateway,
    request: &Request,
    form: &Form,
) -> Result<Access, Rejection> {
    Credentials::read(request, form)?.authenticate(gateway).await
}

/// Rejects a token that lacks `scope`.
pub(crate) fn require(access: &Access, scope: Scope) -> Result<(), Rejection> {
    match access.scopes.allow(scope) {
        true => Ok(()),
        false => Err(Rejection::new(
            StatusCode::FORBIDDEN,
            format!("This token does not have the scope {}.", scope.as_str()),
        )),
    }
}

/// Returns whether a request carries credentials, good or bad.
pub(crate) fn has_credentials(request: &Request, form: &Form) -> bool {
    credentials(request, form).is_some()
}

/// Returns the credentials as they were sent: in the header, or else as a parameter.
fn credentials<'a>(request: &'a Request, form: &'a Form) -> Option<&'a str> {
    let header = Some(request.header("authorization")).filter(|text| !text.is_empty());
    header.or(form.get_verbatim("authorization")).filter(|text| !text.trim().is_empty())
}

/// Reads `Basic base64(login:token)`; the scheme may be missing. Line ends are dropped, and
/// spaces are read as the plus signs that they were before a query was decoded.
pub(crate) fn parse_basic(credentials: &str) -> Option<(String, String)> {
    let credentials = credentials.replace(['\r', '\n', '\t'], "");
    let credentials = credentials.trim_start();
    let packed = match credentials.split_once(' ') {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("basic") => rest.trim_start(),
        _ => credentials,
    };
    // A space at the end may have been a plus sign too.
    let decode = |packed: &str| LENIENT.decode(packed.replace(' ', "+"));
    let bytes = decode(packed).or_else(|_| decode(packed.trim_end())).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let (login, token) = text.split_once(':')?;
    Some((login.to_owned(), token.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows.
    #[test]
    fn credentials_are_read_as_clients_send_them() {
        let both = |login: &str, token: &str| Some((login.to_owned(), token.to_owned()));
        #[rustfmt::skip]
        let cases = [
            ("Basic bWU6dG9rZW4=",  both("me", "token")),
            ("basic bWU6dG9rZW4",   both("me", "token")),
            ("bWU6dG9rZW4=",        both("me", "token")),
            ("bWU6dG9r\nZW4=\n",    both("me", "token")),
            ("bWU6Pz4 Pz8=",        both("me", "?>>??")),
            ("YTpiPj8 \n",          both("a", "b>?>")),
            (" Basic  bWU6dG9rZW4= ", both("me", "token")),
            ("bWU=",                None),
            ("Bearer abc",          None),
            ("***",                 None),
        ];
        for (given, want) in cases {
            assert_eq!(parse_basic(given), want, "{given}");
        }
    }
}
