//! What a stranger can do to a gateway: `tests/attack/run`.
//!
//! The gateway is the real program in a process of its own, with SQLite in a temporary folder. Only
//! what is sent without credentials counts. The limits of requests per client are set far away, so
//! that each request is measured and not only the first of a minute. `tests/it` has a test for each
//! attack that was ever successful; this program looks for the next one.
#![expect(clippy::print_stdout, reason = "the program prints what it measured")]

mod anonymous_clients;
mod changes;
mod costs;
mod documents;
mod floods;
mod outages;
#[path = "../bench/program.rs"]
mod program;
mod publisher;
#[path = "../bench/responder.rs"]
mod responder;
mod rows;
mod writes;

use std::process::ExitCode;
use std::sync::Arc;

use self::publisher::Publisher;

/// What goes wrong stops the program.
pub(crate) type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// The result of an attack.
pub(crate) struct Finding {
    pub(crate) attack: String,
    pub(crate) measured: String,
    pub(crate) bound: String,
    pub(crate) is_held: bool,
}

impl Finding {
    fn print(&self) {
        let verdict = if self.is_held { "held" } else { "NOT HELD" };
        println!("| {} | {} | {} | {verdict} |", self.attack, self.measured, self.bound);
    }
}

#[tokio::main]
async fn main() -> Result<ExitCode, AnyError> {
    println!("| attack | measured | bound | |\n| --- | --- | --- | --- |");
    let publisher = Arc::new(Publisher::start()?);
    let mut failed = 0;
    let mut report = |findings: Vec<Finding>| {
        findings.iter().for_each(Finding::print);
        failed += findings.iter().filter(|finding| !finding.is_held).count();
    };
    report(outages::pings().await?);
    report(outages::redirects().await?);
    report(costs::attack(&publisher).await?);
    report(rows::attack(&publisher).await?);
    report(documents::attack(&publisher).await?);
    report(changes::attack(&publisher).await?);
    report(writes::attack(&publisher).await?);
    report(floods::disk(&publisher).await?);
    report(floods::slow_bodies().await?);
    report(floods::pings(&publisher).await?);
    report(anonymous_clients::inner_hosts(&publisher).await?);
    report(anonymous_clients::renewals(&publisher).await?);
    println!("\n{failed} attacks were successful");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
