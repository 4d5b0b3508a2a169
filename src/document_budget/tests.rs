//! The budget: what fits, what waits, and what is given back.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc;

use super::*;

const MIB: u64 = 1024 * 1024;
const PATIENCE: Duration = Duration::from_secs(2);

fn large() -> Vec<u8> {
    b"<rss><channel><item><title>High water</title></item>".repeat(100_000)
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_waits_and_is_refused_for_now() {
    let budget = DocumentBudget::new(64 * MIB, 2);
    let first = budget.reserve(Share::LargeBodies, 6 * MIB, PATIENCE).await.unwrap();
    let refused = budget.reserve(Share::LargeBodies, 6 * MIB, PATIENCE).await;
    assert_eq!(refused.unwrap_err(), GatewayBusy::for_now());
    let waiting = tokio::spawn({
        let budget = budget.clone();
        async move { budget.reserve(Share::LargeBodies, 6 * MIB, PATIENCE).await }
    });
    tokio::task::yield_now().await;
    assert_eq!(budget.usage().waiting, 1);
    drop(first);
    let second = waiting.await.unwrap().unwrap();
    assert_eq!(
        budget.usage(),
        BudgetUsage { bytes: 6 * MIB, limit_bytes: 64 * MIB, waiting: 0, parsing: 0 }
    );
    drop(second);
    assert_eq!(budget.usage().bytes, 0);
}

#[tokio::test(start_paused = true)]
async fn large_documents_leave_memory_for_small_ones() {
    let budget = DocumentBudget::new(64 * MIB, 2);
    let document = large();
    let memory = budget.admit(&document, PATIENCE).await.unwrap();
    assert_eq!(budget.usage().bytes, 32 * MIB, "all of its share, which is less than it may take");
    assert!(budget.admit(&document, PATIENCE).await.is_err(), "one at a time");
    assert!(budget.admit(b"<rss><channel/></rss>", PATIENCE).await.is_ok());
    drop(memory);
    assert!(budget.admit(&document, PATIENCE).await.is_ok());
}

#[tokio::test]
async fn a_document_beside_a_small_one_has_memory_of_its_own_and_waits_for_none() {
    let budget = DocumentBudget::new(64 * MIB, 2);
    let small = budget.admit(b"<rss><channel/></rss>", PATIENCE).await.unwrap();
    let held = budget.usage().bytes;
    let beside = small.admit_beside(&large()).await.unwrap();
    assert_eq!((budget.usage().bytes - held, beside.is_large()), (32 * MIB, true));
    assert_eq!(small.admit_beside(&large()).await.unwrap_err(), GatewayBusy::for_now());
}

#[tokio::test]
async fn no_more_documents_are_parsed_than_there_are_parsers_and_half_of_them_large() {
    let budget = DocumentBudget::new(1 << 30, 2);
    let (release, released) = mpsc::channel::<()>();
    let (started, mut starts) = tokio::sync::mpsc::unbounded_channel();
    let memory = budget.admit(&large(), PATIENCE).await.unwrap();
    let first = {
        let (memory, started) = (memory.clone(), started.clone());
        tokio::spawn(async move {
            let work = move || {
                started.send("large").unwrap();
                released.recv().unwrap();
            };
            memory.run_blocking(work).await
        })
    };
    assert_eq!(starts.recv().await, Some("large"));
    let second = tokio::spawn({
        let started = started.clone();
        async move { memory.run_blocking(move || started.send("second large").unwrap()).await }
    });
    let small = budget.admit(b"<rss/>", PATIENCE).await.unwrap();
    let small = small.run_blocking(move || started.send("small").unwrap());
    assert_eq!(small.await, Some(()));
    assert_eq!(starts.recv().await, Some("small"), "the second large one waits");
    assert_eq!(budget.usage().parsing, 1);
    release.send(()).unwrap();
    assert_eq!((first.await.unwrap(), second.await.unwrap()), (Some(()), Some(())));
    assert_eq!(budget.usage().parsing, 0);
}

#[tokio::test]
async fn memory_is_reserved_until_the_work_ends_even_if_nobody_waits_for_it() {
    let budget = DocumentBudget::new(64 * MIB, 1);
    let (release, released) = mpsc::channel::<()>();
    let has_ended = Arc::new(AtomicBool::new(false));
    let memory = budget.admit(b"<rss/>", PATIENCE).await.unwrap();
    let work = {
        let has_ended = Arc::clone(&has_ended);
        move || {
            released.recv().unwrap();
            has_ended.store(true, Ordering::SeqCst);
        }
    };
    let cancelled = timeout(Duration::from_millis(1), memory.run_blocking(work)).await;
    assert!(cancelled.is_err());
    drop(memory);
    assert!(budget.usage().bytes > 0);
    release.send(()).unwrap();
    while budget.usage().bytes > 0 {
        thread::yield_now();
    }
    assert!(has_ended.load(Ordering::SeqCst));
}

#[tokio::test]
async fn s47_work_that_panics_gives_its_memory_and_its_parser_back() {
    let budget = DocumentBudget::new(64 * MIB, 1);
    let memory = budget.admit(b"<rss/>", PATIENCE).await.unwrap();
    assert_eq!(memory.run_blocking(|| panic!("as a test")).await, None::<()>);
    drop(memory);
    assert_eq!(
        budget.usage(),
        BudgetUsage { bytes: 0, limit_bytes: 64 * MIB, waiting: 0, parsing: 0 }
    );
}

#[tokio::test]
async fn a_document_that_turns_out_short_keeps_no_more_memory_than_it_needs() {
    let budget = DocumentBudget::new(1 << 30, 1);
    let decode = || Ok::<_, ()>(b"<rss/>".to_vec());
    let decoded = budget.admit_decoded(10 * MIB, PATIENCE, decode).await.unwrap();
    let (document, memory) = decoded.unwrap().unwrap();
    assert_eq!(document, b"<rss/>");
    assert!(budget.usage().bytes <= 4 * 1024, "{:?}", budget.usage());
    drop(memory);
    assert_eq!(budget.usage().bytes, 0);
}

#[tokio::test(start_paused = true)]
async fn b3_half_of_the_budget_leaves_the_other_half_to_the_rest() {
    let budget = DocumentBudget::new(256 * MIB, 4);
    let half = budget.half();
    for share in Share::ALL {
        let capacity = budget.capacity_bytes(share);
        let mut held = Vec::new();
        while let Ok(reserved) = half.clone().reserve(share, capacity / 8, PATIENCE).await {
            held.push(reserved);
        }
        assert_eq!((held.len(), budget.usage().bytes), (4, capacity / 2), "{share:?}");
        held[0].shrink_to(capacity / 16);
        held.push(half.reserve(share, capacity / 16, PATIENCE).await.unwrap());
        let rest = budget.reserve(share, capacity / 2, PATIENCE).await;
        assert!(rest.is_ok(), "{share:?}");
        drop((held, rest));
        assert!(half.reserve(share, capacity / 2, PATIENCE).await.is_ok(), "all was given back");
    }
    assert_eq!(budget.usage().bytes, 0);
    let limits = |mib| DocumentBudget::new(mib * MIB, 1).half().longest_body(10 * MIB);
    let (small, usual, large) = (limits(64), limits(512), limits(4_096));
    assert_eq!((small, large), (SMALL_BODY_BYTES, 10 * MIB));
    assert!(small < usual && usual < large, "{usual}");
    assert_eq!(budget.longest_body(10 * MIB), 10 * MIB);
}

#[tokio::test]
async fn b3_half_of_the_parsers_for_large_documents_is_left_to_the_rest() {
    let budget = DocumentBudget::new(4 << 30, 4);
    let (release, released) = mpsc::channel::<()>();
    let (started, mut starts) = tokio::sync::mpsc::unbounded_channel();
    let anonymous = budget.half().admit(&large(), PATIENCE).await.unwrap();
    let first = {
        let (memory, started) = (anonymous.clone(), started.clone());
        let work = move || {
            started.send("first").unwrap();
            released.recv().unwrap();
        };
        tokio::spawn(async move { memory.run_blocking(work).await })
    };
    assert_eq!(starts.recv().await, Some("first"));
    let second = {
        let started = started.clone();
        let work = move || started.send("second").unwrap();
        tokio::spawn(async move { anonymous.run_blocking(work).await })
    };
    let known = budget.admit(&large(), PATIENCE).await.unwrap();
    known.run_blocking(move || started.send("of an account").unwrap()).await.unwrap();
    assert_eq!(starts.recv().await, Some("of an account"), "the second waits for the first");
    release.send(()).unwrap();
    assert_eq!((first.await.unwrap(), second.await.unwrap()), (Some(()), Some(())));
}
