//! Clients that others wrote register, ping and are notified, with nothing of ours in
//! between. What they are, and how they speak, is in `tests/it/clients`.

use std::path::Path;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{ChildStdout, Command};
use tokio::time::timeout;

use crate::support::PATIENCE;
use crate::support::world::World;

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

async fn is_notified(interpreter: &str, script: &str) {
    let world = World::with_tides(2, &[]).await.about("/feed?a=1&b=2");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/clients").join(script);
    let mut client = Command::new(interpreter)
        .arg(script)
        .args([&world.gateway.url("/RPC2"), &world.topic])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut said = BufReader::new(client.stdout.take().unwrap()).lines();
    let tested = next(&mut said).await;
    let hint = "is XMLRPC::Lite there? tests/run installs what is missing";
    assert_eq!(tested, Some(format!("tested {}", world.topic)), "{hint}");
    world.put_tides(3);
    client.stdin.take().unwrap().write_all(b"\n").await.unwrap();
    assert_eq!(next(&mut said).await, Some(format!("notified {}", world.topic)));
    let ended = timeout(PATIENCE, client.wait()).await.expect("the client ends");
    assert!(ended.unwrap().success());
}

async fn next(said: &mut Lines<BufReader<ChildStdout>>) -> Option<String> {
    timeout(PATIENCE, said.next_line()).await.expect("the client says something").unwrap()
}
