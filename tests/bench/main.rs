//! How fast feedgate reads feeds, beside others that do: `cargo bench`.
//!
//! Each contender is a process of its own, because one of them can abort and because
//! none shall have the caches of another; all of them are asked for a round in turn, so
//! that whatever else the machine does meets them all. They count the processor time of
//! their own thread, not the time of day. `docs/benchmarks.md` says how to run it and
//! what came of it.
//!
//! Without arguments of its own this program asks the questions; as `contend NAME` it
//! answers them, and as `remember NAME` it measures memory.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

mod contender;
mod documents;
mod memory;
mod peer;
mod table;

use std::env;
use std::error::Error;

/// That of the gateway, for all contenders in Rust.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How often each contender is asked. The first round warms up and does not count.
const ROUNDS: usize = 16;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["contend", name] => contender::run(name),
        ["remember", subject] => memory::run(subject),
        _ => compare(),
    }
}

fn compare() -> Result<(), Box<dyn Error>> {
    let documents = documents::load()?;
    let bytes: usize = documents.iter().map(Vec::len).sum();
    println!("{}\n", documents::describe(&documents));
    drop(documents);

    let mut peers = peer::all()?;
    for round in 0..ROUNDS {
        for peer in &mut peers {
            peer.ask(round > 0)?;
        }
    }
    table::print(&peers, bytes);
    println!("\n{}", memory::ask()?);
    Ok(())
}

/// A million bytes is a megabyte here, as it is on the wire.
fn megabytes(bytes: usize) -> f64 {
    f64::from(u32::try_from(bytes).unwrap_or(u32::MAX)) / 1e6
}
