//! Charts of what the gateway did in the last hour, the ages of its queues, and its nodes.

use maud::{Markup, html};

use super::live_nodes;
use super::traffic_charts;
use super::visit::Visit;
use crate::http::kit::html::parts::{counted, grouped, relative_time, span};
use crate::http::kit::rejection::Rejection;
use crate::jobs::runner;
use feedgate_core::host::PausedHost;

/// The hosts in a pause that are listed.
const PAUSED_HOSTS: usize = 10;

/// Returns the charts.
pub(super) async fn charts(visit: &Visit) -> Result<Markup, Rejection> {
    let counted = visit.gateway.gauges.get(&visit.gateway.store).await;
    let gauges = counted.map_err(|err| Rejection::unavailable(&err))?.gauges;
    let paused = visit.gateway.store.paused_hosts(runner::now(), PAUSED_HOSTS + 1).await;
    let paused = paused.map_err(|err| Rejection::unavailable(&err))?;
    let oldest = gauges.oldest_due;
    let queues = [
        ("Fetches", oldest.polls_s),
        ("Deliveries", oldest.deliveries_s),
        ("Verifications", oldest.verifications_s),
        ("Forwarded pings", oldest.forwarded_pings_s),
    ];
    Ok(html! {
        div.cards {
            @for (name, age_s) in queues {
                div.card title="how long the first item of the queue has been due, in the whole gateway" {
                    (name)
                    @if age_s == 0 { b { "on time" } } @else { b.warning { (span(age_s)) " late" } }
                }
            }
            div.card { "Subscriptions behind" b { (grouped(gauges.due)) } }
        }
        (traffic_charts::last_hour(visit).await?)
        div.sides {
            (live_nodes::nodes(visit).await?)
            (paused_hosts(&paused))
            (live_nodes::cells(&gauges.cells))
        }
    })
}

/// Returns the list of the hosts that asked to be left alone, and of those that refused too much.
fn paused_hosts(paused: &[PausedHost]) -> Markup {
    let now = runner::now();
    html! {
        section {
            h2 { "Hosts in a pause" }
            p.soft { "Hosts that are not fetched for a while, because they refused requests." }
            @if paused.is_empty() { p { "No host is in a pause." } } @else {
                dl.facts {
                    @for host in paused.iter().take(PAUSED_HOSTS) {
                        dt { (host.group) }
                        dd {
                            "until " (relative_time(host.until, now))
                            @if host.pauses > 1 {
                                ", " (counted(host.pauses.into(), "pause")) " in a row"
                            }
                        }
                    }
                }
                @if paused.len() > PAUSED_HOSTS { p { "There are more." } }
            }
        }
    }
}
