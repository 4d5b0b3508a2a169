//! The address of this gateway's hub that subscribers are given.

use url::Url;

/// Returns the hub at which a subscriber subscribed: `/` with an account, `/hub` without.
pub(super) fn hub_url(public_url: &Url, is_open: bool) -> Url {
    let mut hub = public_url.clone();
    let folder = public_url.path().trim_end_matches('/');
    hub.set_path(&format!("{folder}/{}", if is_open { "hub" } else { "" }));
    hub
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hub_is_where_its_endpoint_is() {
        #[rustfmt::skip]
        let cases = [
            ("https://a.test/",         true,  "https://a.test/hub"),
            ("https://a.test/",         false, "https://a.test/"),
            ("https://a.test/gateway",  true,  "https://a.test/gateway/hub"),
            ("https://a.test/gateway/", false, "https://a.test/gateway/"),
        ];
        for (public_url, is_open, want) in cases {
            let public_url = Url::parse(public_url).unwrap();
            assert_eq!(hub_url(&public_url, is_open).as_str(), want);
        }
    }
}
