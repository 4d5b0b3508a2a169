//! Who is asking: HTTP Basic with a login and a token (rows ).
//!
//! The same may come as a parameter, `authorization`, for callers that cannot set
//! headers. Tokens are looked up by their hash, so that nothing is learnt from how
//! long that takes (rule S33).

use http::StatusCode;

use crate::http::Gateway;
use crate::http::kit::basic_auth::credentials;
use crate::http::kit::exchange::Asked;
use crate::http::kit::params::Refused;
use feedgate_core::account::{Access, Scope, TokenHash};
use feedgate_protocol::form::Form;

/// Who is asking, if they prove it.
pub(crate) async fn access(
    gateway: &Gateway,
    asked: &Asked,
    form: &Form,
) -> Result<Access, Refused> {
    let no = |why: &str| Refused::new(StatusCode::UNAUTHORIZED, why);
    let header = asked.header("authorization");
    let given = if header.is_empty() { form.get("authorization").unwrap_or("") } else { header };
    if given.is_empty() {
        return Err(no("Please authenticate with your login and a token, by HTTP Basic."));
    }
    let (login, token) = credentials(given)
        .ok_or_else(|| no("The credentials are not a login and a token in HTTP Basic."))?;
    match gateway.store.authenticate(&login, &TokenHash::of(&token)).await {
        Ok(Some(access)) => Ok(access),
        Ok(None) => Err(no("The login or the token is wrong.")),
        Err(err) => Err(super::account::broken(&err)),
    }
}

/// Refuses a token that lacks `right` (rows ).
pub(crate) fn demand(access: &Access, right: Scope) -> Result<(), Refused> {
    match access.rights.allow(right) {
        true => Ok(()),
        false => Err(Refused::new(
            StatusCode::FORBIDDEN,
            format!("This token does not have the {} right.", right.as_str()),
        )),
    }
}
