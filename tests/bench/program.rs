//! The program that is measured, in a process of its own.

use std::error::Error;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Once;
use std::time::Duration;

/// The interval between two looks at another process.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// The unit in which the kernel counts processor time.
const TICKS_PER_S: f64 = 100.0;

/// A gateway that runs until it is dropped.
pub(crate) struct Program {
    child: Child,
    url: String,
    client: reqwest::Client,
}

impl Program {
    /// Starts a gateway that may reach this machine, with further settings, and waits until it takes
    /// requests. `FEEDGATE_BENCH_PROGRAM` names another build to measure.
    #[expect(clippy::disallowed_methods, reason = "what is measured listens on loopback")]
    pub(crate) async fn start(
        database: &str,
        settings: &[(&str, &str)],
    ) -> Result<Program, Box<dyn Error + Send + Sync>> {
        static TLS: Once = Once::new();
        TLS.call_once(|| {
            // Reqwest wants to know which TLS it may use, though none is used here.
            let _ = rustls::crypto::ring::default_provider().install_default();
        });
        let listen = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let child = command()
            .arg("serve")
            .env("FEEDGATE_LISTEN", listen.to_string())
            .env("FEEDGATE_DATABASE", database)
            .env("FEEDGATE_GAUGES_MAX_AGE_S", "0")
            .env("FEEDGATE_EGRESS_ALLOW_TOPIC_CIDRS", "127.0.0.0/8")
            .env("FEEDGATE_EGRESS_ALLOW_CALLBACK_CIDRS", "127.0.0.0/8")
            .env("FEEDGATE_HOST_MIN_INTERVAL_MS", "0")
            .env("FEEDGATE_PING_MIN_INTERVAL_MS", "0")
            .env("FEEDGATE_ANONYMOUS_REQUESTS_PER_MIN", "1000000")
            .env("FEEDGATE_LOG", "error")
            .envs(settings.iter().copied())
            .stdout(Stdio::null())
            .spawn()?;
        let client = reqwest::Client::builder().no_proxy().build()?;
        let program = Program { child, url: format!("http://{listen}"), client };
        while !program.is_ready().await {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Ok(program)
    }

    async fn is_ready(&self) -> bool {
        let ready = self.client.get(format!("{}/readyz", self.url)).send().await;
        ready.is_ok_and(|answer| answer.status().is_success())
    }

    /// The address of the gateway, without a slash at its end.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The client of the bench.
    pub(crate) fn client(&self) -> &reqwest::Client {
        &self.client
    }

    /// Sends a form, and returns the text of the answer.
    pub(crate) async fn post(
        &self,
        path: &str,
        form: &[(&str, &str)],
    ) -> Result<String, Box<dyn Error + Send + Sync>> {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let request = self.client.post(format!("{}{path}", self.url)).body(body);
        Ok(request.send().await?.text().await?)
    }

    /// The processor time that the gateway has taken so far, in seconds.
    pub(crate) fn cpu(&self) -> Result<f64, Box<dyn Error + Send + Sync>> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let (_, fields) = stat.rsplit_once(')').ok_or("the system says something else")?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let ticks: f64 = fields[11].parse::<f64>()? + fields[12].parse::<f64>()?;
        Ok(ticks / TICKS_PER_S)
    }

    /// A size of the memory of the gateway in MiB: `VmHWM` is the peak, `VmRSS` the present one.
    pub(crate) fn memory_mib(&self, field: &str) -> Result<f64, Box<dyn Error + Send + Sync>> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        let kb = line.and_then(|line| line.split_whitespace().next());
        Ok(kb.ok_or("the system does not say")?.parse::<f64>()? / 1_024.0)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program, without arguments, and without the settings of the bench, which it would refuse.
pub(crate) fn command() -> Command {
    let own = env!("CARGO_BIN_EXE_feedgate").into();
    let mut command = Command::new(std::env::var_os("FEEDGATE_BENCH_PROGRAM").unwrap_or(own));
    command.env_clear();
    command
}
