//! What a subscription is owed, as conditions of statements.
//!
//! The cursor is the only truth of what is owed. A subscription is owed something if its cursor is behind
//! the log of its resource, or the version of the status that it has acknowledged is an older one; it is
//! ready if it is not paused, its lease has not ended and it does not wait for a retry.

/// The version of the status of a resource `r` that a subscription `s` is owed (`Statuses::version`).
macro_rules! status_owed {
    () => {
        "case s.statuses when 'always' then r.status_version
                         when 'transitions' then r.announced_status_version else 0 end"
    };
}
pub(crate) use status_owed;

/// The number of the newest record or body of a resource `r` that a subscription `s` is owed.
macro_rules! owed {
    () => {
        "case when s.format = 'raw' then r.body_version else r.head end"
    };
}
pub(crate) use owed;

/// The condition that a subscription `s` to a resource `r` is owed something.
macro_rules! is_owed {
    () => {
        concat!(
            "(s.cursor < ",
            $crate::delivery::owed::owed!(),
            " or s.acknowledged_status < ",
            $crate::delivery::owed::status_owed!(),
            ")"
        )
    };
}
pub(crate) use is_owed;

/// The value of `retry_at` of a subscription that waits for the next change. When the clock is set, it moves
/// with the others, so that it is compared with [`next_change!`].
pub(crate) const WITH_NEXT_CHANGE: i64 = 1 << 62;

/// What `retry_at` of a subscription that waits for the next change exceeds.
macro_rules! next_change {
    () => {
        "4000000000000000000"
    };
}
pub(crate) use next_change;

/// The condition that a subscription `s` to a resource `r` is owed something at the time `$now`, and not
/// paused.
macro_rules! is_active {
    ($now:literal) => {
        concat!(
            "s.lease_until > ",
            $now,
            " and s.paused_at is null and ",
            $crate::delivery::owed::is_owed!()
        )
    };
}
pub(crate) use is_active;

/// The condition that an active subscription `s` waits for no retry: nothing failed, or the log has grown
/// since it did, and it waits for that.
macro_rules! is_not_retried {
    () => {
        concat!(
            "(s.retry_at is null or (s.retry_at > ",
            $crate::delivery::owed::next_change!(),
            " and s.failed_upto < ",
            $crate::delivery::owed::owed!(),
            "))"
        )
    };
}
pub(crate) use is_not_retried;

/// The condition that a subscription `s` to a resource `r` may be sent what it is owed at the time `$now`.
macro_rules! is_ready {
    ($now:literal) => {
        concat!(
            $crate::delivery::owed::is_active!($now),
            " and (s.retry_at <= ",
            $now,
            " or ",
            $crate::delivery::owed::is_not_retried!(),
            ")"
        )
    };
}
pub(crate) use is_ready;
