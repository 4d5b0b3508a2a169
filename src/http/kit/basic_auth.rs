//! HTTP Basic authentication, as clients really send it (row A-4).

use base64::Engine;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

/// Padded or not, as clients like it.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// `Basic base64(login:token)`; the scheme may be missing. Line ends are dropped and
/// spaces are taken for the plus signs they were before a query was decoded (row A-4).
pub(crate) fn credentials(given: &str) -> Option<(String, String)> {
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
