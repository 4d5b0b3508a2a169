//! The HTTP interface: the listener, what endpoints share, and one file or folder for each
//! endpoint.
//!
//! ```text
//! serve (connections) → router (the list of routes) → routes (endpoints) → kit, state
//! ```
//!
//! An endpoint only translates: from the wire to the domain, and from the domain to the words of
//! its protocol. Decisions are made in `subscriptions`, `authoring` and the store. What holds at
//! every endpoint:
//!
//! * Bodies are counted while they are read; a body that is too long is rejected with 413.
//! * A filter that does not match means "not this route"; everything else is a reply in the
//!   endpoint's own protocol.
//! * Pages of other sites may send requests (A-13): nothing relies on cookies, and what is for
//!   the operator's networks is not shown to such pages.
//! * A secret is shown to its owner only.

pub(crate) mod kit;
pub(crate) mod public_path;
mod router;
pub mod routes;
pub mod serve;
mod state;

pub use kit::anonymous_access::AnonymousAccess;
pub use kit::client_address::PeerAddr;
pub use kit::rate_limit::{AccountRateLimit, AnonymousRateLimit, VerificationRateLimit};
pub use kit::recent_registrants::RecentRegistrants;
pub use router::Router;
pub use routes::archive::document_cache::ArchiveDocumentCache;
pub use routes::console::opml::imports::Imports;
pub use routes::ops::gauges::CachedGauges;
pub use routes::rsscloud::aliases::CloudAliases;
pub use state::{Gateway, HttpSettings};
