//! How many cases a long property test plays: a tenth, or all of them where
//! `FEEDGATE_TEST_FULL` is set (`tests/run --full`).

/// `full`, or a tenth of it.
pub(crate) fn cases(full: usize) -> usize {
    if is_full() { full } else { full / 10 }
}

/// Whether long property tests run in full.
pub(crate) fn is_full() -> bool {
    #[expect(clippy::disallowed_methods, reason = "it is the test runner that sets it")]
    std::env::var("FEEDGATE_TEST_FULL").is_ok_and(|value| value == "1")
}
