//! The memory for documents that take many times their length, on a machine with other things to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::program::{LOOK_AGAIN, Program};
use super::publisher::Publisher;
use super::{AnyError, Finding, floods};

/// Calls that name large documents, each at an address of its own.
const CALLS: usize = 120;
/// The budget of documents in memory on a machine with 1 GiB, and the bound of all memory then.
const DOCUMENT_MEMORY: (&str, &str) = ("FEEDGATE_DOCUMENT_MEMORY_BYTES", "268435456");
const MOST_MIB: f64 = 512.0;
const SLOWEST_HEALTH: Duration = Duration::from_secs(1);
/// The worst documents of each kind: lists of JSON, elements without and with text, text that grows when it
/// is escaped, and pages.
const SHAPES: [&str; 7] =
    ["/numbers", "/objects", "/values", "/elements", "/parts", "/tags", "/page"];
/// Threads for each processor that keep the machine busy.
const BUSY_THREADS: usize = 2;

/// Threads that compute until this is dropped.
struct BusyMachine(Arc<AtomicBool>);

impl BusyMachine {
    fn start() -> BusyMachine {
        let is_over = Arc::new(AtomicBool::new(false));
        let processors = thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..BUSY_THREADS * processors {
            let is_over = Arc::clone(&is_over);
            thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        BusyMachine(is_over)
    }
}

impl Drop for BusyMachine {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Registrations that name documents which take many times their length to read.
pub(crate) async fn attack(publisher: &Publisher) -> Result<Vec<Finding>, AnyError> {
    let mut findings = vec![flood(publisher, "an idle machine").await?];
    let _busy = BusyMachine::start();
    findings.push(flood(publisher, "a busy machine").await?);
    Ok(findings)
}

async fn flood(publisher: &Publisher, machine: &str) -> Result<Finding, AnyError> {
    let folder = tempfile::tempdir()?;
    let gateway = floods::start(folder.path(), &[DOCUMENT_MEMORY]).await?;
    let mut calls = JoinSet::new();
    for number in 0..CALLS {
        let topic = publisher.url(3, number, SHAPES[number % SHAPES.len()]);
        let body: String = url::form_urlencoded::byte_serialize(topic.as_bytes()).collect();
        let form = format!("port=1&path=/&protocol=http-post&url1={body}");
        let request = gateway.client().post(format!("{}/rsscloud/pleaseNotify", gateway.url()));
        let request =
            request.header("content-type", "application/x-www-form-urlencoded").body(form);
        calls.spawn(request.send());
    }
    let all = async {
        while let Some(call) = calls.join_next().await {
            call??;
        }
        Ok::<_, AnyError>(())
    };
    let mut slowest = Duration::ZERO;
    tokio::select! {
        ended = all => ended?,
        failed = watch_health(&gateway, &mut slowest) => failed?,
    }
    let peak = gateway.memory_mib("VmHWM")?;
    Ok(Finding {
        attack: format!("{CALLS} registrations that name documents of 9.6 MB, on {machine}"),
        measured: format!(
            "{peak:.0} MiB of memory at the peak; /livez responds after up to {} ms",
            slowest.as_millis()
        ),
        bound: format!("{MOST_MIB} MiB, {} ms", SLOWEST_HEALTH.as_millis()),
        is_held: peak < MOST_MIB && slowest < SLOWEST_HEALTH,
    })
}

/// Requests `/livez` again and again, and stores the longest time that a response took.
async fn watch_health(gateway: &Program, slowest: &mut Duration) -> Result<(), AnyError> {
    let url = format!("{}/livez", gateway.url());
    loop {
        let begun = Instant::now();
        gateway.client().get(&url).send().await?.bytes().await?;
        *slowest = begun.elapsed().max(*slowest);
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
