//! The loop behind all work: what it takes, when it sleeps, and how it stops. Time is
//! paused; it passes when everybody waits.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use feedgate::jobs::runner::{Job, WorkerConfig, run};
use feedgate_core::store::StoreError;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

const CONFIG: WorkerConfig = WorkerConfig {
    concurrency: 3,
    idle: Duration::from_secs(60),
    shutdown_grace: Duration::from_secs(15),
};

/// Job that waits in a list. Each job ends when it is given leave.
#[derive(Default)]
struct Listed {
    waiting: Mutex<VecDeque<Task>>,
    store_is_down: Mutex<bool>,
    claims: AtomicUsize,
    begun: AtomicUsize,
    done: AtomicUsize,
    changed: Notify,
}

#[derive(Clone)]
enum Task {
    /// Ends when this lets it.
    When(Arc<Semaphore>),
    /// Panics.
    Panic,
}

impl Job for Listed {
    type Item = Task;

    const NAME: &'static str = "listed";
    const WAKE_DELAY: Duration = Duration::from_millis(5);
    const SLOW_LANE: usize = 1;

    async fn claim(&self, limit: usize) -> Result<Vec<Task>, StoreError> {
        self.claims.fetch_add(1, Ordering::SeqCst);
        if *self.store_is_down.lock().unwrap() {
            return Err(StoreError::Closed);
        }
        let mut waiting = self.waiting.lock().unwrap();
        let limit = limit.min(waiting.len());
        Ok(waiting.drain(..limit).collect())
    }

    async fn perform(&self, job: Task) -> Result<(), StoreError> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        self.changed.notify_waiters();
        match job {
            Task::When(leave) => leave.acquire().await.unwrap().forget(),
            Task::Panic => panic!("a job that panics"),
        }
        self.done.fetch_add(1, Ordering::SeqCst);
        self.changed.notify_waiters();
        Ok(())
    }
}

struct Bench {
    work: Arc<Listed>,
    wake_signals: Arc<Notify>,
    stop: CancellationToken,
    worker: JoinHandle<()>,
}

impl Bench {
    fn start(jobs: impl IntoIterator<Item = Task>) -> Bench {
        let work = Arc::new(Listed::default());
        work.waiting.lock().unwrap().extend(jobs);
        let (wake_signals, stop) = (Arc::new(Notify::new()), CancellationToken::new());
        let worker = run(Arc::clone(&work), CONFIG, Arc::clone(&wake_signals), stop.clone());
        Bench { work, wake_signals, stop, worker: tokio::spawn(worker) }
    }

    /// Starts a worker that has found nothing to do.
    async fn start_idle() -> Bench {
        let bench = Bench::start([]);
        bench.until(|work| work.claims.load(Ordering::SeqCst) == 1).await;
        bench
    }

    async fn until(&self, enough: impl Fn(&Listed) -> bool) {
        let wait = async {
            loop {
                let changed = self.work.changed.notified();
                if enough(&self.work) {
                    return;
                }
                // Or a short while: claims notify nobody.
                let _ = timeout(Duration::from_millis(10), changed).await;
            }
        };
        timeout(Duration::from_secs(600), wait).await.expect("it happens in time");
    }
}

fn free() -> Task {
    Task::When(Arc::new(Semaphore::new(1)))
}

#[tokio::test(start_paused = true)]
async fn no_more_jobs_are_in_hand_than_allowed() {
    let leave = Arc::new(Semaphore::new(0));
    let bench = Bench::start((0..8).map(|_| Task::When(Arc::clone(&leave))));
    bench.until(|work| work.begun.load(Ordering::SeqCst) == 3).await;
    assert_eq!(bench.work.waiting.lock().unwrap().len(), 5, "the others wait in the store");
    sleep(Duration::from_secs(120)).await;
    let begun = bench.work.begun.load(Ordering::SeqCst);
    assert_eq!(begun, 6, "three have moved to the slow lane");
    leave.add_permits(8);
    bench.until(|work| work.done.load(Ordering::SeqCst) == 8).await;
}

#[tokio::test(start_paused = true)]
async fn news_wake_it_and_so_does_the_clock() {
    let bench = Bench::start_idle().await;
    for (wake_signals, most) in [(true, Duration::from_secs(1)), (false, CONFIG.idle * 2)] {
        let begun = Instant::now();
        let done = bench.work.done.load(Ordering::SeqCst);
        bench.work.waiting.lock().unwrap().push_back(free());
        if wake_signals {
            bench.wake_signals.notify_one();
        }
        bench.until(|work| work.done.load(Ordering::SeqCst) == done + 1).await;
        assert!(begun.elapsed() <= most, "{:?} with wake_signals: {wake_signals}", begun.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_signalled_during_the_wait_is_claimed_with_the_rest() {
    let bench = Bench::start_idle().await;
    bench.wake_signals.notify_waiters();
    sleep(Listed::WAKE_DELAY / 2).await;
    bench.work.waiting.lock().unwrap().push_back(free());
    bench.wake_signals.notify_waiters();
    assert_eq!(bench.work.claims.load(Ordering::SeqCst), 1);
    sleep(Listed::WAKE_DELAY * 4).await;
    // The second claim finds the job, and the third one nothing more.
    let (claims, done) = (&bench.work.claims, &bench.work.done);
    assert_eq!((claims.load(Ordering::SeqCst), done.load(Ordering::SeqCst)), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_waits_after_a_signal_stops_at_once() {
    let bench = Bench::start_idle().await;
    bench.wake_signals.notify_waiters();
    sleep(Listed::WAKE_DELAY / 5).await;
    let begun = Instant::now();
    bench.stop.cancel();
    bench.worker.await.unwrap();
    assert!(begun.elapsed() < Listed::WAKE_DELAY / 2, "{:?}", begun.elapsed());
    assert_eq!(bench.work.claims.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_panics_costs_nothing_but_itself() {
    let bench = Bench::start([Task::Panic, Task::Panic, Task::Panic, Task::Panic, free()]);
    bench.until(|work| work.done.load(Ordering::SeqCst) == 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_down_is_asked_again() {
    let bench = Bench::start([free()]);
    *bench.work.store_is_down.lock().unwrap() = true;
    bench.until(|work| work.claims.load(Ordering::SeqCst) >= 2).await;
    assert_eq!(bench.work.done.load(Ordering::SeqCst), 0);
    *bench.work.store_is_down.lock().unwrap() = false;
    bench.until(|work| work.done.load(Ordering::SeqCst) == 1).await;
}

#[tokio::test(start_paused = true)]
async fn told_to_stop_it_takes_nothing_new_and_finishes_what_it_has() {
    let leave = Arc::new(Semaphore::new(0));
    let bench = Bench::start((0..3).map(|_| Task::When(Arc::clone(&leave))));
    bench.until(|work| work.begun.load(Ordering::SeqCst) == 3).await;
    bench.work.waiting.lock().unwrap().push_back(free());
    bench.stop.cancel();
    sleep(Duration::from_secs(5)).await;
    leave.add_permits(3);
    bench.worker.await.unwrap();
    assert_eq!(bench.work.done.load(Ordering::SeqCst), 3);
    assert_eq!(bench.work.waiting.lock().unwrap().len(), 1, "left to whoever starts next");
}

#[tokio::test(start_paused = true)]
async fn what_does_not_finish_in_time_is_left() {
    let bench = Bench::start([Task::When(Arc::new(Semaphore::new(0)))]);
    bench.until(|work| work.begun.load(Ordering::SeqCst) == 1).await;
    let stopped = Instant::now();
    bench.stop.cancel();
    bench.worker.await.unwrap();
    assert_eq!(stopped.elapsed(), CONFIG.shutdown_grace, "rule D17: 15 s");
}
