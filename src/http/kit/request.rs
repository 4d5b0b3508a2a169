//! A request as endpoints see it: read to its end, and with its client's address.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::{HeaderMap, Method, header};
use ipnet::IpNet;

use crate::http::kit::bearer::parse_bearer;
use crate::http::kit::client_address::ClientAddress;
use crate::net::is_public;
use feedgate_core::account::AccountId;

/// A request, read to its end.
#[derive(Debug)]
pub(crate) struct Request {
    /// The method.
    pub(crate) method: Method,
    /// The path, percent-encoded as received, with its leading slash.
    pub(crate) path: String,
    /// The query, without the question mark; empty if there is none.
    pub(crate) query: String,
    /// The headers.
    pub(crate) headers: HeaderMap,
    /// The address of the client, and whether it is certain.
    pub(crate) client: ClientAddress,
    /// Whether the request names this gateway as its host (`RequestHost::is_own`).
    pub(crate) is_host_own: bool,
    /// Whether `Origin` names another origin than that of this gateway (`request_host::is_foreign`).
    pub(crate) is_origin_foreign: bool,
    /// Whether `Referer` names a page of another origin (`request_host::is_referer_foreign`).
    pub(crate) is_referer_foreign: bool,
    /// The address of this gateway as others know it, without a slash at its end.
    pub(crate) public_url: String,
    /// The account that the request was authenticated for.
    pub(crate) account: Arc<OnceLock<AccountId>>,
    /// The body; empty if there is none.
    pub(crate) body: Bytes,
}

impl Request {
    /// Returns a header as text; empty if there is none.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Returns the value of a cookie. Over HTTP/2, each may be in a header of its own (RFC 9113
    /// `#section-8.2.3`).
    pub(crate) fn cookie(&self, name: &str) -> Option<&str> {
        let headers = self.headers.get_all(header::COOKIE).iter();
        let cookies = headers.filter_map(|value| value.to_str().ok()).flat_map(|it| it.split(';'));
        let mut cookies = cookies.filter_map(|cookie| cookie.trim().split_once('='));
        cookies.find(|(held, _)| *held == name).map(|(_, value)| value)
    }

    /// Returns the address whose budget of requests this one takes from; `None` for programs on the
    /// gateway's own machine, which are not limited.
    pub(crate) fn limited_as(&self) -> Option<IpAddr> {
        self.client.limited_as()
    }

    /// Returns whether this is a request of a program on the gateway's own machine, and not one that
    /// a page of another site causes through a browser there.
    pub(crate) fn is_local(&self) -> bool {
        self.client.is_local() && self.is_host_own && !self.is_cross_origin()
    }

    /// Returns the address by which failed sign-ins are counted: also those of programs on the
    /// gateway's own machine, whose requests are not limited.
    pub(crate) fn counted_client(&self) -> Option<IpAddr> {
        self.limited_as().or(self.client.ip)
    }

    /// Returns the address of the client if it belongs to this client alone: it is public, or that of
    /// a program on the gateway's own machine. Strangers behind address translation share a private
    /// one, and those behind an untrusted proxy share its address.
    pub(crate) fn own_address(&self) -> Option<IpAddr> {
        let is_own = |ip: &IpAddr| is_public(*ip) || ip.is_loopback();
        self.client.ip.filter(|_| !self.client.is_hidden).filter(is_own)
    }

    /// Returns the media type of the body, in lower case, without parameters.
    pub(crate) fn media_type(&self) -> String {
        let value = self.header("content-type");
        value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }

    /// Returns whether the request has credentials that a browser may have added by itself. Browsers
    /// store logins for HTTP Basic, and no tokens.
    pub(crate) fn has_stored_credentials(&self) -> bool {
        self.headers.contains_key(header::AUTHORIZATION)
            && parse_bearer(self.header("authorization")).is_none()
    }

    /// Returns whether this is a call of the REST API, whose errors are always problem documents.
    pub(crate) fn is_rest(&self) -> bool {
        self.path == "/v1" || self.path.starts_with("/v1/")
    }

    /// Returns whether a page of another origin caused the request: another port and another name of the
    /// same site are other origins. Browsers name the origin of the page with each POST, and by
    /// `Sec-Fetch-Site` (Fetch Metadata) how it relates to this one.
    pub(crate) fn is_cross_origin(&self) -> bool {
        self.is_origin_foreign
            || !matches!(self.header("sec-fetch-site"), "" | "same-origin" | "none")
    }

    /// Returns whether a page of another origin caused the request, and may not: a change, or a response
    /// that it could read. A script that reads (mode `cors`) sees the response only if it wrote the
    /// credentials itself, and a page cannot read what a link leads to. Requests with other methods than
    /// GET and POST are sent for such a page only after this gateway has agreed, which it does for
    /// scripts that write the credentials themselves.
    pub(crate) fn is_cross_site(&self) -> bool {
        match self.method {
            Method::POST => self.is_cross_origin(),
            Method::GET => {
                !matches!(self.header("sec-fetch-site"), "" | "same-origin" | "none")
                    && self.header("sec-fetch-mode") != "cors"
                    && self.header("sec-fetch-dest") != "document"
            }
            _ => false,
        }
    }

    /// Returns whether a browser sent the request, as far as its headers tell. Over plain HTTP, browsers
    /// send no `Sec-Fetch-` headers, and no `Origin` with a GET of a link or an image. What they always
    /// send is a name that begins with `Mozilla/`, which a page cannot change. Crawlers that call
    /// themselves compatible with it are programs, and so is the `fetch` of Node.js, which sends
    /// `Sec-Fetch-Mode` alone and `Accept-Language: *`.
    pub(crate) fn is_from_browser(&self) -> bool {
        const OF_BROWSERS: [&str; 5] =
            ["sec-fetch-site", "sec-fetch-dest", "origin", "referer", "upgrade-insecure-requests"];
        let agent = self.header("user-agent");
        let is_named = agent.starts_with("Mozilla/") && !agent.contains("(compatible;");
        let has_languages = !matches!(self.header("accept-language"), "" | "*");
        is_named || has_languages || OF_BROWSERS.iter().any(|name| self.headers.contains_key(*name))
    }

    /// Returns whether this request comes from one of `networks`, and from no page of another site.
    ///
    /// A client behind a proxy that is not ours may be anybody, whatever the address of the
    /// proxy. So may the author of another site's page that sends requests through a browser
    /// in these networks: the browser names that site in `Origin`, which it leaves out of the
    /// requests that a page makes to its own site (Fetch, `#origin-header`). A page whose name was made
    /// to resolve to this gateway is recognized by that name.
    pub(crate) fn is_from(&self, networks: &[IpNet]) -> bool {
        let is_listed = |ip: IpAddr| networks.iter().any(|network| network.contains(&ip));
        let is_cross_site = self.headers.contains_key(header::ORIGIN);
        !self.client.is_hidden
            && !is_cross_site
            && self.is_host_own
            && self.client.ip.is_some_and(is_listed)
    }
}
