//! Looking up names with the system's resolver, which occupies a thread until it has an answer.
//!
//! A server of names that does not answer keeps a thread for as long as the resolver tries, long after
//! whoever wanted the answer has given up. These threads belong to the pool that also reads files, so only
//! some of them look up names, and a thread keeps its place until it is done.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::guarded_client::{Lookup, LookupsBusy};
use crate::fair_shares::{FairShare, FairShares};
use feedgate_core::registrant::RegistrantNetwork;

/// The usual time limit of a lookup.
const LIMIT: Duration = Duration::from_secs(5);

/// The system's resolver, with a number of places. Clones share them.
#[derive(Clone, Debug)]
pub struct SystemLookup {
    places: Arc<Semaphore>,
    networks: FairShares<RegistrantNetwork>,
    /// Whose share of the places is taken; `None` if they are not shared.
    network: Option<RegistrantNetwork>,
    patience: Duration,
    resolve: fn(&str) -> io::Result<Vec<IpAddr>>,
}

impl SystemLookup {
    /// Creates a resolver that looks up `places` names at the same time.
    pub fn new(places: usize) -> SystemLookup {
        SystemLookup {
            places: Arc::new(Semaphore::new(places)),
            networks: FairShares::new(places as u64),
            network: None,
            patience: Duration::ZERO,
            resolve,
        }
        .within(LIMIT)
    }

    /// Returns this resolver for lookups that may take so long: they wait for a place a little less long, so
    /// that whoever waits in vain learns that the name is not to blame.
    pub fn within(self, limit: Duration) -> SystemLookup {
        SystemLookup { patience: limit.mul_f64(0.8), ..self }
    }

    /// Returns this resolver for the names of a network, which leaves places to the others.
    pub(super) fn for_network(&self, network: RegistrantNetwork) -> SystemLookup {
        SystemLookup { network: Some(network.routed()), ..self.clone() }
    }

    /// Returns a resolver that finds the addresses of a name with `resolve`.
    #[cfg(test)]
    pub(super) fn for_tests(
        places: usize,
        resolve: fn(&str) -> io::Result<Vec<IpAddr>>,
    ) -> SystemLookup {
        let lookup = SystemLookup::new(places).within(Duration::from_millis(20));
        SystemLookup { resolve, ..lookup }
    }

    /// Waits for a place.
    async fn enter(&self) -> Result<LookupPlace, AcquireError> {
        let share = match self.network {
            Some(network) => Some(self.networks.enter(network, 1).await),
            None => None,
        };
        let place = Arc::clone(&self.places).acquire_owned().await?;
        Ok(LookupPlace { _place: place, _share: share })
    }
}

/// A place, until dropped.
#[derive(Debug)]
struct LookupPlace {
    _place: OwnedSemaphorePermit,
    _share: Option<FairShare<RegistrantNetwork>>,
}

fn resolve(name: &str) -> io::Result<Vec<IpAddr>> {
    Ok((name, 0).to_socket_addrs()?.map(|address| address.ip()).collect())
}

#[async_trait]
impl Lookup for SystemLookup {
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let place = timeout(self.patience, self.enter()).await;
        let Ok(Ok(place)) = place else { return Err(io::Error::other(LookupsBusy)) };
        let (name, resolve) = (name.to_owned(), self.resolve);
        let looked_up = spawn_blocking(move || {
            let _place = place;
            resolve(&name)
        });
        looked_up.await.map_err(io::Error::other)?
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::sync::{LazyLock, Mutex};

    use super::*;

    type End = (Mutex<Option<mpsc::Sender<()>>>, Mutex<mpsc::Receiver<()>>);

    /// Is closed when slow lookups end.
    static END: LazyLock<End> = LazyLock::new(|| {
        let (sender, receiver) = mpsc::channel();
        (Mutex::new(Some(sender)), Mutex::new(receiver))
    });

    #[tokio::test]
    async fn h13_names_that_nobody_answers_for_occupy_so_many_threads_and_no_more() {
        let resolve: fn(&str) -> io::Result<Vec<IpAddr>> = |name| {
            if name == "slow.test" {
                END.1.lock().unwrap().recv().unwrap_err();
            }
            Ok(vec![IpAddr::from([192, 0, 2, 1])])
        };
        let with_places = |places| SystemLookup::for_tests(places, resolve);
        let lookup = with_places(3);
        for _ in 0..3 {
            // Whoever wanted the answer gives up.
            let given_up = timeout(Duration::from_millis(10), lookup.lookup("slow.test")).await;
            assert!(given_up.is_err());
        }
        let busy = lookup.lookup("quick.test").await.unwrap_err();
        assert!(busy.get_ref().unwrap().is::<LookupsBusy>(), "{busy}");
        let others = with_places(1).lookup("quick.test").await;
        assert!(others.is_ok(), "others have places of their own");
        END.0.lock().unwrap().take();
        drop(lookup.places.acquire_many(3).await.unwrap());
        assert!(lookup.lookup("quick.test").await.is_ok());
    }
}
