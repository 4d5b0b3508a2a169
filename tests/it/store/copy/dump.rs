//! All rows of a database as texts, without what a copy may change: numbers of rows are left out,
//! and numbers of resources are replaced by their topics.

use std::collections::BTreeMap;

use crate::support::postgres::{Database, connect};

/// The rows of each table, in order.
pub(super) type Dump = BTreeMap<String, Vec<String>>;

/// Tables that a copy writes in another form.
const OTHER_TABLES: [&str; 14] = [
    "clocks",
    "idempotency_keys",
    "sessions",
    "nodes",
    "callback_slots",
    "migrations",
    "sqlite_sequence",
    "database_properties",
    "former_numbers",
    "collected",
    "counters",
    "fan_outs",
    "subscription_counts",
    "account_appends",
];
/// Tables of which only the rows in the shared schema count.
const SHARED_TABLES: [&str; 4] = ["collections", "hosts", "refusals", "robots"];
/// Columns of claims, which are dropped.
const CLAIMS: [&str; 2] = ["claim_token", "claimed_until"];
/// Columns with the number of a resource.
const RESOURCES: [&str; 3] = ["resource_id", "collection_id", "member_id"];
/// Tables whose rows have numbers of their own.
const NUMBERED: [&str; 5] =
    ["subscriptions", "delivery_attempts", "intents", "changes", "forwarded_pings"];
/// The columns with the numbers of subscriptions.
const SUBSCRIPTIONS: [&str; 3] = ["subscription_id", "number", "after_id"];
/// What stands between two columns.
const SEPARATOR: &str = " ¦ ";

/// One set of tables, and a way to read it.
enum Schema {
    Sqlite(rusqlite::Connection),
    Postgres(Box<tokio_postgres::Client>),
}

impl Schema {
    /// The first column of what a query finds.
    async fn texts(&self, sql: &str) -> Vec<String> {
        match self {
            Schema::Sqlite(conn) => {
                let mut query = conn.prepare(sql).unwrap();
                let rows = query.query_map([], |row| row.get(0)).unwrap();
                rows.map(Result::unwrap).collect()
            }
            Schema::Postgres(client) => {
                let rows = client.query(sql, &[]).await.unwrap();
                rows.iter().map(|row| row.get(0)).collect()
            }
        }
    }

    async fn tables(&self) -> Vec<String> {
        let tables = match self {
            Schema::Sqlite(_) => "select name from sqlite_schema where type = 'table'",
            Schema::Postgres(_) => {
                "select table_name::text from information_schema.tables
                  where table_schema = current_schema()"
            }
        };
        self.texts(tables).await
    }

    /// The names and the types of the columns of a table.
    async fn columns(&self, table: &str) -> Vec<(String, String)> {
        let columns = match self {
            Schema::Sqlite(_) => {
                format!("select name || ' ' || lower(type) from pragma_table_info('{table}')")
            }
            Schema::Postgres(_) => format!(
                "select column_name || ' ' || data_type from information_schema.columns
                  where table_schema = current_schema() and table_name = '{table}'
                  order by ordinal_position"
            ),
        };
        let columns = self.texts(&columns).await;
        let pair = |column: &String| {
            let (name, kind) = column.split_once(' ').unwrap();
            (name.to_owned(), kind.to_owned())
        };
        columns.iter().map(pair).collect()
    }

    fn text_of(&self, name: &str, kind: &str) -> String {
        let text = match (self, kind) {
            (Schema::Sqlite(_), "bytea") => format!("lower(hex({name}))"),
            (Schema::Postgres(_), "bytea") => format!("encode({name}, 'hex')"),
            _ => format!("cast({name} as text)"),
        };
        format!("coalesce({text}, 'null')")
    }
}

/// The shared schema, and then the cells if there are several.
async fn schemas(database: &Database) -> Vec<Schema> {
    if let Some(path) = database.url.strip_prefix("sqlite:") {
        return vec![Schema::Sqlite(rusqlite::Connection::open(path).unwrap())];
    }
    let mut schemas = Vec::new();
    for name in database.schemas() {
        let client = connect(&database.url).await;
        client.batch_execute(&format!("set search_path to {name}")).await.unwrap();
        schemas.push(Schema::Postgres(Box::new(client)));
    }
    schemas
}

/// Reads everything.
pub(super) async fn dump(database: &Database) -> Dump {
    let schemas = schemas(database).await;
    let mut topics = BTreeMap::new();
    for schema in &schemas {
        let pairs = schema.texts("select cast(id as text) || ' ' || topic from resources").await;
        let pair =
            |pair: &String| pair.split_once(' ').map(|(id, topic)| (id.into(), topic.into()));
        topics.extend(pairs.iter().filter_map(pair));
    }
    let mut dump = Dump::new();
    for (n, schema) in schemas.iter().enumerate() {
        for table in schema.tables().await {
            let is_shared = SHARED_TABLES.contains(&table.as_str());
            // A gateway builds the search index of a copy.
            let is_copied =
                !OTHER_TABLES.contains(&table.as_str()) && !table.starts_with("search_");
            if !is_copied || (n > 0 && is_shared) {
                continue;
            }
            let rows = rows(schema, &table, &topics).await;
            dump.entry(table).or_default().extend(rows);
        }
    }
    dump.values_mut().for_each(|rows| rows.sort_unstable());
    dump
}

async fn rows(schema: &Schema, table: &str, topics: &BTreeMap<String, String>) -> Vec<String> {
    let columns = schema.columns(table).await;
    let texts = columns.iter().map(|(name, kind)| schema.text_of(name, kind));
    let texts = texts.collect::<Vec<_>>().join(&format!(" || '{SEPARATOR}' || "));
    let mut rows = Vec::new();
    for row in schema.texts(&format!("select {texts} from {table}")).await {
        let values = columns.iter().zip(row.split(SEPARATOR)).filter_map(|((name, _), value)| {
            let name = name.as_str();
            let is_own = name == "id" && NUMBERED.contains(&table);
            if is_own || SUBSCRIPTIONS.contains(&name) || CLAIMS.contains(&name) {
                return None;
            }
            let is_resource = RESOURCES.contains(&name) || (table == "resources" && name == "id");
            let topic = topics.get(value).filter(|_| is_resource);
            let value = topic.map_or(value, String::as_str);
            Some(if (name, value) == ("pinged", "2") {
                "pinged=1".into()
            } else {
                format!("{name}={value}")
            })
        });
        rows.push(values.collect::<Vec<_>>().join(SEPARATOR));
    }
    rows
}

/// The sums of the counters of all schemas.
pub(super) async fn counters(database: &Database) -> BTreeMap<String, i64> {
    let mut sums = BTreeMap::new();
    for schema in schemas(database).await {
        for counter in schema.texts("select name || ' ' || count from counters").await {
            let (name, count) = counter.split_once(' ').unwrap();
            *sums.entry(name.to_owned()).or_default() += count.parse::<i64>().unwrap();
        }
    }
    sums
}
