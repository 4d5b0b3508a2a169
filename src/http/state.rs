//! The shared state of the endpoints: the store, the services and the operator's settings.

use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::authoring::AuthoringService;
use crate::disk_space::DiskSpace;
use crate::document_budget::DocumentBudget;
use crate::event_log::EventLog;
use crate::fetch_traces::FetchTraces;
use crate::head_watch::HeadWatch;
use crate::http::kit::anonymous_access::{AnonymousAccess, Permission};
use crate::http::kit::rate_limit::{AccountRateLimit, AnonymousRateLimit, VerificationRateLimit};
use crate::http::kit::recent_registrants::RecentRegistrants;
use crate::http::kit::slots::Slots;
use crate::http::routes::archive::document_cache::ArchiveDocumentCache;
use crate::http::routes::console::opml::imports::Imports;
use crate::http::routes::ops::gauges::CachedGauges;
use crate::http::routes::rsscloud::aliases::CloudAliases;
use crate::jobs::alerts::AlertNotifier;
use crate::jobs::deliver::{Composer, TestNotifier};
use crate::jobs::upstream::UpstreamClient;
use crate::metrics::Metrics;
use crate::net::RequestSigner;
use crate::site_icons::SiteIcons;
use crate::subscriptions::SubscriptionService;
use feedgate_core::account::AccountId;
use feedgate_core::collection::ConfiguredCollection;
use feedgate_core::node::NodeId;
use feedgate_core::ping::TimeUnit;
use feedgate_core::publisher_secrets::PublisherSecrets;
use feedgate_core::visibility::ListedTopics;
use feedgate_store::Store;

/// The operator's settings for the endpoints.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// The address of this gateway as others know it. All links are made from it.
    pub public_url: Url,
    /// Networks whose `X-Forwarded-For` is trusted (rule S28).
    pub trusted_proxies: Vec<IpNet>,
    /// The least time between two fetches of one resource because of pings.
    pub ping_spacing: Duration,
    /// The least time between two fetches of one resource by plan.
    pub min_period: Duration,
    /// The least time between two requests to one host.
    pub host_min_interval: Duration,
    /// Whether a ping is answered only after all subscribers have been notified, unless the
    /// ping itself says otherwise.
    pub ping_waits: bool,
    /// How long such a reply waits at most.
    pub ping_wait: Duration,
    /// Whether the reply to a registration names the time when it expires.
    pub rsscloud_tell_expiry: bool,
    /// Whether the reply to a ping that waited without requesting it has the number of notified
    /// subscribers.
    pub rsscloud_tell_count: bool,
    /// Further paths and procedures of the rssCloud endpoints.
    pub cloud_aliases: CloudAliases,
    /// Whether a subscription of an account to a page is one to the feed that the page advertises, unless
    /// the request says otherwise.
    pub follows_pages: bool,
    /// Whether there is an archive of everything that is public.
    pub collects_all: bool,
    /// Whether there is a search index.
    pub has_search_index: bool,
    /// The collections that have an archive of their own.
    pub collections: Vec<ConfiguredCollection>,
    /// How the owner of a polled server reaches the operator: a mail address, a URL or a text.
    pub contact: Option<String>,
    /// The networks that fetches come from, as far as the operator publishes them.
    pub bot_addresses: Vec<IpNet>,
    /// The secrets of publishers that send the content of changed topics.
    pub publisher_secrets: PublisherSecrets,
    /// Registrations, subscriptions and pings a minute from one public address.
    pub anonymous_requests_per_min: usize,
    /// Requests a minute from one account.
    pub account_requests_per_min: usize,
    /// What callers without an account may do.
    pub anonymous: AnonymousAccess,
    /// The operator's networks: `/metrics` is shown to these only (rule S45).
    pub metrics_networks: Vec<IpNet>,
    /// The maximum age of the gauges in `/metrics`.
    pub gauges_max_age: Duration,
    /// Whether anybody may see which feeds are watched, and the statistics.
    pub has_public_views: bool,
    /// Which feeds lists contain.
    pub listed: ListedTopics,
    /// The maximum number of open streams of entries.
    pub max_streams: usize,
    /// The maximum number of open streams of entries of one account.
    pub max_streams_per_account: usize,
    /// The unit of time in changes.xml, unless the request names one.
    pub changes_unit: TimeUnit,
    /// How much memory the cache of archive documents may take.
    pub archive_cache_bytes: usize,
}

/// The shared state of the endpoints.
pub struct Gateway {
    /// The id of this node.
    pub node: NodeId,
    /// The database.
    pub store: Arc<Store>,
    /// Starts and ends subscriptions, and takes pings.
    pub subscribe: Arc<SubscriptionService>,
    /// Stores feeds for their authors.
    pub publish: Arc<AuthoringService>,
    /// Takes pushes from hubs and clouds; `None` where those could not reach this gateway.
    pub upstreams: Option<Arc<UpstreamClient>>,
    /// Who signs requests to publishers, and the keys.
    pub request_signer: RequestSigner,
    /// The operator's settings.
    pub settings: HttpSettings,
    /// Limits requests of clients that have no account.
    pub anonymous_rate_limit: AnonymousRateLimit,
    /// Limits the verifications of each callback.
    pub verification_rate_limit: VerificationRateLimit,
    /// Limits requests of accounts.
    pub account_rate_limit: AccountRateLimit,
    /// The addresses that lately registered subscriptions.
    pub recent_registrants: RecentRegistrants,
    /// Archive documents that were served lately.
    pub archive_documents: ArchiveDocumentCache,
    /// Imports of lists of feeds by the console.
    pub imports: Imports,
    /// The memory for documents and bodies of requests.
    pub documents: DocumentBudget,
    /// The disk of the database.
    pub disk_space: DiskSpace,
    /// The gauges that were counted last.
    pub gauges: CachedGauges,
    /// The counters of this process.
    pub metrics: Metrics,
    /// The event log.
    pub event_log: EventLog,
    /// The last fetches of each feed by this node.
    pub fetch_traces: FetchTraces,
    /// The icons of the sites of feeds.
    pub(crate) site_icons: SiteIcons,
    /// Composes what streams send, as the notifications of subscriptions are.
    pub(crate) composer: Arc<Composer>,
    /// Sends test notifications.
    pub(crate) test_notifier: TestNotifier,
    /// Sends tests to alert addresses.
    pub(crate) alert_notifier: AlertNotifier,
    /// The heads of the logs that clients wait for.
    pub heads: Arc<HeadWatch>,
    /// The open streams of entries, counted by account.
    pub(crate) streams: Arc<Slots<AccountId>>,
    /// Cancelled at shutdown: requests that wait for something are answered then.
    pub stop: CancellationToken,
}

impl Gateway {
    /// Returns whether anybody may see which feeds are watched, and the statistics.
    pub(crate) fn shows_public_views(&self) -> bool {
        self.settings.has_public_views && self.settings.anonymous.allows(Permission::Views)
    }

    /// Returns the public URL of `path` on this gateway.
    pub(crate) fn public_url(&self, path: &str) -> String {
        let public = self.settings.public_url.as_str().trim_end_matches('/');
        format!("{public}/{path}")
    }
}
