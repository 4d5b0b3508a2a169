//! The program: everything is in the library, so that tests can run it.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    feedgate::cli::run().await
}
