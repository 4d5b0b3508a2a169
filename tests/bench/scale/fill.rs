//! Fills the tables with one statement for each, in the order of their keys. All indices exist from
//! the beginning, as in a database that has grown.

use rusqlite::Connection;
use sha2::{Digest, Sha256};
use tokio_postgres::NoTls;

use super::Failure;

/// Subscriptions of each resource.
pub(crate) const SUBSCRIPTIONS: i64 = 10;
/// Resources on one host.
const ON_A_HOST: i64 = 4;
/// Resources for each account, which subscribes to ten.
pub(crate) const FOR_AN_ACCOUNT: i64 = 10;
/// The hosts of callbacks.
const CALLBACK_HOSTS: i64 = 5_000;
/// The time at which everything begins, in microseconds: 20,000 days after 1970.
pub(crate) const BEGIN_US: i64 = 20_000 * 86_400 * 1_000_000;
/// An hour, within which all resources become due.
pub(crate) const HOUR_US: i64 = 3_600 * 1_000_000;

/// A table, its columns, how many rows it has for each resource (a divisor if negative), and the
/// values of row `n`. `[hash]` is 16 random bytes.
struct Rows(&'static str, &'static str, i64, &'static str);

#[rustfmt::skip]
const TABLES: &[Rows] = &[
    Rows("resources", "id, topic, fetch_url, host, kind, head, subscribers, next_fetch, due_at, fetched_at,
                       period_s, base_period_ms, measured_at", 1,
        "n, 'https://h' || (n / [on]) || '.test/' || n, 'https://h' || (n / [on]) || '.test/' || n,
         'h' || (n / [on]) || '.test:443', 'feed', 1, 10, [begin] + n * [apart], [begin] + n * [apart],
         [begin] - [hour], 3600, 3600000, [begin]"),
    Rows("resource_details", "resource_id, status, polling", 1, "n, '{}', '{}'"),
    Rows("subscriptions", "resource_id, account_id, callback, host, protocol, procedure, format, lease_until,
                           created_at, cursor", SUBSCRIPTIONS,
        "(n - 1) / 10 + 1, case when n % 10 = 0 then (n / 10 - 1) / 10 + 1 else 0 end,
         'https://s' || (n % [callbacks]) || '.test/' || n, 's' || (n % [callbacks]) || '.test:443', 'websub', '',
         'atom', [begin] + 30 * 24 * [hour] + n, [begin] - [hour], 1"),
    Rows("records", "resource_id, seq, appended_at, entry_hash, entry_id, atom", 1,
        "n, 1, [begin] - [hour], [hash], 'tag:' || n, '<entry><id>tag:' || n || '</id></entry>'"),
    Rows("pages", "resource_id, page, first_seq, last_seq, bytes, begun_at, ended_at", 1,
        "n, 1, 1, 1, 40, [begin] - [hour], [begin] - [hour]"),
    Rows("entries", "resource_id, first_seq, newest_seq, digest, title_digest, published, updated, seen_at", 1,
        "n, 1, 1, [hash], [hash], 0, 0, [begin] - [hour]"),
    Rows("entry_keys", "resource_id, key, first_seq", 1, "n, [hash], 1"),
    Rows("hosts", "host, next_fetch_at, last_fetch_at, fetch_interval", -ON_A_HOST,
        "'h' || n || '.test:443', [begin] - [hour], [begin] - [hour], 0"),
    Rows("changes", "at, source, name, url, resource_id", 1,
        "[begin] - 24 * [hour] + n * 24 * [apart], 'seen', 'name', 'https://site.test/' || n, n"),
    Rows("accounts", "id, login, created_at", -FOR_AN_ACCOUNT, "n, 'user' || n, [begin]"),
];

/// Drops and creates the schema.
pub(crate) async fn empty(server: &str) -> Result<(), Failure> {
    let (client, connection) = tokio_postgres::connect(server, NoTls).await?;
    let connection = tokio::spawn(connection);
    client.batch_execute("drop schema if exists scale cascade; create schema scale").await?;
    drop(client);
    connection.await??;
    Ok(())
}

/// Fills a database with `size` resources.
pub(crate) async fn fill(url: &str, size: i64) -> Result<(), Failure> {
    match url.strip_prefix("sqlite:") {
        Some(path) => fill_sqlite(&Connection::open(path)?, size),
        None => fill_postgres(url, size).await,
    }
}

/// Returns the statement that fills a table.
fn insert(rows: &Rows, size: i64, (numbers, hash): (&str, &str)) -> String {
    let Rows(table, columns, many, values) = rows;
    let many = if *many < 0 { size / -many } else { size * many };
    let values = [
        ("[on]", ON_A_HOST),
        ("[begin]", BEGIN_US),
        ("[apart]", HOUR_US / size),
        ("[hour]", HOUR_US),
        ("[callbacks]", CALLBACK_HOSTS),
    ]
    .iter()
    .fold(values.replace("[hash]", hash), |values, (name, number)| {
        values.replace(name, &number.to_string())
    });
    let numbers = numbers.replace("[many]", &many.to_string());
    format!("insert into {table} ({columns}) select {values} from {numbers}")
}

async fn fill_postgres(url: &str, size: i64) -> Result<(), Failure> {
    const URLS: &str = "
        insert into resource_urls (resource_id, role, url_hash)
        select id, 'topic', substring(sha256(convert_to(substring(topic from 6), 'UTF8')) for 16)
          from resources";
    // The numbers of resources were given, and the sequence has not followed.
    const SEQUENCE: &str =
        "select setval(pg_get_serial_sequence('resources', 'id'), max(id)) from resources";
    const TOKENS: &str = "
        insert into tokens (account_id, name, scopes, hash, created_at)
        select id, 'token', 'list', sha256(convert_to(login, 'UTF8')), 0 from accounts";
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    let connection = tokio::spawn(connection);
    let dialect = ("generate_series(1, [many]::bigint) n", "decode(md5(n::text), 'hex')");
    for rows in TABLES {
        client.batch_execute(&insert(rows, size, dialect)).await?;
    }
    for statement in [SEQUENCE, URLS, TOKENS, "vacuum analyze", "checkpoint"] {
        client.batch_execute(statement).await?;
    }
    drop(client);
    connection.await??;
    Ok(())
}

fn fill_sqlite(conn: &Connection, size: i64) -> Result<(), Failure> {
    conn.execute_batch(
        "pragma foreign_keys = off; pragma synchronous = off; pragma cache_size = -500000; begin",
    )?;
    let numbers = "(with recursive numbers (n) as (
        select 1 union all select n + 1 from numbers where n < [many]) select n from numbers)";
    for rows in TABLES {
        conn.execute_batch(&insert(rows, size, (numbers, "randomblob(16)")))?;
    }
    let mut url = conn.prepare(
        "insert into resource_urls (resource_id, role, url_hash) values (?, 'topic', ?)",
    )?;
    for n in 1..=size {
        let topic = topic(n);
        url.execute((n, &Sha256::digest(&topic["https".len()..])[..16]))?;
    }
    let mut token = conn.prepare(
        "insert into tokens (account_id, name, scopes, hash, created_at) values (?, 'token', 'list', ?, 0)",
    )?;
    for n in 1..=size / FOR_AN_ACCOUNT {
        token.execute((n, &Sha256::digest(login(n))[..]))?;
    }
    conn.execute_batch("commit; pragma wal_checkpoint(truncate)")?;
    Ok(())
}

/// The topic of resource `n`.
pub(crate) fn topic(n: i64) -> String {
    format!("https://h{}.test/{n}", n / ON_A_HOST)
}

/// The login of account `n`, which is its token, too.
pub(crate) fn login(n: i64) -> String {
    format!("user{n}")
}
