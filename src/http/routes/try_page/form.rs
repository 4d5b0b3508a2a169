//! The form of `/try`, which is on the front page as well, and the addresses that lead from a URL to pages
//! about it.

use maud::{Markup, html};
use url::form_urlencoded;

use crate::http::kit::html::address;
use feedgate_core::topic::Topic;

/// Returns the form on a page from which `root` leads to the root of the gateway.
pub(crate) fn form(root: &str, typed: &str) -> Markup {
    html! {
        form.filter method="get" action=(address(root, "try")) {
            label { "Address of a feed or a page "
                input name="url" inputmode="url" required maxlength=(Topic::LONGEST_BYTES)
                    placeholder="example.com" value=(typed)
                    autocapitalize="none" spellcheck="false";
            }
            button.primary type="submit" { "Show what is there" }
        }
    }
}

/// Returns the address, from the root of the gateway, of what is at `url`; with the number of an entry
/// from 1 on, of that entry.
pub(crate) fn address_of(url: &str, entry: Option<usize>) -> String {
    let number = entry.map(|number| format!("&entry={number}")).unwrap_or_default();
    format!("{}{number}", with_url("try", url))
}

/// Returns the address of a page with `url` as its parameter.
pub(crate) fn with_url(path: &str, url: &str) -> String {
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("url", url).finish();
    format!("{path}?{query}")
}
