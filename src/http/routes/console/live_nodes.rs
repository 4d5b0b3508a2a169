//! The nodes that share the database, and how far the queues of each cell are behind.

use chrono::{DateTime, TimeDelta, Utc};
use maud::{Markup, html};

use super::visit::Visit;
use crate::http::kit::html::parts::{Tone, badge, counted, grouped, relative_time, span};
use crate::http::kit::rejection::Rejection;
use crate::jobs::runner;
use feedgate_core::node::{NodeId, SeenNode};
use feedgate_core::store::{CellQueues, OldestDue};

/// The nodes that are listed.
const NODES: usize = 50;
/// The cells that are listed, those that are furthest behind.
const CELLS: usize = 16;
/// A node that has not reported for this long is marked: it missed about four reports.
const LATE_AFTER: TimeDelta = TimeDelta::minutes(2);

/// Returns the list of the nodes.
pub(super) async fn nodes(visit: &Visit) -> Result<Markup, Rejection> {
    let now = runner::now();
    let nodes = visit.gateway.store.nodes(NODES + 1).await;
    let mut nodes = nodes.map_err(|err| Rejection::unavailable(&err))?;
    let has_more = nodes.len() > NODES;
    nodes.truncate(NODES);
    let order = |seen: &SeenNode| (seen.node.name.clone(), seen.node.started_at);
    nodes.sort_by_cached_key(order);
    Ok(html! {
        section {
            h2 { "Nodes" }
            p.soft { (summary(nodes.len())) }
            @if !nodes.is_empty() {
                table.records {
                    thead { tr {
                        @for name in ["Node", "Version", "Started", "Last seen"] {
                            th scope="col" { (name) }
                        }
                    } }
                    tbody { @for seen in &nodes { (node_row(seen, &visit.gateway.node, now)) } }
                }
            }
            @if has_more { p { "There are more." } }
        }
    })
}

fn summary(count: usize) -> &'static str {
    match count {
        0 => "No node has reported yet.",
        1 => "This gateway has one node.",
        _ => {
            "The processes that share the database. One that was killed stays in the list for a day."
        }
    }
}

fn node_row(seen: &SeenNode, own: &NodeId, now: DateTime<Utc>) -> Markup {
    let SeenNode { node, seen_at } = seen;
    html! {
        tr {
            td data-name="Node" {
                (node.name)
                @if node.id == *own { " " small { "this node" } }
                @if now - *seen_at > LATE_AFTER { " " (badge(Tone::Warning, "not seen recently")) }
            }
            td data-name="Version" { (node.version) }
            td data-name="Started" { (relative_time(node.started_at, now)) }
            td data-name="Last seen" { (relative_time(*seen_at, now)) }
        }
    }
}

/// Returns the queues of each cell; nothing if the store has one cell.
pub(super) fn cells(cells: &[CellQueues]) -> Markup {
    if cells.len() < 2 {
        return html! {};
    }
    let listed = furthest_behind(cells);
    html! {
        section {
            h2 { "Cells" }
            p.soft {
                "How long the first item of each queue has been due, in each cell."
                @if listed.len() < cells.len() {
                    " The gateway has " (counted(cells.len() as u64, "cell")) "; listed are those that \
                     are furthest behind."
                }
            }
            table.records {
                thead { tr {
                    th scope="col" { "Cell" }
                    @for name in ["Fetches", "Deliveries", "Verifications", "Subscriptions behind"] {
                        th.number scope="col" { (name) }
                    }
                } }
                tbody { @for (number, queues) in listed { (cell_row(number, queues)) } }
            }
        }
    }
}

fn cell_row(number: usize, CellQueues { due, oldest_due }: &CellQueues) -> Markup {
    let ages = [
        ("Fetches", oldest_due.polls_s),
        ("Deliveries", oldest_due.deliveries_s),
        ("Verifications", oldest_due.verifications_s),
    ];
    html! {
        tr {
            td data-name="Cell" { (number) }
            @for (name, age_s) in ages {
                td.number data-name=(name) { @if age_s == 0 { "on time" } @else { (span(age_s)) } }
            }
            td.number data-name="Subscriptions behind" { (grouped(*due)) }
        }
    }
}

/// Returns the cells with the oldest items and their numbers, in the order of the numbers.
fn furthest_behind(cells: &[CellQueues]) -> Vec<(usize, &CellQueues)> {
    let mut numbered: Vec<_> = cells.iter().enumerate().collect();
    numbered.sort_by_key(|(_, queues)| {
        let OldestDue { polls_s, deliveries_s, verifications_s, .. } = queues.oldest_due;
        std::cmp::Reverse(polls_s.max(deliveries_s).max(verifications_s))
    });
    numbered.truncate(CELLS);
    numbered.sort_by_key(|(number, _)| *number);
    numbered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn behind_by(polls_s: u64) -> CellQueues {
        CellQueues { due: 0, oldest_due: OldestDue { polls_s, ..OldestDue::default() } }
    }

    #[test]
    fn of_many_cells_those_furthest_behind_are_listed_in_their_order() {
        let mut all = vec![CellQueues::default(); 64];
        all[63] = behind_by(9);
        all[40] = behind_by(3);
        let numbers: Vec<_> = furthest_behind(&all).into_iter().map(|(number, _)| number).collect();
        assert_eq!(numbers.len(), CELLS);
        assert_eq!(numbers[CELLS - 2..], [40, 63]);
        assert!(numbers.is_sorted());
    }

    #[test]
    fn one_cell_is_not_listed() {
        assert_eq!(cells(&[]).into_string(), "");
        assert!(
            cells(&[CellQueues::default(), behind_by(61)]).into_string().contains("1\u{a0}min")
        );
    }
}
