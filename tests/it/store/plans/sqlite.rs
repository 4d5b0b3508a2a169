//! Plans of SQLite. Without `analyze`, which the store never runs, they depend on the schema alone:
//! what is stored makes no difference.

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::access::{Access, Index, Indices};
use super::statements::Statement;
use crate::support::postgres::Database;

/// Explains statements on one database.
pub(super) struct Explainer {
    conn: Connection,
    indices: Indices,
    tables: Vec<String>,
}

impl Explainer {
    pub(super) fn new(database: &Database) -> Explainer {
        let conn = Connection::open(database.url.trim_start_matches("sqlite:")).unwrap();
        // As the store's own connections: plans are independent of the parameters.
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).unwrap();
        // Checks of foreign keys look up rows by the keys of their tables.
        conn.pragma_update(None, "foreign_keys", false).unwrap();
        let tables = texts(&conn, "select name from sqlite_schema where type = 'table'");
        let mut indices = Indices::new();
        for table in &tables {
            let columns = "select name from pragma_index_info(?) order by seqno";
            let of_table = "select name from pragma_index_list(?)";
            for name in texts_about(&conn, of_table, table) {
                let unique =
                    format!("select \"unique\" from pragma_index_list('{table}') where name = ?");
                let is_unique = conn.query_row(&unique, [&name], |row| row.get(0)).unwrap();
                let columns = texts_about(&conn, columns, &name);
                indices.insert(name, Index { columns, is_unique });
            }
            let key = "select name from pragma_table_info(?) where pk > 0 order by pk";
            let key = Index { columns: texts_about(&conn, key, table), is_unique: true };
            indices.insert(format!("{table} key"), key);
        }
        Explainer { conn, indices, tables }
    }

    /// The scans of a statement, and whether it sorts.
    pub(super) fn explain(&self, statement: &Statement) -> Vec<Access> {
        let text = &statement.sqlite;
        let steps = self.steps(text);
        // A sort of the last column only sorts the few rows that are equal in the others.
        let is_sorted = steps.iter().any(|step| step == "USE TEMP B-TREE FOR ORDER BY");
        let is_limited = text.contains("limit") && !is_sorted;
        steps.iter().filter_map(|step| self.access(text, step, is_limited)).collect()
    }

    fn steps(&self, text: &str) -> Vec<String> {
        let explain = format!("explain query plan {text}");
        let mut explained =
            self.conn.prepare(&explain).unwrap_or_else(|err| panic!("{text}: {err}"));
        // No parameters are bound: plans are independent of them.
        let mut rows = explained.raw_query();
        let mut steps = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            steps.push(row.get("detail").unwrap());
        }
        steps
    }

    fn access(&self, text: &str, step: &str, is_limited: bool) -> Option<Access> {
        let mut words = step.split(' ');
        if !matches!(words.next(), Some("SCAN" | "SEARCH")) {
            return None;
        }
        let table = self.table(text, words.next()?)?;
        let condition = step.split_once(" (").map_or("", |(_, condition)| condition);
        let condition = match condition {
            "" => String::new(),
            condition => format!("({condition}"),
        };
        let mut index = match step.split_once(" INDEX ") {
            Some((before, _)) if before.ends_with("AUTOMATIC") || before.contains("AUTOMATIC ") => {
                None
            }
            Some((_, name)) => self.indices.get(name.split(' ').next()?).cloned(),
            None if step.contains("PRIMARY KEY") || step.starts_with("SEARCH") => {
                self.indices.get(&format!("{table} key")).cloned()
            }
            None => None,
        };
        if let Some(index) = index.as_mut().filter(|_| step.contains("INTEGER PRIMARY KEY")) {
            index.columns = vec!["rowid".to_owned()];
        }
        // `min` and `max` search an index without a condition, for one row. Whether rows are left out
        // is not shown.
        let is_limited = is_limited || (step.starts_with("SEARCH") && condition.is_empty());
        Some(Access { table, index, condition, is_filtered: false, is_limited })
    }

    /// The table with this name, or with this alias in a statement.
    fn table(&self, text: &str, name: &str) -> Option<String> {
        if self.tables.iter().any(|table| table == name) {
            return Some(name.to_owned());
        }
        let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let named = words
            .windows(2)
            .find(|two| two[1] == name && self.tables.iter().any(|table| table == two[0]));
        named.map(|two| two[0].to_owned())
    }
}

fn texts(conn: &Connection, sql: &str) -> Vec<String> {
    let mut query = conn.prepare(sql).unwrap();
    query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn texts_about(conn: &Connection, sql: &str, what: &str) -> Vec<String> {
    let mut query = conn.prepare(sql).unwrap();
    query.query_map([what], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}
