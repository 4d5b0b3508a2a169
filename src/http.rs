//! The doors: everything a remote party can ask of feedgate over HTTP.
//!
//! One file a door. A door only translates: wire to domain, domain to wording; what
//! is decided is decided in `subscribe` and in the store. What holds at every door:
//!
//! * Bodies are counted while they are read; what is too long is refused with 413.
//! * A filter that does not match means "not this route"; everything else is a reply,
//!   in the words of the door's own protocol.
//! * Pages of other sites may ask (row A-13): nothing here rests on cookies, and what is for
//!   the operator's networks is not shown to them.
//! * Secrets are shown to their owners only.
//!
//! The listener tells who is asking by an extension of the request, [`PeerAddr`].
//!
//! [`PeerAddr`]: listener::PeerAddr

pub mod kit;
mod router;
pub mod routes;
pub mod serve;

use routes::archive;
use routes::author;
use routes::changes;
use routes::event_log;
use routes::ops::bot;
use routes::ops::health;
use routes::ops::metrics;
use routes::rpc;
use routes::rsscloud;
use routes::rsscloud::aliases;
use routes::storage;
use routes::superfeedr;
use routes::upstream;
use routes::views;
use routes::weblogs;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use tokio_util::sync::CancellationToken;
use url::Url;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::authoring::Publish;
use crate::event_log::EventLog;
use crate::jobs::upstream::UpstreamClient;
use crate::metrics::Metrics;
use crate::subscriptions::Subscribe;
use feedgate_core::collection::ConfiguredCollection;
use feedgate_core::ping::TimeUnit;
use feedgate_core::ports::Store;

use kit::exchange::nothing_here;

pub use kit::rate_limit::Strangers;
pub use router::Doors;
pub use routes::archive::ArchiveDocumentCache;
pub use routes::rsscloud::aliases::Aliases;

/// What the operator decides about the doors.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address others know us by, as advertised: what links are made from.
    pub public_url: Url,
    /// Networks whose `X-Forwarded-For` is believed (rule S28).
    pub trusted_proxies: Vec<IpNet>,
    /// Between two fetches of one resource because of pings.
    pub ping_spacing: Duration,
    /// Whether pings are answered when all have been told, unless they say otherwise.
    pub ping_waits: bool,
    /// How long such an answer is waited for.
    pub ping_wait: Duration,
    /// Whether a registration is told when it ends.
    pub tells_expiry: bool,
    /// What else publishers call the doors of the cloud.
    pub aliases: Aliases,
    /// Whether there is an archive of all that is public.
    pub collects_all: bool,
    /// The collections that have an archive of their own.
    pub collections: Vec<ConfiguredCollection>,
    /// Whom the owner of a polled server may write to: a mail address, a URL or a text.
    pub contact: Option<String>,
    /// The networks that fetches come from, as far as the operator publishes them.
    pub bot_addresses: Vec<IpNet>,
    /// Registrations, subscriptions and pings a minute from one public address.
    pub stranger_calls_per_min: usize,
    /// Networks that `/metrics` is shown to (rule S45).
    pub metrics_networks: Vec<IpNet>,
    /// Whether anybody may see what is watched and what is done.
    pub shows_views: bool,
    /// How changes.xml counts, unless it is asked otherwise.
    pub changes_unit: TimeUnit,
    /// What cached archive documents may take in memory.
    pub archive_cache_bytes: usize,
}

/// What the doors need to do their work.
pub struct Gateway {
    /// Where state lives.
    pub store: Arc<dyn Store>,
    /// Making and ending subscriptions.
    pub subscribe: Arc<Subscribe>,
    /// Keeping feeds for their authors.
    pub publish: Arc<Publish>,
    /// What takes the word of hubs and clouds; `None` where they could not reach us.
    pub upstreams: Option<Arc<UpstreamClient>>,
    /// What the operator decides.
    pub settings: Settings,
    /// How much those may ask who have no account.
    pub strangers: Strangers,
    /// Archive documents that were served lately.
    pub archive_documents: ArchiveDocumentCache,
    /// What is counted.
    pub metrics: Metrics,
    /// What is told on the log page.
    pub event_log: EventLog,
    /// Cancelled when feedgate ends: who is kept waiting is answered then.
    pub stop: CancellationToken,
}

impl Gateway {
    /// Our own address of `path`, as others know it.
    fn address(&self, path: &str) -> String {
        let public = self.settings.public_url.as_str().trim_end_matches('/');
        format!("{public}/{path}")
    }
}

/// All doors.
pub fn doors(gateway: Arc<Gateway>) -> Doors {
    let routes = routes(&gateway);
    Doors::new(gateway, routes)
}

/// All routes, the busiest first. Nested by first segment, so that a request is
/// compared with few of them.
fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    superfeedr::routes(gateway)
        .or(rsscloud::routes(gateway))
        .unify()
        .or(rpc::routes(gateway))
        .unify()
        .or(aliases::routes(gateway))
        .unify()
        .or(weblogs::routes(gateway))
        .unify()
        .or(changes::routes(gateway))
        .unify()
        .or(archive::routes(gateway))
        .unify()
        .or(storage::routes(gateway))
        .unify()
        .or(author::routes(gateway))
        .unify()
        .or(bot::routes(gateway))
        .unify()
        .or(upstream::routes(gateway))
        .unify()
        .or(event_log::routes(gateway))
        .unify()
        .or(views::routes(gateway))
        .unify()
        .or(health::routes(gateway))
        .unify()
        .or(metrics::routes(gateway))
        .unify()
        .or(warp::any().map(nothing_here))
        .unify()
        .boxed()
}
