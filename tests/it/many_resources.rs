//! Many resources on one node: what is due is begun at once, and memory stays flat. A
//! smaller crowd than that of `cargo bench --bench polling`, as dense.

#[path = "../bench/polling/crowd.rs"]
#[expect(dead_code, reason = "the benchmark polls without a course, too")]
mod scene;

#[path = "../bench/polling/origin.rs"]
mod origin;

use std::time::Duration;

use chrono::TimeDelta;
use tokio::net::TcpListener;

use self::scene::{Crowd, WorkTime};
use crate::store::on_both_stores;
use crate::support::postgres::Database;

on_both_stores!(p48_what_is_due_is_begun_within_a_second);

/// As many a second as 100,000 an hour.
const APART: Duration = Duration::from_millis(36);
const MANY: usize = 1_000;
/// Memory may grow by this much once everything runs, in kilobytes: caches fill.
const MOST_GROWTH_KB: usize = 48 * 1_024;

async fn p48_what_is_due_is_begun_within_a_second(database: Database) {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = tokio::spawn(origin::serve(listener));
    let crowd = Crowd::gather(database.url.clone(), port).await.unwrap();
    crowd.watch("", (MANY, MANY / 4), APART).await.unwrap();

    // The documents first, and an hour later whether they changed. The clock stands still while
    // polls run, so a late one is one that a claim passed over, not one of a busy machine.
    let (begin, hour) = (scene::start(), TimeDelta::hours(1));
    for (from, to) in [
        (begin, begin + TimeDelta::seconds(40)),
        (begin + hour, begin + hour + TimeDelta::minutes(7)),
    ] {
        let course = crowd.pass(from, to, WorkTime::Ignored).await.unwrap();
        assert_eq!(course.late_ms.len(), MANY, "each is polled once");
        let late_ms = course.quantile_ms(0.99);
        assert!(late_ms < 1_000, "p99 is {late_ms} ms: {course:?}");
        let (first, last) = (course.memory_kb[2], course.memory_kb.last().unwrap());
        assert!(*last < first + MOST_GROWTH_KB, "memory grows: {:?} kB", course.memory_kb);
    }
    serving.abort();
}
