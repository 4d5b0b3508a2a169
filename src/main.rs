//! The program: everything is in the library, so that tests can run it.

use std::env;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// Gives memory back to the system soon after it was freed. The allocator of glibc keeps what lies
/// below the last allocation in use: gigabytes for half an hour, measured.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// After how many milliseconds that is. The allocator's own second is too long: with 60 documents of
/// 9.6 MB, read one after the other, memory had a peak of 540 to 590 MiB; with this it has 365 MiB.
const PURGE_DELAY: (&str, &str) = ("MIMALLOC_PURGE_DELAY", "100");

fn main() -> ExitCode {
    if env::args_os().nth(1).is_some_and(|command| command == "serve") {
        set_purge_delay();
    }
    run()
}

#[tokio::main]
async fn run() -> ExitCode {
    feedgate::cli::run().await
}

/// Executes the program again with the delay in its environment, where the allocator reads it before
/// `main`; the process stays the same. Where that is impossible, the gateway takes more memory.
fn set_purge_delay() {
    let (name, value) = PURGE_DELAY;
    let (None, Ok(program)) = (env::var_os(name), env::current_exe()) else { return };
    let mut arguments = env::args_os();
    let mut command = Command::new(program);
    if let Some(own_name) = arguments.next() {
        command.arg0(own_name);
    }
    let _failure = command.args(arguments).env(name, value).exec();
}
