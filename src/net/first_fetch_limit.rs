//! Limits the first fetches of resources that anybody may request, by the addresses of their hosts
//! and the networks around them (rule S26).
//!
//! A server may have any number of names, each of which has turns of its own (`politeness`). So
//! those who turn this gateway on a server with hundreds of names for it share one limit.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ipnet::IpNet;
use tokio::time::Instant;

use feedgate_core::address_rules::address_and_network;

/// The first fetches from one address: some services have thousands of feeds at one address.
const OF_ADDRESS: Rate = Rate { burst: 60, interval: Duration::from_secs(1) };
/// The first fetches from a network.
const OF_NETWORK: Rate = Rate { burst: 120, interval: Duration::from_millis(500) };
/// The maximum number of addresses and networks that are remembered.
const MOST: usize = 20_000;

/// So many at the same time, and then one per interval.
#[derive(Clone, Copy, Debug)]
struct Rate {
    burst: u32,
    interval: Duration,
}

/// The recent first fetches.
#[derive(Debug, Default)]
pub(super) struct FirstFetchLimit {
    /// When all fetches from each network will have been paid for, one per interval.
    paid_at: Mutex<HashMap<IpNet, Instant>>,
}

impl FirstFetchLimit {
    /// Counts a fetch from a host with these addresses. The error is the time after which it may be
    /// requested again.
    pub(super) fn admit(&self, addresses: &[IpAddr]) -> Result<(), Duration> {
        let now = Instant::now();
        let networks = addresses.iter().flat_map(|ip| address_and_network(*ip));
        let mut networks: Vec<IpNet> = networks.collect();
        networks.sort_unstable();
        networks.dedup();

        let mut paid_at = self.paid_at.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = |net: &IpNet| {
            let owed = paid_at.get(net)?.saturating_duration_since(now);
            let rate = rate(net);
            owed.checked_sub(rate.interval * (rate.burst - 1)).filter(|wait| !wait.is_zero())
        };
        if let Some(wait) = networks.iter().filter_map(wait).max() {
            return Err(wait);
        }
        if paid_at.len() + networks.len() > MOST {
            forget(&mut paid_at, now);
        }
        for net in networks {
            let at = paid_at.entry(net).or_insert(now);
            *at = (*at).max(now) + rate(&net).interval;
        }
        Ok(())
    }
}

fn rate(net: &IpNet) -> Rate {
    if net.prefix_len() == net.max_prefix_len() { OF_ADDRESS } else { OF_NETWORK }
}

/// Forgets what is paid for, and if that is too little, the half that is paid for first.
fn forget(paid_at: &mut HashMap<IpNet, Instant>, now: Instant) {
    paid_at.retain(|_, at| *at > now);
    if paid_at.len() > MOST / 2 {
        let mut times: Vec<Instant> = paid_at.values().copied().collect();
        times.sort_unstable();
        let middle = times[times.len() / 2];
        paid_at.retain(|_, at| *at > middle);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn t03_hundreds_of_names_share_the_limit_of_their_address() {
        let limit = FirstFetchLimit::default();
        let mut fetches = 0;
        for _ in 0..100 {
            for _name in 0..600 {
                fetches += u32::from(limit.admit(&[ip("8.8.8.8")]).is_ok());
            }
            advance(Duration::from_secs(1)).await;
        }
        assert_eq!(fetches, OF_ADDRESS.burst + 99);
        assert_eq!(limit.admit(&[ip("9.9.9.9")]), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn t03_hundreds_of_addresses_share_the_limit_of_their_network() {
        let limit = FirstFetchLimit::default();
        let address = |n: u32| IpAddr::from([8, 8, 8, (n % 250) as u8]);
        let admitted = (0..600).filter(|n| limit.admit(&[address(*n)]).is_ok()).count();
        assert_eq!(admitted, OF_NETWORK.burst as usize);
        assert_eq!(limit.admit(&[ip("8.8.8.1"), ip("9.9.9.9")]), Err(OF_NETWORK.interval));
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_networks_are_remembered() {
        let limit = FirstFetchLimit::default();
        for n in 0..MOST as u32 {
            limit.admit(&[IpAddr::from((0x0800_0000 + n * 256).to_be_bytes())]).unwrap();
        }
        assert!(limit.paid_at.lock().unwrap().len() <= MOST);
    }
}
