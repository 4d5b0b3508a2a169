//! Why a node does not start.

use crate::http::serve::listener::ListenError;
use crate::tokens::TokenError;
use feedgate_core::store::StoreError;

/// Why feedgate did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The listener cannot start.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system provides no random numbers, so no token can be created.
    #[error("the system provides no random numbers: {0}")]
    Random(getrandom::Error),
}

impl From<TokenError> for StartError {
    fn from(err: TokenError) -> StartError {
        match err {
            TokenError::Store(err) => StartError::Store(err),
            TokenError::Random(err) => StartError::Random(err),
        }
    }
}

impl StartError {
    /// A word for logs, listed in `docs/errors.md`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Listen(err) => err.code(),
            Self::Store(err) => err.code(),
            Self::Random(_) => "no_randomness",
        }
    }
}
