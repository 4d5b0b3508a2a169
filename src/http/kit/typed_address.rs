//! Addresses as people type them into a form.

use feedgate_core::topic::Topic;

/// Returns the topic that somebody typed. People leave out the scheme, and some programs write `feed:`
/// before it. The error is a sentence.
pub(crate) fn parse_topic(text: &str) -> Result<Topic, String> {
    let text = text.trim();
    let text = text.strip_prefix("feed:").map_or(text, |rest| rest.trim_start_matches('/'));
    let bare = text.trim_start_matches('/');
    let text = match has_scheme(text) {
        true => text.to_owned(),
        false if bare.starts_with("localhost") => format!("http://{bare}"),
        false => format!("https://{bare}"),
    };
    Topic::parse(text).map_err(|why| format!("This address cannot be used: {why}."))
}

/// Returns whether an address begins with a scheme.
pub(crate) fn has_scheme(text: &str) -> bool {
    text.split(['/', '?', '#']).next().is_some_and(|first| {
        let scheme = first.split_once(':').map(|(scheme, _)| scheme);
        // Before a port stands a host.
        scheme.is_some_and(|scheme| !scheme.contains('.') && scheme != "localhost")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_scheme_is_one_of_https() {
        #[rustfmt::skip]
        let cases = [
            ("https://a.test/feed",       "https://a.test/feed"),
            (" http://a.test/feed ",      "http://a.test/feed"),
            ("a.test/feed",               "https://a.test/feed"),
            ("//a.test/feed",             "https://a.test/feed"),
            ("a.test:8443/feed?a=b:c",    "https://a.test:8443/feed?a=b:c"),
            ("localhost:80/feed",         "http://localhost:80/feed"),
            ("feed://a.test/feed",        "https://a.test/feed"),
            ("feed:https://a.test/feed",  "https://a.test/feed"),
        ];
        for (typed, want) in cases {
            assert_eq!(parse_topic(typed).unwrap().as_str(), want, "{typed}");
        }
        let wrong = parse_topic("ftp://a.test/").unwrap_err();
        assert!(wrong.starts_with("This address cannot be used: ftp:"), "{wrong}");
        assert!(parse_topic("two words").is_err());
    }
}
