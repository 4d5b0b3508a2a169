//! Connections: the listener and its timeouts.

pub mod listener;
pub(crate) mod write_timeout;
