//! The form that hides columns of a list. What it chooses is stored in a cookie of the browser.

use http::header;
use url::Url;
use warp::reply::Response;

use super::list_columns::COOKIE;
use super::visit::Visit;
use super::{feeds, subscription_table};
use crate::http::kit::rejection::Rejection;
use crate::http::kit::reply::set_header;

/// For how long a browser keeps the cookie, in seconds: a year.
const MAX_AGE_S: u32 = 365 * 24 * 3_600;

/// Stores what a form chooses, and leads back to the page of the list on which it was sent.
pub(super) fn act(visit: &Visit) -> Result<Response, Rejection> {
    let (feeds, subscriptions) = (&feeds::LIST, &subscription_table::LIST);
    let page = feeds.page_of_form(visit).or_else(|| subscriptions.page_of_form(visit));
    let page = page.ok_or_else(|| Rejection::bad_request("The form names no list."))?;
    let hidden = [feeds.hidden_names(visit), subscriptions.hidden_names(visit)].concat();
    let mut response = visit.see_other(&page);
    let cookie = cookie(&visit.gateway.settings.public_url, &hidden.join("."));
    set_header(&mut response, header::SET_COOKIE, &cookie);
    Ok(response)
}

/// Returns the cookie with the names of hidden columns; without any, it is deleted.
fn cookie(public_url: &Url, hidden: &str) -> String {
    let path = public_url.path().trim_end_matches('/');
    let secure = if public_url.scheme() == "https" { "; Secure" } else { "" };
    let age = if hidden.is_empty() { 0 } else { MAX_AGE_S };
    format!("{COOKIE}={hidden}; Path={path}/console; HttpOnly; SameSite=Lax; Max-Age={age}{secure}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c04_the_cookie_is_sent_to_the_console_only() {
        #[rustfmt::skip]
        let cases = [
            ("http://a.test/",       "", "Path=/console; HttpOnly; SameSite=Lax; Max-Age=0"),
            ("http://a.test/",       "x", "Path=/console; HttpOnly; SameSite=Lax; Max-Age=31536000"),
            ("https://a.test/gate/", "x", "Path=/gate/console; HttpOnly; SameSite=Lax; Max-Age=31536000; Secure"),
        ];
        for (public_url, hidden, want) in cases {
            let public_url = Url::parse(public_url).unwrap();
            assert_eq!(cookie(&public_url, hidden), format!("feedgate_columns={hidden}; {want}"));
        }
    }
}
