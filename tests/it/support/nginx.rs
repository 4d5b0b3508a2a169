//! nginx in front of a gateway, with the settings of `packaging/proxy/nginx.conf`.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use http::StatusCode;
use tempfile::TempDir;

use super::server::client;
use super::until;

/// An nginx that serves one location, by plain HTTP; killed when dropped.
pub(crate) struct Nginx {
    process: Child,
    _folder: TempDir,
}

impl Nginx {
    /// Starts one at `port`, which passes requests for `location` on to `upstream`. If `upstream` ends
    /// with a slash, nginx removes the location from the path of each request.
    pub(crate) async fn start(port: u16, location: &str, upstream: &str) -> Nginx {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().display();
        let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/proxy/nginx.conf");
        let sample = fs::read_to_string(sample).unwrap();
        let site = sample.lines().filter(|line| {
            !["listen [::]", "ssl_certificate"].iter().any(|start| line.trim().starts_with(start))
        });
        let site = site.collect::<Vec<_>>().join("\n");
        let replaced = [
            ("listen 443 ssl;", format!("listen 127.0.0.1:{port};")),
            ("location / {", format!("location {location} {{")),
            ("http://127.0.0.1:8080;", format!("{upstream};")),
        ];
        let site = replaced.iter().fold(site, |site, (old, new)| {
            assert!(site.contains(old), "{old}");
            site.replace(old, new)
        });
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        let temporary = temporary.map(|name| format!("{name}_temp_path {at}/{name};\n")).concat();
        let settings = format!(
            "daemon off;\nworker_processes 1;\npid {at}/pid;\nerror_log {at}/error.log;\n\
             events {{}}\nhttp {{\naccess_log off;\n{temporary}{site}\n}}\n"
        );
        let file = folder.path().join("nginx.conf");
        fs::write(&file, settings).unwrap();
        let mut path = std::env::var_os("PATH").unwrap();
        path.push(":/usr/sbin"); // where Debian has it, and users have not
        let process = Command::new("nginx")
            .env("PATH", path)
            .args(["-p", &at.to_string(), "-c", file.to_str().unwrap()])
            .stdin(Stdio::null())
            .spawn()
            .expect("nginx, which tests/run installs");
        let nginx = Nginx { process, _folder: folder };
        let ready = format!("http://127.0.0.1:{port}{location}readyz");
        until("nginx passes requests on", async || {
            let answer = client().get(&ready).send().await;
            answer.is_ok_and(|answer| answer.status() == StatusCode::OK)
        })
        .await;
        nginx
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Its worker ends with it.
        let pid = rustix::process::Pid::from_child(&self.process);
        let _gone = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        self.process.wait().map(|_| ()).unwrap_or_default();
    }
}
