//! What names lead to, remembered for a minute (rule P49).
//!
//! It is the system that is asked, because only it knows the hosts file, the search list
//! and the resolvers of the place where it runs. It does not tell for how long an answer is
//! good, so all are good for a minute, which is within what the rule allows (30 s to
//! 10 min). The guard judges what comes from here as it judges every answer, at each
//! connection.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use super::guarded_client::{Lookup, is_unknown};

/// For how long an answer is good, and that there is no such name.
const GOOD_FOR: Duration = Duration::from_secs(60);
/// Below this many names none is forgotten before its time; one takes some hundred bytes.
const FORGET_FROM: usize = 16_384;

/// Asks another once a minute for each name. A lookup that failed is not remembered: the
/// next may not.
#[derive(Debug)]
pub(super) struct CachingLookup {
    asked: Arc<dyn Lookup>,
    held: Mutex<HashMap<String, (Instant, Answer)>>,
}

/// Addresses, or why there are none.
type Answer = Result<Vec<IpAddr>, String>;

impl CachingLookup {
    /// Remembers what `asked` answers.
    pub(super) fn new(asked: Arc<dyn Lookup>) -> CachingLookup {
        CachingLookup { asked, held: Mutex::default() }
    }

    fn held(&self) -> std::sync::MutexGuard<'_, HashMap<String, (Instant, Answer)>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, name: &str, answer: Answer) {
        let now = Instant::now();
        let mut held = self.held();
        if held.len() >= FORGET_FROM && held.len() == held.capacity() {
            held.retain(|_, (until, _)| *until > now);
        }
        held.insert(name.to_owned(), (now + GOOD_FOR, answer));
    }
}

#[async_trait]
impl Lookup for CachingLookup {
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let held = self.held().get(name).filter(|(until, _)| *until > Instant::now()).cloned();
        if let Some((_, answer)) = held {
            return answer.map_err(io::Error::other);
        }
        let answer = self.asked.lookup(name).await;
        match &answer {
            Ok(found) => self.keep(name, Ok(found.clone())),
            Err(err) if is_unknown(err) => self.keep(name, Err(err.to_string())),
            Err(_) => {}
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Counts what it is asked.
    #[derive(Debug, Default)]
    struct Counting(AtomicUsize);

    #[async_trait]
    impl Lookup for Counting {
        async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>> {
            let n = self.0.fetch_add(1, Ordering::SeqCst);
            match name {
                "a.test" => Ok(vec![IpAddr::from([192, 0, 2, n as u8])]),
                "none.test" => Err(io::Error::other("Name or service not known")),
                _ => Err(io::Error::other("Temporary failure in name resolution")),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn p49_answers_are_remembered_for_a_minute_and_failures_are_not() {
        #[rustfmt::skip]
        let cases = [
            ("an address",               "a.test",    [1, 1, 2]),
            ("that there is no such name", "none.test", [1, 1, 2]),
            ("a failure",                "ill.test",  [1, 2, 3]),
        ];
        for (why, name, want) in cases {
            let counting = Arc::new(Counting::default());
            let names = CachingLookup::new(counting.clone());
            let mut asked = Vec::new();
            for pause in [0, 59, 2] {
                tokio::time::advance(Duration::from_secs(pause)).await;
                let answer = names.lookup(name).await;
                assert_eq!(answer.is_ok(), name == "a.test", "{why}");
                asked.push(counting.0.load(Ordering::SeqCst));
            }
            assert_eq!(asked, want, "{why}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn p49_names_whose_time_is_over_are_forgotten() {
        let names = CachingLookup::new(Arc::new(Counting::default()));
        for n in 0..3 * FORGET_FROM {
            names.keep(&format!("{n}.test"), Ok(Vec::new()));
            tokio::time::advance(Duration::from_millis(10)).await;
        }
        assert!(names.held().len() < 2 * FORGET_FROM, "{}", names.held().len());
    }
}
