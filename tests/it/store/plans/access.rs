//! How a plan reads a table, and whether that is bounded however large the table is.

use std::collections::BTreeMap;

/// Tables whose number of rows does not depend on what is stored.
const SMALL_TABLES: [&str; 7] = [
    "migrations",
    "maintenance_tasks",
    "counters",
    "control_values",
    "database_properties",
    "secret_keys",
    "signing_keys",
];

/// Columns that few rows of a table share, and why they are few.
#[rustfmt::skip]
const SMALL_GROUPS: &[(&str, &[&str], &str)] = &[
    ("resource_urls", &["resource_id"], "a resource has three addresses at most"),
    ("resource_words", &["resource_id"], "a feed has some dozen words"),
    ("resource_urls", &["url_hash"], "few resources share an address"),
    ("records", &["resource_id", "entry_hash"], "the records of one entry"),
    ("records", &["resource_id", "predecessor"], "a record has one successor"),
    ("entry_keys", &["resource_id", "first_seq"], "the keys of one entry"),
    ("moves", &["resource_id"], "permanent redirects of one resource, which are pruned"),
    ("pages", &["resource_id"], "a page has hundreds of records; only the ends are read without a limit"),
    ("subscriptions", &["resource_id", "callback"], "one for each account and protocol"),
    ("delivery_attempts", &["resource_id", "subscription_id"], "the setting bounds the attempts of a subscription"),
    ("collections", &["account_id"], "an account has one; those of no account are configured"),
    ("collection_members", &["resource_id"], "the collections of one resource are configured"),
    ("collection_members", &["collection_id"], "the members of a collection are configured"),
    ("collection_cursors", &["resource_id"], "a resource has one for each of its collections"),
    ("changes", &["resource_id"], "bounded by the time: a resource has few polls in five minutes"),
    ("stored_files", &["account_id"], "the quota bounds the files of an account"),
    ("tokens", &["account_id"], "people create the tokens of their account"),
    ("tokens", &["parent_id"], "people create tokens with a token"),
    ("sessions", &["token_id"], "people sign in"),
    ("subscription_counts", &["account_id", "host"], "the stripes of a count"),
    ("account_appends", &["account_id"], "the stripes of an account"),
    ("account_traffic", &["account_id"], "the hours of a week"),
];

/// Columns of which a part between two bounds is read, in one resource, and why it has few rows.
const SMALL_RANGES: &[(&str, &str, &str)] =
    &[("subscriptions", "id", "results that are stored together")];

/// An index, or the primary key of a table.
#[derive(Clone, Debug)]
pub(super) struct Index {
    pub(super) columns: Vec<String>,
    pub(super) is_unique: bool,
}

/// All indices of a database by their names.
pub(super) type Indices = BTreeMap<String, Index>;

/// One scan of a table.
#[derive(Clone, Debug)]
pub(super) struct Access {
    pub(super) table: String,
    /// The index; `None` if the whole table is read.
    pub(super) index: Option<Index>,
    /// The condition on the columns of the index; empty if there is none.
    pub(super) condition: String,
    /// Whether rows are left out after they were read.
    pub(super) is_filtered: bool,
    /// Whether the scan ends with the rows of a limit.
    pub(super) is_limited: bool,
}

impl Access {
    /// What this scan reads; `None` if that is a bounded number of rows.
    pub(super) fn fault(&self) -> Option<String> {
        let table = &self.table;
        let is_walk = self.condition.is_empty();
        if SMALL_TABLES.contains(&table.as_str())
            || self.is_unique()
            || self.is_of_small_group()
            || self.is_small_range()
            || (self.is_limited && self.index.is_some() && !(is_walk && self.is_filtered))
        {
            return None;
        }
        Some(match (&self.index, is_walk) {
            (None, _) => format!("all of {table}"),
            (Some(_), true) => format!("all of {table} in the order of an index"),
            (Some(_), false) => format!("{table} where {}", self.condition),
        })
    }

    /// The first columns of the index that must be equal to something.
    fn equal_columns(&self) -> Vec<&str> {
        let Some(index) = &self.index else { return Vec::new() };
        let is_equal = |column: &&String| {
            let condition = &self.condition;
            [format!("({column} = "), format!("({column}=?"), format!(" {column}=?")]
                .iter()
                .any(|equal| condition.contains(equal.as_str()))
        };
        index.columns.iter().take_while(is_equal).map(String::as_str).collect()
    }

    fn is_unique(&self) -> bool {
        let Some(index) = &self.index else { return false };
        index.is_unique && self.equal_columns().len() == index.columns.len()
    }

    fn is_small_range(&self) -> bool {
        let is_of_resource = self.equal_columns().contains(&"resource_id");
        let is_between = |(table, column, _): &(&str, &str, &str)| {
            let is_bound = |bound| {
                let spellings = [format!("({column} {bound}"), format!(" {column}{bound}?")];
                spellings.iter().any(|spelling| self.condition.contains(spelling.as_str()))
            };
            *table == self.table && is_of_resource && is_bound('<') && is_bound('>')
        };
        SMALL_RANGES.iter().any(is_between)
    }

    fn is_of_small_group(&self) -> bool {
        let equal = self.equal_columns();
        let is_this = |group: &&(&str, &[&str], &str)| {
            group.0 == self.table && group.1.iter().all(|column| equal.contains(column))
        };
        SMALL_GROUPS.iter().any(|group| is_this(&group))
    }
}
