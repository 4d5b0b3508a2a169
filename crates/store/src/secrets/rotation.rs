//! `feedgate rotate-key`: encrypts every stored secret with the present key.
//!
//! Tables are read in chunks in the order of their keys, while gateways use them. A secret is
//! replaced only if it is still the one that was read: what a gateway has stored meanwhile stays. A
//! rotation that was interrupted begins anew, and leaves alone what it has encrypted before.

use crate::alerts;
use crate::copy::source::query;
use crate::delivery::intent_columns::{
    HEADERS as INTENT_HEADERS, SECRET as INTENT_SECRET, VERIFY_TOKEN,
};
use crate::delivery::row::{
    HEADERS, PREVIOUS_SECRET, SECRET, alias, callback, protocol, subscriber,
};
use crate::engine::envelope::{RowIdentity, SecretKey};
use crate::engine::migrate::MIGRATIONS;
use crate::engine::row::Row;
use crate::engine::sql::{Value, params};
use crate::resources::feed_headers::{self, HEADERS as FEED_HEADERS};
use crate::resources::row::topic;
use crate::resources::upstreams::{self, SECRET as UPSTREAM_SECRET};
use crate::secrets::registered_keys;
use crate::signing_keys::{self, SEED};
use crate::{Db, OpenPurpose, Store, StoreSettings, check_exists, name_place};
use feedgate_core::store::StoreError;
use feedgate_core::upstream::AdvertisedUpstream;

/// The number of rows that are read together: some 10 ms of work.
const CHUNK: usize = 500;
/// The most secrets that cannot be read and are named.
const MOST_REASONS: usize = 20;

/// How far a rotation has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RotationProgress {
    /// The column that is being read, as `TABLE.COLUMN`.
    pub column: &'static str,
    /// The number of its rows that have been read.
    pub rows: u64,
    /// The number of all its rows.
    pub of: u64,
}

/// The result of a rotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RotatedSecrets {
    /// The id of the present key.
    pub key_id: String,
    /// How many secrets were encrypted with it.
    pub rewritten: u64,
    /// How many of these a gateway had stored, during the rotation, with another key or in clear.
    pub late: u64,
    /// How many secrets cannot be read. They are left as they are.
    pub unreadable: u64,
    /// The rows of the first of these, with the reasons.
    pub unreadable_reasons: Vec<String>,
}

impl RotatedSecrets {
    /// Returns whether the present key is the only one that is needed from now on.
    pub fn is_complete(&self) -> bool {
        self.late == 0 && self.unreadable == 0
    }
}

/// Encrypts all secrets of the database with the present key; `None` if there is no present key.
/// Afterwards, if [`RotatedSecrets::is_complete`], the other keys are not needed any more. `report`
/// is called after each chunk.
pub async fn rotate_secrets(
    settings: &StoreSettings,
    report: &mut (dyn FnMut(&RotationProgress) + Send),
) -> Result<Option<RotatedSecrets>, StoreError> {
    let Some(key) = settings.secret_keys.present.clone() else { return Ok(None) };
    check_exists(settings).await?;
    let opened = Store::open(settings, MIGRATIONS, OpenPurpose::Gateway).await;
    let store = opened.map_err(|err| name_place(err, &settings.url))?;
    let rotated = rotate(&store, &key, report).await;
    store.close().await;
    rotated.map(Some)
}

async fn rotate(
    store: &Store,
    key: &SecretKey,
    report: &mut (dyn FnMut(&RotationProgress) + Send),
) -> Result<RotatedSecrets, StoreError> {
    let first = rotate_all(store, report).await?;
    // Whatever is found now was stored since, by a gateway with other settings.
    let second = rotate_all(store, report).await?;
    let rotated = RotatedSecrets {
        key_id: key.id().to_owned(),
        rewritten: first.rewritten + second.rewritten,
        late: second.rewritten,
        unreadable: second.unreadable,
        unreadable_reasons: second.reasons,
    };
    if rotated.is_complete() {
        registered_keys::forget_others(&store.shared, key).await?;
    }
    Ok(rotated)
}

/// The result of one pass through all columns.
#[derive(Debug, Default)]
struct Pass {
    /// How many secrets were encrypted.
    rewritten: u64,
    /// How many cannot be read.
    unreadable: u64,
    /// Which these are, the first [`MOST_REASONS`] of them.
    reasons: Vec<String>,
}

/// Encrypts every secret that is not encrypted with the present key.
async fn rotate_all(
    store: &Store,
    report: &mut (dyn FnMut(&RotationProgress) + Send),
) -> Result<Pass, StoreError> {
    let mut pass = Pass::default();
    for column in COLUMNS {
        let (mut rows, mut of) = (0, 0);
        for schema in store.databases() {
            of += column.count_rows(schema).await?;
        }
        for schema in store.databases() {
            let mut position = vec![i64::MIN; column.key.len()];
            loop {
                let mut chunk = Chunk::read(schema, column, &position).await?;
                rows += chunk.rows as u64;
                pass.unreadable += chunk.unreadable.len() as u64;
                let free = MOST_REASONS.saturating_sub(pass.reasons.len());
                pass.reasons.extend(chunk.unreadable.drain(..).take(free));
                let (is_last, end) = (chunk.rows < CHUNK, chunk.end.take());
                pass.rewritten += chunk.write(schema, column).await?;
                report(&RotationProgress { column: column.name, rows, of });
                match end.filter(|_| !is_last) {
                    Some(end) => position = end,
                    None => break,
                }
            }
        }
    }
    Ok(pass)
}

/// A column with secrets.
struct SecretColumn {
    /// `TABLE.COLUMN`.
    name: &'static str,
    /// The columns of the primary key.
    key: &'static [&'static str],
    /// Reads up to the last parameter's number of rows behind the key that the others are: the key,
    /// what identifies the row, and the secret.
    read: &'static str,
    /// Reads what identifies the row.
    identity: fn(&mut Row) -> Result<RowIdentity, StoreError>,
    /// Replaces the secret `found` by `sealed` in the row with this key.
    write: &'static str,
}

impl SecretColumn {
    /// Returns the number of rows of the table in one schema.
    async fn count_rows(&self, schema: &Db) -> Result<u64, StoreError> {
        let table = self.name.split('.').next().unwrap_or_default();
        let counted = query(schema, format!("select count(*) from {table}"), Vec::new()).await?;
        counted.into_iter().next().map_or(Ok(0), |mut row| row.count())
    }
}

/// A column of `subscriptions`.
macro_rules! of_subscriptions {
    ($name:expr, $column:literal) => {
        SecretColumn {
            name: $name,
            key: &["resource_id", "id"],
            read: concat!(
                "select s.resource_id, s.id,
                        (select r.topic from resources r where r.id = s.resource_id), s.alias,
                        s.callback, s.protocol, s.procedure, s.",
                $column,
                "  from subscriptions s
                  where (s.resource_id, s.id) > ($1, $2)
                  order by s.resource_id, s.id limit $3"
            ),
            identity: subscriber_of,
            write: concat!(
                "update subscriptions
                    set ",
                $column,
                "       = {given sealed}
                 {from rows}
                  where subscriptions.resource_id = {given resource_id}
                    and subscriptions.id = {given id} and ",
                $column,
                "       = {given found}"
            ),
        }
    };
}

/// A column of `intents`.
macro_rules! of_intents {
    ($name:expr, $column:literal) => {
        SecretColumn {
            name: $name,
            key: &["id"],
            read: concat!(
                "select id, topic, alias, callback, protocol, procedure, ",
                $column,
                "  from intents
                  where id > $1
                  order by id limit $2"
            ),
            identity: subscriber_of,
            write: concat!(
                "update intents
                    set ",
                $column,
                "       = {given sealed}
                 {from rows}
                  where intents.id = {given id} and ",
                $column,
                "       = {given found}"
            ),
        }
    };
}

/// Every column that `Tx::seal` is called for.
const COLUMNS: &[SecretColumn] = &[
    of_subscriptions!(SECRET, "secret"),
    of_subscriptions!(PREVIOUS_SECRET, "previous_secret"),
    of_subscriptions!(HEADERS, "header_secret"),
    of_intents!(INTENT_SECRET, "secret"),
    of_intents!(INTENT_HEADERS, "header_secret"),
    of_intents!(VERIFY_TOKEN, "verify_token"),
    SecretColumn {
        name: FEED_HEADERS,
        key: &["resource_id"],
        read: "
            select h.resource_id, (select r.topic from resources r where r.id = h.resource_id), h.header_secret
              from feed_headers h
             where h.resource_id > $1
             order by h.resource_id limit $2",
        identity: |row| Ok(feed_headers::identity(&topic(row)?)),
        write: "
            update feed_headers
               set header_secret = {given sealed}
            {from rows}
             where feed_headers.resource_id = {given resource_id} and header_secret = {given found}",
    },
    SecretColumn {
        name: UPSTREAM_SECRET,
        key: &["resource_id"],
        read: "
            select resource_id, protocol, procedure, endpoint, topic, token, secret
              from upstreams
             where resource_id > $1
             order by resource_id limit $2",
        identity: upstream_of,
        write: "
            update upstreams
               set secret = {given sealed}
            {from rows}
             where upstreams.resource_id = {given resource_id} and secret = {given found}",
    },
    SecretColumn {
        name: SEED,
        key: &["generation"],
        read: "
            select generation, generation, seed
              from signing_keys
             where generation > $1
             order by generation limit $2",
        identity: |row| Ok(signing_keys::identity(row.int()?)),
        write: "
            update signing_keys
               set seed = {given sealed}
            {from rows}
             where signing_keys.generation = {given generation} and seed = {given found}",
    },
    SecretColumn {
        name: alerts::SECRET,
        key: &["account_id"],
        read: "
            select account_id, url, secret
              from alert_addresses
             where account_id > $1
             order by account_id limit $2",
        identity: |row| Ok(alerts::identity(&callback(row)?)),
        write: "
            update alert_addresses
               set secret = {given sealed}
            {from rows}
             where alert_addresses.account_id = {given account_id} and secret = {given found}",
    },
];

fn subscriber_of(row: &mut Row) -> Result<RowIdentity, StoreError> {
    let topic = topic(row)?.with_alias(alias(row)?);
    let callback = callback(row)?;
    Ok(subscriber(&topic, &callback, &protocol(row)?))
}

fn upstream_of(row: &mut Row) -> Result<RowIdentity, StoreError> {
    let protocol = protocol(row)?;
    let offer = AdvertisedUpstream { protocol, endpoint: row.text()?, topic: row.text()? };
    Ok(upstreams::identity(&offer, &row.text()?))
}

/// Rows of a column that were read together, with the secrets that have to be written.
#[derive(Debug, Default)]
struct Chunk {
    /// How many rows were read.
    rows: usize,
    /// The key of the last one.
    end: Option<Vec<i64>>,
    /// The rows whose secrets cannot be read, with the reasons.
    unreadable: Vec<String>,
    /// The keys of the rows whose secrets are written.
    keys: Vec<Vec<i64>>,
    /// Their secrets as they were read.
    found: Vec<String>,
    /// Their secrets as they are written.
    sealed: Vec<String>,
}

impl Chunk {
    /// Reads the rows behind `position`.
    async fn read(
        db: &Db,
        column: &'static SecretColumn,
        position: &[i64],
    ) -> Result<Chunk, StoreError> {
        let limit = params![CHUNK as i64];
        let params: Vec<Value> =
            position.iter().copied().map(Value::Int).chain(limit.to_vec()).collect();
        let rows = db
            .read(move |tx| Box::pin(async move { tx.query(column.read, &params).await }))
            .await?;
        let mut chunk = Chunk::default();
        for row in rows {
            chunk.add(db, column, row)?;
        }
        Ok(chunk)
    }

    fn add(
        &mut self,
        db: &Db,
        column: &'static SecretColumn,
        mut row: Row,
    ) -> Result<(), StoreError> {
        let key: Vec<i64> = column.key.iter().map(|_| row.int()).collect::<Result<_, _>>()?;
        self.rows += 1;
        self.end = Some(key.clone());
        let identity = (column.identity)(&mut row)?;
        let keys = &db.secret_keys;
        let Some(found) = row.opt_text()?.filter(|found| !keys.is_current(found)) else {
            return Ok(());
        };
        match keys.open(column.name, &identity, found.clone()) {
            Ok(secret) => {
                self.sealed.push(keys.seal(column.name, &identity, &secret)?);
                self.keys.push(key);
                self.found.push(found);
            }
            Err(err) => {
                self.unreadable.push(format!("{} of the row {key:?}: {err}", column.name));
            }
        }
        Ok(())
    }

    /// Writes the secrets that are still as they were read. Returns how many.
    async fn write(self, db: &Db, column: &'static SecretColumn) -> Result<u64, StoreError> {
        if self.keys.is_empty() {
            return Ok(0);
        }
        let numbers =
            |place: usize| Value::Ints(self.keys.iter().map(|numbers| numbers[place]).collect());
        let mut columns: Vec<(&str, Value)> =
            column.key.iter().enumerate().map(|(place, name)| (*name, numbers(place))).collect();
        columns.push(("found", Value::Texts(self.found)));
        columns.push(("sealed", Value::Texts(self.sealed)));
        let written = db.write(move |tx| {
            Box::pin(async move { tx.execute_rows(column.write, &[], &columns).await })
        });
        written.await
    }
}
