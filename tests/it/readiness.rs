//! `/readyz` says when the database accepts no writes, and when it does again.

use http::StatusCode;
use tokio::task::JoinSet;

use crate::store::on_both_stores;
use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::until;

on_both_stores!(h18_a_node_whose_writes_are_refused_is_not_ready_and_says_why);

const PING: [(&str, &str); 2] = [("name", "Tides"), ("url", "http://tides.test/")];

/// Fills the disk of the database: SQLite's as far as the gateway can see, and PostgreSQL's for new
/// lines of changes.xml only, so that smaller writes still succeed.
async fn fill_disk(database: &Database, gateway: &Gateway) {
    match database.url.strip_prefix("sqlite:") {
        Some(path) => {
            let log = std::fs::metadata(format!("{path}-wal")).map_or(0, |log| log.len());
            gateway.limit_files(Some(log));
        }
        None => {
            database
                .run(
                    "create function refuse() returns trigger language plpgsql as $$
                     begin
                         raise exception 'could not extend file: No space left on device'
                             using errcode = 'disk_full';
                     end $$;
                     create trigger refuse before insert on changes
                         for each row execute function refuse()",
                )
                .await;
        }
    }
}

async fn free_disk(database: &Database, gateway: &Gateway) {
    match database.kind() {
        Kind::Sqlite => gateway.limit_files(None),
        Kind::Postgres => database.run("drop function refuse() cascade").await,
    }
}

async fn h18_a_node_whose_writes_are_refused_is_not_ready_and_says_why(database: Database) {
    let gateway = Gateway::start(&database, &[("FEEDGATE_LOG", "off")]).await;
    assert_eq!(gateway.get("/readyz").await, (StatusCode::OK, "ready\n".to_owned()));
    fill_disk(&database, &gateway).await;
    until("writes are refused", async || {
        gateway.post("/pingSiteForm", &PING).await.0 == StatusCode::SERVICE_UNAVAILABLE
    })
    .await;
    let (status, why) = gateway.get("/readyz").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{why}");
    assert!(why.starts_with("not ready: the database does not accept writes: "), "{why}");
    let reason = match database.kind() {
        Kind::Sqlite => "disk",
        Kind::Postgres => "No space left on device",
    };
    assert!(why.contains(reason) && why.ends_with(" (database_unwritable)\n"), "{why}");
    assert_eq!(gateway.get("/livez").await.0, StatusCode::OK);

    free_disk(&database, &gateway).await;
    until("writes are accepted again", async || {
        gateway.post("/pingSiteForm", &PING).await.0 == StatusCode::OK
    })
    .await;
    until("the node is ready again", async || gateway.get("/readyz").await.0 == StatusCode::OK)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn h18_many_requests_share_a_check_of_the_database() {
    const REQUESTS: usize = 200;
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[]).await;
    let probes = async || {
        let count = "select cast(count as text) from counters where name = 'write_probes'";
        database.texts(count).await[0].parse::<usize>().unwrap()
    };
    let before = probes().await;
    let mut requests = JoinSet::new();
    for _ in 0..REQUESTS {
        let url = gateway.url("/readyz");
        requests.spawn(async move { crate::support::server::client().get(url).send().await });
    }
    while let Some(answer) = requests.join_next().await {
        assert_eq!(answer.unwrap().unwrap().status(), StatusCode::OK);
    }
    let made = probes().await - before;
    assert!((1..REQUESTS / 2).contains(&made), "{made} checks for {REQUESTS} requests");
}
