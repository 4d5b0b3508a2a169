//! The tables that an export contains, and the secrets in them.

use crate::copy::tables::{CopiedTable, TABLES};

/// Tables that are copied, but not exported: a gateway fills them again.
const LEFT_OUT: &[&str] = &[
    // The history of deliveries and polls.
    "delivery_attempts",
    "events",
    "changes",
    "change_hours",
    "change_hour_parts",
    "gateway_traffic",
    "resource_traffic",
    "host_traffic",
    "account_traffic",
    // The state of other servers.
    "hosts",
    "refusals",
    "robots",
    // A gateway finds again which subscriptions are owed something.
    "backlogs",
    // Work in progress: it is short, or can be requested again.
    "forwarded_pings",
    "backfills",
    "backfill_visits",
    "staged_entries",
    "maintenance_tasks",
    "control_values",
    // Another gateway signs with keys of its own.
    "signing_keys",
];

/// A column with a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SecretColumn {
    pub(super) table: &'static str,
    pub(super) column: &'static str,
    /// Whether the row is of no use without it.
    pub(super) is_needed: bool,
}

const fn secret(table: &'static str, column: &'static str, is_needed: bool) -> SecretColumn {
    SecretColumn { table, column, is_needed }
}

/// The secrets of others that are stored as they are. Tokens and passwords are stored as hashes.
pub(super) const SECRETS: &[SecretColumn] = &[
    secret("subscriptions", "secret", false),
    secret("subscriptions", "previous_secret", false),
    secret("subscriptions", "header_secret", false),
    // The feed fails until its account names the headers again.
    secret("feed_headers", "header_secret", true),
    // The subscriber repeats its request; a gateway subscribes to hubs again.
    secret("intents", "secret", true),
    secret("intents", "header_secret", true),
    secret("intents", "verify_token", true),
    secret("upstreams", "secret", true),
    // The owner would be sent alerts that are not signed.
    secret("alert_addresses", "secret", true),
];

/// Returns the tables of an export, in the order of its lines.
pub(super) fn exported_tables() -> impl Iterator<Item = &'static CopiedTable> {
    TABLES.iter().filter(|table| !LEFT_OUT.contains(&table.name))
}

/// Returns a table of an export.
pub(super) fn exported_table(name: &str) -> Option<&'static CopiedTable> {
    exported_tables().find(|table| table.name == name)
}

/// Returns the secret columns of a table.
pub(super) fn secrets_of(table: &str) -> impl Iterator<Item = &'static SecretColumn> {
    SECRETS.iter().filter(move |secret| secret.table == table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::migrate::MIGRATIONS;

    #[test]
    fn what_is_left_out_is_a_table_that_is_copied() {
        for name in LEFT_OUT {
            assert!(TABLES.iter().any(|table| table.name == *name), "{name}");
        }
    }

    #[test]
    fn every_column_with_a_secret_is_known() {
        let mut found = Vec::new();
        for migration in MIGRATIONS {
            let mut table = "";
            for line in migration.sql.lines() {
                if let Some(rest) = line.strip_prefix("create table ") {
                    table = rest.trim_end_matches(" (");
                }
                let (mut column, mut is_column) = (line.trim_start(), line.starts_with("    "));
                if let Some(rest) = line.strip_prefix("alter table ")
                    && let Some((altered, added)) = rest.split_once(" add column ")
                {
                    (table, column, is_column) = (altered, added, true);
                }
                let column = column.split_whitespace().next().unwrap_or_default();
                let is_secret = column.ends_with("secret") || column == "verify_token";
                if is_secret && is_column && exported_table(table).is_some() {
                    found.push((table, column));
                }
            }
        }
        let known: Vec<_> = SECRETS.iter().map(|one| (one.table, one.column)).collect();
        found.sort_unstable();
        let mut known = known;
        known.sort_unstable();
        assert_eq!(found, known);
    }
}
