//! The servers that are compared, each in a process of its own.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use super::AnyError;

/// Between two looks at another process.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Records in a document.
pub(crate) const PAGE_RECORDS: &str = "10";

/// Installs what is missing, and says so.
pub(crate) fn install() -> Result<(), AnyError> {
    for program in ["nginx", "wrk"] {
        let is_there = Command::new("which").arg(program).stdout(Stdio::null()).status()?;
        if is_there.success() {
            continue;
        }
        eprintln!("installing {program} of Debian, which is only needed here");
        let mut install = Command::new("apt-get");
        install.args(["install", "-y", "-qq", "--no-install-recommends", program]);
        // The package would start it.
        install.env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1");
        if !install.stdout(Stdio::null()).status()?.success() {
            return Err(format!("{program} cannot be installed").into());
        }
    }
    Ok(())
}

/// A client for everything that is not measured.
#[expect(clippy::disallowed_methods, reason = "what is measured listens on loopback")]
pub(crate) fn client() -> &'static reqwest::Client {
    static CLIENT: OnceLock<reqwest::Client> = OnceLock::new();
    CLIENT.get_or_init(|| {
        // Reqwest wants to know which TLS it may use, though none is used here.
        let _ = rustls::crypto::ring::default_provider().install_default();
        reqwest::Client::builder().no_proxy().build().unwrap_or_default()
    })
}

fn free_port() -> Result<u16, AnyError> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// A process that ends with this value.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // Asked to end, because workers of nginx outlive a master that is killed.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

/// `feedgate serve`.
pub(crate) struct Gateway {
    url: String,
    _process: Process,
}

impl Gateway {
    /// Starts one whose archive documents in memory may take so many bytes, and waits until
    /// it takes requests.
    pub(crate) async fn start(database: &str, cache_bytes: &str) -> Result<Gateway, AnyError> {
        let listen = format!("127.0.0.1:{}", free_port()?);
        let child = Command::new(env!("CARGO_BIN_EXE_feedgate"))
            .arg("serve")
            .env_clear()
            .env("FEEDGATE_LISTEN", &listen)
            .env("FEEDGATE_DATABASE", database)
            .env("FEEDGATE_ARCHIVE_CACHE_BYTES", cache_bytes)
            .env("FEEDGATE_PAGE_RECORDS", PAGE_RECORDS)
            .env("FEEDGATE_EGRESS_ALLOW_TOPIC_CIDRS", "127.0.0.0/8")
            .env("FEEDGATE_HOST_MIN_INTERVAL_MS", "0")
            .env("FEEDGATE_PING_MIN_INTERVAL_MS", "0")
            .env("FEEDGATE_LOG", "warn")
            .stdout(Stdio::null())
            .spawn()?;
        let gateway = Gateway { url: format!("http://{listen}"), _process: Process(child) };
        ready(&format!("{}/readyz", gateway.url)).await;
        Ok(gateway)
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

/// nginx, serving files.
pub(crate) struct Nginx {
    url: String,
    _process: Process,
}

impl Nginx {
    /// Starts one that serves what is in `root`, as one would who wants it to be fast.
    pub(crate) async fn start(folder: &Path, root: &Path) -> Result<Nginx, AnyError> {
        let port = free_port()?;
        let (pid, root) = (folder.join("nginx.pid"), root.display());
        let config = folder.join("nginx.conf");
        let user =
            if Command::new("id").arg("-u").output()?.stdout == b"0\n" { "user root;" } else { "" };
        fs::write(
            &config,
            format!(
                "{user} worker_processes auto; daemon off; pid {}; error_log stderr crit;
                 events {{ worker_connections 4096; }}
                 http {{
                     access_log off; sendfile on; tcp_nopush on; types {{}}
                     default_type application/atom+xml; keepalive_requests 1000000000;
                     open_file_cache max=10000 inactive=600s; open_file_cache_valid 600s;
                     server {{
                         listen 127.0.0.1:{port}; root {root};
                         add_header Cache-Control 'public, max-age=31536000, immutable';
                     }}
                 }}",
                pid.display()
            ),
        )?;
        let child = Command::new("nginx").arg("-c").arg(&config).spawn()?;
        let nginx = Nginx { url: format!("http://127.0.0.1:{port}"), _process: Process(child) };
        ready(&nginx.url).await;
        Ok(nginx)
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

async fn ready(url: &str) {
    while !client().get(url).send().await.is_ok_and(|answer| !answer.status().is_server_error()) {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
