//! The topics of resources that are fetched with headers of their own: the user name in the URL stands for the
//! headers, so that each is another resource, which no request can name.

use std::borrow::Cow;

use url::Url;

use super::Topic;

impl Topic {
    /// Returns the topic of a resource that is fetched with headers of its own, at the address of this
    /// topic, which becomes its alias: another resource for each `nonce`. `None` if the URL has credentials
    /// itself, or is too long.
    pub fn with_own_headers(&self, nonce: &str) -> Option<Topic> {
        let mut url = Url::parse(&self.text).ok()?;
        if !url.username().is_empty() || url.password().is_some() {
            return None;
        }
        url.set_username(&format!("{OWN_HEADERS}{nonce}")).ok()?;
        let topic = Topic::from_stored(String::from(url)).ok()?;
        Some(topic.with_alias(Some(self.text.to_string())))
    }

    /// Returns whether the resource is fetched with headers of its own.
    pub fn has_own_headers(&self) -> bool {
        matches!(self.displayed(), Cow::Owned(_))
    }

    /// Returns the text as subscribers know it: without the user name of a resource with headers of its own.
    pub fn displayed(&self) -> Cow<'_, str> {
        displayed(&self.text)
    }
}

/// The beginning of the user name in the URLs of a resource that is fetched with headers of its own.
const OWN_HEADERS: &str = "feedgate-headers-";

/// Returns whether a URL is one of a resource that is fetched with headers of its own.
pub fn has_own_headers(url: &Url) -> bool {
    url.username().starts_with(OWN_HEADERS)
}

/// Returns the URL of a resource as its subscribers know it: without the user name that stands for headers
/// of its own.
pub fn displayed(url: &str) -> Cow<'_, str> {
    match url.split_once(OWN_HEADERS) {
        Some((scheme @ ("http://" | "https://"), rest)) => match rest.split_once('@') {
            // A host may begin with the same words.
            Some((nonce, address)) if nonce.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                Cow::Owned(format!("{scheme}{address}"))
            }
            _ => Cow::Borrowed(url),
        },
        _ => Cow::Borrowed(url),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topic::BadAddress;

    #[test]
    fn a36_a_feed_with_headers_of_its_own_is_known_by_its_address() {
        let address = Topic::parse("https://a.test/feed?x=1#.h-entry").unwrap();
        let own = address.with_own_headers("n0nce").unwrap();
        assert_eq!(own.as_str(), "https://feedgate-headers-n0nce@a.test/feed?x=1#.h-entry");
        assert_eq!((own.subscribed_as(), &*own.displayed()), (address.as_str(), address.as_str()));
        assert!(own.has_own_headers() && !own.is_public() && !own.redacted().contains("n0nce"));
        assert!(!address.has_own_headers());
        assert_eq!(Topic::from_stored(own.as_str()).unwrap().as_str(), own.as_str());
        for named in [own.as_str(), "https:\\\\feedgate-headers-n0nce:pw@a.test/"] {
            assert_eq!(Topic::parse(named).unwrap_err(), BadAddress::OwnHeaders, "{named}");
        }
        let host = Topic::parse("https://feedgate-headers-x.a.test/@b.test/").unwrap();
        assert!(!host.has_own_headers() && host.displayed() == host.as_str());
        let long = format!("https://a.test/{}", "x".repeat(2_020));
        for none in ["https://u:p@a.test/", "https://u@a.test/", long.as_str()] {
            assert_eq!(Topic::parse(none).unwrap().with_own_headers("n0nce"), None, "{none}");
        }
    }
}
