//! How many previews are made: of the last minute, and in progress.
//!
//! All clients without an account together have half. Of their minute, the last half is for those who have
//! requested little: a few networks that take as much as they can leave something to the next.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::fair_shares::{FairShare, FairShares};
use feedgate_core::registrant::Requester;

/// The maximum number of previews a minute of one account, or of one network without an account: more than
/// somebody looks at.
const PER_MINUTE: usize = 20;
/// The maximum number of all previews a minute, which bounds the memory for counting them.
const ALL_PER_MINUTE: usize = 600;
/// The maximum number of previews a minute without an account.
const ANONYMOUS_PER_MINUTE: usize = ALL_PER_MINUTE / 2;
/// The maximum number of previews a minute of the networks of one provider, without an account.
const OF_PROVIDER_PER_MINUTE: usize = ANONYMOUS_PER_MINUTE / 4;
/// The number of previews a minute that a network without an account may request even if others have used
/// half of the minute.
const RESERVED_PER_MINUTE: usize = 4;
const MINUTE: Duration = Duration::from_secs(60);
/// The maximum number of previews in progress.
const CONCURRENCY: usize = 8;
/// The maximum number of previews in progress without an account.
const ANONYMOUS_CONCURRENCY: usize = CONCURRENCY / 2;

/// Counts the previews of the last minute, and those in progress.
#[derive(Debug)]
pub(in crate::subscriptions) struct PreviewLimit {
    recent: Mutex<VecDeque<(Instant, Requester)>>,
    places: Arc<Semaphore>,
    anonymous_places: Arc<Semaphore>,
    networks: FairShares<Requester>,
}

/// The place of a preview in progress, until dropped.
#[derive(Debug)]
pub(super) struct PreviewPlace {
    _place: Option<OwnedSemaphorePermit>,
    _anonymous: Option<(FairShare<Requester>, Option<OwnedSemaphorePermit>)>,
}

impl Default for PreviewLimit {
    fn default() -> PreviewLimit {
        PreviewLimit {
            recent: Mutex::default(),
            places: Arc::new(Semaphore::new(CONCURRENCY)),
            anonymous_places: Arc::new(Semaphore::new(ANONYMOUS_CONCURRENCY)),
            networks: FairShares::new(ANONYMOUS_CONCURRENCY as u64),
        }
    }
}

impl PreviewLimit {
    /// Counts a preview. The error is the time after which one is possible.
    pub(super) fn admit(&self, requester: Requester, now: Instant) -> Result<(), Duration> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        while recent.front().is_some_and(|(at, _)| *at + MINUTE <= now) {
            recent.pop_front();
        }
        let own = recent.iter().filter(|(_, held)| *held == requester);
        let own_count = own.clone().count();
        let anonymous = recent.iter().filter(|(_, held)| !held.is_account());
        let provider = requester.network().of_provider();
        let of_provider =
            anonymous.clone().filter(|(_, held)| held.network().of_provider() == provider);
        let most = match own_count {
            0..RESERVED_PER_MINUTE => ANONYMOUS_PER_MINUTE,
            _ => ANONYMOUS_PER_MINUTE / 2,
        };
        let oldest = match requester.is_account() {
            _ if own_count >= PER_MINUTE => own.clone().next(),
            _ if recent.len() >= ALL_PER_MINUTE => recent.front(),
            true => None,
            false if of_provider.clone().count() >= OF_PROVIDER_PER_MINUTE => {
                of_provider.clone().next()
            }
            false if anonymous.clone().count() >= most => anonymous.clone().next(),
            false => None,
        };
        if let Some((at, _)) = oldest {
            return Err((*at + MINUTE - now).max(Duration::from_secs(1)));
        }
        recent.push_back((now, requester));
        Ok(())
    }

    /// Counts the last preview of `requester` no longer: it was refused for another reason.
    pub(super) fn give_back(&self, requester: Requester) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = recent.iter().rposition(|(_, held)| *held == requester) {
            recent.remove(at);
        }
    }

    /// Waits for a place. One without an account waits for others without one first.
    pub(super) async fn enter(&self, requester: Requester) -> PreviewPlace {
        let anonymous = match requester.is_account() {
            true => None,
            false => {
                let share = self.networks.enter(requester, 1).await;
                Some((share, Arc::clone(&self.anonymous_places).acquire_owned().await.ok()))
            }
        };
        // The semaphores are never closed.
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        PreviewPlace { _place: place, _anonymous: anonymous }
    }
}

#[cfg(test)]
mod tests {
    use feedgate_core::account::AccountId;
    use feedgate_core::registrant::RegistrantNetwork;
    use tokio::time::timeout;

    use super::*;

    fn account(number: i64) -> Requester {
        Requester::new(Some(AccountId(number)), RegistrantNetwork::UNKNOWN)
    }

    fn network(client: [u8; 4]) -> Requester {
        Requester::new(None, RegistrantNetwork::from_client(Some(client.into())))
    }

    #[test]
    fn an_account_may_request_some_previews_a_minute() {
        let (limit, began) = (PreviewLimit::default(), Instant::now());
        let admit =
            |number, after_s| limit.admit(account(number), began + Duration::from_secs(after_s));
        for n in 0..PER_MINUTE {
            assert_eq!(admit(1, n as u64), Ok(()));
        }
        assert_eq!(admit(1, 30), Err(Duration::from_secs(30)));
        assert_eq!(admit(2, 30), Ok(()), "another account");
        assert_eq!(admit(1, 60), Ok(()), "the first is a minute ago");
        assert_eq!(admit(1, 60), Err(Duration::from_secs(1)));
        for n in 0..ALL_PER_MINUTE {
            let _ = admit(100 + n as i64, 200);
        }
        assert_eq!(admit(3, 210), Err(Duration::from_secs(50)), "all accounts together");
    }

    #[test]
    fn clients_without_an_account_leave_half_of_the_previews_to_accounts() {
        let (limit, now) = (PreviewLimit::default(), Instant::now());
        let admitted =
            |n| (0..100).filter(|_| limit.admit(network([n, 18, 0, 1]), now).is_ok()).count();
        assert_eq!(admitted(0), PER_MINUTE, "one network");
        let all: usize = (1..100).map(admitted).sum();
        assert_eq!(PER_MINUTE + all, ANONYMOUS_PER_MINUTE);
        assert_eq!(limit.admit(account(1), now), Ok(()));
    }

    #[test]
    fn b7_a_few_networks_leave_previews_to_the_others() {
        let (limit, now) = (PreviewLimit::default(), Instant::now());
        let admitted =
            |client| (0..100).filter(|_| limit.admit(network(client), now).is_ok()).count();
        let of_one_provider: usize = (0..100).map(|n| admitted([9, 9, n, 1])).sum();
        assert_eq!(of_one_provider, OF_PROVIDER_PER_MINUTE);
        let of_some: usize = (10..24).map(|n| admitted([n, 0, 0, 1])).sum();
        assert!(of_some > 6 * PER_MINUTE / 2, "{of_some}");
        assert_eq!(admitted([200, 0, 0, 1]), RESERVED_PER_MINUTE, "the sixteenth");
        limit.give_back(network([200, 0, 0, 1]));
        assert_eq!(admitted([200, 0, 0, 1]), 1, "what was refused does not count");
    }

    #[tokio::test(start_paused = true)]
    async fn slow_servers_of_others_keep_no_account_waiting() {
        let limit = PreviewLimit::default();
        let mut held = Vec::new();
        for n in 1..100 {
            held.extend(timeout(MINUTE, limit.enter(network([n, 0, 0, 1]))).await.ok());
        }
        assert_eq!(held.len(), ANONYMOUS_CONCURRENCY);
        for _ in 0..CONCURRENCY - ANONYMOUS_CONCURRENCY {
            held.push(timeout(MINUTE, limit.enter(account(1))).await.unwrap());
        }
        held.clear();
        assert!(timeout(MINUTE, limit.enter(network([1, 0, 0, 1]))).await.is_ok());
    }
}
