//! No statement reads more rows because more are stored.
//!
//! The contract suite runs once, in this process, and every statement that it runs is recorded and
//! explained. Each scan of a table must end with a limit, or find rows by a key that few share.
//! Statements that rightly read more are listed in `allowed.rs`, each with the reason.

mod access;
mod allowed;
mod fill;
mod postgres;
mod source;
mod sqlite;
mod statements;

use std::collections::BTreeSet;

use futures_util::StreamExt;

use super::{
    account_lists, accounts, alerts, append_budgets, attempts, backfills, backlogs, baselines,
    callback_slots, changes, claims, clock, collections, deliveries, delivery_queue, digests,
    endings, entries, events, fan_outs, feed_headers, generations, hosts, idempotency, intents,
    large_documents, lists, log, maintenance, moves, nodes, nul, page_bytes, pages, pausing,
    ping_targets, pings, queue, queue_claims, reading_lists, redirected_hosts, resource_claims,
    retention, search, secrets, sessions, signing_keys, statuses, storage, subscription_counts,
    subscriptions, survey, tracks, traffic, upstreams, visibility,
};
use crate::support::postgres::{Database, Kind};
use access::Access;
use allowed::{ALLOWED, Allowed, NEVER_RUN};
use statements::{Statement, StatementLog};

/// The functions of the contract suite that run side by side.
const CONCURRENT_CASES: usize = 8;

/// Functions of the suite that take long, and run no statement that no other runs.
const LONG_CASES: &[&str] = &[
    "a_thousand_members_are_taken_in_by_small_steps",
    "no_wake_up_is_lost_between_append_and_settle",
    "p41_a_platform_that_is_always_behind_hides_no_other",
    "a_crowded_host_hides_no_other",
    "takers_share_the_work",
    "who_is_sent_nothing_of_an_append_is_found_up_to_date",
    "another_append_is_followed_by_another_pass",
    "e07_a_pass_ends_before_the_next_begins",
    "h01_other_writes_get_in_between_the_parts_of_a_document",
    "a_hundred_thousand_subscribers_are_served",
    "p41_a_platform_far_behind_is_put_in_line",
    "no_host_gets_more_than_it_can_take",
    "s36_a_rotation_while_a_gateway_works_leaves_no_other_key",
];

#[tokio::test(flavor = "multi_thread")]
async fn no_statement_reads_more_rows_because_more_are_stored() {
    let statement_log = StatementLog::start();
    run_contract_suite().await;
    statement_log.begin_postgres();
    fill::run_statements_of_postgres().await;
    let statements = statement_log.named();
    let on_sqlite = Database::new(Kind::Sqlite).await;
    let explainer = sqlite::Explainer::new(&on_sqlite);
    let mut faults = Vec::new();
    for statement in statements.iter().filter(|statement| !statement.sqlite.is_empty()) {
        let scans = explainer.explain(statement);
        faults.extend(scans.iter().filter_map(|scan| Fault::new("SQLite", statement, scan)));
    }
    let on_postgres = fill::filled_database().await;
    let explainer = postgres::Explainer::new(&on_postgres).await;
    for statement in &statements {
        let scans = explainer.explain(statement).await;
        faults.extend(scans.iter().filter_map(|scan| Fault::new("PostgreSQL", statement, scan)));
    }
    let mut missing = statement_log.missing();
    missing.retain(|name| !NEVER_RUN.contains(&name.as_str()));
    check(&faults, &missing);
}

/// A scan that grows with its table.
struct Fault {
    engine: &'static str,
    /// The name of the statement.
    statement: String,
    /// What it reads.
    what: String,
}

impl Fault {
    fn new(engine: &'static str, statement: &Statement, scan: &Access) -> Option<Fault> {
        Some(Fault { engine, statement: statement.name.clone(), what: scan.fault()? })
    }

    fn is_allowed_by(&self, allowed: &Allowed) -> bool {
        self.statement == allowed.statement && self.what.starts_with(allowed.reads)
    }
}

/// Fails with the faults that are not allowed, the statements that were never run, and what is
/// allowed but does not occur.
fn check(faults: &[Fault], missing: &[String]) {
    let is_allowed = |fault: &&Fault| ALLOWED.iter().any(|allowed| fault.is_allowed_by(allowed));
    let wrong = faults.iter().filter(|fault| !is_allowed(fault));
    let wrong: BTreeSet<String> = wrong
        .map(|fault| format!("{}: {} reads {}", fault.engine, fault.statement, fault.what))
        .collect();
    let occurs = |allowed: &Allowed| faults.iter().any(|fault| fault.is_allowed_by(allowed));
    let stale = ALLOWED.iter().filter(|allowed| !allowed.is_optional && !occurs(allowed));
    let stale = stale.map(|it| format!("{}: {}", it.statement, it.reads));
    let problems = [
        (
            "scans that grow with what is stored; add an index or a limit, or a reason to allowed.rs",
            Vec::from_iter(wrong),
        ),
        ("never run by the contract suite", missing.to_vec()),
        ("allowed, but not needed", stale.collect()),
    ];
    let problems = problems.iter().filter(|(_, list)| !list.is_empty());
    let problems: Vec<_> =
        problems.map(|(what, list)| format!("{what}:\n{}", list.join("\n"))).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

/// The cases of the contract suite.
fn contract_cases() -> Vec<super::Case> {
    [
        one_cell_cases(),
        account_lists::contract_cases(),
        accounts::contract_cases(),
        alerts::contract_cases(),
        append_budgets::contract_cases(),
        attempts::contract_cases(),
        backfills::contract_cases(),
        baselines::contract_cases(),
        backlogs::contract_cases(),
        callback_slots::contract_cases(),
        changes::contract_cases(),
        claims::contract_cases(),
        clock::contract_cases(),
        collections::contract_cases(),
        deliveries::contract_cases(),
        delivery_queue::contract_cases(),
        digests::contract_cases(),
        resource_claims::contract_cases(),
        endings::contract_cases(),
        entries::contract_cases(),
        events::contract_cases(),
        fan_outs::contract_cases(),
        feed_headers::contract_cases(),
        generations::contract_cases(),
        hosts::contract_cases(),
        idempotency::contract_cases(),
        intents::contract_cases(),
        large_documents::contract_cases(),
        lists::contract_cases(),
        log::contract_cases(),
        maintenance::contract_cases(),
        moves::contract_cases(),
        nodes::contract_cases(),
        nul::contract_cases(),
        page_bytes::contract_cases(),
        pages::contract_cases(),
        pausing::contract_cases(),
        ping_targets::contract_cases(),
        pings::contract_cases(),
        queue::contract_cases(),
        queue_claims::contract_cases(),
        reading_lists::contract_cases(),
        redirected_hosts::contract_cases(),
        retention::contract_cases(),
        search::contract_cases(),
        secrets::contract_cases(),
        statuses::contract_cases(),
        storage::contract_cases(),
        subscription_counts::contract_cases(),
        subscriptions::contract_cases(),
        sessions::contract_cases(),
        signing_keys::contract_cases(),
        survey::contract_cases(),
        tracks::contract_cases(),
        traffic::contract_cases(),
        upstreams::contract_cases(),
        visibility::contract_cases(),
    ]
    .concat()
}

/// Those that have one cell.
fn one_cell_cases() -> Vec<super::Case> {
    [
        append_budgets::one_cell_cases(),
        changes::one_cell_cases(),
        claims::one_cell_cases(),
        collections::one_cell_cases(),
        resource_claims::one_cell_cases(),
        endings::one_cell_cases(),
        hosts::one_cell_cases(),
        large_documents::one_cell_cases(),
        lists::one_cell_cases(),
        queue::one_cell_cases(),
        redirected_hosts::one_cell_cases(),
        retention::one_cell_cases(),
        survey::one_cell_cases(),
        traffic::one_cell_cases(),
        upstreams::one_cell_cases(),
    ]
    .concat()
}

async fn run_contract_suite() {
    let cases = contract_cases().into_iter();
    let cases = cases.filter(|case| !LONG_CASES.contains(&case.name));
    let running = cases.map(|case| async move {
        (case.run)(Database::new(Kind::Sqlite).await).await;
    });
    let mut running = futures_util::stream::iter(running).buffer_unordered(CONCURRENT_CASES);
    while running.next().await.is_some() {}
}
