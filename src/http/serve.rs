//! Connections: the listener and its timeouts.

mod client_connections;
pub mod listener;
mod tls;
pub(crate) mod write_timeout;
