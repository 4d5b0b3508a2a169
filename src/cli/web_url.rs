//! URLs in the arguments of commands. An address without `http://` or `https://` is answered with the one
//! that was probably meant.

use feedgate_core::topic::Topic;
use url::Url;

/// Reads an http or https URL.
pub(super) fn web_url(text: &str) -> Result<Url, String> {
    Topic::parse(text).map_err(|reason| reason.to_string())?;
    Url::parse(text).map_err(|reason| reason.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_scheme_is_told_with_one() {
        #[rustfmt::skip]
        let cases = [
            ("https://example.com/feed", ""),
            ("example.com/feed",         "did you mean https://example.com/feed? It has no http:// or https://"),
            ("localhost:8080",           "did you mean http://localhost:8080? It has no http:// or https://"),
            ("ftp://example.com/",       "ftp: URLs are not supported, only http: and https:"),
        ];
        for (text, want) in cases {
            assert_eq!(web_url(text).err().unwrap_or_default(), want, "{text}");
        }
    }
}
