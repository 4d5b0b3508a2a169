//! What refused calls leave in the database: nothing that is there after an hour.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use super::program::{LOOK_AGAIN, Program};
use super::publisher::Publisher;
use super::{AnyError, Finding};

/// How often each call is made, with other values each time.
const CALLS: usize = 100;
/// So many rows are the gateway's own: its counters, its tasks and the parts of its search index.
const OWN_ROWS: i64 = 20;
/// The longest that maintenance is waited for.
const PATIENCE: Duration = Duration::from_secs(120);
/// The log, which is bounded in number, and what keeps the gateway polite: one row for each host that
/// was contacted, for a day or a week.
const KEPT_LONGER: [&str; 3] = ["events", "hosts", "robots"];

type Rows = BTreeMap<String, i64>;

/// Makes calls that are refused, and counts rows before, after and an hour later.
pub(crate) async fn attack(publisher: &Publisher) -> Result<Vec<Finding>, AnyError> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("feedgate.db");
    let database = format!("sqlite:{}", file.display());
    let gateway = Program::start(&database, &[("FEEDGATE_DELIVERY_TIMEOUT_S", "1")]).await?;
    let before = count(&file)?;
    let mut calls = 0;
    for number in 0..CALLS {
        for (path, form) in refused(publisher, number) {
            let form: Vec<_> = form.iter().map(|(name, value)| (*name, value.as_str())).collect();
            gateway.post(path, &form).await?;
            calls += 1;
        }
    }
    let after = count(&file)?;
    drop(gateway);

    forget_machine_start(&file)?;
    let an_hour_later = [("LD_PRELOAD", faketime()?), ("FAKETIME", "+61m".to_owned())];
    let settings = an_hour_later.each_ref().map(|(name, value)| (*name, value.as_str()));
    let _gateway = Program::start(&database, &settings).await?;
    let waiting = Instant::now();
    let mut left = more(&before, &count(&file)?);
    while !left.is_empty() && waiting.elapsed() < PATIENCE {
        tokio::time::sleep(100 * LOOK_AGAIN).await;
        left = more(&before, &count(&file)?);
    }
    Ok(vec![Finding {
        attack: format!("{calls} refused calls"),
        measured: format!("rows after: {:?}, an hour later: {left:?}", more(&before, &after)),
        bound: "none an hour later".to_owned(),
        is_held: left.is_empty(),
    }])
}

/// Lets the next start be one after a restart of the machine. Otherwise the gateway would see that its clock
/// is an hour ahead of the time that has passed, and move what is due by as much.
fn forget_machine_start(file: &Path) -> Result<(), AnyError> {
    rusqlite::Connection::open(file)?.execute("update clocks set boot = ''", [])?;
    Ok(())
}

/// Calls that come to nothing: of topics and callbacks that are inner, missing or silent.
fn refused(
    publisher: &Publisher,
    number: usize,
) -> Vec<(&'static str, Vec<(&'static str, String)>)> {
    let topic = publisher.url(3, number, &format!("/feed/refused{number}"));
    let subscribe = |topic: &str, callback: String| {
        vec![
            ("hub.mode", "subscribe".to_owned()),
            ("hub.topic", topic.to_owned()),
            ("hub.callback", callback),
        ]
    };
    let please_notify = |port: u16, topic: &str| {
        vec![
            ("port", port.to_string()),
            ("path", format!("/{number}")),
            ("protocol", "http-post".to_owned()),
            ("notifyProcedure", String::new()),
            ("url1", topic.to_owned()),
        ]
    };
    vec![
        ("/hub", subscribe(&topic, format!("http://10.0.0.1/{number}"))),
        ("/hub", subscribe(&format!("http://10.0.0.1/{number}"), publisher.url(2, 0, "/"))),
        ("/hub", subscribe(&topic, format!("http://127.4.0.1:1/{number}"))),
        ("/rsscloud/pleaseNotify", please_notify(1, &topic)),
        ("/rsscloud/pleaseNotify", please_notify(1, &format!("http://127.4.0.2:1/{number}"))),
        (
            "/rsscloud/pleaseNotify",
            please_notify(publisher.port(), &format!("http://10.0.0.1/{number}")),
        ),
        ("/rsscloud/ping", vec![("url", format!("http://127.4.0.3:1/{number}"))]),
        ("/hub", vec![("hub.mode", "publish".to_owned()), ("hub.url", "x".repeat(number))]),
        (
            "/pingSiteForm",
            vec![("name", "x".to_owned()), ("url", format!("gopher://{number}.test"))],
        ),
        ("/", vec![("hub.mode", "list".to_owned())]),
        ("/author", vec![("login", format!("nobody{number}")), ("token", "x".to_owned())]),
    ]
}

/// The library of Debian's package `faketime`.
fn faketime() -> Result<String, AnyError> {
    for folder in std::fs::read_dir("/usr/lib")? {
        let library = folder?.path().join("faketime/libfaketime.so.1");
        if library.exists() {
            return Ok(library.display().to_string());
        }
    }
    Err("libfaketime is not installed (Debian: faketime)".into())
}

/// Counts the rows of each table.
fn count(file: &Path) -> Result<Rows, AnyError> {
    let database = rusqlite::Connection::open(file)?;
    database.busy_timeout(Duration::from_secs(10))?;
    let mut tables = database.prepare(
        "select name from sqlite_master where type = 'table' and name not like 'sqlite_%'",
    )?;
    let tables: Vec<String> = tables.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let mut rows = Rows::new();
    for table in tables.into_iter().filter(|table| !KEPT_LONGER.contains(&table.as_str())) {
        let count = format!("select count(*) from \"{table}\"");
        let count = database.query_row(&count, [], |row| row.get(0))?;
        rows.insert(table, count);
    }
    Ok(rows)
}

/// The tables that have more rows than before and more than the gateway's own, with the difference.
fn more(before: &Rows, after: &Rows) -> Rows {
    let gained = |(table, rows): (&String, &i64)| {
        let gained = rows - before.get(table).copied().unwrap_or_default();
        (gained > OWN_ROWS).then(|| (table.clone(), gained))
    };
    after.iter().filter_map(gained).collect()
}
