//! How many streams of the event log may be open: those of strangers never take the places of accounts
//! and of programs on this machine.

use std::sync::Arc;

use super::LogView;
use crate::http::kit::request::Request;
use crate::http::kit::slots::{ClientNetwork, HeldSlot, NoSlot, Slots, client_network};

/// The maximum number of open streams.
const MAX_STREAMS: usize = 200;
/// The maximum number of open streams of strangers together.
const MAX_ANONYMOUS_STREAMS: usize = 150;
/// The maximum number of open streams of one account, or to one IPv4 address or one IPv6 /64, whose
/// addresses all belong to one client.
const MAX_STREAMS_OF_ONE: usize = 20;

/// The places for streams.
#[derive(Debug)]
pub(super) struct StreamSlots {
    all: Arc<Slots<StreamHolder>>,
    anonymous: Arc<Slots<()>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum StreamHolder {
    /// The account with this login.
    Account(String),
    /// Anybody else in this network.
    Network(ClientNetwork),
}

/// The place of a stream.
#[derive(Debug)]
pub(super) struct StreamSlot {
    _own: HeldSlot<StreamHolder>,
    _anonymous: Option<HeldSlot<()>>,
}

impl StreamSlots {
    /// Returns the places, all of them free.
    pub(super) fn new() -> StreamSlots {
        let most = MAX_ANONYMOUS_STREAMS;
        StreamSlots {
            all: Arc::new(Slots::new(MAX_STREAMS, MAX_STREAMS_OF_ONE)),
            anonymous: Arc::new(Slots::new(most, most)),
        }
    }

    /// Takes a place for the stream of a viewer.
    pub(super) fn acquire(&self, request: &Request, view: &LogView) -> Result<StreamSlot, NoSlot> {
        let holder = match &view.login {
            Some(login) => StreamHolder::Account(login.clone()),
            None => StreamHolder::Network(client_network(request.client.ip)),
        };
        let is_anonymous = view.login.is_none() && !request.is_local();
        let anonymous = is_anonymous.then(|| self.anonymous.acquire(())).transpose()?;
        Ok(StreamSlot { _own: self.all.acquire(holder)?, _anonymous: anonymous })
    }
}
