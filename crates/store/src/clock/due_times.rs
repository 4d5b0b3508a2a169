//! All times that the gateway compares with its clock to decide what to do: due times, the ends of claims and
//! leases, the beginnings of waits. They move with the clock of the database when it is set.
//!
//! A test fails if a time of the schema is neither here nor among those that stay as they are.

/// The times in one table.
#[derive(Clone, Copy, Debug)]
pub(super) struct DueTimes {
    pub(super) table: &'static str,
    /// The columns by which rows are moved in portions, which begin the primary key; none: the table has few
    /// rows, which are moved together.
    pub(super) key: &'static [&'static str],
    /// The columns; 0 stands for no time, as null does.
    pub(super) columns: &'static [&'static str],
    /// A table whose rows move together with these, those of a resource with the last of its rows here: whoever
    /// writes times in both finds either both moved or none.
    pub(super) with: Option<(&'static str, &'static [&'static str])>,
}

impl DueTimes {
    /// Returns each table with its columns.
    #[cfg(test)]
    fn all(&self) -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
        [(self.table, self.columns)].into_iter().chain(self.with)
    }
}

const fn due_times(
    table: &'static str,
    key: &'static [&'static str],
    columns: &'static [&'static str],
) -> DueTimes {
    DueTimes { table, key, columns, with: None }
}

/// The due times in the order in which they are moved. Leases of subscriptions and claims come last: between
/// their turn and the moment at which the clock goes on, few are made anew.
#[rustfmt::skip]
pub(super) const TABLES: &[DueTimes] = &[
    due_times("upstreams", &["resource_id"], &["due_at", "lease_until"]),
    due_times("kept_cursors", &["resource_id"], &["until"]),
    due_times("fan_outs", &["resource_id"], &["advanced_at"]),
    due_times("hosts", &[], &["next_fetch_at", "backoff_until", "queue_end", "redirect_free_at", "last_fetch_at",
        "last_backoff_at", "last_success_at"]),
    due_times("nodes", &[], &["seen_at", "started_at", "serves_until"]),
    due_times("callback_slots", &[], &["until"]),
    due_times("maintenance_tasks", &[], &["claimed_until"]),
    due_times("forwarded_pings", &["id"], &["due_at"]),
    due_times("alert_addresses", &["account_id"], &["due_at", "feeds_told_until", "attempted_at"]),
    due_times("collection_cursors", &["resource_id", "collection_id"], &["due_at"]),
    due_times("search_cursors", &["resource_id"], &["due_at"]),
    due_times("backfills", &["resource_id"], &["due_at"]),
    due_times("intents", &["id"], &["due_at"]),
    due_times("reading_lists", &["resource_id", "subscription_id"], &["due_at"]),
    due_times("resources", &["id"], &["due_at", "next_fetch", "claimed_until", "left_alone_until", "fetched_at",
        "answered_at", "appends_paid_at", "anonymous_paid_at", "unwatched_since", "gone_at", "moved_at"]),
    DueTimes {
        with: Some(("backlogs", &["due_at", "claimed_until"])),
        ..due_times("subscriptions", &["resource_id", "id"],
            &["lease_until", "previous_secret_until", "digest_at", "failing_since", "retry_at", "created_at"])
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{DueTimes, TABLES};
    use crate::engine::migrate::MIGRATIONS;
    use crate::engine::sql;

    /// Times that stay as they are, each with the reason.
    #[rustfmt::skip]
    const STAY: &[(&str, &str)] = &[
        ("account_traffic.at", "is shown, and begins a retention of days"),
        ("accounts.created_at", "is shown"),
        ("accounts.deactivated_at", "is compared with subscriptions.paused_at"),
        ("accounts.removed_at", "is a date; a week is added to it"),
        ("alert_addresses.created_at", "is shown"),
        ("backfills.ended_at", "begins a retention of days"),
        ("backfills.started_at", "is shown"),
        ("changes.at", "was published in changes.xml"),
        ("clocks.seen_at", "moves when the move begins"),
        ("collected.at", "begins a retention of days"),
        ("delivery_attempts.at", "is shown, and begins a retention of days"),
        ("delivery_attempts.next_at", "is shown"),
        ("entries.last_update_at", "only limits how often updates are sent; all entries would be written"),
        ("entries.seen_at", "begins a retention of days; all entries would be written"),
        ("events.at", "is shown, and begins a retention of days"),
        ("gateway_traffic.at", "is shown, and begins a retention of days"),
        ("host_traffic.at", "is shown, and begins a retention of days"),
        ("idempotency_keys.created_at", "begins a retention of a day, and a minute for a request without an answer"),
        ("moves.at", "is shown, and begins a retention of days"),
        ("moves.undone_at", "is shown"),
        ("pages.begun_at", "was published in archives"),
        ("pages.ended_at", "was published in archives"),
        ("records.appended_at", "was published in archives"),
        ("refusals.at", "is counted for an hour"),
        ("resource_traffic.at", "is shown, and begins a retention of days"),
        ("resources.measured_at", "is due once a day, at any time"),
        ("robots.fetched_at", "is read again after a day"),
        ("sessions.created_at", "is shown"),
        ("sessions.used_at", "ends a session after days; no clock that is set prolongs one"),
        ("signing_keys.used_from", "was published as a date"),
        ("stored_files.changed_at", "was published as a date"),
        ("subscriptions.attempted_at", "is shown"),
        ("subscriptions.paused_at", "is shown, and compared with accounts.deactivated_at"),
        ("tokens.created_at", "is shown"),
        ("tokens.expires_at", "is a date that its owner chose"),
        ("tokens.revoked_at", "begins a retention of days"),
        ("tokens.used_at", "is shown"),
        ("tracks.checked_at", "begins a retention of days"),
        ("upstreams.pushed_at", "is compared with the times of polls"),
    ];

    /// Whether a column is named like a time.
    fn is_time(column: &str) -> bool {
        let ends = ["_at", "_until", "_since", "_from", "_end"];
        ["at", "until", "next_fetch"].contains(&column)
            || (ends.iter().any(|end| column.ends_with(end)) && column != "replay_from")
    }

    /// All times of the schema, as `TABLE.COLUMN`.
    fn times_of_schema() -> BTreeSet<String> {
        let mut times = BTreeSet::new();
        for statement in MIGRATIONS.iter().flat_map(|migration| sql::statements(migration.sql)) {
            let statement = statement.trim();
            let (table, columns) = if let Some(made) = statement.strip_prefix("create table ") {
                let (table, columns) = made.split_once(" (").unwrap();
                let names = columns.lines().filter_map(|line| line.split_whitespace().next());
                (table, names.collect::<Vec<_>>())
            } else if let Some(changed) = statement.strip_prefix("alter table ") {
                let Some((table, column)) = changed.split_once(" add column ") else { continue };
                (table, column.split_whitespace().take(1).collect())
            } else if let Some(dropped) = statement.strip_prefix("drop table ") {
                times.retain(|time: &String| !time.starts_with(&format!("{dropped}.")));
                continue;
            } else {
                continue;
            };
            let of_table = columns.into_iter().filter(|column| is_time(column));
            times.extend(of_table.map(|column| format!("{table}.{column}")));
        }
        times
    }

    #[test]
    fn e03_every_time_of_the_schema_moves_with_the_clock_or_stays_for_a_reason() {
        let moved = TABLES.iter().flat_map(DueTimes::all).flat_map(|(table, columns)| {
            columns.iter().map(move |column| format!("{table}.{column}"))
        });
        let moved: Vec<String> = moved.collect();
        let known = moved.iter().cloned().chain(STAY.iter().map(|(name, _)| (*name).to_owned()));
        let (mut twice, mut all) = (Vec::new(), BTreeSet::new());
        for name in known {
            if !all.insert(name.clone()) {
                twice.push(name);
            }
        }
        assert!(twice.is_empty(), "{twice:?} both move and stay");
        let schema = times_of_schema();
        let unknown: Vec<_> = schema.difference(&all).collect();
        let gone: Vec<_> = all.difference(&schema).collect();
        assert!(
            unknown.is_empty() && gone.is_empty(),
            "add to TABLES or STAY: {unknown:?}; remove: {gone:?}"
        );
    }
}
