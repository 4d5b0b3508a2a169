//! Charts of what this node did in the last half hour, the ages of the queues of the gateway, and its
//! nodes.

use std::time::Duration;

use maud::{Markup, html};

use super::live_nodes;
use super::visit::Visit;
use crate::http::kit::html::chart::{Bar, bar_chart};
use crate::http::kit::html::parts::{counted, grouped, relative_time, span};
use crate::http::kit::rejection::Rejection;
use crate::jobs::runner;
use crate::metrics::{MINUTES, MinuteCounts};
use feedgate_core::host::PausedHost;

/// The outcomes of fetches that are listed, the most frequent ones.
const OUTCOMES: usize = 8;

/// The hosts in a pause that are listed.
const PAUSED_HOSTS: usize = 10;

/// Returns the charts.
pub(super) async fn charts(visit: &Visit) -> Result<Markup, Rejection> {
    let counted = visit.gateway.gauges.get(&visit.gateway.store).await;
    let gauges = counted.map_err(|err| Rejection::unavailable(&err))?.gauges;
    let paused = visit.gateway.store.paused_hosts(runner::now(), PAUSED_HOSTS + 1).await;
    let paused = paused.map_err(|err| Rejection::unavailable(&err))?;
    let minutes = visit.gateway.metrics.recent_minutes();
    let mut total = MinuteCounts::default();
    minutes.iter().for_each(|minute| total.add(minute));
    let oldest = gauges.oldest_due;
    let queues = [
        ("Fetches", oldest.polls_s),
        ("Deliveries", oldest.deliveries_s),
        ("Verifications", oldest.verifications_s),
        ("Forwarded pings", oldest.forwarded_pings_s),
    ];
    Ok(html! {
        div.sides {
            (deliveries(&minutes, &total))
            (delays(&minutes, &total))
            (fetches(&minutes, &total))
            section {
                h2 { "Queues" }
                p.soft { "How long the first item of each queue has been due, in the whole gateway." }
                dl.facts {
                    @for (name, age_s) in queues {
                        dt { (name) } dd { @if age_s == 0 { "nothing is late" } @else { (span(age_s)) } }
                    }
                    dt { "Deliveries waiting" } dd { (grouped(gauges.due)) }
                }
            }
            (live_nodes::cells(&gauges.cells))
            (paused_hosts(&paused))
            (live_nodes::nodes(visit).await?)
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

fn deliveries(minutes: &[MinuteCounts], total: &MinuteCounts) -> Markup {
    let bars: Vec<Bar> =
        minutes.iter().map(|minute| Bar { good: minute.delivered, bad: minute.failed }).collect();
    let summary = format!("{} accepted, {} failed", total.delivered, total.failed);
    html! {
        section {
            h2 { "Notifications a minute" }
            (bar_chart(&format!("Notifications of the last half hour: {summary}"), &bars))
            (ends(&format!("at most {}", grouped(highest(&bars)))))
            p.soft { (grouped(total.delivered)) " accepted, " (grouped(total.failed))
                " failed in the last half hour on this node." }
        }
    }
}

fn delays(minutes: &[MinuteCounts], total: &MinuteCounts) -> Markup {
    let millis = |delay: Duration| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
    let bars: Vec<Bar> = minutes
        .iter()
        .map(|minute| Bar { good: minute.delay(95).map_or(0, millis), bad: 0 })
        .collect();
    let told = |percent| total.delay(percent).map_or_else(|| "none".to_owned(), written);
    let summary = format!("median {}, 95th percentile {}", told(50), told(95));
    html! {
        section {
            h2 { "Delay of notifications" }
            (bar_chart(&format!("95th percentile of each minute of the last half hour. {summary}"), &bars))
            (ends(&minutes.iter().filter_map(|minute| minute.delay(95)).max().map_or_else(
                String::new,
                |most| format!("at most {}", written(most)),
            )))
            p.soft { @if total.delay(50).is_none() { "No notification was accepted." } @else {
                "Half within " (told(50)) ", 95 % within " (told(95)) ", 99 % within " (told(99))
                ", from the discovery of the entry to the response of the callback."
            } }
        }
    }
}

fn written(delay: Duration) -> String {
    match delay.as_millis() {
        millis @ 0..10_000 => format!("{millis}\u{a0}ms"),
        _ => span(delay.as_secs()),
    }
}

fn fetches(minutes: &[MinuteCounts], total: &MinuteCounts) -> Markup {
    let is_good = |outcome: &str| outcome.starts_with("ok");
    let sum = |minute: &MinuteCounts, good| {
        let counted = minute.fetches.iter().filter(|(outcome, _)| is_good(outcome) == good);
        counted.map(|(_, count)| count).sum()
    };
    let bars: Vec<Bar> = minutes
        .iter()
        .map(|minute| Bar { good: sum(minute, true), bad: sum(minute, false) })
        .collect();
    let mut outcomes: Vec<_> = total.fetches.iter().collect();
    outcomes.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let (good, bad): (u64, u64) = (sum(total, true), sum(total, false));
    html! {
        section {
            h2 { "Fetches a minute" }
            (bar_chart(&format!("Fetches of the last half hour: {good} succeeded, {bad} did not"), &bars))
            (ends(&format!("at most {}", grouped(highest(&bars)))))
            p.soft {
                "Fetches in the last half hour on this node: " (grouped(good + bad))
                @for (n, (outcome, count)) in outcomes.iter().take(OUTCOMES).enumerate() {
                    @if n == 0 { ", of which " } @else { ", " } (grouped(**count)) " " code { (outcome) }
                }
                "."
            }
        }
    }
}

/// Returns the number of the highest bar.
fn highest(bars: &[Bar]) -> u64 {
    bars.iter().map(|bar| bar.good + bar.bad).max().unwrap_or(0)
}

/// Returns the ends of the axis of time, with the scale between them.
fn ends(scale: &str) -> Markup {
    html! {
        p.ends { small { (MINUTES) " min ago" } small { (scale) } small { "now" } }
    }
}
