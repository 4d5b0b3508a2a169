//! Who an author is: a login and a password, or a login and a token of the publish right.
//!
//! Hashing a password is slow on purpose, so it is done on threads of its own, few at once
//! and with few waiting: however many sign in, the rest of the node is served. A login that
//! nobody has takes as long as a wrong password, and is answered alike (rule S33).

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::{Author, AuthoringRefusal};
use feedgate_core::account::{Scope, TokenHash};
use feedgate_core::password::{Password, PasswordHash, SALT_BYTES};
use feedgate_core::ports::Store;
use feedgate_core::stored_file::PathSegment;

/// Passwords that are hashed concurrently: half of a small machine, and 40 MiB.
const HASHING_CONCURRENCY: usize = 2;
/// How many may wait for that; some two seconds' worth.
const WAITING: usize = 64;

/// Lets authors in.
pub(super) struct SignIn {
    store: Arc<dyn Store>,
    places: Arc<Semaphore>,
    waiting: Semaphore,
}

impl SignIn {
    pub(super) fn new(store: Arc<dyn Store>) -> SignIn {
        let places = Arc::new(Semaphore::new(HASHING_CONCURRENCY));
        SignIn { store, places, waiting: Semaphore::new(WAITING) }
    }

    /// Who this is.
    pub(super) async fn author(
        &self,
        login: &str,
        password: &str,
    ) -> Result<Author, AuthoringRefusal> {
        if let Some(access) =
            self.store.authenticate(login, &TokenHash::from_token(password)).await?
        {
            return match access.rights.allow(Scope::Publish) {
                true => Ok(Author { login: PathSegment::login(login)? }),
                false => Err(AuthoringRefusal::NoRight),
            };
        }
        let password = Password::sent(password).ok_or(AuthoringRefusal::WrongPassword)?;
        let kept = self.store.password(login).await?;
        let hash = kept.map_or_else(PasswordHash::of_nobody, |(_, hash)| hash);
        match self.matches(hash, password).await? {
            true => Ok(Author { login: PathSegment::login(login)? }),
            false => Err(AuthoringRefusal::WrongPassword),
        }
    }

    async fn matches(
        &self,
        hash: PasswordHash,
        password: Password,
    ) -> Result<bool, AuthoringRefusal> {
        let _waiting = self.waiting.try_acquire().map_err(|_| AuthoringRefusal::Busy)?;
        let place =
            Arc::clone(&self.places).acquire_owned().await.map_err(|_| AuthoringRefusal::Busy)?;
        // Whoever hangs up gives the place back only when the work is done.
        let hashed = spawn_blocking(move || {
            let _place = place;
            hash.matches(&password)
        });
        hashed.await.map_err(|_| AuthoringRefusal::Busy)
    }
}

/// What is kept of a new password, with a salt of its own. Slow: for the command line.
pub fn hash_password(password: &Password) -> Result<PasswordHash, getrandom::Error> {
    let mut salt = [0; SALT_BYTES];
    getrandom::fill(&mut salt)?;
    Ok(PasswordHash::from_password(password, salt))
}
