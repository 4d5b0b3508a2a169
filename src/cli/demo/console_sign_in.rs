//! The address that opens the console of the demo: it signs a browser in, once and within ten minutes.
//!
//! The demo serves it beside the gateway, which has no such address: a cookie belongs to a host, whatever
//! the port (RFC 6265 `#section-8.5`).

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::{HeaderValue, StatusCode, header};
use url::Url;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::{Reply, Response};

use crate::app::StartError;
use crate::http::kit::session_cookie::NAME_WITHOUT_TLS;
use crate::jobs::runner;
use crate::tokens::{TokenRequest, create_token};
use feedgate_core::account::{Scopes, SessionHash, TokenHash};
use feedgate_store::Store;

/// How long the address can be used.
const VALID_FOR: Duration = Duration::from_secs(600);
/// The account that is signed in.
const LOGIN: &str = "demo";
const USED_OR_OLD: &str = "This address has been used, or is older than ten minutes. Start \"feedgate demo\" again for another one.\n";

/// An address that signs a browser in.
pub(super) struct ConsoleSignIn {
    store: Arc<Store>,
    console: Url,
    token: TokenHash,
    token_number: i64,
    /// The last segment of the address, until it has been used.
    unused_key: Mutex<Option<String>>,
    valid_until: Instant,
}

impl ConsoleSignIn {
    /// Creates a token, and an address that signs a browser in with it.
    pub(super) async fn create(
        store: &Arc<Store>,
        gateway: &Url,
    ) -> Result<ConsoleSignIn, Box<dyn Error>> {
        let (login, name) = (LOGIN.to_owned(), "console".to_owned());
        let request = TokenRequest { login, name, scopes: Scopes::all(), expires_at: None };
        let created = create_token(store, request, runner::now()).await;
        let (token, token_number) = created.map_err(StartError::from)?;
        Ok(ConsoleSignIn {
            store: Arc::clone(store),
            console: gateway.join("console")?,
            token: TokenHash::from_token(&token),
            token_number,
            unused_key: Mutex::new(Some(runner::nonce())),
            valid_until: Instant::now() + VALID_FOR,
        })
    }

    /// Returns the path of the address, without a slash at its begin.
    pub(super) fn path(&self) -> String {
        let key = self.unused_key.lock().unwrap_or_else(PoisonError::into_inner);
        format!("sign-in/{}", key.as_deref().unwrap_or_default())
    }

    /// Serves the address.
    pub(super) fn routes(self: Arc<Self>) -> BoxedFilter<(Response,)> {
        let sign_in = warp::path!("sign-in" / String).and(warp::get()).then(move |key: String| {
            let link = Arc::clone(&self);
            async move { link.sign_in(&key).await }
        });
        let nothing = warp::any().map(|| StatusCode::NOT_FOUND.into_response());
        sign_in.or(nothing).unify().boxed()
    }

    /// Ends all sessions that began at the address.
    pub(super) async fn revoke(&self) -> Result<(), Box<dyn Error>> {
        self.store.revoke_token(self.token_number, runner::now()).await?;
        Ok(())
    }

    async fn sign_in(&self, key: &str) -> Response {
        if !self.use_key(key) {
            return warp::reply::with_status(USED_OR_OLD, StatusCode::GONE).into_response();
        }
        let cookie = runner::nonce();
        let session = SessionHash::from_cookie(&cookie);
        let begun = self.store.begin_session(&session, &self.token, runner::now()).await;
        let cookie = format!("{NAME_WITHOUT_TLS}={cookie}; Path=/; HttpOnly; SameSite=Lax");
        let values = (HeaderValue::try_from(cookie), HeaderValue::try_from(self.console.as_str()));
        let (Ok(true), (Ok(cookie), Ok(console))) = (begun, values) else {
            return StatusCode::SERVICE_UNAVAILABLE.into_response();
        };
        let mut response = StatusCode::SEE_OTHER.into_response();
        response.headers_mut().insert(header::SET_COOKIE, cookie);
        response.headers_mut().insert(header::LOCATION, console);
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }

    /// Returns whether `key` is that of the address, which has not been used and is not too old; from now
    /// on, it has been.
    fn use_key(&self, key: &str) -> bool {
        let mut unused = self.unused_key.lock().unwrap_or_else(PoisonError::into_inner);
        Instant::now() < self.valid_until && unused.take_if(|unused| unused == key).is_some()
    }
}
