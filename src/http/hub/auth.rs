//! Who is asking: HTTP Basic with a login and a token (rows ).
//!
//! The same may come as a parameter, `authorization`, for callers that cannot set
//! headers. Tokens are looked up by their hash, so that nothing is learnt from how
//! long that takes (rule S33).

use base64::Engine;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use http::StatusCode;

use crate::domain::account::{Access, Right, TokenHash};
use crate::http::Gateway;
use crate::http::exchange::Asked;
use crate::http::params::Refused;
use crate::wire::form::Form;

/// Padded or not, as clients like it.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Who is asking, if they prove it.
pub(super) async fn access(
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
pub(super) fn demand(access: &Access, right: Right) -> Result<(), Refused> {
    match access.rights.allow(right) {
        true => Ok(()),
        false => Err(Refused::new(
            StatusCode::FORBIDDEN,
            format!("This token does not have the {} right.", right.as_str()),
        )),
    }
}

/// `Basic base64(login:token)`; the scheme may be missing. Line ends are dropped and
/// spaces are taken for the plus signs they were before a query was decoded (row A-4).
fn credentials(given: &str) -> Option<(String, String)> {
    let given = given.trim();
    let packed = match given.split_once(' ') {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("basic") => rest.trim(),
        _ => given,
    };
    let packed: String = packed.chars().filter(|c| !matches!(c, '\r' | '\n' | '\t')).collect();
    let bytes = LENIENT.decode(packed.replace(' ', "+")).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let (login, token) = text.split_once(':')?;
    Some((login.to_owned(), token.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_read_as_clients_pack_them() {
        let both = |login: &str, token: &str| Some((login.to_owned(), token.to_owned()));
        #[rustfmt::skip]
        let cases = [
            ("Basic bWU6dG9rZW4=",  both("me", "token")),
            ("basic bWU6dG9rZW4",   both("me", "token")),
            ("bWU6dG9rZW4=",        both("me", "token")),
            ("bWU6dG9r\nZW4=\n",    both("me", "token")),
            ("bWU6Pz4 Pz8=",        both("me", "?>>??")),
            ("bWU=",                None),
            ("Bearer abc",          None),
            ("***",                 None),
        ];
        for (given, want) in cases {
            assert_eq!(credentials(given), want, "{given}");
        }
    }
}
