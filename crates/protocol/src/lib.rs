//! The codecs of the protocols that strangers speak to us and we to them.
//!
//! Bytes in, plain values out, and back; no I/O, no clock, no settings. What holds
//! in every one of them:
//!
//! * What comes in is a stranger's: depth, counts and lengths are bounded, nothing
//!   is expanded that the sender defined, and nothing panics.
//! * What goes out is escaped here and nowhere else.
//! * A codec says *what* was wrong; the doors decide how to word it.

pub mod form;
pub mod link;
pub mod multipart;
mod protocol;
pub mod robots;
pub mod rss;
pub mod rsscloud;
pub mod signature;
pub mod soap;
pub mod xml;
pub mod xmlrpc;

pub use protocol::Protocol;
