//! One SQL text for two databases: its parameters and the words that the two databases
//! spell differently.
//!
//! Parameters are numbered (`$1`) and may be used in any order, more than once. Differences are
//! written in braces:
//!
//! | word | PostgreSQL | SQLite |
//! | --- | --- | --- |
//! | `{ids $1}` `{texts $1}` `{blobs $1}` | `select unnest($1::…[])` | `select … from json_each($1)` |
//! | `{rows}` | `unnest(…) as given (…)` | one row at a time, as `given` |
//! | `{values id, name}` | `select given.id, given.name from unnest(…) as given (…)` | `values (…)`, one row at a time |
//! | `{from rows}` `{using rows}` `{given id}` | `from unnest(…) as given (…)`, `using …`, `given.id` | nothing, and a parameter |
//! | `{for update}` `{for update of t}` `{for share}` `{for key share}` `{skip locked}` | row locks | nothing: there is one writer |
//! | `{postgres …}` `{sqlite …}` | the first | the second |
//! | `{number}` `{alias}` `{serial}` `{key}` `{compact}` `{roomy}` | DDL, see `migrations/` | |
//!
//! An update of many rows is written with `{from rows}` and `{given …}`, a deletion with
//! `{using rows}`, and an insert with `{values}`: with a `from` clause, or `in (select … from {rows})`,
//! SQLite would create and drop a temporary table for each row, and keep a journal for each statement
//! that may write several rows.
//!
//! SQLite plans without statistics. Where it would read all rows of a resource to spare a sort or an
//! `in`, `{sqlite indexed by …}` names the index.
//!
//! A parameter whose type PostgreSQL cannot infer from its position is cast: `cast($1 as bigint)`.
//!
//! Citus passes statements on to the server that holds the schema, and restricts two forms of
//! `insert`. A subquery in `values` is refused; it becomes a statement of its own. A table with a
//! `{number}` or `{serial}` is filled with `values` only: the rows of `insert … select` would be
//! numbered by the other server, out of order, or even be lost (12.1, with `unnest` in a join).
//!
//! PostgreSQL's texts cannot contain U+0000. Input of subscribers is checked by the types of its
//! fields; in any other text, such as a title, both databases get U+FFFD in its place.

use std::borrow::Cow;

use chrono::{DateTime, Utc};

use feedgate_core::store::StoreError;

/// A parameter of a statement or a value of a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// SQL's null.
    Null,
    /// A number, a boolean or a time.
    Int(i64),
    /// A text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
    /// A list of numbers, for `{ids}` and `{rows}`.
    Ints(Vec<i64>),
    /// A list of texts, for `{texts}` and `{rows}`.
    Texts(Vec<String>),
    /// A list of bytes, for `{blobs}` and `{rows}`.
    Blobs(Vec<Vec<u8>>),
    /// A list of numbers or nulls, for `{rows}`.
    OptInts(Vec<Option<i64>>),
    /// A list of texts or nulls, for `{rows}`.
    OptTexts(Vec<Option<String>>),
    /// A list of bytes or nulls, for `{rows}`.
    OptBlobs(Vec<Option<Vec<u8>>>),
}

impl Value {
    /// Returns the length of a list.
    pub(crate) fn len(&self) -> usize {
        match self {
            Value::Ints(list) => list.len(),
            Value::Texts(list) => list.len(),
            Value::Blobs(list) => list.len(),
            Value::OptInts(list) => list.len(),
            Value::OptTexts(list) => list.len(),
            Value::OptBlobs(list) => list.len(),
            Value::Null | Value::Int(_) | Value::Text(_) | Value::Blob(_) => 1,
        }
    }

    fn array_type(&self) -> &'static str {
        match self {
            Value::Texts(_) | Value::OptTexts(_) => "text[]",
            Value::Blobs(_) | Value::OptBlobs(_) => "bytea[]",
            _ => "bigint[]",
        }
    }
}

/// Returns a text as both databases store it. U+0000 is replaced and not dropped, so that a filter
/// with U+0000 in it does not find texts without.
pub(crate) fn storable(text: &str) -> Cow<'_, str> {
    match text.contains('\0') {
        true => Cow::Owned(text.replace('\0', "\u{fffd}")),
        false => Cow::Borrowed(text),
    }
}

/// Returns the texts of a list as both databases store them.
pub(crate) fn storable_list(list: &[String]) -> Vec<Cow<'_, str>> {
    list.iter().map(|text| storable(text)).collect()
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::Int(number)
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Value {
        Value::Int(truth.into())
    }
}

impl From<DateTime<Utc>> for Value {
    fn from(time: DateTime<Utc>) -> Value {
        Value::Int(time.timestamp_micros())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Value {
        Value::Blob(bytes)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(maybe: Option<T>) -> Value {
        maybe.map_or(Value::Null, Into::into)
    }
}

/// The parameters of a statement: `params![id, now]`.
macro_rules! params {
    ($($value:expr),* $(,)?) => { &[$($crate::engine::sql::Value::from($value)),*] };
}
pub(crate) use params;

/// Serializes a document for storage.
pub(crate) fn json<T: serde::Serialize>(document: &T) -> String {
    serde_json::to_string(document).expect("our documents are structs of plain values")
}

/// Parses a stored document.
pub(crate) fn parse_json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|err| StoreError::Corrupt(err.to_string()))
}

/// The columns of `{rows}`: their names and their values, all lists of one length.
pub(crate) type Columns<'a> = [(&'a str, Value)];

/// Returns the text for PostgreSQL. `columns` are numbered on from `first`.
pub(crate) fn postgres(sql: &str, first: usize, columns: &Columns<'_>) -> String {
    replace(sql, |word, rest| match word {
        "rows" => given_rows(first, columns),
        "from" => format!("from {}", given_rows(first, columns)),
        "using" => format!("using {}", given_rows(first, columns)),
        "values" => {
            let names = rest.split(", ").map(|name| format!("given.{name}"));
            let names = names.collect::<Vec<_>>().join(", ");
            format!("select {names} from {}", given_rows(first, columns))
        }
        "given" => format!("given.{rest}"),
        "ids" => format!("select unnest({rest}::bigint[])"),
        "texts" => format!("select unnest({rest}::text[])"),
        "blobs" => format!("select unnest({rest}::bytea[])"),
        "postgres" => rest.to_owned(),
        "for" if rest.starts_with("update") => format!("for no key {rest}"),
        "for" => format!("for {rest}"),
        "skip" => "for no key update skip locked".to_owned(),
        "number" => "bigint generated by default as identity primary key".to_owned(),
        "alias" => "bigint primary key".to_owned(),
        "serial" => "bigint generated by default as identity".to_owned(),
        "key" => "primary key".to_owned(),
        "roomy" => "with (fillfactor = 50)".to_owned(),
        _ => String::new(),
    })
}

fn given_rows(first: usize, columns: &Columns<'_>) -> String {
    let lists = columns.iter().enumerate();
    let lists = lists.map(|(n, (_, v))| format!("${}::{}", first + n, v.array_type()));
    let names = columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    format!("unnest({}) as given ({names})", lists.collect::<Vec<_>>().join(", "))
}

/// Returns the text for SQLite. `columns` are numbered on from `first`.
pub(crate) fn sqlite(sql: &str, first: usize, columns: &Columns<'_>) -> String {
    let given = |name: &str| {
        let place = columns.iter().position(|(column, _)| *column == name);
        place.map_or_else(String::new, |n| format!("${}", first + n))
    };
    let text = replace(sql, |word, rest| match word {
        "rows" => {
            let columns = columns.iter().enumerate();
            let columns = columns.map(|(n, (name, _))| format!("${} as {name}", first + n));
            format!("(select {}) as given", columns.collect::<Vec<_>>().join(", "))
        }
        "given" => given(rest),
        "values" => {
            let places = rest.split(", ").map(given).collect::<Vec<_>>().join(", ");
            format!("values ({places})")
        }
        "ids" | "texts" => format!("select value from json_each({rest})"),
        "blobs" => format!("select unhex(value) from json_each({rest})"),
        "number" | "serial" => "integer primary key autoincrement".to_owned(),
        "alias" => "integer primary key".to_owned(),
        "key" => "unique".to_owned(),
        "compact" => "without rowid".to_owned(),
        "sqlite" => rest.to_owned(),
        _ => String::new(),
    });
    // SQLite numbers `$1` by its first occurrence, but `?1` by its number.
    text.replace('$', "?")
}

/// Replaces the words in braces; `with` takes the first word and the rest.
fn replace(sql: &str, with: impl Fn(&str, &str) -> String) -> String {
    let mut text = String::with_capacity(sql.len() + 64);
    let mut left = sql;
    while let Some((before, after)) = left.split_once('{') {
        let (inside, after) = after.split_once('}').unwrap_or((after, ""));
        let (word, rest) = inside.split_once(' ').unwrap_or((inside, ""));
        text.push_str(before);
        text.push_str(&with(word, rest));
        left = after;
    }
    text.push_str(left);
    text
}

/// Returns the statements of a script, without comments. A semicolon in a quoted text does not end
/// a statement; block comments and dollar quotes are not supported.
pub(crate) fn statements(script: &str) -> Vec<String> {
    let (mut all, mut statement) = (Vec::new(), String::new());
    let mut quote = None;
    let mut chars = script.chars().peekable();
    while let Some(c) = chars.next() {
        match quote {
            None if c == '-' && chars.peek() == Some(&'-') => {
                while chars.next_if(|c| *c != '\n').is_some() {}
                continue;
            }
            None if c == ';' => {
                all.push(std::mem::take(&mut statement));
                continue;
            }
            None if c == '\'' || c == '"' => quote = Some(c),
            Some(open) if c == open => quote = None,
            _ => {}
        }
        statement.push(c);
    }
    all.push(statement);
    all.retain(|statement| !statement.trim().is_empty());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_split_at_semicolons_outside_of_comments_and_quotes() {
        #[rustfmt::skip]
        let cases: [(&str, &[&str]); 5] = [
            ("select 1; select 2;\n", &["select 1", " select 2"]),
            ("-- One; it's two.\nselect 1 -- three; four", &["\nselect 1 "]),
            ("select 'a;b', 'it''s; --', \"c;d\"; select 2", &["select 'a;b', 'it''s; --', \"c;d\"", " select 2"]),
            ("select 2 - 1; -- nothing follows", &["select 2 - 1"]),
            ("", &[]),
        ];
        for (script, want) in cases {
            assert_eq!(statements(script), want, "{script}");
        }
    }

    #[test]
    fn one_text_becomes_two() {
        let columns = [("id", Value::Ints(vec![1])), ("name", Value::Texts(vec!["a".into()]))];
        #[rustfmt::skip]
        let cases = [
            ("where id in ({ids $2}) and a = $1", "where id in (select unnest($2::bigint[])) and a = $1",
             "where id in (select value from json_each(?2)) and a = ?1"),
            ("from {rows}", "from unnest($3::bigint[], $4::text[]) as given (id, name)",
             "from (select ?3 as id, ?4 as name) as given"),
            ("insert into t (b, a) {values name, id}",
             "insert into t (b, a) select given.name, given.id from unnest($3::bigint[], $4::text[]) as given (id, name)",
             "insert into t (b, a) values (?4, ?3)"),
            ("set a = {given name} {from rows} where b = {given id}",
             "set a = given.name from unnest($3::bigint[], $4::text[]) as given (id, name) where b = given.id",
             "set a = ?4  where b = ?3"),
            ("delete from t {using rows} where b = {given id}",
             "delete from t using unnest($3::bigint[], $4::text[]) as given (id, name) where b = given.id",
             "delete from t  where b = ?3"),
            ("limit 1 {skip locked}", "limit 1 for no key update skip locked", "limit 1 "),
            ("{postgres a = $1}{sqlite b = $1}", "a = $1", "b = ?1"),
            ("id {for share};", "id for share;", "id ;"),
        ];
        for (text, on_postgres, on_sqlite) in cases {
            assert_eq!(postgres(text, 3, &columns), on_postgres);
            assert_eq!(sqlite(text, 3, &columns), on_sqlite);
        }
    }
}
