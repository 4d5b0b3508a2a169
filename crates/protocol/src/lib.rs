//! Codecs of the protocols that feedgate speaks as server and client.
//!
//! The codecs convert between bytes and plain values, with no I/O, no clock and no settings.
//! Invariants:
//!
//! * Input is untrusted: depth, counts and lengths are bounded, entities that the sender defines
//!   are not expanded, and nothing panics.
//! * Output is escaped here and nowhere else.
//! * A codec reports *what* was wrong; the endpoints decide how to word the response.

pub mod form;
pub mod message_signatures;
pub mod multipart;
pub mod opml;
mod protocol;
pub mod robots;
pub mod rss;
pub mod rsscloud;
pub mod signature;
pub mod soap;
pub mod standard_webhooks;
pub mod xml;
pub mod xmlrpc;

pub use protocol::Protocol;
