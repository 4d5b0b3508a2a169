//! The program: everything is in the library, so that tests can run it.

use std::process::ExitCode;

/// Gives memory back to the system within seconds after it was freed. The allocator of glibc keeps
/// what lies below the last allocation in use: gigabytes for half an hour, measured.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    feedgate::cli::run().await
}
