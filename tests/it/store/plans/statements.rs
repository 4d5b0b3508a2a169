//! The statements that the store runs: recorded while the contract suite runs, and named after the
//! constants in the source of the store.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::source::{Constant, constants};
use feedgate_store::STATEMENT_TARGET;

/// A statement that the store has run.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Statement {
    /// The file and the constant in the source.
    pub(super) name: String,
    /// The text in the source, with the words in braces.
    template: String,
    /// The text for SQLite; empty if the statement is run on PostgreSQL alone.
    pub(super) sqlite: String,
    /// The text for PostgreSQL.
    pub(super) postgres: String,
}

/// The statements that ran since recording began.
#[derive(Clone, Default)]
pub(super) struct StatementLog(Arc<Mutex<Recorded>>);

/// Statements by their texts for PostgreSQL, and whether those that follow are for it alone.
#[derive(Default)]
struct Recorded {
    statements: BTreeMap<String, Statement>,
    is_postgres: bool,
}

impl StatementLog {
    /// Starts to record the statements of all stores in this process.
    pub(super) fn start() -> StatementLog {
        let statement_log = StatementLog::default();
        let installed = tracing::subscriber::set_global_default(statement_log.clone());
        installed.expect("no other test of this process installs a subscriber");
        statement_log
    }

    /// Says that statements from now on run on PostgreSQL.
    pub(super) fn begin_postgres(&self) {
        self.0.lock().unwrap().is_postgres = true;
    }

    /// The distinct statements, with their names.
    pub(super) fn named(&self) -> Vec<Statement> {
        let constants = constants();
        let recorded = self.0.lock().unwrap();
        let named = recorded.statements.values().map(|statement| {
            let template = plain(&statement.template);
            let made_of = constants.iter().filter(|constant| constant.is_in(&template));
            let rank = |constant: &&Constant| (!constant.is_shared, constant.len());
            let name = match made_of.max_by_key(rank) {
                Some(constant) => constant.name.clone(),
                None => template.chars().take(80).collect(),
            };
            Statement { name, ..statement.clone() }
        });
        named.collect()
    }

    /// The constants that are not part of any recorded statement.
    pub(super) fn missing(&self) -> Vec<String> {
        let recorded = self.0.lock().unwrap();
        let statements = recorded.statements.values();
        let templates: Vec<_> = statements.map(|found| plain(&found.template)).collect();
        let is_missing = |constant: &Constant| !templates.iter().any(|text| constant.is_in(text));
        constants().into_iter().filter(is_missing).map(|constant| constant.name).collect()
    }
}

/// A text with single spaces.
pub(super) fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Subscriber for StatementLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == STATEMENT_TARGET
    }

    fn event(&self, event: &Event<'_>) {
        let mut statement = Statement::default();
        event.record(&mut statement);
        let mut recorded = self.0.lock().unwrap();
        if recorded.is_postgres {
            statement.sqlite.clear();
        }
        recorded.statements.entry(statement.postgres.clone()).or_insert(statement);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl Visit for Statement {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "template" => value.clone_into(&mut self.template),
            "sqlite" => value.clone_into(&mut self.sqlite),
            "postgres" => value.clone_into(&mut self.postgres),
            _ => {}
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}
