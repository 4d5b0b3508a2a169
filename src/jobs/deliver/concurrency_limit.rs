//! The number of deliveries that one host receives at the same time, learned from its responses.
//!
//! The limit grows while the host responds quickly and all of its permits are in use, and halves
//! when the host reports or shows that it is overloaded: a 429, a 503, a 504, a timeout, or a
//! latency that has grown to several times what it was. This is TCP's additive increase and
//! multiplicative decrease (RFC 5681), with its slow start until the first decrease.
//!
//! A host may have thousands of callbacks of different owners. So a timeout or a late response is a sign
//! of the callback alone, and not of its host, if the callback was slow before, or if the host has
//! accepted another delivery quickly meanwhile.

use std::time::{Duration, Instant};

/// The limit of a host of which nothing is known yet.
const INITIAL: usize = 8;
/// How long a request may take before it is slow: longer than most callbacks take, and short enough that
/// a quick one can wait for the end of one and be sent within a second.
pub(super) const SLOW_AFTER: Duration = Duration::from_millis(500);
/// The weight of one response in the smoothed latency.
const SMOOTHING: f64 = 0.1;
/// A smoothed latency this many times the lowest one means that requests queue at the host.
const GROWN: f64 = 4.0;
/// Latencies below this are never taken for overload: on this scale they are noise.
const NOISE_S: f64 = 0.1;
/// How much the lowest latency is raised with each response, so that it follows a host that has
/// become slower for good.
const DRIFT: f64 = 1.002;

/// The concurrency limit of one host.
#[derive(Clone, Debug)]
pub(super) struct ConcurrencyLimit {
    current: usize,
    ceiling: usize,
    /// The responses since the limit last grew.
    responses: usize,
    /// The smoothed latency and the lowest value it had, in seconds.
    latency_s: Option<(f64, f64)>,
    halved_at: Option<Instant>,
    /// When the host last accepted a delivery quickly.
    quick_at: Option<Instant>,
}

/// The result of one attempt as a sign of the load of its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostResponse {
    /// The host accepted the delivery.
    Accepted,
    /// The host states that it is overloaded.
    Overloaded,
    /// The callback did not respond in time.
    TimedOut,
    /// The attempt failed in a way that is no sign of the host's load.
    Failed,
}

/// One attempt to deliver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    pub(super) response: HostResponse,
    pub(super) begun: Instant,
    pub(super) took: Duration,
}

/// What was known while an attempt was in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct AttemptContext {
    /// Whether all permits of the host were in use.
    pub(super) was_full: bool,
    /// Whether the callback was slow before.
    pub(super) is_known_slow: bool,
}

impl ConcurrencyLimit {
    /// Creates a limit that never exceeds `ceiling`.
    pub(super) fn new(ceiling: usize) -> ConcurrencyLimit {
        let ceiling = ceiling.max(1);
        ConcurrencyLimit {
            current: INITIAL.min(ceiling),
            ceiling,
            responses: 0,
            latency_s: None,
            halved_at: None,
            quick_at: None,
        }
    }

    /// Returns how many deliveries may be in progress at the same time; at least 1.
    pub(super) fn current(&self) -> usize {
        self.current
    }

    /// Returns what the limit never exceeds.
    pub(super) fn ceiling(&self) -> usize {
        self.ceiling
    }

    /// Returns whether the limit of the host is lower than that of an unknown host.
    pub(super) fn is_reduced(&self) -> bool {
        self.current < INITIAL.min(self.ceiling)
    }

    /// Returns the smoothed latency of accepted deliveries, if one is known.
    pub(super) fn latency(&self) -> Option<Duration> {
        self.latency_s.map(|(smoothed, _)| Duration::from_secs_f64(smoothed))
    }

    /// Learns from an attempt that has just ended.
    pub(super) fn observe(&mut self, attempt: &Attempt, context: AttemptContext) {
        let is_accepted = attempt.response == HostResponse::Accepted;
        let is_quick = attempt.took <= SLOW_AFTER;
        let was_others_quick = self.quick_at.is_some_and(|quick_at| quick_at > attempt.begun);
        if is_accepted && is_quick {
            self.quick_at = self.quick_at.max(Some(attempt.begun + attempt.took));
        }
        let is_of_callback_alone = !is_quick && (context.is_known_slow || was_others_quick);
        if is_of_callback_alone && attempt.response != HostResponse::Overloaded {
            return;
        }
        let is_congested = is_accepted && self.has_latency_grown(attempt.took);
        let is_overloaded =
            matches!(attempt.response, HostResponse::Overloaded | HostResponse::TimedOut);
        if is_congested || is_overloaded {
            self.halve(attempt);
        } else if is_accepted && context.was_full && is_quick {
            self.grow();
        }
    }

    fn has_latency_grown(&mut self, took: Duration) -> bool {
        let took_s = took.as_secs_f64();
        let (smoothed, lowest) = self.latency_s.unwrap_or((took_s, took_s));
        let smoothed = smoothed + SMOOTHING * (took_s - smoothed);
        let lowest = (lowest * DRIFT).min(smoothed);
        self.latency_s = Some((smoothed, lowest));
        smoothed > NOISE_S && smoothed > GROWN * lowest
    }

    /// Halves the limit, once for all attempts that were in progress together: attempts that began
    /// before the last decrease give no information about the limit since.
    fn halve(&mut self, attempt: &Attempt) {
        if self.halved_at.is_some_and(|halved_at| attempt.begun < halved_at) {
            return;
        }
        self.current = (self.current / 2).max(1);
        self.responses = 0;
        self.latency_s = None;
        self.halved_at = Some(attempt.begun + attempt.took);
    }

    fn grow(&mut self) {
        self.responses += 1;
        let needed = if self.halved_at.is_none() { 1 } else { self.current };
        if self.responses >= needed && self.current < self.ceiling {
            self.current += 1;
            self.responses = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICKLY: Duration = Duration::from_millis(5);
    const FULL: AttemptContext = AttemptContext { was_full: true, is_known_slow: false };

    fn attempt(response: HostResponse, begun: Instant, took: Duration) -> Attempt {
        Attempt { response, begun, took }
    }

    #[test]
    fn the_limit_grows_to_its_ceiling_while_a_host_accepts_quickly() {
        let (mut limit, begun) = (ConcurrencyLimit::new(32), Instant::now());
        assert_eq!(limit.current(), 8);
        for _ in 0..100 {
            limit.observe(&attempt(HostResponse::Accepted, begun, QUICKLY), FULL);
        }
        assert_eq!(limit.current(), 32);
        assert_eq!(ConcurrencyLimit::new(3).current(), 3, "the ceiling holds from the beginning");
    }

    #[test]
    fn the_limit_stays_where_a_host_is_slow_or_has_permits_left() {
        let (mut limit, begun) = (ConcurrencyLimit::new(32), Instant::now());
        for _ in 0..100 {
            limit.observe(&attempt(HostResponse::Accepted, begun, Duration::from_secs(2)), FULL);
            limit.observe(&attempt(HostResponse::Failed, begun, QUICKLY), FULL);
        }
        let mut other = ConcurrencyLimit::new(32);
        other.observe(
            &attempt(HostResponse::Accepted, begun, QUICKLY),
            AttemptContext { was_full: false, ..FULL },
        );
        assert_eq!((limit.current(), other.current()), (8, 8));
    }

    #[test]
    fn overload_halves_the_limit_once_for_attempts_in_progress_together() {
        let (mut limit, begun) = (ConcurrencyLimit::new(32), Instant::now());
        for _ in 0..8 {
            limit.observe(&attempt(HostResponse::Overloaded, begun, QUICKLY), FULL);
        }
        assert_eq!(limit.current(), 4);
        assert!(limit.is_reduced());
        let later = begun + Duration::from_secs(1);
        for _ in 0..3 {
            limit.observe(&attempt(HostResponse::Overloaded, later, QUICKLY), FULL);
        }
        assert_eq!(limit.current(), 2);
        // After a decrease the limit grows by one after as many responses as the limit.
        let last = later + Duration::from_secs(1);
        limit.observe(&attempt(HostResponse::Accepted, last, QUICKLY), FULL);
        assert_eq!(limit.current(), 2);
        limit.observe(&attempt(HostResponse::Accepted, last, QUICKLY), FULL);
        assert_eq!(limit.current(), 3);
    }

    #[test]
    fn a_latency_that_grows_to_several_times_the_lowest_halves_the_limit() {
        let (mut limit, begun) = (ConcurrencyLimit::new(64), Instant::now());
        for _ in 0..100 {
            limit.observe(&attempt(HostResponse::Accepted, begun, Duration::from_millis(30)), FULL);
        }
        assert_eq!(limit.current(), 64);
        let (later, late) = (begun + Duration::from_secs(1), Duration::from_millis(900));
        for _ in 0..30 {
            limit.observe(&attempt(HostResponse::Accepted, later, late), FULL);
        }
        assert_eq!(limit.current(), 32);
    }

    #[test]
    fn e04_callbacks_that_hang_do_not_reduce_the_limit_of_a_host_that_accepts_others_quickly() {
        let (mut limit, begun) = (ConcurrencyLimit::new(32), Instant::now());
        let hangs = attempt(HostResponse::TimedOut, begun, Duration::from_secs(10));
        let late = attempt(HostResponse::Accepted, begun, Duration::from_secs(9));
        let second = Duration::from_secs(1);
        for n in 1..100 {
            let accepted = attempt(HostResponse::Accepted, begun + second * n, QUICKLY);
            limit.observe(&accepted, AttemptContext { was_full: false, ..FULL });
            limit.observe(&Attempt { begun: begun + second * n - second / 2, ..hangs }, FULL);
            limit.observe(&Attempt { begun: begun + second * n - second / 2, ..late }, FULL);
        }
        assert_eq!(limit.current(), 8);
        let known = AttemptContext { is_known_slow: true, ..FULL };
        limit.observe(&Attempt { begun: begun + second * 200, ..hangs }, known);
        assert_eq!(limit.current(), 8, "it is slow as before");
        limit.observe(&Attempt { begun: begun + second * 200, ..hangs }, FULL);
        assert_eq!(limit.current(), 4, "nothing else was accepted since");
    }
}
