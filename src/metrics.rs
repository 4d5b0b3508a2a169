//! The counters of this node, for `/metrics`.
//!
//! A counter is a field of [`Metrics`], registered under its name in [`Metrics::new`], and a method
//! that names the event it counts. Numbers that the database knows (how many resources and
//! subscriptions, how late) are not kept here: they are read when the metrics are requested, see
//! `http/routes/ops/metrics.rs`. Labels come from bounded sets only; no URL and no name of a
//! subscriber is one. The exported name is the registered one with the prefix `feedgate_` and, for
//! counters, the suffix `_total`.

mod node_traffic;
mod process;
mod text_format;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use crate::document_budget::BudgetUsage;
use feedgate_core::store::EndedTransaction;

pub use node_traffic::NodeTraffic;
pub use text_format::TextFormat;

type Label = (&'static str, &'static str);
type Counters<const N: usize> = Family<[Label; N], Counter>;
type Histograms<const N: usize> = Family<[Label; N], Histogram, fn() -> Histogram>;

/// What the names of all metrics but those of the process begin with.
pub const PREFIX: &str = "feedgate";

/// The counters of one node. Clones count together.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    traffic: Arc<NodeTraffic>,
    polls: Counters<2>,
    poll_seconds: Histogram,
    fetched_bytes: Counter,
    records: Counter,
    network_outage: Gauge,
    polls_put_off: Counter,
    documents: DocumentGauges,
    store_transaction_seconds: Histograms<2>,
    deliveries: Counters<2>,
    deliveries_ok: Counter,
    deliveries_failed: Counter,
    unrecorded_attempts: Counters<1>,
    delivery_seconds: Histogram,
    delivery_delay_seconds: Histogram,
    verifications: Counters<2>,
    pings: Counters<1>,
    upstream_requests: Counters<2>,
    upstream_pushes: Counters<2>,
    forwarded_pings: Counters<2>,
    alerts: Counters<1>,
    http_requests: Counters<2>,
    http_request_seconds: Histogram,
}

/// The use of the memory for documents.
#[derive(Clone, Default)]
struct DocumentGauges {
    memory: Gauge,
    memory_limit: Gauge,
    waiting: Gauge,
    parsing: Gauge,
}

impl DocumentGauges {
    fn register(registry: &mut Registry) -> DocumentGauges {
        let gauges = DocumentGauges::default();
        let help = "Memory reserved for documents and bodies of requests";
        let memory = gauges.memory.clone();
        registry.register_with_unit("document_memory", help, Unit::Bytes, memory);
        let help = "Memory that documents and bodies of requests may take";
        let limit = gauges.memory_limit.clone();
        registry.register_with_unit("document_memory_limit", help, Unit::Bytes, limit);
        let help = "Documents and bodies that wait for memory or for a parser";
        registry.register("documents_waiting", help, gauges.waiting.clone());
        let help = "Documents that are being parsed";
        registry.register("documents_parsing", help, gauges.parsing.clone());
        gauges
    }
}

impl Metrics {
    /// All at zero.
    pub fn new() -> Metrics {
        let mut registry = Registry::with_prefix(PREFIX);
        register_build_info(&mut registry);
        let mut metrics = Metrics {
            registry: Arc::new(Registry::default()),
            traffic: Arc::default(),
            polls: Family::default(),
            poll_seconds: seconds(),
            fetched_bytes: Counter::default(),
            records: Counter::default(),
            network_outage: Gauge::default(),
            polls_put_off: Counter::default(),
            documents: DocumentGauges::register(&mut registry),
            store_transaction_seconds: register_store_transactions(&mut registry),
            deliveries: Family::default(),
            deliveries_ok: Counter::default(),
            deliveries_failed: Counter::default(),
            unrecorded_attempts: Family::default(),
            delivery_seconds: seconds(),
            delivery_delay_seconds: seconds(),
            verifications: Family::default(),
            pings: Family::default(),
            upstream_requests: Family::default(),
            upstream_pushes: Family::default(),
            forwarded_pings: Family::default(),
            alerts: Family::default(),
            http_requests: Family::default(),
            http_request_seconds: seconds(),
        };
        registry.register("polls", "Polls, by outcome and what caused them", metrics.polls.clone());
        let help = "From the first lookup to the last byte of a fetch";
        registry.register_with_unit("poll", help, Unit::Seconds, metrics.poll_seconds.clone());
        let help = "Received from publishers, before content decoding";
        registry.register_with_unit("fetched", help, Unit::Bytes, metrics.fetched_bytes.clone());
        registry.register("records", "Records appended to logs", metrics.records.clone());
        let help = "Whether most fetches of this node fail in the same way: its own outage";
        registry.register("network_outage", help, metrics.network_outage.clone());
        let help = "Polls postponed because their host, its address or this gateway was busy";
        registry.register("polls_put_off", help, metrics.polls_put_off.clone());
        let help = "Attempts to deliver, by protocol and result";
        registry.register("deliveries", help, metrics.deliveries.clone());
        let help =
            "Attempts to deliver that were not recorded because there were too many, by verdict";
        registry.register("unrecorded_attempts", help, metrics.unrecorded_attempts.clone());
        let help = "From the start of an attempt to the response of the callback";
        let attempts = metrics.delivery_seconds.clone();
        registry.register_with_unit("delivery", help, Unit::Seconds, attempts);
        let help = "From the append of the oldest delivered record to the response of the callback";
        let delay = metrics.delivery_delay_seconds.clone();
        registry.register_with_unit("delivery_delay", help, Unit::Seconds, delay);
        metrics.register_requests(&mut registry);
        metrics.registry = Arc::new(registry);
        metrics.create_expected_series();
        metrics
    }

    /// Creates at 0 the series of what is to be expected of a gateway: Prometheus sees no increase in a
    /// series that begins at 1, and a panel or alert about a family without series shows nothing.
    fn create_expected_series(&self) {
        let families = [
            (&self.polls, [("outcome", "ok_new"), ("trigger", "schedule")]),
            (&self.deliveries, [("protocol", "websub"), ("result", "ok")]),
            (&self.verifications, [("mode", "subscribe"), ("result", "ok")]),
            (&self.upstream_requests, [("protocol", "websub"), ("result", "ok")]),
            (&self.upstream_pushes, [("protocol", "websub"), ("result", "signed")]),
            (&self.forwarded_pings, [("method", "xml-rpc"), ("result", "ok")]),
            (&self.http_requests, [("endpoint", "metrics"), ("status", "2xx")]),
        ];
        for (family, labels) in families {
            drop(family.get_or_create(&labels));
        }
        drop(self.pings.get_or_create(&[("source", "publish")]));
        drop(self.alerts.get_or_create(&[("result", "ok")]));
    }

    /// Registers what counts the requests of others, and those that follow from them.
    fn register_requests(&self, registry: &mut Registry) {
        let help = "Verifications of intent, by mode and result";
        registry.register("verifications", help, self.verifications.clone());
        registry.register("pings", "Pings received, by source", self.pings.clone());
        let help = "Subscription requests to hubs and clouds, by protocol and result";
        registry.register("upstream_requests", help, self.upstream_requests.clone());
        let help = "Pushes from hubs and clouds, by protocol and whether they were accepted";
        registry.register("upstream_pushes", help, self.upstream_pushes.clone());
        let help = "Pings forwarded to ping targets, by method and result";
        registry.register("forwarded_pings", help, self.forwarded_pings.clone());
        registry.register("alerts", "Requests to alert addresses, by result", self.alerts.clone());
        let help = "HTTP requests, by endpoint and class of status code";
        registry.register("http_requests", help, self.http_requests.clone());
        let help = "From the headers of an HTTP request to its reply";
        let seconds = self.http_request_seconds.clone();
        registry.register_with_unit("http_request", help, Unit::Seconds, seconds);
    }

    /// The memory for documents is used like this.
    pub fn documents(&self, usage: BudgetUsage) {
        let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        self.documents.memory.set(number(usage.bytes));
        self.documents.memory_limit.set(number(usage.limit_bytes));
        self.documents.waiting.set(number(usage.waiting as u64));
        self.documents.parsing.set(number(usage.parsing as u64));
    }

    /// A poll ended. `outcome` is its stable word, `trigger` what caused it.
    pub fn polled(&self, outcome: &'static str, trigger: &'static str, took: Duration) {
        self.polls.get_or_create(&[("outcome", outcome), ("trigger", trigger)]).inc();
        self.poll_seconds.observe(took.as_secs_f64());
    }

    /// A fetch received this much, and this many records were new.
    pub fn fetched(&self, wire_bytes: u64, records: usize) {
        self.fetched_bytes.inc_by(wire_bytes);
        self.records.inc_by(records as u64);
    }

    /// A poll was put off, because its host, its address or this gateway was busy.
    pub fn poll_put_off(&self) {
        self.polls_put_off.inc();
    }

    /// This node is cut off, or is not any more.
    pub fn network_outage(&self, is_cut_off: bool) {
        self.network_outage.set(is_cut_off.into());
    }

    /// A sink was told of a change. `result` is `ok` or why not.
    pub fn ping_forwarded(&self, method: &'static str, result: &'static str) {
        self.forwarded_pings.get_or_create(&[("method", method), ("result", result)]).inc();
    }

    /// A request to an alert address ended. `result` is `ok` or why not.
    pub fn alerts_sent(&self, result: &'static str) {
        self.alerts.get_or_create(&[("result", result)]).inc();
    }

    /// An attempt to deliver ended. `result` is `ok` or why not.
    pub fn delivered(&self, protocol: &'static str, result: &'static str, took: Duration) {
        self.deliveries.get_or_create(&[("protocol", protocol), ("result", result)]).inc();
        if result == "ok" {
            self.deliveries_ok.inc()
        } else {
            self.deliveries_failed.inc()
        };
        self.delivery_seconds.observe(took.as_secs_f64());
    }

    /// So many attempts to deliver with this verdict were not recorded.
    pub fn attempts_not_recorded(&self, verdict: &'static str, many: u64) {
        self.unrecorded_attempts.get_or_create(&[("verdict", verdict)]).inc_by(many);
    }

    /// How many attempts to deliver went well, and how many did not.
    pub fn deliveries(&self) -> (u64, u64) {
        (self.deliveries_ok.get(), self.deliveries_failed.get())
    }

    /// A callback acknowledged a record that had waited this long.
    pub fn waited(&self, delay: Duration) {
        self.delivery_delay_seconds.observe(delay.as_secs_f64());
    }

    /// Returns what is counted by minutes and hours, for the charts of the console.
    pub fn traffic(&self) -> &NodeTraffic {
        &self.traffic
    }

    /// A verification of intent ended.
    pub fn verified(&self, mode: &'static str, result: &'static str) {
        self.verifications.get_or_create(&[("mode", mode), ("result", result)]).inc();
    }

    /// A ping came from this source.
    pub fn pinged(&self, source: &'static str) {
        self.pings.get_or_create(&[("source", source)]).inc();
    }

    /// An upstream was asked to tell us. `result` is `ok` or why it does not.
    pub fn upstream_requested(&self, protocol: &'static str, result: &'static str) {
        self.upstream_requests.get_or_create(&[("protocol", protocol), ("result", result)]).inc();
    }

    /// An upstream told of a change. `result` is `signed` for what is believed as it is,
    /// `hint` for what leads to a poll.
    pub fn record_upstream_push(&self, protocol: &'static str, result: &'static str) {
        self.upstream_pushes.get_or_create(&[("protocol", protocol), ("result", result)]).inc();
    }

    /// An HTTP request was answered. `class` is `2xx` and the like.
    pub fn http_request(&self, endpoint: &'static str, class: &'static str, took: Duration) {
        self.http_requests.get_or_create(&[("endpoint", endpoint), ("status", class)]).inc();
        self.http_request_seconds.observe(took.as_secs_f64());
    }

    /// A transaction of the store ended.
    pub fn transaction_ended(&self, ended: &EndedTransaction) {
        let labels = [("engine", ended.engine), ("kind", ended.kind)];
        let seconds = self.store_transaction_seconds.get_or_create(&labels);
        seconds.observe(ended.took.as_secs_f64());
    }

    /// Returns all of them, the figures of the process, and those in `more`, as one document.
    pub fn encode(&self, more: &Registry, format: TextFormat) -> String {
        let mut text = String::new();
        for registry in [&*self.registry, more, &process::registry()] {
            // Writing to a String does not fail.
            text::encode_registry(&mut text, registry).unwrap_or_default();
        }
        format.finish(text)
    }
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics(..)")
    }
}

fn register_build_info(registry: &mut Registry) {
    let labels = [
        ("version", env!("CARGO_PKG_VERSION")),
        ("os", std::env::consts::OS),
        ("arch", std::env::consts::ARCH),
    ];
    registry.register("build", "The program that runs, which is always 1", Info::new(labels));
}

fn register_store_transactions(registry: &mut Registry) -> Histograms<2> {
    let transactions: Histograms<2> = Family::new_with_constructor(transaction_seconds);
    let help =
        "Transactions of the store, with waits for a connection and other writers, by database";
    registry.register_with_unit("store_transaction", help, Unit::Seconds, transactions.clone());
    transactions
}

/// From a read of SQLite that is in memory to the time limit of a statement on PostgreSQL.
fn transaction_seconds() -> Histogram {
    Histogram::new([0.0001, 0.0005, 0.001, 0.005, 0.02, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0])
}

/// From a millisecond on the same machine to the longest timeouts, an hour for delays.
fn seconds() -> Histogram {
    Histogram::new([0.001, 0.005, 0.02, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0, 3_600.0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_written_in_the_text_format() {
        let metrics = Metrics::new();
        metrics.clone().delivered("websub", "ok", Duration::from_millis(3));
        metrics.fetched(120, 2);
        assert_eq!(metrics.deliveries(), (1, 0));
        let took = Duration::from_micros(300);
        metrics.transaction_ended(&EndedTransaction { engine: "sqlite", kind: "read", took });
        let text = metrics.encode(&Registry::default(), TextFormat::OpenMetrics);
        for line in [
            r#"feedgate_deliveries_total{protocol="websub",result="ok"} 1"#,
            "feedgate_delivery_seconds_count 1",
            "feedgate_fetched_bytes_total 120",
            "feedgate_records_total 2",
            r#"feedgate_store_transaction_seconds_bucket{le="0.0005",engine="sqlite",kind="read"} 1"#,
        ] {
            assert!(text.lines().any(|held| held == line), "{line} not in:\n{text}");
        }
        assert!(text.contains("\nfeedgate_build_info{version=\""), "{text}");
        assert!(text.ends_with("\n# EOF\n"));
    }
}
