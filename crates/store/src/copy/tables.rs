//! Every table of the schema, and how it is copied.
//!
//! A table that is missing here, or a column with a number that has no rule, fails the tests below.

/// A table whose rows are copied.
#[derive(Debug)]
pub(crate) struct CopiedTable {
    /// The name.
    pub(crate) name: &'static str,
    /// The primary key. Rows are read in its order.
    pub(crate) key: &'static [&'static str],
    /// Where its rows lie in the source and in the target.
    pub(crate) location: Location,
    /// The columns that are changed; all others are copied as they are.
    pub(crate) rules: &'static [(&'static str, Rule)],
    /// The column with texts or bytes of any length, if there is one.
    pub(crate) long_column: Option<&'static str>,
}

/// Where the rows of a table lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    /// In the shared schema.
    Shared,
    /// In the cell of the resource that this column names.
    Resource(&'static str),
    /// In the cell that a hash of this column chooses.
    Text(&'static str),
    /// In the cell of the resource that the first column names; if it names none that exists, in
    /// the cell that a hash of the second chooses.
    ResourceOrText(&'static str, &'static str),
    /// In the shared schema, with a copy in each cell.
    Everywhere,
}

impl Location {
    /// Whether the shared schema has all rows of the table.
    pub(crate) fn is_shared(self) -> bool {
        matches!(self, Location::Shared | Location::Everywhere)
    }
}

impl CopiedTable {
    /// Returns whether a column is changed by `rule`.
    pub(crate) fn has_rule(&self, rule: Rule) -> bool {
        self.rules.iter().any(|(_, of_column)| *of_column == rule)
    }
}

/// How a column is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// The number of a row, which contains the cell of the row.
    Number,
    /// The number of a resource, in any cell.
    Resource,
    /// The end of a claim, which is dropped.
    NoClaim,
    /// The token of a claim that is dropped, or a position that is set back to the beginning.
    Zero,
    /// `resources.pinged`: a poll that a ping caused and that did not end is repeated.
    PingedAgain,
    /// `collection_cursors.cursor`: what the collection has taken from another cell before.
    Collected,
}

use Location::{Everywhere, Resource, ResourceOrText, Shared, Text};
use Rule::{Collected, NoClaim, Number, PingedAgain, Zero};

const fn table(
    name: &'static str,
    key: &'static [&'static str],
    location: Location,
    rules: &'static [(&'static str, Rule)],
) -> CopiedTable {
    CopiedTable { name, key, location, rules, long_column: None }
}

/// A table whose rows lie with their resource, whose number is the only column that changes.
const fn of_resource(name: &'static str, key: &'static [&'static str]) -> CopiedTable {
    table(name, key, Resource("resource_id"), &[RESOURCE_ID])
}

const fn with_long_column(table: CopiedTable, column: &'static str) -> CopiedTable {
    CopiedTable { long_column: Some(column), ..table }
}

const RESOURCE_ID: (&str, Rule) = ("resource_id", Rule::Resource);
const COLLECTION_ID: (&str, Rule) = ("collection_id", Rule::Resource);
const CLAIM_TOKEN: (&str, Rule) = ("claim_token", Zero);
const CLAIMED_UNTIL: (&str, Rule) = ("claimed_until", NoClaim);

/// The tables in the order in which they are copied: a row is copied after those that it refers to.
#[rustfmt::skip]
pub(crate) const TABLES: &[CopiedTable] = &[
    table("accounts", &["id"], Shared, &[]),
    table("tokens", &["id"], Shared, &[]),
    with_long_column(table("stored_files", &["account_id", "name"], Shared, &[]), "body"),
    table("resources", &["id"], Text("topic"),
        &[("id", Number), CLAIMED_UNTIL, CLAIM_TOKEN, ("pinged", PingedAgain)]),
    table("former_numbers", &["former_id"], Shared, &[RESOURCE_ID]),
    of_resource("resource_details", &["resource_id"]),
    of_resource("resource_names", &["resource_id"]),
    of_resource("resource_words", &["resource_id", "word"]),
    of_resource("resource_urls", &["resource_id", "role"]),
    of_resource("moves", &["resource_id", "id"]),
    of_resource("feed_headers", &["resource_id"]),
    table("upstreams", &["resource_id"], Resource("resource_id"), &[RESOURCE_ID, CLAIM_TOKEN]),
    with_long_column(table("records", &["resource_id", "seq"], Resource("resource_id"),
        &[RESOURCE_ID, ("member_id", Rule::Resource)]), "atom"),
    of_resource("pages", &["resource_id", "page"]),
    of_resource("entries", &["resource_id", "first_seq"]),
    of_resource("entry_keys", &["resource_id", "key"]),
    with_long_column(of_resource("bodies", &["resource_id"]), "bytes"),
    table("subscriptions", &["resource_id", "id"], Resource("resource_id"),
        &[RESOURCE_ID, ("id", Number)]),
    table("backlogs", &["resource_id", "number"], Resource("resource_id"),
        &[RESOURCE_ID, ("number", Number), CLAIMED_UNTIL, CLAIM_TOKEN, ("after_id", Zero)]),
    with_long_column(table("delivery_attempts", &["resource_id", "id"], Resource("resource_id"),
        &[RESOURCE_ID, ("id", Number), ("subscription_id", Number)]), "response_body"),
    of_resource("kept_cursors", &["resource_id", "hash"]),
    // A fan-out begins anew: subscriptions that it has marked before are not marked again.
    table("fan_outs", &["resource_id"], Resource("resource_id"), &[RESOURCE_ID, ("next_id", Zero)]),
    with_long_column(table("reading_lists", &["resource_id", "subscription_id"], Resource("resource_id"),
        &[RESOURCE_ID, ("subscription_id", Number), CLAIM_TOKEN]), "report"),
    table("intents", &["id"], Text("topic"), &[("id", Number), CLAIM_TOKEN]),
    table("forwarded_pings", &["id"], Text("feed_url"), &[("id", Number), CLAIM_TOKEN]),
    table("changes", &["id"], ResourceOrText("resource_id", "url"),
        &[("id", Number), RESOURCE_ID]),
    table("change_hours", &["hour"], Shared, &[]),
    with_long_column(table("change_hour_parts", &["hour", "part"], Shared, &[]), "lines"),
    table("collections", &["resource_id"], Everywhere, &[RESOURCE_ID]),
    table("collection_members", &["resource_id", "collection_id"], Resource("resource_id"),
        &[RESOURCE_ID, COLLECTION_ID]),
    table("collection_cursors", &["resource_id", "collection_id"], Resource("resource_id"),
        &[RESOURCE_ID, COLLECTION_ID, ("cursor", Collected)]),
    table("tracks", &["resource_id"], Shared, &[RESOURCE_ID]),
    table("backfills", &["resource_id"], Resource("resource_id"), &[RESOURCE_ID, CLAIM_TOKEN]),
    of_resource("backfill_visits", &["resource_id", "url_hash"]),
    with_long_column(of_resource("staged_entries", &["resource_id", "key"]), "atom"),
    table("hosts", &["host"], Shared, &[]),
    table("refusals", &["resource_id"], Shared, &[RESOURCE_ID]),
    table("robots", &["origin"], Shared, &[]),
    table("events", &["id"], Shared, &[]),
    table("maintenance_tasks", &["name"], Shared, &[]),
    table("control_values", &["name"], Shared, &[]),
    table("secret_keys", &["id"], Shared, &[]),
    table("signing_keys", &["generation"], Shared, &[]),
    table("alert_addresses", &["account_id"], Shared, &[CLAIM_TOKEN]),
    table("gateway_traffic", &["unit_s", "at"], Shared, &[]),
    of_resource("resource_traffic", &["resource_id", "at"]),
    table("host_traffic", &["host", "at"], Shared, &[]),
    table("account_traffic", &["account_id", "at"], Shared, &[]),
];

/// The tables of a cell whose rows are numbered.
pub(crate) const NUMBERED_IN_CELLS: &[&str] = &[
    "resources",
    "subscriptions",
    "delivery_attempts",
    "intents",
    "changes",
    "forwarded_pings",
    "moves",
];
/// The tables of the shared schema whose rows are numbered. Their numbers stay as they are.
pub(crate) const NUMBERED_IN_SHARED: &[&str] = &["accounts", "tokens"];

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::engine::migrate::MIGRATIONS;
    use crate::engine::sql;

    /// Tables whose rows the target has in another form, each with the reason.
    const OTHER_TABLES: &[&str] = &[
        // The counters of all cells are added up.
        "counters",
        // The budgets of the day begin anew.
        "account_appends",
        // The subscriptions are counted in their new cells.
        "subscription_counts",
        // What a collection has taken from another cell becomes its cursor (`Rule::Collected`).
        "collected",
        // A gateway builds the index of the target from its records.
        "search_entries",
        "search_cursors",
        // A client that repeats a request does so within moments.
        "idempotency_keys",
        // Who uses the console signs in again.
        "sessions",
        // The nodes of the target register there.
        "nodes",
        // They take the slots of the target.
        "callback_slots",
        // The nodes of the target read its clock.
        "clocks",
        // The target has properties of its own.
        "database_properties",
    ];

    /// Columns whose names end like those of numbers, and that are copied as they are.
    #[rustfmt::skip]
    const NO_NUMBERS: &[&str] = &[
        "stored_files.account_id", "tokens.account_id", "subscriptions.account_id",
        "backlogs.account_id", "reading_lists.account_id", "alert_addresses.account_id",
        "intents.account_id", "collections.account_id", "events.account_id", "account_traffic.account_id", // accounts are shared
        "accounts.id", "tokens.id", "tokens.parent_id", "events.id", // shared
        "secret_keys.id", // of a key
        "moves.id", // counts the moves of a resource, which are copied together
        "records.repeats_id", "records.replaces_id", "records.entry_id", "staged_entries.entry_id",
        "former_numbers.former_id", // the number that the row is about
    ];

    /// The tables of the schema with their statements.
    fn schema() -> BTreeMap<String, String> {
        let mut tables = BTreeMap::new();
        for migration in MIGRATIONS {
            for statement in sql::statements(migration.sql) {
                let statement = statement.trim();
                if let Some(made) = statement.strip_prefix("create table ") {
                    let (name, columns) = made.split_once(" (").unwrap();
                    tables.insert(name.to_owned(), columns.to_owned());
                } else if let Some(name) = statement.strip_prefix("drop table ") {
                    tables.remove(name);
                }
            }
        }
        tables
    }

    /// The names of the columns of a table.
    fn columns(made: &str) -> Vec<&str> {
        let lines = made.lines().map(str::trim).filter(|line| !line.is_empty());
        let first = lines.filter_map(|line| line.split([' ', '(']).next());
        first.filter(|word| word.starts_with(|c: char| c.is_ascii_lowercase())).collect()
    }

    #[test]
    fn every_table_of_the_schema_is_copied_or_thought_of() {
        let copied = TABLES.iter().map(|table| table.name);
        let known: BTreeSet<&str> = copied.chain(OTHER_TABLES.iter().copied()).collect();
        let schema = schema();
        let tables: BTreeSet<&str> = schema.keys().map(String::as_str).collect();
        assert_eq!(known, tables, "a table would be left behind");
    }

    #[test]
    fn every_column_with_a_number_has_a_rule() {
        let schema = schema();
        let mut wrong = Vec::new();
        for table in TABLES {
            let columns = columns(&schema[table.name]);
            let ruled: BTreeSet<&str> = table.rules.iter().map(|(column, _)| *column).collect();
            for column in &columns {
                let is_number = *column == "id" || column.ends_with("_id");
                let is_claim = column.starts_with("claim_") || *column == "claimed_until";
                let name = format!("{}.{column}", table.name);
                let is_known = ruled.contains(column) || NO_NUMBERS.contains(&name.as_str());
                if (is_number || is_claim) && !is_known && table.name != "maintenance_tasks" {
                    wrong.push(name);
                }
            }
            let named = table.key.iter().copied().chain(ruled).chain(table.long_column);
            wrong.extend(named.filter(|name| !columns.contains(name)).map(str::to_owned));
        }
        assert!(wrong.is_empty(), "columns without a rule, or that do not exist: {wrong:?}");
    }

    #[test]
    fn every_numbered_table_is_numbered_on() {
        let schema = schema();
        let is_numbered = |made: &&String| made.contains("{number}") || made.contains("{serial}");
        let numbered = schema.iter().filter(|(_, made)| is_numbered(made));
        let numbered: BTreeSet<&str> = numbered.map(|(name, _)| name.as_str()).collect();
        let known = NUMBERED_IN_CELLS.iter().chain(NUMBERED_IN_SHARED).copied();
        assert_eq!(known.collect::<BTreeSet<_>>(), numbered);
    }
}
