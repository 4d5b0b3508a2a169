//! Claims: how the rows of a table become jobs of one node for a while.
//!
//! A row is due from its `due_at` on. A claim moves that to its own end and gives the row a token, so that a
//! claimed row is not due, and one whose claim has expired is due again. Candidates are read without locks,
//! longest due first, and claimed by an update that applies only to those that are still due. So nodes that
//! read the same candidates never both get one. Renewing a claim, releasing it and storing a result name the
//! token, and change nothing once the claim is lost.
//!
//! A queue is a constant [`ClaimedTable`], which writes the statements. If each host has a limit, its due rows
//! are searched by `claims/searched_queue.rs`.

pub(crate) mod searched_queue;

use std::collections::HashMap;
use std::error::Error;

use chrono::{DateTime, Utc};
use tracing::error;

use crate::engine::lease::ClaimLease;
use crate::engine::row::Row;
use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
use feedgate_core::claim::ClaimToken;
use feedgate_core::store::StoreError;

/// A table whose rows are claimed: it has the columns `due_at` and `claim_token`, and an index by which due
/// rows are found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClaimedTable<const KEYS: usize> {
    pub(crate) name: &'static str,
    /// The columns that identify a row.
    pub(crate) key: [&'static str; KEYS],
    /// What is read of a due or claimed row besides its key, after a comma.
    pub(crate) columns: &'static str,
    /// Which rows are claimed together: a condition on parameters from `$3`, followed by `and`.
    pub(crate) only: &'static str,
    /// `{skip locked}` if others lock rows for long.
    pub(crate) lock: &'static str,
    /// Whether a row may be claimed at `$2`.
    pub(crate) is_free: &'static str,
    /// What lets a claim end at `$1`.
    pub(crate) ends: &'static str,
    /// What else a claim changes, after a comma.
    pub(crate) set: &'static str,
    /// Whether there are tokens. Without them, results find out in another way whether they come too late.
    pub(crate) has_token: bool,
}

/// The key of a row, and the token of its claim.
pub(crate) type ClaimedKey<const KEYS: usize> = ([i64; KEYS], ClaimToken);

/// The key of a row, and the columns after it.
pub(crate) type KeyedRow<const KEYS: usize> = ([i64; KEYS], Row);

impl<const KEYS: usize> ClaimedTable<KEYS> {
    /// Returns the table with this name and key. No index is of a sum, so that claims find rows by their keys.
    pub(crate) const fn new(name: &'static str, key: [&'static str; KEYS]) -> ClaimedTable<KEYS> {
        ClaimedTable {
            name,
            key,
            columns: "",
            only: "",
            lock: "",
            is_free: "due_at + 0 <= $2",
            ends: "due_at = $1",
            set: "",
            has_token: true,
        }
    }

    /// Claims up to `limit` due rows, longest due first. `only` has the parameters of the field.
    pub(crate) async fn claim_due(
        &self,
        tx: &Tx<'_>,
        lease: ClaimLease,
        only: &[Value],
        limit: usize,
    ) -> Result<Vec<KeyedRow<KEYS>>, StoreError> {
        let due = self.read_due(tx, lease.now, only, limit).await?;
        let keys: Vec<_> = due.into_iter().map(|(key, _)| key).collect();
        self.claim(tx, lease, &keys).await
    }

    /// Reads up to `limit` rows that are due at `now`, longest due first.
    pub(crate) async fn read_due(
        &self,
        tx: &Tx<'_>,
        now: DateTime<Utc>,
        only: &[Value],
        limit: usize,
    ) -> Result<Vec<KeyedRow<KEYS>>, StoreError> {
        let ClaimedTable { name, columns, only: condition, lock, .. } = self;
        let key = self.key.join(", ");
        let due = format!(
            "select {key}{columns} from {name}
              where {condition} due_at <= $1
              order by due_at
              limit $2
                {lock}"
        );
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let params = [params![now, limit].as_slice(), only].concat();
        split_keys(tx.query(&due, &params).await?)
    }

    /// Claims those of these rows that are still due. Returns them in the same order.
    pub(crate) async fn claim(
        &self,
        tx: &Tx<'_>,
        lease: ClaimLease,
        keys: &[[i64; KEYS]],
    ) -> Result<Vec<KeyedRow<KEYS>>, StoreError> {
        if tx.has_clock_moved(&lease) {
            return Ok(Vec::new());
        }
        let ClaimedTable { name, columns, is_free, ends, set, has_token, .. } = self;
        let (is_given, key) = (self.is_given(), self.qualified_key());
        let token = if *has_token { ", claim_token = $3" } else { "" };
        let claim = format!(
            "update {name} set {ends}{token}{set} {{from rows}}
              where {is_given} and {is_free}
             returning {key}{columns}"
        );
        let params = params![lease.ends, lease.now, lease.token.0];
        let params = &params[..2 + usize::from(*has_token)];
        // Rows are locked in the order of their keys, so that two nodes rarely wait for each other.
        let mut sorted = keys.to_vec();
        sorted.sort_unstable();
        let claimed = tx.query_rows(&claim, params, &self.rows(&sorted)).await?;
        let mut claimed: HashMap<_, _> = split_keys(claimed)?.into_iter().collect();
        Ok(keys.iter().filter_map(|key| claimed.remove_entry(key)).collect())
    }

    /// Extends the claims that are not lost to `until`. Returns the keys of their rows.
    pub(crate) async fn renew(
        &self,
        tx: &Tx<'_>,
        mut claimed: Vec<ClaimedKey<KEYS>>,
        until: DateTime<Utc>,
    ) -> Result<Vec<[i64; KEYS]>, StoreError> {
        let ClaimedTable { name, ends, .. } = self;
        let (is_given, key) = (self.is_given(), self.qualified_key());
        let renew = format!(
            "update {name} set {ends} {{from rows}}
              where {is_given} and claim_token = {{given token}}
             returning {key}"
        );
        claimed.sort_unstable_by_key(|(key, _)| *key); // as in `claim`
        let until = tx.at(until);
        let renewed = tx.query_rows(&renew, params![until], &self.claimed_rows(&claimed)).await?;
        Ok(split_keys(renewed)?.into_iter().map(|(key, _)| key).collect())
    }

    /// Ends a claim that is not lost: the row is due at `due_at`, and `set`, after a comma, is what else
    /// changes. Returns whether the claim was not lost.
    pub(crate) async fn release(
        &self,
        tx: &Tx<'_>,
        claimed: ClaimedKey<KEYS>,
        due_at: DateTime<Utc>,
        set: &str,
    ) -> Result<bool, StoreError> {
        let (name, is_given) = (self.name, self.is_given());
        let release = format!(
            "update {name} set due_at = $1, claim_token = 0{set} {{from rows}}
              where {is_given} and claim_token = {{given token}}"
        );
        let due_at = tx.at(due_at);
        Ok(tx.execute_rows(&release, params![due_at], &self.claimed_rows(&[claimed])).await? > 0)
    }

    /// Deletes the row of a claim that is not lost. Returns whether it was not.
    pub(crate) async fn delete_claimed(
        &self,
        tx: &Tx<'_>,
        claimed: ClaimedKey<KEYS>,
    ) -> Result<bool, StoreError> {
        let (name, is_given) = (self.name, self.is_given());
        let delete = format!(
            "delete from {name} {{using rows}}
              where {is_given} and claim_token = {{given token}}"
        );
        Ok(tx.execute_rows(&delete, &[], &self.claimed_rows(&[claimed])).await? > 0)
    }

    /// Returns the columns of `{rows}` with these keys.
    pub(crate) fn rows(&self, keys: &[[i64; KEYS]]) -> Vec<(&'static str, Value)> {
        let column = |n: usize| Value::Ints(keys.iter().map(|key| key[n]).collect());
        self.key.iter().enumerate().map(|(n, name)| (*name, column(n))).collect()
    }

    /// Returns the columns of `{rows}` with these keys, and `token`.
    fn claimed_rows(&self, claimed: &[ClaimedKey<KEYS>]) -> Vec<(&'static str, Value)> {
        let (keys, tokens): (Vec<_>, Vec<_>) =
            claimed.iter().map(|(key, token)| (*key, token.0)).unzip();
        let mut rows = self.rows(&keys);
        rows.push(("token", Value::Ints(tokens)));
        rows
    }

    /// Returns the condition that a row has a key of `{rows}`.
    fn is_given(&self) -> String {
        let name = self.name;
        let is_equal = |column: &&str| format!("{name}.{column} = {{given {column}}}");
        self.key.iter().map(is_equal).collect::<Vec<_>>().join(" and ")
    }

    fn qualified_key(&self) -> String {
        self.key.map(|column| format!("{}.{column}", self.name)).join(", ")
    }
}

/// Reads the keys with which rows begin.
fn split_keys<const KEYS: usize>(rows: Vec<Row>) -> Result<Vec<KeyedRow<KEYS>>, StoreError> {
    let split = rows.into_iter().map(|mut row| {
        let mut key = [0; KEYS];
        for part in &mut key {
            *part = row.int()?;
        }
        Ok((key, row))
    });
    split.collect()
}

/// Returns a job that was claimed. If it cannot be read, it must not keep the others from running: the error
/// is logged, and the job stays claimed.
pub(crate) fn readable<T>(job: Result<T, StoreError>) -> Option<T> {
    job.inspect_err(|err| {
        error!(error = err as &dyn Error, "a due job cannot be read and was skipped")
    })
    .ok()
}
