//! Where connections come in.

pub mod listener;
pub(crate) mod write_timeout;
