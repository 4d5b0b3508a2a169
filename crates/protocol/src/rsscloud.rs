//! rssCloud requests as a form, XML-RPC or SOAP, for both client and server.

use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use url::{Url, form_urlencoded};

use super::{soap, xmlrpc};
use crate::Protocol;

const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");
const XML: HeaderValue = HeaderValue::from_static("text/xml; charset=utf-8");
const SOAP_ACTION: HeaderName = HeaderName::from_static("soapaction");

/// Returns the headers of a request to `url` in this protocol. WebSub requests to hubs are forms,
/// like those of rssCloud's REST interface.
pub fn headers(protocol: &Protocol, url: &Url) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let content_type = match protocol {
        Protocol::WebSub | Protocol::HttpPost => FORM,
        Protocol::XmlRpc { .. } | Protocol::Soap { .. } => XML,
    };
    headers.insert(CONTENT_TYPE, content_type);
    if let Protocol::Soap { .. } = protocol {
        // UserLand's implementation sent the path of the responder. A path in a URL is
        // percent-encoded, so it is always a valid header value.
        let action = HeaderValue::from_str(&format!("\"{}\"", url.path()));
        headers.extend(action.ok().map(|action| (SOAP_ACTION, action)));
    }
    headers
}

/// Returns the body that reports a change of `topic`: "a single parameter, the URL of the feed that
/// updated" (seed 000, "HTTP POST interface").
pub fn changed(protocol: &Protocol, topic: &str) -> String {
    match protocol {
        Protocol::WebSub | Protocol::HttpPost => {
            form_urlencoded::Serializer::new(String::new()).append_pair("url", topic).finish()
        }
        Protocol::XmlRpc { procedure } => xmlrpc::call(procedure, topic),
        Protocol::Soap { procedure } => soap::call(procedure, topic),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_protocol_has_its_own_headers_and_body() {
        let procedure = || "river.changed".to_owned();
        let xml = "text/xml; charset=utf-8";
        #[rustfmt::skip]
        let cases = [
            (Protocol::HttpPost, "application/x-www-form-urlencoded", None, "url=http%3A%2F%2Fa.test%2F%3Fb%26c"),
            (Protocol::XmlRpc { procedure: procedure() }, xml, None, "<methodName>river.changed</methodName>"),
            (Protocol::Soap { procedure: procedure() }, xml, Some("\"/a%20b\""), "river.changed"),
        ];
        let url = Url::parse("http://callback.test/a b?c").unwrap();
        for (protocol, content_type, action, words) in cases {
            let headers = headers(&protocol, &url);
            assert_eq!(headers[CONTENT_TYPE], content_type);
            assert_eq!(headers.get(SOAP_ACTION).map(|value| value.to_str().unwrap()), action);
            let body = changed(&protocol, "http://a.test/?b&c");
            assert!(body.contains(words), "{body}");
        }
    }
}
