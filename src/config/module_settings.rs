//! The settings of each module, derived from the configuration.

use std::net::SocketAddr;
use std::time::Duration;

use chrono::TimeDelta;
use url::Url;

use super::memory_limit::memory_limit_bytes;
use super::{Config, LOOPBACK_NETWORKS, url_at};
use crate::authoring;
use crate::disk_space::DiskSpace;
use crate::document_budget::SMALLEST_BUDGET_BYTES;
use crate::http;
use crate::http::serve::listener;
use crate::jobs::backfill;
use crate::jobs::collect;
use crate::jobs::deliver;
use crate::jobs::maintenance;
use crate::jobs::poll;
use crate::jobs::search_index;
use crate::jobs::upstream;
use crate::net;
use crate::subscriptions::SubscriptionQuotas;
use feedgate_core::backfill::BackfillLimits;
use feedgate_core::callback_slots::SlotTerms;
use feedgate_core::host_groups::HostGroups;
use feedgate_core::page::{ArchiveRetention, PageLimits};
use feedgate_core::ping_forwarding::PingForwarding;
use feedgate_core::schedule::{K_LEAST, ScheduleBounds};
use feedgate_core::stored_file::Quota;
use feedgate_core::visibility::ListedTopics;
use feedgate_store as store;

/// How long the hosts of callbacks of a node that was killed wait for another, at most.
const LONGEST_SLOT_LEASE: Duration = Duration::from_secs(5);
/// By how much a request to a callback may exceed its time limit: one that cannot connect is repeated within a
/// second.
const REQUEST_MARGIN: Duration = Duration::from_secs(2);

impl Config {
    /// Returns the settings of `store`. A SQLite path that ends in `.db` is the database file, any
    /// other is the folder that contains it.
    pub fn store(&self) -> store::StoreSettings {
        store::StoreSettings {
            url: self.database_url().unwrap_or_else(|| with_file_name(&self.database)),
            connections: self.database_connections,
            groups: HostGroups::with(self.host_min_interval, self.host_rate_groups.clone()),
            page_limits: PageLimits { records: self.page_records, bytes: self.page_bytes },
            listed: self.listed_topics(),
            forwarding: PingForwarding::default(),
            anonymous_bytes_per_day: self.anonymous_bytes_per_day,
            account_bytes_per_day: self.account_bytes_per_day,
            cells: self.cells,
            secret_keys: store::SecretKeys {
                present: self.secrets_key.clone(),
                old: self.secrets_old_keys.clone(),
            },
        }
    }

    /// Returns the URL of the database with its password; `None` if the URL is not one that a password can
    /// be added to.
    pub(super) fn database_url(&self) -> Option<String> {
        let Some(password) = &self.database_password else {
            return Some(with_file_name(&self.database));
        };
        let mut url = Url::parse(&self.database).ok()?;
        let is_server = matches!(url.scheme(), "postgres" | "postgresql");
        if !is_server || url.password().is_some() {
            return None;
        }
        // Everything else that has a meaning in a URL is encoded by this call.
        url.set_password(Some(&password.reveal().replace('%', "%25"))).ok()?;
        Some(url.into())
    }

    /// Allows topics and callbacks on this machine, beside the networks that are set.
    pub fn allow_this_machine(&mut self) {
        self.allow_topics.extend(LOOPBACK_NETWORKS);
        self.allow_callbacks.extend(LOOPBACK_NETWORKS);
    }

    /// Returns which resources lists contain.
    fn listed_topics(&self) -> ListedTopics {
        if self.list_account_feeds { ListedTopics::OfAccounts } else { ListedTopics::Open }
    }

    /// Returns the name of this node: that of the host unless the operator chose another.
    pub fn node_name(&self) -> String {
        let host = || rustix::system::uname().nodename().to_string_lossy().into_owned();
        self.node_name.clone().unwrap_or_else(host)
    }

    /// Returns the quotas of subscriptions.
    pub fn subscription_quotas(&self) -> SubscriptionQuotas {
        SubscriptionQuotas {
            per_account: self.subscriptions_per_account,
            per_host: self.subscriptions_per_host,
        }
    }

    /// Returns the disk of the database.
    pub fn disk_space(&self) -> DiskSpace {
        let url = with_file_name(&self.database);
        DiskSpace::new(store::sqlite_path(&url), self.min_free_bytes)
    }

    /// Returns the settings of a copy; `None` if its source is not set.
    pub fn copy(&self) -> Option<store::CopySettings> {
        Some(store::CopySettings {
            from: with_file_name(self.copy_from.as_deref()?),
            to: self.store(),
            batch_rows: store::COPY_BATCH_ROWS,
            stop_after: None,
        })
    }

    /// Returns the settings of `net`. `public_url` is part of the user agent.
    pub fn net(&self, public_url: &Url) -> net::NetworkSettings {
        net::NetworkSettings {
            user_agent: format!("feedgate/{} (+{public_url}bot", env!("CARGO_PKG_VERSION")),
            allow_topics: self.allow_topics.clone(),
            allow_callbacks: self.allow_callbacks.clone(),
            fetch_timeout: self.fetch_timeout,
            callback_timeout: self.delivery_timeout,
            body_limit_bytes: self.body_limit_bytes,
            host_spacing: self.host_min_interval,
            fetch_concurrency: self.fetch_concurrency,
            document_memory_bytes: self.document_memory_bytes(),
        }
    }

    /// Returns the memory for documents, in bytes: a quarter of all memory unless the operator
    /// decided otherwise.
    fn document_memory_bytes(&self) -> u64 {
        let default = || (memory_limit_bytes() / 4).max(SMALLEST_BUDGET_BYTES);
        self.document_memory_bytes.unwrap_or_else(default)
    }

    /// Returns the bounds of poll periods if the poll budget suffices.
    pub fn bounds(&self) -> ScheduleBounds {
        ScheduleBounds { min_period_s: self.min_period_s, k: K_LEAST }
    }

    /// Returns the settings of `poll`.
    pub fn poll(&self) -> poll::PollSettings {
        poll::PollSettings {
            claim: self.job_lease,
            min_period_s: self.min_period_s,
            porn_rank: self.porn_rank,
            upstream_url: self.public_url.clone(),
        }
    }

    /// Returns the terms on which this node serves hosts of callbacks.
    pub fn slot_terms(&self) -> SlotTerms {
        let time = |time: Duration| TimeDelta::from_std(time).unwrap_or(TimeDelta::MAX);
        let lease = time(self.job_lease.min(LONGEST_SLOT_LEASE));
        let request = time(self.delivery_timeout + REQUEST_MARGIN);
        SlotTerms { lease, claim: time(self.job_lease), request }
    }

    /// Returns the settings of `backfill`.
    pub fn backfill(&self) -> backfill::BackfillSettings {
        let limits = BackfillLimits {
            pages: self.backfill_pages,
            entries: self.backfill_entries,
            bytes: self.backfill_bytes,
        };
        backfill::BackfillSettings { claim: self.job_lease, limits }
    }

    /// Returns the settings of `collect`.
    pub fn collect(&self, public_url: &Url) -> collect::CollectionSettings {
        collect::CollectionSettings {
            public_url: public_url.clone(),
            claim: self.job_lease,
            all: self.collect_all,
            named: self.collections.clone(),
        }
    }

    /// Returns the settings of `search_index`.
    pub fn search_index(&self) -> search_index::SearchIndexSettings {
        search_index::SearchIndexSettings { is_enabled: self.search, claim: self.job_lease }
    }

    /// Returns the ping targets, and the resources whose pings are forwarded: those stored here,
    /// and those that the operator lists.
    pub fn forwarding(&self, public_url: &Url) -> PingForwarding {
        let stored = public_url.join("storage/").ok();
        let prefixes = self.ping_forwarding.iter().cloned().chain(stored).collect();
        PingForwarding { targets: self.ping_targets.clone(), prefixes }
    }

    /// Returns the settings of `maintenance`.
    pub fn maintenance(&self) -> maintenance::MaintenanceSettings {
        maintenance::MaintenanceSettings {
            polls_per_s: self.polls_per_s,
            changes_unit: self.changes_when_unit,
            keep_pings: self.ping_retention,
            save_hours: self.hourly_changes_retention,
            rows: maintenance::RowRetention {
                moves: self.move_retention,
                ended_tokens: self.revoked_token_retention,
                backfills: self.backfill_retention,
            },
            retention: ArchiveRetention {
                days: self.archive_retention_days,
                pages: self.archive_retention_pages,
            },
            events: maintenance::EventRetention {
                age: self.event_retention,
                of_a_kind: self.max_events_per_kind,
            },
            attempts_max: self.attempts_max,
        }
    }

    /// Returns the settings of `upstream`; `None` if no public URL is set, because hubs and
    /// rssCloud servers could not reach this gateway.
    pub fn upstream(&self) -> Option<upstream::UpstreamSettings> {
        let public_url = self.public_url.clone()?;
        let (ping_spacing, claim) = (self.ping_min_interval, self.job_lease);
        Some(upstream::UpstreamSettings { public_url, ping_spacing, claim })
    }

    /// Returns the settings of `deliver`.
    pub fn deliver(&self, public_url: &Url) -> deliver::DeliverySettings {
        deliver::DeliverySettings {
            public_url: public_url.clone(),
            claim: self.job_lease,
            concurrency: self.delivery_concurrency,
            per_host: self.delivery_concurrency_per_host,
            signature: self.signature,
            attempts_per_subscription: self.attempts_per_subscription,
        }
    }

    /// Returns the settings of `authoring`.
    pub fn authoring(&self, public_url: &Url) -> authoring::AuthoringSettings {
        authoring::AuthoringSettings {
            public_url: public_url.clone(),
            quota: Quota {
                file_bytes: self.storage_file_bytes,
                files: self.storage_files,
                bytes: self.storage_bytes,
            },
            ping_spacing: self.ping_min_interval,
        }
    }

    /// Returns the settings of `http`.
    pub fn http(&self, public_url: &Url) -> http::HttpSettings {
        http::HttpSettings {
            public_url: public_url.clone(),
            trusted_proxies: self.trusted_proxies.clone(),
            ping_spacing: self.ping_min_interval,
            min_period: Duration::from_secs(self.min_period_s.into()),
            host_min_interval: self.host_min_interval,
            ping_waits: self.ping_wait,
            ping_wait: self.ping_wait_limit,
            rsscloud_tell_expiry: self.rsscloud_tell_expiry,
            rsscloud_tell_count: self.rsscloud_tell_count,
            cloud_aliases: self.rsscloud_paths.clone().and(&self.rsscloud_procedures),
            anonymous_requests_per_min: self.anonymous_requests_per_min,
            account_requests_per_min: self.account_requests_per_min,
            anonymous: self.anonymous,
            metrics_networks: self.metrics_networks.clone(),
            gauges_max_age: self.gauges_max_age,
            has_public_views: self.public_views,
            listed: self.listed_topics(),
            max_streams: self.max_streams,
            max_streams_per_account: self.max_streams_per_account,
            changes_unit: self.changes_when_unit,
            archive_cache_bytes: self.archive_cache_bytes,
            follows_pages: self.follow,
            collects_all: self.collect_all,
            has_search_index: self.search,
            collections: self.collections.clone(),
            contact: self.contact.clone(),
            bot_addresses: self.bot_addresses.clone(),
            publisher_secrets: self.publisher_secrets.clone(),
        }
    }

    /// Returns the settings of the listener.
    pub fn listener(&self) -> listener::ListenerSettings {
        listener::ListenerSettings {
            max_connections: self.max_connections,
            max_connections_per_client: self.max_connections_per_client,
            trusted_proxies: self.trusted_proxies.clone(),
            header_timeout: self.header_timeout,
            drain: self.shutdown_grace,
            tls: self.tls_cert.clone().zip(self.tls_key.clone()),
        }
    }

    /// Returns the settings of the listener for health checks, which serves plain HTTP.
    pub fn health_listener(&self) -> listener::ListenerSettings {
        listener::ListenerSettings { tls: None, ..self.listener() }
    }

    /// Returns whether the listener serves HTTPS.
    pub fn has_tls(&self) -> bool {
        self.tls_cert.is_some() && self.tls_key.is_some()
    }

    /// Returns the public URL of this gateway if it listens at `addr`.
    pub fn public_url_at(&self, addr: SocketAddr) -> Url {
        let scheme = if self.has_tls() { "https" } else { "http" };
        self.public_url.clone().unwrap_or_else(|| url_at(scheme, addr))
    }
}

/// Returns the URL of a database; that of a folder names the file in it.
fn with_file_name(url: &str) -> String {
    match url.starts_with("sqlite:") && !url.ends_with(".db") {
        true => format!("{}/feedgate.db", url.trim_end_matches('/')),
        false => url.to_owned(),
    }
}
