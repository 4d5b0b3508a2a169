//! Authentication of authors: a login with a password, or with a token of the publish scope.
//!
//! Password hashing is slow by design, so it runs on a few blocking threads with a bounded queue:
//! sign-ins cannot starve the rest of the node. An unknown login takes as long as a wrong password,
//! and gets the same response (rule S33).

use std::net::IpAddr;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use super::login_attempts::LoginAttempts;
use super::{Author, AuthoringRefusal};
use crate::jobs::runner;
use feedgate_core::account::{Scope, TokenHash};
use feedgate_core::password::{Password, PasswordHash, SALT_BYTES};
use feedgate_core::store::StoreError;
use feedgate_core::stored_file::PathSegment;
use feedgate_store::Store;

/// The maximum number of passwords hashed at once: half of a small machine's cores, and 40 MiB of
/// memory.
const HASHING_CONCURRENCY: usize = 2;
/// The maximum number of sign-ins waiting to be hashed: about two seconds' worth.
const WAITING: usize = 64;

/// Verifies the passwords of authors.
pub(super) struct SignIn {
    store: Arc<Store>,
    places: Arc<Semaphore>,
    waiting: Semaphore,
    attempts: LoginAttempts,
}

impl SignIn {
    pub(super) fn new(store: Arc<Store>) -> SignIn {
        let places = Arc::new(Semaphore::new(HASHING_CONCURRENCY));
        let (waiting, attempts) = (Semaphore::new(WAITING), LoginAttempts::new());
        SignIn { store, places, waiting, attempts }
    }

    /// Authenticates an author.
    pub(super) async fn author(
        &self,
        login: &str,
        password: &str,
        client: Option<IpAddr>,
    ) -> Result<Author, AuthoringRefusal> {
        let token = TokenHash::from_token(password);
        let access = self.store.authenticate(login, &token, runner::now()).await;
        if let Err(StoreError::AccountDeactivated(_)) = &access {
            return Err(AuthoringRefusal::Deactivated);
        }
        if let Some(access) = access? {
            return match access.scopes.allow(Scope::Publish) {
                true => Ok(Author { login: PathSegment::login(login)? }),
                false => Err(AuthoringRefusal::NoRight),
            };
        }
        if let Some(delay) = self.attempts.delay(login, client, Instant::now()) {
            return Err(AuthoringRefusal::TooManyAttempts(delay));
        }
        let password = Password::sent(password).ok_or(AuthoringRefusal::WrongPassword)?;
        let kept = self.store.password(login).await?;
        let hash = kept.map_or_else(PasswordHash::of_nobody, |(_, hash)| hash);
        match self.matches(hash, password).await? {
            true => {
                self.attempts.succeeded(login, client);
                if self.store.is_deactivated(login).await? {
                    return Err(AuthoringRefusal::Deactivated);
                }
                Ok(Author { login: PathSegment::login(login)? })
            }
            false => {
                self.attempts.failed(login, client, Instant::now());
                Err(AuthoringRefusal::WrongPassword)
            }
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
        // If the client disconnects, the permit is released only when the hash is done.
        let hashed = spawn_blocking(move || {
            let _place = place;
            hash.matches(&password)
        });
        hashed.await.map_err(|_| AuthoringRefusal::Busy)
    }
}

/// Hashes a new password with a fresh salt. Slow, so only for the command line.
pub fn hash_password(password: &Password) -> Result<PasswordHash, getrandom::Error> {
    let mut salt = [0; SALT_BYTES];
    getrandom::fill(&mut salt)?;
    Ok(PasswordHash::from_password(password, salt))
}
