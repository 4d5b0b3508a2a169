//! The gateway that is measured: the real program, in a process of its own.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Once;
use std::time::Duration;

use futures_util::StreamExt;

use super::Trouble;
use super::sink::Sink;

/// Between two looks at another process.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// Registrations in progress at once.
const REGISTERED_TOGETHER: usize = 64;
/// What the kernel counts processor time in.
const TICKS_PER_S: f64 = 100.0;

/// It runs until it is dropped.
pub(crate) struct Gateway {
    child: Child,
    url: String,
    client: reqwest::Client,
}

impl Gateway {
    /// Starts one that may reach this machine, and waits until it takes requests.
    #[expect(clippy::disallowed_methods, reason = "what is measured listens on loopback")]
    pub(crate) async fn start(database: &str) -> Result<Gateway, Trouble> {
        static TLS: Once = Once::new();
        TLS.call_once(|| {
            // Reqwest wants to know which TLS it may use, though none is used here.
            let _ = rustls::crypto::ring::default_provider().install_default();
        });
        let listen = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let own = env!("CARGO_BIN_EXE_feedgate").into();
        let program = std::env::var_os("FEEDGATE_BENCH_PROGRAM").unwrap_or(own);
        let child = Command::new(program)
            .arg("serve")
            .env_clear()
            .env("FEEDGATE_LISTEN", listen.to_string())
            .env("FEEDGATE_DATABASE", database)
            .env("FEEDGATE_GAUGES_MAX_AGE_S", "0")
            .env("FEEDGATE_EGRESS_ALLOW_TOPIC_CIDRS", "127.0.0.0/8")
            .env("FEEDGATE_EGRESS_ALLOW_CALLBACK_CIDRS", "127.0.0.0/8")
            .env("FEEDGATE_HOST_MIN_INTERVAL_MS", "0")
            .env("FEEDGATE_PING_MIN_INTERVAL_MS", "0")
            .env("FEEDGATE_ANONYMOUS_REQUESTS_PER_MIN", "1000000")
            .env("FEEDGATE_LOG", "error")
            .stdout(Stdio::null())
            .spawn()?;
        let client = reqwest::Client::builder().no_proxy().build()?;
        let gateway = Gateway { child, url: format!("http://{listen}"), client };
        while !gateway.is_ready().await {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Ok(gateway)
    }

    async fn is_ready(&self) -> bool {
        let ready = self.client.get(format!("{}/readyz", self.url)).send().await;
        ready.is_ok_and(|answer| answer.status().is_success())
    }

    async fn post(&self, path: &str, form: &[(&str, &str)]) -> Result<String, Trouble> {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let request = self.client.post(format!("{}{path}", self.url)).body(body);
        Ok(request.send().await?.text().await?)
    }

    /// Registers all subscribers, some at a time.
    pub(crate) async fn register_all(&self, sink: &Sink, many: usize) -> Result<(), Trouble> {
        let registering = (0..many).map(|n| self.register(sink, n));
        let mut registering =
            futures_util::stream::iter(registering).buffer_unordered(REGISTERED_TOGETHER);
        while let Some(registered) = registering.next().await {
            registered?;
        }
        Ok(())
    }

    async fn register(&self, sink: &Sink, n: usize) -> Result<(), Trouble> {
        let (port, topic, domain) = (sink.port().to_string(), sink.topic(), sink.domain(n));
        let path = format!("/{n}");
        let mut form = vec![
            ("port", port.as_str()),
            ("path", &path),
            ("protocol", "http-post"),
            ("url1", &topic),
        ];
        // Whoever names no domain is notified at the address it registers from.
        if sink.has_own_addresses() {
            form.push(("domain", &domain));
        }
        let answer = self.post("/pleaseNotify", &form).await?;
        if answer.contains("success=\"true\"") { Ok(()) } else { Err(answer.into()) }
    }

    /// Says that the feed has changed.
    pub(crate) async fn ping(&self, topic: &str) -> Result<(), Trouble> {
        let answer = self.post("/ping", &[("url", topic)]).await?;
        if answer.contains("success=\"true\"") { Ok(()) } else { Err(answer.into()) }
    }

    /// Waits until nobody is owed anything.
    pub(crate) async fn rested(&self) -> Result<(), Trouble> {
        loop {
            let metrics = self.client.get(format!("{}/metrics", self.url)).send().await?;
            if metrics.text().await?.contains("\nfeedgate_subscriptions_due 0\n") {
                return Ok(());
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// The processor time it has taken so far, in seconds.
    pub(crate) fn cpu(&self) -> Result<f64, Trouble> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let (_, fields) = stat.rsplit_once(')').ok_or("the system says something else")?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let ticks: f64 = fields[11].parse::<f64>()? + fields[12].parse::<f64>()?;
        Ok(ticks / TICKS_PER_S)
    }

    /// The most memory it ever held, in MiB.
    pub(crate) fn peak_mib(&self) -> Result<f64, Trouble> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kb = line.and_then(|line| line.split_whitespace().next());
        Ok(kb.ok_or("the system does not say")?.parse::<f64>()? / 1_024.0)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
