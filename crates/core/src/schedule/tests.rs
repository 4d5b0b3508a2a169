//! Tests of the schedule, rule by rule.

use chrono::{DateTime, TimeDelta, Utc};

use super::*;
use crate::polling::Validators;

const BOUNDS: ScheduleBounds = ScheduleBounds { min_period_s: 60, k: K_LEAST };

fn at(hours: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::hours(hours)
}

/// Returns the state of a resource that responds with 304 and has `per_day` new entries.
fn steady(per_day: f64) -> Polling {
    Polling {
        validators: Validators { etag: Some(b"\"1\"".to_vec()), ..Validators::default() },
        rate_at: Some(at(0)),
        last_new: Some(at(0)),
        entries_per_hour: per_day / 24.0,
        ..Polling::default()
    }
}

fn held(polling: Polling) -> ScheduleInput {
    ScheduleInput { kind: ResourceKind::Feed, subscribers: 1, pushed: false, polling }
}

const SAME: PollFinding = PollFinding::NotModified { hint_s: None };

fn planned(polling: Polling, found: &PollFinding) -> PollPlan {
    plan(held(polling), found, &BOUNDS, at(0), 0.5)
}

/// Returns the period of a resource without failures, in seconds, and the word for its reason.
fn period(polling: Polling, bounds: &ScheduleBounds) -> (u32, &'static str) {
    let plan = plan(held(polling), &SAME, bounds, at(0), 0.5);
    (plan.period.as_secs(), plan.period.reason().word())
}

#[test]
fn p12_p13_the_period_follows_the_rate_and_wishes_lengthen_it() {
    let asking = |headers_s, ttl_s| Polling {
        hints: PollingHints { headers_s, ttl_s, ..PollingHints::default() },
        ..steady(100.0)
    };
    let operator = |min_period_s| ScheduleBounds { min_period_s, ..BOUNDS };
    #[rustfmt::skip]
    let cases = [
        ("a silent feed is polled some times a day", steady(0.0),                 BOUNDS,        (18_354, "rate")),
        ("a weekly one",                             steady(1.0 / 7.0),           BOUNDS,        ( 8_866, "rate")),
        ("a busy one is polled often",               steady(100.0),               BOUNDS,        (   335, "rate")),
        ("but not below a feed's floor",             steady(1e6),                 BOUNDS,        (    60, "floor")),
        ("nor below the operator's",                 steady(100.0),               operator(900), (   900, "min_period")),
        ("a publisher's request lengthens",             asking(3_600, 0),            BOUNDS,        ( 3_600, "cache_control")),
        ("the longest counts",                       asking(3_600, 7_200),        BOUNDS,        ( 7_200, "ttl")),
        ("but none shortens",                        asking(5, 0),                BOUNDS,        (   335, "rate")),
    ];
    for (why, polling, bounds, want) in cases {
        assert_eq!(period(polling, &bounds), want, "{why}");
    }
    let other = ScheduleInput { kind: ResourceKind::Other, ..held(steady(1e6)) };
    assert_eq!(plan(other, &SAME, &BOUNDS, at(0), 0.5).period.as_secs(), 300, "what is no feed");
}

#[test]
fn a_short_budget_stretches_periods_and_subscribers_weigh_in() {
    let scarce = ScheduleBounds { k: 4.0 * K_LEAST, ..BOUNDS };
    let of = |subscribers, bounds| {
        let held = ScheduleInput { subscribers, ..held(steady(24.0)) };
        plan(held, &SAME, bounds, at(0), 0.5).period.as_secs()
    };
    let plenty: Vec<u32> = [0, 1, 100, 10_000].map(|n| of(n, &BOUNDS)).to_vec();
    assert_eq!(plenty, [684; 4], "nobody is polled more often for having many subscribers");
    let short: Vec<u32> = [0, 1, 100, 1_000_000].map(|n| of(n, &scarce)).to_vec();
    assert_eq!(short, [2_736, 2_103, 1_155, 711], "but where polls are scarce, less is waited");
    assert_eq!(period(steady(0.0), &scarce), (21_600, "longest"), "six hours all the same");
    for k in [K_LEAST, 2.0 * K_LEAST, 50.0 * K_LEAST] {
        for subscribers in [0, 7] {
            let bounds = ScheduleBounds { k, ..BOUNDS };
            for per_day in [0.0, 1.0, 24.0, 1e6] {
                let held = ScheduleInput { subscribers, ..held(steady(per_day)) };
                let plan = plan(held, &SAME, &bounds, at(0), 0.5);
                let told = plan.demand.period_s(k);
                let off = (told - f64::from(plan.period.as_secs())).abs();
                assert!(off <= 1.0, "{k} {subscribers} {per_day}: {told} {:?}", plan.period);
            }
        }
    }
}

#[test]
fn what_is_silent_for_half_a_year_is_polled_once_a_day() {
    let silent = |days: i64| Polling { last_new: Some(at(-24 * days)), ..steady(0.0) };
    assert_eq!(period(silent(179), &BOUNDS), (18_354, "rate"));
    assert_eq!(period(silent(180), &BOUNDS), (86_400, "silent"));
}

#[test]
fn a_window_that_overran_is_looked_at_sooner() {
    let document = |entries, new| {
        PollFinding::NewRecords(NewRecords {
            kind: ResourceKind::Feed,
            hints: PollingHints::default(),
            entries,
            new,
            dates: Vec::new(),
        })
    };
    #[rustfmt::skip]
    let cases = [
        ("something known is left",            ResourceKind::Feed,    document(10, 9), 1.0, (2_437, "rate")),
        ("everything is new",                  ResourceKind::Feed,    document(10, 10), 1.0, (1_187, "window_overrun")),
        ("two entries are no window",          ResourceKind::Feed,    document(2, 2),  1.0, (3_061, "rate")),
        ("the first document is all new",      ResourceKind::Unknown, document(10, 10), 1.0, (2_375, "rate")),
        ("so few that they are soon gone",     ResourceKind::Feed,    document(10, 0), 240.0 * 24.0, (60, "floor")),
        ("as few, less fast",                  ResourceKind::Feed,    document(3, 0), 24.0 * 24.0, (140, "rate")),
        ("as few, very fast",                  ResourceKind::Feed,    document(3, 0), 24.0 * 50.0, (72, "window")),
    ];
    for (why, kind, found, per_day, want) in cases {
        let held = ScheduleInput { kind, ..held(steady(per_day)) };
        let plan = plan(held, &found, &BOUNDS, at(0), 0.5);
        assert_eq!((plan.period.as_secs(), plan.period.reason().word()), want, "{why}");
    }
    let overrun = planned(steady(1.0), &document(10, 10));
    assert!(overrun.polling.overrun, "it is remembered");
    let after = planned(overrun.polling, &SAME);
    assert!(after.polling.overrun, "until it is known to be over");
    assert!(!planned(after.polling, &document(10, 1)).polling.overrun);
}

#[test]
fn p54_a_server_that_cannot_say_not_modified_is_asked_less() {
    let bounds = ScheduleBounds { min_period_s: 300, ..BOUNDS };
    let cheap = steady(1e6);
    let whole = Polling { validators: Validators::default(), ..steady(1e6) };
    let resent = Polling { resent: true, ..steady(1e6) };
    let large = Polling { body_bytes: 300_000, ..whole.clone() };
    let consents = Polling {
        hints: PollingHints { headers_s: 60, ..PollingHints::default() },
        ..whole.clone()
    };
    #[rustfmt::skip]
    let cases = [
        ("it answers 304",                   cheap,           (300, "min_period")),
        ("it sends no validators",           whole,           (900, "unconditional")),
        ("it has them, and does not look",   resent,          (900, "unconditional")),
        ("and the document is large",        large,         (3_600, "unconditional")),
        ("it says that a minute is enough",  consents,        (300, "min_period")),
    ];
    for (why, polling, want) in cases {
        // A failure changes nothing about the server's support of conditional requests.
        let steps = steps::steady(ResourceKind::Feed, 1, &polling, &bounds, at(0));
        let (period, ..) = steps.finish();
        assert_eq!((period.as_secs(), period.reason().word()), want, "{why}");
    }
}

/// Returns the state of a resource with so many failures, whose period without them is 684 s.
fn failed(failures: u32) -> Polling {
    Polling { failures, ..steady(24.0) }
}

/// Returns the state of a resource that is polled as often as possible.
fn busy() -> Polling {
    steady(24.0 * 100.0)
}

/// Returns the state of a resource that has been failing for a month.
fn dead() -> Polling {
    Polling { failing_since: Some(at(-30 * 24)), ..failed(60) }
}

fn setback(class: FailureClass) -> PollSetback {
    PollSetback { class, retry_after_s: None }
}

fn told(class: FailureClass, secs: u32) -> PollSetback {
    PollSetback { class, retry_after_s: Some(secs) }
}

/// Checks the seconds to the next poll after a failure, and the word for the reason; and that a
/// success resets the failures.
fn stays_away(cases: &[(&str, Polling, PollSetback, u32, &str)]) {
    for (why, polling, setback, want, code) in cases {
        let plan = planned(polling.clone(), &PollFinding::Failure(*setback));
        assert_eq!((plan.period.as_secs(), plan.period.reason().word()), (*want, *code), "{why}");
        let counts = u32::from(setback.class != FailureClass::SlowDown);
        assert_eq!(plan.polling.failures, polling.failures + counts, "{why}");
        let well = planned(plan.polling, &SAME).polling;
        assert_eq!((well.failures, well.gone, well.slow_downs), (0, 0, 0), "{why}");
    }
}

#[test]
fn p25_retry_after_is_a_floor_for_a_day_at_most() {
    use FailureClass::{Server, SlowDown};
    #[rustfmt::skip]
    stays_away(&[
        ("it counts",                          failed(0),  told(Server, 7_200),     7_200, "retry_after"),
        ("for a day at most",                  failed(0),  told(Server, 99_999),   86_400, "retry_after"),
        ("what is longer wins",                failed(9),  told(Server, 7_200),    86_400, "failure_backoff"),
        ("a moment that has passed is none",   failed(0),  told(Server, 0),           684, "failure_backoff"),
        ("with a 429 too",                     busy(),     told(SlowDown, 7_200),   7_200, "retry_after"),
    ]);
}

#[test]
fn p26_a_slow_down_is_ten_minutes_doubled_and_no_sign_of_death() {
    use FailureClass::SlowDown;
    let again = |slow_downs| Polling { slow_downs, ..busy() };
    #[rustfmt::skip]
    stays_away(&[
        ("no ladder",              failed(3),  told(SlowDown, 60),        684, "rate"),
        ("ten minutes at least",   busy(),     setback(SlowDown),         600, "slow_down"),
        ("doubling",               again(2),   setback(SlowDown),       2_400, "slow_down"),
        ("to six hours",           again(99),  setback(SlowDown),      21_600, "slow_down"),
    ]);
}

#[test]
fn p29_each_failure_doubles_the_wait_up_to_a_day() {
    use FailureClass::{Denied, Lookup, Missing, Network, Server, Tls};
    #[rustfmt::skip]
    stays_away(&[
        ("the first time, the period",          failed(0),  setback(Server),      684, "failure_backoff"),
        ("but five minutes",                    busy(),     setback(Network),     300, "failure_backoff"),
        ("each time doubles",                   failed(3),  setback(Server),    5_472, "failure_backoff"),
        ("up to a day",                         failed(60), setback(Missing),  86_400, "failure_backoff"),
        ("a silent resolver is not its fault",  dead(),     setback(Lookup),   86_400, "failure_backoff"),
        ("what people must mend gets an hour",  failed(0),  setback(Tls),       3_600, "failure_backoff"),
        ("credentials too",                     busy(),     setback(Denied),    3_600, "failure_backoff"),
    ]);
}

#[test]
fn p30_nothing_is_given_up_for_ever() {
    use FailureClass::{Gone, Missing, Network, NoName};
    let gone = Polling { failing_since: Some(at(-48)), gone: 2, ..failed(60) };
    let never = Polling::default();
    #[rustfmt::skip]
    stays_away(&[
        ("after a month, once a week",      dead(), setback(Missing),   604_800, "dead"),
        ("also without a name",             dead(), setback(NoName),    604_800, "dead"),
        ("what is gone, once a month",      gone,   setback(Gone),    2_592_000, "gone"),
        ("nor what was never reached",      never,  setback(Network),       684, "failure_backoff"),
    ]);
}

#[test]
fn p31_a_broken_document_is_asked_for_again_within_six_hours() {
    use FailureClass::Unusable;
    #[rustfmt::skip]
    stays_away(&[
        ("the first time",       failed(0), setback(Unusable),     684, "failure_backoff"),
        ("six hours at most",    failed(9), setback(Unusable),  21_600, "failure_backoff"),
        ("even after a month",   dead(),    setback(Unusable),  21_600, "failure_backoff"),
    ]);
}

#[test]
fn p44_jitter_is_a_tenth_and_never_undercuts_a_promise() {
    let next = |polling: &Polling, found: &PollFinding, jitter| {
        (plan(held(polling.clone()), found, &BOUNDS, at(0), jitter).next_fetch - at(0))
            .num_seconds()
    };
    let hourly = steady(K_LEAST * K_LEAST * 24.0);
    let hints = PollingHints { ttl_s: 3_600, ..PollingHints::default() };
    let promised = Polling { hints, ..steady(24.0) };
    let seldom = Polling { last_new: Some(at(-24 * 400)), ..steady(0.0) };
    let failing = Polling { failures: 3, ..steady(24.0) };
    let failure =
        PollFinding::Failure(PollSetback { class: FailureClass::Server, retry_after_s: None });
    #[rustfmt::skip]
    let cases = [
        ("a tenth to either side",              &hourly,   &SAME,    (3_240, 3_960)),
        ("nothing below what a publisher asked", &promised, &SAME,   (3_600, 3_960)),
        ("half an hour at most",                &seldom,   &SAME,    (84_600, 88_200)),
        ("p29 a fifth after failures",          &failing,  &failure, (4_377, 6_566)),
    ];
    for (why, polling, found, (first, last)) in cases {
        assert_eq!((next(polling, found, 0.0), next(polling, found, 1.0)), (first, last), "{why}");
    }
}

#[test]
fn p44_what_was_first_read_together_does_not_stay_in_step() {
    let polling = Polling { validators: steady(1.0).validators, ..Polling::default() };
    let document = NewRecords {
        kind: ResourceKind::Feed,
        hints: PollingHints::default(),
        entries: 1,
        new: 1,
        dates: vec![at(-24)],
    };
    let bounds = ScheduleBounds { min_period_s: 300, ..BOUNDS };
    let next = |jitter| {
        let held = ScheduleInput { kind: ResourceKind::Unknown, ..held(polling.clone()) };
        plan(held, &PollFinding::NewRecords(document.clone()), &bounds, at(0), jitter)
    };
    let period = i64::from(next(0.5).period.as_secs());
    let span = |jitter| (next(jitter).next_fetch - at(0)).num_seconds();
    assert_eq!((span(0.0), span(1.0)), (300, period), "from the floor to the whole period");
}

#[test]
fn p53_what_is_pushed_is_polled_once_a_day_and_failures_count_all_the_same() {
    let pushed = |polling| ScheduleInput { pushed: true, ..held(polling) };
    let plan =
        |held: ScheduleInput, found: &PollFinding| super::plan(held, found, &BOUNDS, at(0), 0.5);
    let same = PollFinding::NotModified { hint_s: None };
    let daily = plan(pushed(steady(100.0)), &same).period;
    assert_eq!((daily.as_secs(), daily.reason().word()), (86_400, "push_backup"));
    let polled = plan(held(steady(100.0)), &same).period;
    assert!(polled.as_secs() < 86_400);
}

/// Polls a resource whose next poll is planned in two hours again and again, and returns how long after
/// the first of these polls the next one is planned then, in minutes, and how many failures count.
fn polled_again(setbacks: &[PollSetback]) -> (i64, u32) {
    let mut polling = Polling { planned_at: Some(at(2)), ..steady(24.0) };
    for (n, setback) in (0..).zip(setbacks) {
        let now = at(0) + TimeDelta::seconds(n);
        let plan = plan(held(polling), &PollFinding::Failure(*setback), &BOUNDS, now, 0.5);
        polling = Polling { planned_at: Some(plan.next_fetch), ..plan.polling };
    }
    ((polling.planned_at.unwrap() - at(0)).num_minutes(), polling.failures)
}

#[test]
fn h02_p29_polls_ahead_of_the_plan_do_not_lengthen_the_wait() {
    use FailureClass::{Denied, Gone, Lookup, Missing, Network, NoName, Server, Tls, Unusable};
    for class in [Denied, Gone, Lookup, Missing, Network, NoName, Server, Tls, Unusable] {
        let once = polled_again(&[setback(class)]);
        assert_eq!(polled_again(&[setback(class); 9]), once, "{class:?}");
        assert!(once.0 <= 120 && once.1 == 1, "{class:?}: {once:?}");
    }
    let mixed = [Server, Gone, Missing, Network, Server, Gone].map(setback);
    assert_eq!(polled_again(&mixed), (11, 1));
    let gone = plan(held(steady(24.0)), &PollFinding::Failure(setback(Gone)), &BOUNDS, at(0), 0.5);
    let since = Polling { failing_since: Some(at(-90)), planned_at: Some(at(9)), ..gone.polling };
    let again = plan(held(since), &PollFinding::Failure(setback(Gone)), &BOUNDS, at(1), 0.5);
    assert_eq!(again.polling.gone, 1, "the planned poll confirms that a resource is gone");
}

#[test]
fn h02_p25_a_server_is_left_alone_for_as_long_as_it_requested() {
    let planned = Polling { planned_at: Some(at(2)), ..steady(24.0) };
    let found = PollFinding::Failure(told(FailureClass::Server, 3 * 3_600));
    let plan = plan(held(planned), &found, &BOUNDS, at(0), 0.5);
    assert!(plan.next_fetch >= at(3), "{}", plan.next_fetch);
    let left_alone = |hours| plan.polling.left_alone_after(at(hours));
    assert_eq!([left_alone(0), left_alone(2), left_alone(3)], [Some(at(3)), Some(at(3)), None]);
    assert_eq!(left_alone(-30), None, "the clock was wrong");
    assert_eq!(planned_again(plan.polling).left_alone_until, None, "it is over");
}

fn planned_again(polling: Polling) -> Polling {
    plan(held(polling), &SAME, &BOUNDS, at(4), 0.5).polling
}

#[test]
fn a_rate_that_nothing_tells_is_told_as_an_assumption() {
    let page = |new| PollFinding::NewRecords(NewRecords::of_other(0, new));
    let told = |plan: &PollPlan| plan.period.reason().to_string();
    let first = planned(Polling::default(), &page(0));
    assert!(told(&first).contains("one change a day is assumed"), "{}", told(&first));
    let again = planned(first.polling, &SAME);
    assert!(told(&again).contains("one change a day is assumed"), "{}", told(&again));
    let changed = planned(again.polling, &page(1));
    assert!(told(&changed).contains("the resource publishes about"), "{}", told(&changed));
}
