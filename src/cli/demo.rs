//! `feedgate demo`: the whole gateway in one terminal.
//!
//! A gateway, a publisher with one feed in each format, and a subscriber of each kind,
//! all on free ports of this machine. The publisher adds an entry every second or two;
//! everything that arrives is printed with how long it took. Publishing stops a little
//! before the end, so that everything can arrive; what did not arrive is a failure.

mod desk;
mod publisher;
mod readers;
mod samples;
mod stage;
mod subscribers;
mod tally;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval, sleep_until};

use super::{Outcome, help, is_output_closed, print_line};

use samples::SAMPLES;
use stage::Stage;
use subscribers::ReceivedCall;
use tally::{DeliveryTally, Received, milliseconds};

/// The interval between two entries.
const PUBLISH_EVERY: Duration = Duration::from_millis(1_200);
/// How long what was published may take to arrive once publishing has stopped.
const PATIENCE: Duration = Duration::from_secs(10);

/// Run a gateway, a publisher and subscribers of every kind, and watch.
#[derive(Debug, clap::Args)]
#[command(after_long_help = help::DEMO.text())]
pub(super) struct DemoArgs {
    /// End after this long, such as 20s or 2m. Without it, Ctrl-C ends the demo.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    lasts: Option<Duration>,
    /// The database: sqlite:FOLDER or postgres://USER:PASSWORD@HOST/DATABASE. Without it, SQLite in a
    /// folder that is removed at the end.
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    /// The number of cells of the PostgreSQL database, which is that of its first start.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    cells: usize,
}

/// Runs the demo. It fails if a notification is missing at the end.
pub(super) async fn run(args: &DemoArgs) -> Outcome {
    let mut stage = Stage::set(args.database.as_deref(), args.cells).await?;
    print_line(stage.describe());
    let tally = play(&mut stage, args.lasts).await;
    print_line(format!("\n{}", tally.table()));
    stage.strike().await;
    if tally.missing() == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    print_line(format!("\n{} notifications did not arrive.", tally.missing()));
    Ok(ExitCode::FAILURE)
}

/// Publishes and listens until the time is up, or Ctrl-C, and everything has arrived.
async fn play(stage: &mut Stage, lasts: Option<Duration>) -> DeliveryTally {
    let start = Instant::now();
    let mut tally = DeliveryTally::default();
    let mut publish = interval(PUBLISH_EVERY);
    publish.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The last quarter, up to the maximum, is for entries that are still on their way.
    let publish_until = lasts.map(|lasts| start + lasts - (lasts / 4).min(PATIENCE));
    let mut end = None;
    let mut next = 0;
    while end.is_none() || tally.missing() > 0 {
        if end.is_none() && is_output_closed() {
            end = Some(Instant::now() + PATIENCE);
        }
        tokio::select! {
            _ = publish.tick(), if end.is_none() => {
                let sample = next % SAMPLES.len();
                next += 1;
                let number = tally.publish(sample, Instant::now());
                print(start, "published", sample, number, "");
                stage.publish(sample, number);
            }
            Some(call) = stage.calls.recv() => match call {
                ReceivedCall::Entries(received) => record_received(&mut tally, start, &received),
                ReceivedCall::Changed { way, at, topic } => {
                    let Some(sample) = stage.sample(&topic) else { continue };
                    stage.look_up(way, sample, at, tally.received(way, sample));
                }
            },
            Some(received) = stage.received.recv() => record_received(&mut tally, start, &received),
            () = until(publish_until), if end.is_none() => end = Some(start + lasts.unwrap_or_default()),
            _ = tokio::signal::ctrl_c(), if end.is_none() => end = Some(Instant::now() + PATIENCE),
            () = until(end), if end.is_some() => break,
        }
    }
    tally
}

fn record_received(tally: &mut DeliveryTally, start: Instant, received: &Received) {
    for (number, took) in tally.record(received) {
        print(start, received.way.name(), received.sample, number, &milliseconds(Some(took)));
    }
}

fn print(start: Instant, what: &str, sample: usize, number: u32, took: &str) {
    let at = start.elapsed().as_secs_f64();
    let name = SAMPLES[sample].name;
    print_line(format!("{at:6.2} s  {what:20}{name:12}entry {number:<5}{took:>9}").trim_end());
}

/// Waits until `then`, or for ever if it is `None`.
async fn until(then: Option<Instant>) {
    match then {
        Some(then) => sleep_until(then.into()).await,
        None => std::future::pending().await,
    }
}

/// Reads `20s`, `2m` or `20`.
fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit_s) = match text.strip_suffix('m') {
        Some(minutes) => (minutes, 60),
        None => (text.strip_suffix('s').unwrap_or(text), 1),
    };
    match number.parse::<u32>() {
        Ok(number) if number > 0 => Ok(Duration::from_secs(u64::from(number) * unit_s)),
        _ => Err("give seconds or minutes, such as 20s or 2m".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_seconds_or_minutes() {
        let cases =
            [("20s", Some(20)), ("2m", Some(120)), ("5", Some(5)), ("0s", None), ("x", None)];
        for (text, want) in cases {
            assert_eq!(duration(text).ok(), want.map(Duration::from_secs), "{text}");
        }
    }
}
