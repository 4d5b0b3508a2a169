//! Tests of the backlogs that a node holds.

use super::*;
use crate::delivery::backlogs::ONLY_RETRIES;

const ID: BacklogId = BacklogId { resource: 1, number: 7 };
const TOKEN: ClaimToken = ClaimToken(5);

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
}

fn subscription(number: i64) -> SubscriptionId {
    SubscriptionId { resource: ResourceId(1), number }
}

/// Holds a backlog of which these subscriptions were claimed.
fn hold_backlog(claimed: &[i64], is_at_end: bool) -> Arc<HeldBacklogs> {
    let held = Arc::<HeldBacklogs>::default();
    held.add(vec![read(claimed, is_at_end)], (at(0), at(60)));
    held
}

fn read(claimed: &[i64], is_at_end: bool) -> ReadPortion {
    let after = claimed.last().copied().unwrap_or_default();
    let (host, claimed) = ("callback.test".to_owned(), claimed.to_vec());
    let (is_unreadable, next_retry) = (false, None);
    #[rustfmt::skip]
    let read = ReadPortion {
        id: ID, host, token: TOKEN, after, is_at_end, is_unreadable, next_retry, claimed,
    };
    read
}

fn next_place(held: &Arc<HeldBacklogs>) -> Option<i64> {
    let continued = held.continue_passes(100, at(1), |_| 10);
    continued.portions.first().map(|portion| portion.after)
}

#[test]
fn what_is_given_back_while_a_portion_is_read_is_claimed_again() {
    let held = hold_backlog(&[1, 2, 3], false);
    let continued = held.continue_passes(100, at(1), |_| 10);
    assert_eq!(continued.portions[0].after, 3);
    held.release(&[(subscription(2), TOKEN)], at(1));
    held.add(vec![read(&[4, 5], true)], (at(1), at(60)));
    drop(continued);
    assert_eq!(next_place(&held), Some(1));
}

#[test]
fn a_portion_is_not_read_twice_at_once() {
    let held = hold_backlog(&[1], false);
    let continued = held.continue_passes(100, at(1), |_| 10);
    assert_eq!(continued.portions[0].without.iter().copied().collect::<Vec<_>>(), [1]);
    assert_eq!(next_place(&held), None);
    drop(continued);
    assert_eq!(next_place(&held), Some(1));
}

#[test]
fn a_claim_ends_when_nothing_is_in_hand() {
    let held = hold_backlog(&[1, 2], true);
    let claims = [(subscription(1), TOKEN), (subscription(2), ClaimToken(4))];
    held.begin_storing(&claims);
    let owed_more = [subscription(1)];
    held.end_storing(&claims, Ok(StoredResults { owed_more: &owed_more, retries: &[] }));
    assert_eq!(held.take_ended(), [], "the other result is of an earlier claim");
    held.release(&[(subscription(2), TOKEN)], at(9));
    let [ended] = held.take_ended()[..] else { panic!("the claim has ended") };
    assert!(ended.is_due && ended.is_at_end && ended.again_at.is_none(), "{ended:?}");
    assert_eq!(
        ended.after, 0,
        "the one that is owed more does not wait for the one that was given back"
    );
}

#[test]
fn e08_what_was_given_back_for_later_is_due_at_once_when_hosts_are_handed_over() {
    let held = hold_backlog(&[1, 2], true);
    held.release(&[(subscription(1), TOKEN)], at(9));
    held.end_given_back_pauses(at(2));
    held.release(&[(subscription(2), TOKEN)], at(3));
    let [ended] = held.take_ended()[..] else { panic!("the claim has ended") };
    assert_eq!((ended.after, ended.again_at), (0, Some(at(2))));
}

#[test]
fn e03_times_in_memory_move_with_the_clock() {
    let held = hold_backlog(&[1, 2, 3], false);
    held.release(&[(subscription(2), TOKEN)], at(9));
    for hours in [-6, 12, -6] {
        held.move_times(TimeDelta::hours(hours));
    }
    held.move_times(TimeDelta::hours(-6));
    let now = |seconds| at(seconds) - TimeDelta::hours(6);
    let place = |seconds| {
        let continued = held.continue_passes(100, now(seconds), |_| 10);
        continued.portions.first().map(|portion| portion.after)
    };
    assert_eq!([place(8), place(9), place(60)], [Some(3), Some(1), None]);
}

#[test]
fn a_claim_that_has_expired_is_continued_by_nobody() {
    let held = hold_backlog(&[1], false);
    let continued = held.continue_passes(100, at(60), |_| 10);
    assert!(continued.portions.is_empty());
    assert!(held.at_end(at(60)).claims.is_empty());
}

#[test]
fn a_claim_does_not_end_while_another_pass_may_begin() {
    let held = hold_backlog(&[1], true);
    let at_end = held.at_end(at(1));
    assert_eq!(at_end.claims, [(ID, TOKEN)]);
    held.release(&[(subscription(1), TOKEN)], at(1));
    assert_eq!(held.take_ended(), []);
    held.begin_passes([ID]);
    drop(at_end);
    assert!(held.take_ended()[0].is_due);
}

#[test]
fn what_was_passed_over_while_its_result_was_being_stored_is_looked_at_again() {
    let held = hold_backlog(&[1, 2], true);
    let claims = [(subscription(2), TOKEN)];
    held.begin_storing(&claims);
    // The result is stored, then a change, and the mark of the change begins a pass.
    held.begin_passes([ID]);
    let continued = held.continue_passes(100, at(1), |_| 10);
    assert!(continued.portions[0].without.contains(&2));
    held.add(vec![read(&[], true)], (at(1), at(60)));
    drop(continued);
    held.end_storing(&claims, Ok(StoredResults { owed_more: &[], retries: &[] }));
    assert_eq!(next_place(&held), Some(0));
    held.add(vec![read(&[], true)], (at(1), at(60)));
    assert_eq!(next_place(&held), None, "once");
}

#[test]
fn a_retry_does_not_wait_for_those_that_are_slow() {
    let held = hold_backlog(&[1, 2], true);
    let claims = [(subscription(1), TOKEN)];
    held.begin_storing(&claims);
    let retries = [(subscription(1), at(9))];
    held.end_storing(&claims, Ok(StoredResults { owed_more: &[], retries: &retries }));
    assert!(held.continue_passes(100, at(8), |_| 10).portions.is_empty());
    let continued = held.continue_passes(100, at(9), |_| 10);
    assert_eq!(continued.portions[0].after, ONLY_RETRIES);
}

#[test]
fn what_is_given_back_for_a_while_does_not_hold_up_the_others() {
    let held = hold_backlog(&[1, 2, 3], false);
    held.release(&[(subscription(2), TOKEN)], at(9));
    let continued = held.continue_passes(100, at(1), |_| 10);
    assert!(continued.portions[0].after == 3 && continued.portions[0].without.contains(&2));
    drop(continued);
    let continued = held.continue_passes(100, at(9), |_| 10);
    assert!(continued.portions[0].after == 1 && !continued.portions[0].without.contains(&2));
}
