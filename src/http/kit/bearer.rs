//! Bearer tokens (RFC 6750): the token of an account without its login.

/// Reads `Bearer token`.
pub(crate) fn parse_bearer(credentials: &str) -> Option<&str> {
    let (scheme, token) = credentials.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a02_a_token_alone_is_read_as_bearer() {
        #[rustfmt::skip]
        let cases = [
            ("Bearer abc",     Some("abc")),
            (" bearer  abc ",  Some("abc")),
            ("Bearer ",        None),
            ("Bearerabc",      None),
            ("Basic YTpi",     None),
        ];
        for (given, want) in cases {
            assert_eq!(parse_bearer(given), want, "{given}");
        }
    }
}
