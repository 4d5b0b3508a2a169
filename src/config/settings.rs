//! The table of settings: everything an operator can decide, each declared once.
//!
//! To add a setting, add an entry here:
//!
//! ```text
//! /// What it decides, in one sentence. Details, for docs/operations.md only.
//! FEEDGATE_NAME = "default" => field: Type, what it takes;
//! ```
//!
//! Then hand its value to the module that uses it: add a field to that module's settings struct,
//! and fill it in `module_settings.rs`. Only `app` and the commands see [`Config`] itself.
//!
//! Everything else follows from the entry: the field of [`Config`], how it is read and checked,
//! the name in the TOML file (the same without `FEEDGATE_`, in lower case), the lists that
//! `feedgate serve --help` and `feedgate check-config` print, and the tables of
//! `docs/operations.md` (a test says how to write these anew). What it takes is one of the kinds
//! in `values.rs`; an empty default means "not set". `secret` at the end means that the value is
//! masked wherever it is shown, and that `FEEDGATE_NAME_FILE` can name a file that holds it.
//! What two settings must have in common is in `checks.rs`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use url::Url;

use crate::http::{AnonymousAccess, CloudAliases};
use feedgate_core::collection::ConfiguredCollection;
use feedgate_core::password::Password;
use feedgate_core::ping::TimeUnit;
use feedgate_core::ping_forwarding::PingTarget;
use feedgate_core::publisher_secrets::PublisherSecrets;
use feedgate_protocol::signature::SignatureMethod;
use feedgate_store::SecretKey;

use super::LogFormat;
use super::declare::settings;
use super::reader::SettingReader;
use super::setting::Setting;
use super::values::*;

settings! {
    "Listening" {
        /// The address and port to listen on. Port 0 picks a free port.
        FEEDGATE_LISTEN = "127.0.0.1:8080" => listen: SocketAddr, ADDRESS;

        /// A second address and port, at which only `/livez`, `/readyz` and `/metrics` are served, by
        /// plain HTTP: an orchestrator reaches them although clients occupy all connections.
        /// Default: they are served at the first address only.
        FEEDGATE_HEALTH_LISTEN = "" => health_listen: Option<SocketAddr>, OPTIONAL_ADDRESS;

        /// The URL under which others reach feedgate. It has a path if other sites share its host, see
        /// [below a path](#below-a-path). It appears in links, in `rel=hub` and in the user agent. Hubs and rssCloud servers named by feeds are asked to notify feedgate (at
        /// `/upstream/…` below this URL) only if it is set. Default: derived from the address to
        /// listen on.
        FEEDGATE_PUBLIC_URL = "" => public_url: Option<Url>, PUBLIC_URL;

        /// A certificate chain in PEM. With it and its key, feedgate serves HTTPS. When the files
        /// change, new connections get the new certificate within seconds, and open ones stay.
        FEEDGATE_TLS_CERT = "" => tls_cert: Option<PathBuf>, FILE;

        /// The private key of the certificate, in PEM.
        FEEDGATE_TLS_KEY = "" => tls_key: Option<PathBuf>, FILE;

        /// The proxies whose `X-Forwarded-For` header is trusted; no other header is. This decides more
        /// than logs and limits: rssCloud notifications are sent to the address that a request came
        /// from. A client that no trusted proxy names counts as a stranger.
        FEEDGATE_TRUSTED_PROXIES = "" => trusted_proxies: Vec<IpNet>, NETWORKS;

        /// The maximum number of open connections. Further connections wait.
        FEEDGATE_MAX_CONNECTIONS = "4096" => max_connections: usize, number("", 1..=1_000_000);

        /// The maximum number of open connections of one client: an IPv4 address or an IPv6 /64.
        /// Further connections are closed at once, as are those of clients with many connections when
        /// few are left. Trusted proxies may have more.
        FEEDGATE_MAX_CONNECTIONS_PER_CLIENT = "1024" => max_connections_per_client: usize,
            number("", 1..=1_000_000);

        /// The maximum number of open streams of entries. Further clients are asked to try again
        /// later. Each stream occupies a connection.
        FEEDGATE_MAX_STREAMS = "2048" => max_streams: usize, number("", 0..=1_000_000);

        /// The maximum number of open streams of entries of one account.
        FEEDGATE_MAX_STREAMS_PER_ACCOUNT = "1024" => max_streams_per_account: usize,
            number("", 0..=1_000_000);

        /// How long a client may take to send the headers of a request, and how long an idle
        /// connection is kept open.
        FEEDGATE_HEADER_TIMEOUT_S = "10" => header_timeout: Duration, seconds(1..=300);

        /// How long requests, polls and deliveries in progress may take to finish at shutdown.
        FEEDGATE_SHUTDOWN_GRACE_S = "15" => shutdown_grace: Duration, seconds(1..=600);
    }

    "Database" {
        /// Where all state is stored: a folder, a SQLite file or a PostgreSQL database. A folder is
        /// created, but not the folders that it is in, and neither is the folder of a file. Several
        /// nodes may share a PostgreSQL database. Several processes on one machine may share a
        /// SQLite database, but each discovers the new work of another only when it checks for it,
        /// up to half a second later.
        FEEDGATE_DATABASE = "sqlite:feedgate-data" => database: String, DATABASE, secret;

        /// The password of a PostgreSQL database whose URL has none. It may have any characters.
        FEEDGATE_DATABASE_PASSWORD = "" => database_password: Option<Password>, PASSWORD, secret;

        /// The space that is kept free on the disk of a SQLite database. While less is free, resources
        /// that only subscribers without an account watch are not polled. 0 switches this off. The
        /// disk of a PostgreSQL server has to be monitored there. Default: 1 GiB, or 5 % of the disk
        /// if that is less.
        FEEDGATE_MIN_FREE_BYTES = "" => min_free_bytes: Option<u64>, MIN_FREE;

        /// The number of connections to PostgreSQL, or of read connections to SQLite. With several
        /// cells they are shared out among them, at least two to each.
        FEEDGATE_DATABASE_CONNECTIONS = "8" => database_connections: usize, number("", 1..=1_000);

        /// The number of cells that resources are spread over, each a schema of PostgreSQL with all
        /// tables. It is fixed when the database is created. 1 suits one server; choose 64 if the
        /// database will have to grow beyond one server. SQLite has one cell.
        FEEDGATE_CELLS = "1" => cells: usize, number("", 1..=1_000);

        /// The database that `feedgate copy` copies to `FEEDGATE_DATABASE`.
        FEEDGATE_COPY_FROM = "" => copy_from: Option<String>, COPY_SOURCE, secret;

        /// The key that secrets in the database are encrypted with: 32 random bytes in base64 or
        /// hexadecimal. Without it they are stored in clear. It must be the same on all nodes. Keep
        /// a copy of it outside of the backups: without the key, nobody can read the secrets again.
        /// `feedgate rotate-key` encrypts what was stored before with it.
        FEEDGATE_SECRETS_KEY = "" => secrets_key: Option<SecretKey>, SECRETS_KEY, secret;

        /// Further keys that secrets in the database may be encrypted with, separated by commas: the
        /// one before `FEEDGATE_SECRETS_KEY` until `feedgate rotate-key` has finished, or the next
        /// one until all nodes know it.
        FEEDGATE_SECRETS_OLD_KEYS = "" => secrets_old_keys: Vec<SecretKey>, SECRETS_KEYS, secret;

        /// How long a job belongs to the node that claimed it. If that node fails, another takes
        /// over after this time. It must be longer than `FEEDGATE_FETCH_TIMEOUT_S` and
        /// `FEEDGATE_DELIVERY_TIMEOUT_S`.
        FEEDGATE_JOB_LEASE_S = "60" => job_lease: Duration, seconds(1..=3_600);

        /// The name of this node on the live page of the console, which lists the nodes that share the
        /// database. Default: the name of the host. See [nodes and cells](console.md#nodes-and-cells).
        FEEDGATE_NODE_NAME = "" => node_name: Option<String>, LINE;
    }

    "Outgoing requests" {
        /// Private networks from which topics may be fetched. Without it, only public addresses are
        /// allowed.
        FEEDGATE_EGRESS_ALLOW_TOPIC_CIDRS = "" => allow_topics: Vec<IpNet>, NETWORKS;

        /// Private networks in which callbacks may be called. Without it, only public addresses are
        /// allowed.
        FEEDGATE_EGRESS_ALLOW_CALLBACK_CIDRS = "" => allow_callbacks: Vec<IpNet>, NETWORKS;

        /// How the owner of a polled server can contact you: an e-mail address, a URL or any line of text.
        /// It is shown at `/bot`, the page that the user agent links to.
        FEEDGATE_CONTACT = "" => contact: Option<String>, LINE;

        /// The networks that your requests come from, shown at `/bot-ips.txt`. With them, the owner
        /// of a server can verify that a request is yours.
        FEEDGATE_BOT_ADDRESSES = "" => bot_addresses: Vec<IpNet>, NETWORKS;
    }

    "Polling" {
        /// The maximum number of concurrent fetches that have begun within a tenth of a second. Up to four
        /// times as many that take longer continue beside them, so that hosts that hang delay no other
        /// fetch. A host is never polled more than once at a time. Fetches on behalf of requests have
        /// half of both.
        FEEDGATE_FETCH_CONCURRENCY = "64" => fetch_concurrency: usize, number("", 1..=10_000);

        /// The time limit for one fetch, from the DNS lookup to the last byte.
        FEEDGATE_FETCH_TIMEOUT_S = "30" => fetch_timeout: Duration, seconds(1..=300);

        /// The size limit for fetched documents. It applies both to the bytes received and to the
        /// decompressed document.
        FEEDGATE_BODY_LIMIT_BYTES = "10485760" => body_limit_bytes: u64,
            number("bytes", 1_024..=1 << 30);

        /// The memory for documents: bodies, and what parsing and rendering them takes. What does not
        /// fit waits, and scheduled polls are postponed. A document takes up to 20 times its size
        /// while it is parsed, so reduce `FEEDGATE_BODY_LIMIT_BYTES` if the budget is below 256 MiB.
        /// Default: a quarter of the memory limit of the container (cgroup), or of the machine.
        FEEDGATE_DOCUMENT_MEMORY_BYTES = "" => document_memory_bytes: Option<u64>, DOCUMENT_MEMORY;

        /// The minimum interval between the starts of two fetches from one host.
        FEEDGATE_HOST_MIN_INTERVAL_MS = "1000" => host_min_interval: Duration,
            milliseconds(0..=3_600_000);

        /// Domains whose hosts share one rate limit, in addition to the built-in list of platforms.
        /// A number after `=` is the minimum interval for this domain, in seconds. All nodes must
        /// have the same value.
        FEEDGATE_HOST_RATE_GROUPS = "" => host_rate_groups: Vec<(String, Option<Duration>)>,
            HOST_GROUPS;

        /// The shortest period between two polls of a resource, unless it is pinged. A server that
        /// never responds with "not modified" is polled three times less often, twelve times less
        /// often if the document is large. No resource is polled more than once a minute, and one
        /// that is not a feed not more than once in five minutes.
        FEEDGATE_MIN_PERIOD_S = "300" => min_period_s: u32, number("seconds", 1..=86_400);

        /// The poll budget: polls per second of all nodes together. If it is too small for all
        /// resources, periods become longer, those of resources with many subscribers by less. A
        /// budget larger than needed is not used up.
        FEEDGATE_POLLS_PER_S = "50" => polls_per_s: u32, number("polls", 1..=1_000_000);

        /// Whether the status of a feed includes the estimate `pornRank`.
        FEEDGATE_PORN_RANK = "off" => porn_rank: bool, SWITCH;

        /// Whether a subscription to a page at `/` is one to the feed that the page advertises, unless
        /// the request says `follow=false`. The hub at `/hub` follows pages only if a request says
        /// `follow=true`. See [following a page](delivery.md#following-a-page).
        FEEDGATE_FOLLOW = "off" => follow: bool, SWITCH;
    }

    "Backfill" {
        /// The maximum number of documents that a backfill reads. With 0, backfills are disabled.
        /// See [backfill](backfill.md).
        FEEDGATE_BACKFILL_PAGES = "500" => backfill_pages: u32, number("documents", 0..=100_000);

        /// The number of entries after which a backfill ends.
        FEEDGATE_BACKFILL_ENTRIES = "20000" => backfill_entries: u64,
            number("entries", 1..=10_000_000);

        /// The number of bytes, decompressed, after which a backfill ends.
        FEEDGATE_BACKFILL_BYTES = "268435456" => backfill_bytes: u64,
            number("bytes", 1..=1 << 40);
    }

    "Pings" {
        /// The minimum interval between two fetches of one resource that pings cause.
        FEEDGATE_PING_MIN_INTERVAL_MS = "1000" => ping_min_interval: Duration,
            milliseconds(0..=3_600_000);

        /// The secrets of publishers that send the content of a changed topic with
        /// `hub.mode=publish`, by the domain of the topic. Content that is signed with the secret of
        /// its domain is delivered at once; other content is not used, and the topic is fetched.
        FEEDGATE_PUBLISHER_SECRETS = "" => publisher_secrets: PublisherSecrets, PUBLISHER_SECRETS,
            secret;

        /// Whether the response to an rssCloud ping waits until all subscribers have been notified.
        /// `wait=1` or `wait=0`, in the form or the query of a ping, takes precedence.
        FEEDGATE_PING_WAIT = "off" => ping_wait: bool, SWITCH;

        /// The longest time that the response to a ping waits. Notifications continue after it.
        FEEDGATE_PING_WAIT_S = "10" => ping_wait_limit: Duration, seconds(1..=600);

        /// The servers that are pinged when a resource of `FEEDGATE_PING_FORWARDING` or a stored
        /// feed changes: a URL is called over XML-RPC, `get=URL` is requested with GET. In the
        /// latter, `{name}`, `{url}` and `{feed}` are replaced; without them, the parameters of
        /// `/pingSiteForm` are added. In the TOML file also `ping_targets = [{ url = "…", protocol
        /// = "get" }]`.
        FEEDGATE_PING_TARGETS = "" => ping_targets: Vec<PingTarget>, PING_TARGETS;

        /// The sites whose changes are forwarded to the ping targets, which should be done only at
        /// the request of their owners. A URL includes everything below it. Feeds stored below
        /// `/storage` are always forwarded. Other resources are forwarded only while they have a
        /// subscription, since nothing else is polled; the callback `…/dev/null` is enough.
        FEEDGATE_PING_FORWARDING = "" => ping_forwarding: Vec<Url>, URLS;
    }

    "rssCloud" {
        /// Whether this gateway replaces an rsscloud-server, whose clients and tests expect what that
        /// server does. `on` changes the defaults of three settings: `FEEDGATE_PING_MIN_INTERVAL_MS` is
        /// 0, `FEEDGATE_PING_WAIT` is `on`, and `FEEDGATE_RSSCLOUD_TELL_EXPIRY` is `off`. Each of them
        /// takes precedence where it is set.
        FEEDGATE_RSSCLOUD_COMPATIBLE = "off" => rsscloud_compatible: bool, SWITCH;

        /// Additional paths for rssCloud requests, as the `<cloud>` elements of your publishers
        /// name them. The word after `=` selects how a form posted there is interpreted: `register`
        /// (the default), `ping`, `cancel` or `hub` (WebSub); with `call`, no forms are accepted.
        /// XML-RPC and SOAP are accepted at all of these paths.
        FEEDGATE_RSSCLOUD_PATHS = "" => rsscloud_paths: CloudAliases, RSSCLOUD_PATHS;

        /// Additional names for rssCloud procedures. Names that end in `pleaseNotify`,
        /// `rssPleaseNotify` or `ping` are recognized without being listed.
        FEEDGATE_RSSCLOUD_PROCEDURES = "" => rsscloud_procedures: CloudAliases, RSSCLOUD_PROCEDURES;

        /// Whether the response to a registration has an attribute `expires`. Turn it off for
        /// clients that compare the whole response.
        FEEDGATE_RSSCLOUD_TELL_EXPIRY = "on" => rsscloud_tell_expiry: bool, SWITCH;

        /// Whether the response to a ping that waited because of `FEEDGATE_PING_WAIT` has an attribute
        /// `told`, with the number of subscribers that were notified. It always has one if the ping
        /// itself has `wait=1`.
        FEEDGATE_RSSCLOUD_TELL_COUNT = "off" => rsscloud_tell_count: bool, SWITCH;
    }

    "Delivery" {
        /// The maximum number of concurrent deliveries that have begun within half a second. As many that
        /// take longer continue beside them, so that callbacks that hang delay no others.
        FEEDGATE_DELIVERY_CONCURRENCY = "512" => delivery_concurrency: usize,
            number("", 1..=100_000);

        /// The highest number of deliveries in progress at once to one host, slow ones included. A host
        /// begins with 8, or this number if it is lower. It is sent more at once while it responds
        /// quickly, and half as many after a 429, a 503, a rise of its latency, or a timeout if it
        /// accepted nothing quickly meanwhile. Some are kept for other feeds than the one that is sent.
        FEEDGATE_DELIVERY_CONCURRENCY_PER_HOST = "32" => delivery_concurrency_per_host: usize,
            number("", 1..=100_000);

        /// The time limit for one delivery or verification.
        FEEDGATE_DELIVERY_TIMEOUT_S = "10" => delivery_timeout: Duration, seconds(1..=60);

        /// The hash function of `X-Hub-Signature` for subscriptions of accounts that request no other.
        /// `sha1` is the only one that every Superfeedr client can verify. Open subscriptions at `/hub`
        /// that request no other have `sha256`, but for those that an earlier version made.
        FEEDGATE_SIGNATURE = "sha1" => signature: SignatureMethod, SIGNATURE;
    }

    "Archives and collections" {
        /// The maximum number of records in one archive document. A change applies to new records
        /// only: a full document never changes. All nodes should have the same value.
        FEEDGATE_PAGE_RECORDS = "50" => page_records: i64, number("records", 1..=1_000);

        /// The maximum total size of the records in one archive document. A longer record gets a
        /// document of its own.
        FEEDGATE_PAGE_BYTES = "1048576" => page_bytes: i64, number("bytes", 1_024..=1 << 26);

        /// How long archive documents are kept; 0 keeps them forever. A document is deleted as a
        /// whole, once its newest record is older than this and has been delivered to all
        /// subscribers. The newest document is always kept.
        FEEDGATE_ARCHIVE_RETENTION_DAYS = "0" => archive_retention_days: Option<u32>,
            limit("days", 0..=u32::MAX as u64);

        /// The number of documents to keep of each archive; 0 keeps all.
        FEEDGATE_ARCHIVE_RETENTION_PAGES = "0" => archive_retention_pages: Option<u32>,
            limit("documents", 0..=u32::MAX as u64);

        /// The size of the memory cache for archive documents, compressed forms included. See
        /// [archives](archives.md).
        FEEDGATE_ARCHIVE_CACHE_BYTES = "67108864" => archive_cache_bytes: usize,
            number("bytes", 0..=1 << 40);

        /// Whether all public entries are collected in one archive, `/all/recent`. This stores each
        /// entry a second time.
        FEEDGATE_COLLECT_ALL = "off" => collect_all: bool, SWITCH;

        /// Collections of topics, each with an archive at `/collections/NAME/recent`. In the TOML
        /// file, write one table `[[collections]]` for each, with `name`, `topics` and, if only one
        /// account may read it, `account`; in the environment, write the same as JSON. All nodes
        /// must have the same value. See [archives](archives.md).
        FEEDGATE_COLLECTIONS = "" => collections: Vec<ConfiguredCollection>, COLLECTIONS;
    }

    "Search" {
        /// Whether stored entries can be searched with `hub.mode=search`. The index takes 1.6 kB of disk
        /// space for each entry on SQLite, and 3.7 kB on PostgreSQL. When it is switched off, it is
        /// deleted; when it is switched on again, it is built from what is stored. All nodes must have
        /// the same value. See [search](search.md#the-search-index).
        FEEDGATE_SEARCH = "on" => search: bool, SWITCH;
    }

    "changes.xml" {
        /// The unit of `when` in changes.xml and similar documents. The specification of 2007 uses
        /// minutes; the original used seconds, which older readers expect. A request can choose
        /// with `?when=`. Documents of past hours do not change.
        FEEDGATE_CHANGES_WHEN_UNIT = "minutes" => changes_when_unit: TimeUnit, WHEN_UNIT;

        /// How long pings are kept. Hourly documents do not depend on it.
        FEEDGATE_PING_RETENTION_H = "168" => ping_retention: Duration, hours(2..=1_000_000);

        /// How long the hourly documents `/YYYY/MM/DD/HH.xml` are kept; 0 keeps them forever.
        FEEDGATE_HOURLY_CHANGES_RETENTION_DAYS = "366" => hourly_changes_retention: Option<Duration>,
            days_or_forever(0..=100_000);
    }

    "Feed storage" {
        /// The size limit for a feed that is stored for an author. A `saveRss` request may be twice
        /// as long, since the markup in it is escaped.
        FEEDGATE_STORAGE_FILE_BYTES = "1048576" => storage_file_bytes: usize,
            number("bytes", 1_024..=1 << 26);

        /// The maximum number of feeds that one account may store.
        FEEDGATE_STORAGE_FILES = "20" => storage_files: usize, number("feeds", 1..=100_000);

        /// The maximum total size of the feeds that one account may store.
        FEEDGATE_STORAGE_BYTES = "10485760" => storage_bytes: usize,
            number("bytes", 1_024..=1 << 40);

        /// The password with which `feedgate post --cloud` signs in. Without it, the password is
        /// the first line of standard input.
        FEEDGATE_PASSWORD = "" => password: Option<Password>, PASSWORD, secret;
    }

    "Access" {
        /// What callers without an account may do, separated by commas. `hub`: subscribe at `/hub`.
        /// `rsscloud`: register and cancel. `pings`: report changes, in all ways. `storage`: read
        /// stored feeds. `views`: read archives, lists, statistics, `/changes.xml` and the event log.
        /// `try`: see what is at an address, at `/try`. `none`: nothing of these. What is not listed is for accounts only. `inner-addresses`, which
        /// is not in the default, lets them name topics and callbacks in the private networks that
        /// `FEEDGATE_EGRESS_ALLOW_TOPIC_CIDRS` and `FEEDGATE_EGRESS_ALLOW_CALLBACK_CIDRS` allow. They
        /// are otherwise for accounts, and for programs on this machine that name others on it. See [without an
        /// account](#without-an-account).
        FEEDGATE_ANONYMOUS = "hub,rsscloud,pings,storage,views,try" => anonymous: AnonymousAccess,
            ANONYMOUS;

        /// The number of requests without an account that one address may make per minute:
        /// registrations, subscriptions, pings and pages of `/subscriptions.json`. An IPv6 /64 counts
        /// as one address, and each URL in a request counts as one request. Requests beyond it are
        /// rejected with an error of their protocol. Only programs on this machine have no limit. Behind
        /// a proxy, set `FEEDGATE_TRUSTED_PROXIES`: without it, or where the proxy does not name its
        /// client, all clients of the proxy count as one address.
        FEEDGATE_ANONYMOUS_REQUESTS_PER_MIN = "600" => anonymous_requests_per_min: usize,
            number("requests", 1..=1_000_000);

        /// The maximum number of open subscriptions, which no account owns, with callbacks at one
        /// host. Those at other ports of the host are counted too. Further subscriptions are refused;
        /// existing ones can be renewed.
        FEEDGATE_SUBSCRIPTIONS_PER_HOST = "200000" => subscriptions_per_host: u64,
            number("subscriptions", 1..=1_000_000_000);

        /// The maximum number of subscriptions of one account. Further subscriptions are refused;
        /// existing ones can be renewed.
        FEEDGATE_SUBSCRIPTIONS_PER_ACCOUNT = "1000000" => subscriptions_per_account: u64,
            number("subscriptions", 1..=1_000_000_000);

        /// The number of requests that one account may make per minute; all of them may be made at
        /// once. Requests beyond it are rejected with 429. Each subscription of a batch counts as one
        /// request.
        FEEDGATE_ACCOUNT_REQUESTS_PER_MIN = "60000" => account_requests_per_min: usize,
            number("requests", 1..=10_000_000);

        /// How many bytes a resource may store in a day that only subscribers without an account
        /// watch; a quarter of it at once. Once it is used up, the resource is fetched later. All such
        /// resources whose subscriptions were first requested from one network, an address of IPv4 or a
        /// /64 of IPv6, may store 16 times as much, first documents included; then they are fetched on
        /// the next day, in UTC. Each entry counts 1,024 bytes more than its text. The raw body of a
        /// resource counts as far as it is longer than before, or longer than 256 KiB.
        FEEDGATE_ANONYMOUS_STORAGE_BYTES_PER_DAY = "268435456" => anonymous_bytes_per_day: u64,
            number("bytes", 1_048_576..=1_099_511_627_776);

        /// How many bytes may be stored in a day of the resources that an account watches. What a
        /// resource stores is counted once, for one of the accounts that watch it. Once all of these
        /// have used up their budgets, the resource is fetched again on the next day, in UTC. Each
        /// entry counts 1,024 bytes more than its text. With several cells, each has an equal part of
        /// the budget. The default is enough for a million feeds with ten entries a day.
        FEEDGATE_ACCOUNT_STORAGE_BYTES_PER_DAY = "34359738368" => account_bytes_per_day: u64,
            number("bytes", 1_048_576..=1_125_899_906_842_624);

        /// Networks that may read `/metrics`, by default this machine only: add the network of your
        /// Prometheus. A client behind one of `FEEDGATE_TRUSTED_PROXIES` is identified by the address
        /// that the proxy reports; a client behind any other proxy, or behind one that reports no
        /// address, is refused. Requests that a page of another site makes through a browser in these networks
        /// are refused as well, and so are requests whose `Host` is not an IP address, a name
        /// without a dot or the host of `FEEDGATE_PUBLIC_URL`.
        FEEDGATE_METRICS_NETWORKS = "127.0.0.0/8,::1" => metrics_networks: Vec<IpNet>, NETWORKS;

        /// The maximum age of the gauges in `/metrics`, which are counted in the database; 0 counts
        /// them for each request.
        FEEDGATE_GAUGES_MAX_AGE_S = "60" => gauges_max_age: Duration, seconds(0..=3_600);

        /// Whether everybody may see which resources are polled, and for whom. See [public
        /// views](#public-views).
        FEEDGATE_PUBLIC_VIEWS = "on" => public_views: bool, SWITCH;

        /// Whether lists also contain the feeds that only accounts subscribe to. By default, they contain
        /// those that somebody without an account subscribes to. Private feeds are never listed. See
        /// [who sees which feed](#who-sees-which-feed).
        FEEDGATE_LIST_ACCOUNT_FEEDS = "off" => list_account_feeds: bool, SWITCH;
    }

    "Maintenance" {
        /// How long permanent redirects that were followed are listed, and can be undone; 0 keeps
        /// them forever. The resource stays at its new URL.
        FEEDGATE_MOVE_RETENTION_DAYS = "365" => move_retention: Option<Duration>,
            days_or_forever(0..=100_000);

        /// How long API tokens are listed after they were revoked or expired; 0 keeps them forever. Of one
        /// account, the newest 1,000 are listed at most.
        FEEDGATE_REVOKED_TOKEN_RETENTION_DAYS = "30" => revoked_token_retention: Option<Duration>,
            days_or_forever(0..=100_000);

        /// How long the result of a backfill is reported after its end; 0 keeps it forever. The
        /// entries stay in the archive. See [backfill](backfill.md).
        FEEDGATE_BACKFILL_RETENTION_DAYS = "30" => backfill_retention: Option<Duration>,
            days_or_forever(0..=100_000);
    }

    "Logs" {
        /// The log level, or one level for each part of the program.
        FEEDGATE_LOG = "info" => log: String, LOG_FILTER;

        /// The format of log lines on standard error. `json` writes one object per line.
        FEEDGATE_LOG_FORMAT = "text" => log_format: LogFormat, LOG_FORMAT;

        /// How long the event log (`/viewLog`) keeps events.
        FEEDGATE_EVENT_RETENTION_DAYS = "14" => event_retention: Duration, days(1..=3_650);

        /// The maximum number of events of each kind in the event log. A flood of pings thus
        /// replaces only older pings.
        FEEDGATE_MAX_EVENTS_PER_KIND = "20000" => max_events_per_kind: usize,
            number("events", 1..=10_000_000);

        /// The maximum number of recorded delivery attempts of each subscription. With 0, attempts
        /// are not recorded. They are kept no longer than events.
        FEEDGATE_ATTEMPTS_PER_SUBSCRIPTION = "20" => attempts_per_subscription: usize,
            number("attempts", 0..=1_000);

        /// The maximum number of recorded delivery attempts of all subscriptions. An attempt takes
        /// up to 12 kB.
        FEEDGATE_ATTEMPTS_MAX = "100000" => attempts_max: usize,
            number("attempts", 1..=10_000_000);
    }
}
