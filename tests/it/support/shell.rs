//! Shell commands of the documents, run as their readers run them.

use std::path::Path;
use std::process::{Output, Stdio};

use tokio::process::Command;
use tokio::time::timeout;

use super::PATIENCE;

/// Runs commands in one shell, in a folder of its own, where `feedgate` is this program. A gateway
/// started there listens on `gateway` and reaches this machine. `options` are those of bash.
pub(crate) async fn run(commands: &str, options: &str, gateway: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_feedgate")).parent().unwrap().to_owned();
    let others = std::env::var_os("PATH").unwrap();
    let path = std::env::join_paths([program].into_iter().chain(std::env::split_paths(&others)));
    let shell = Command::new("bash")
        .args([options, "pipefail", "-c", commands])
        .current_dir(folder.path())
        .env("PATH", path.unwrap())
        .env("FEEDGATE_LISTEN", gateway)
        .env("FEEDGATE_EGRESS_ALLOW_TOPIC_CIDRS", "127.0.0.0/8")
        .env("FEEDGATE_EGRESS_ALLOW_CALLBACK_CIDRS", "127.0.0.0/8")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    timeout(PATIENCE, shell.wait_with_output()).await.expect("the shell ends").unwrap()
}
