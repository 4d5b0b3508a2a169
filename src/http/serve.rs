//! Connections: the listener and its timeouts.

mod client_connections;
mod connection;
mod http_version;
pub mod listener;
mod open_ended;
mod stalled_responses;
mod tls;
pub(crate) mod write_timeout;
