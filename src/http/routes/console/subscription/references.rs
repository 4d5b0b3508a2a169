//! Where else a subscription is found: in the event log, and by calls of the API, which people copy.

use maud::{Markup, html};

use crate::http::kit::html::parts::copyable;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::shell;
use crate::http::routes::console::visit::Visit;
use feedgate_core::store::ListedSubscription;
use feedgate_core::subscription::Subscription;

/// Returns the part of the page. The API knows the subscriptions of the caller only.
pub(super) fn section(visit: &Visit, listed: &ListedSubscription) -> Result<Markup, Rejection> {
    let Subscription { id, callback, account, .. } = &listed.subscription;
    let events = visit.address_with("viewLog", "callback", callback.as_str());
    let url = visit.gateway.public_url("v1/subscriptions");
    let command = |option: &str, path: &str| {
        let header = shell::quoted("Authorization: Bearer YOUR-TOKEN");
        format!("curl{option} -H {header} {}\n", shell::quoted(&format!("{url}/{id}{path}")))
    };
    let commands = [command("", ""), command(" -X POST", "/test"), command(" -X POST", "/replay")];
    let is_own = *account == Some(visit.access()?.account);
    Ok(html! {
        p { a href=(events) { "Events of this callback" } }
        @if is_own {
            details {
                summary { "By the API" }
                (copyable(&commands.concat()))
            }
        }
    })
}
