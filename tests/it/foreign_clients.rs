//! Clients that others wrote register, ping and are notified, with nothing of ours in
//! between. What they are, and how they speak, is in `tests/it/clients`.

mod reader;
mod streams;
mod superfeedr;
mod websub;

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use crate::support::PATIENCE;
use crate::support::world::World;

/// A program of `tests/it/clients`, and what it prints.
struct Client {
    program: Child,
    printed: Lines<BufReader<ChildStdout>>,
}

impl Client {
    fn start(mut command: Command) -> Client {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut program = command.spawn().unwrap();
        let printed = BufReader::new(program.stdout.take().unwrap()).lines();
        Client { program, printed }
    }

    /// A script that uses packages of PyPI.
    fn python(name: &str, arguments: &[&str]) -> Client {
        let mut command = Command::new(variable("FEEDGATE_TEST_PYTHON"));
        command.arg(script(name)).args(arguments);
        Client::start(command)
    }

    /// A script that uses packages of npm.
    fn node(name: &str, arguments: &[&str]) -> Client {
        let mut command = Command::new("node");
        command.env("NODE_PATH", variable("FEEDGATE_TEST_NODE_MODULES"));
        command.arg(script(name)).args(arguments);
        Client::start(command)
    }

    /// The next line that it prints; `None` once it has ended.
    async fn next_line(&mut self) -> Option<String> {
        timeout(PATIENCE, self.printed.next_line())
            .await
            .expect("the client prints a line")
            .unwrap()
    }
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/clients").join(name)
}

fn variable(name: &str) -> String {
    #[expect(clippy::disallowed_methods, reason = "it is the test runner that sets it")]
    let value = std::env::var(name);
    value.unwrap_or_else(|_| panic!("tests/run installs packages and sets {name}"))
}

#[tokio::test]
async fn the_xmlrpc_library_of_python_registers_pings_and_is_notified() {
    is_notified("python3", "python_xmlrpc.py").await;
}

#[tokio::test]
async fn the_xmlrpc_library_of_perl_registers_pings_and_is_notified() {
    is_notified("perl", "perl_xmlrpc.pl").await;
}

#[tokio::test]
async fn the_soap_library_of_perl_registers_pings_and_is_notified() {
    is_notified("perl", "perl_soap.pl").await;
}

async fn is_notified(interpreter: &str, name: &str) {
    let world = World::with_tides(2, &[]).await.about("/feed?a=1&b=2");
    let mut command = Command::new(interpreter);
    command.arg(script(name)).args([&world.gateway.url("/RPC2"), &world.topic]);
    let mut client = Client::start(command);
    let hint = "is XMLRPC::Lite there? tests/run installs what is missing";
    assert_eq!(client.next_line().await, Some(format!("tested {}", world.topic)), "{hint}");
    world.put_tides(3);
    client.program.stdin.take().unwrap().write_all(b"\n").await.unwrap();
    assert_eq!(client.next_line().await, Some(format!("notified {}", world.topic)));
    let ended = timeout(PATIENCE, client.program.wait()).await.expect("the client ends");
    assert!(ended.unwrap().success());
}
