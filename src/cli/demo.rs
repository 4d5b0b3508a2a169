//! `feedgate demo`: the whole gateway in one terminal.
//!
//! A gateway, a publisher with one feed in each format, and a subscriber of each kind,
//! all on free ports of this machine. The publisher adds an entry every second or two;
//! everything that arrives is printed with how long it took. Publishing stops a little
//! before the end, so that everything can arrive; what did not arrive is a failure. Then the
//! demo goes on without printing, and the console shows what happens.

mod console_sign_in;
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
/// How long everything that arrives is printed, before the console is opened.
const PRINTED_FOR: Duration = Duration::from_secs(12);
/// The interval between two entries while the console is open.
const PUBLISH_IN_CONSOLE_EVERY: Duration = Duration::from_secs(5);
/// How long what was published may take to arrive once publishing has stopped.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is printed before the address that opens the console.
const CONSOLE_IS_OPEN: &str = "
The demo goes on. This address opens its console, once and within ten minutes:";

/// Run a gateway, a publisher and subscribers of every kind, and watch.
#[derive(Debug, clap::Args)]
#[command(after_long_help = help::DEMO.text())]
pub(super) struct DemoArgs {
    /// End after this long, such as 20s or 2m. Without it, the demo prints what happens for 12 seconds, then
    /// an address that opens the console, and goes on until Ctrl-C ends it.
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
    let Played { mut tally, was_interrupted } =
        play(&mut stage, args.lasts.unwrap_or(PRINTED_FOR)).await;
    print_line(format!("\n{}", tally.table()));
    let missing = tally.missing();
    if missing > 0 {
        print_line(format!("\n{missing} notifications did not arrive."));
    }
    if args.lasts.is_none() && !was_interrupted {
        match stage.open_console().await {
            Ok(address) => {
                print_line(format!("{CONSOLE_IS_OPEN}\n\n  {address}\n\nCtrl-C ends the demo."));
                go_on(&mut stage, &mut tally).await;
            }
            Err(err) => print_line(format!("the console could not be opened: {err}")),
        }
    }
    stage.strike().await;
    Ok(if missing == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What the part of the demo that is printed ended with.
struct Played {
    tally: DeliveryTally,
    was_interrupted: bool,
}

/// Publishes and listens until the time is up, or Ctrl-C, and everything has arrived.
async fn play(stage: &mut Stage, lasts: Duration) -> Played {
    let start = Instant::now();
    let mut tally = DeliveryTally::default();
    let mut was_interrupted = false;
    let mut publish = interval(PUBLISH_EVERY);
    publish.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The last quarter, up to the maximum, is for entries that are still on their way.
    let publish_until = start + lasts - (lasts / 4).min(PATIENCE);
    let mut end = None;
    let mut next = 0;
    while end.is_none() || tally.missing() > 0 {
        if end.is_none() && is_output_closed() {
            (end, was_interrupted) = (Some(Instant::now() + PATIENCE), true);
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
            () = sleep_until(publish_until.into()), if end.is_none() => end = Some(start + lasts),
            _ = tokio::signal::ctrl_c(), if !was_interrupted => {
                (end, was_interrupted) = (Some(Instant::now() + PATIENCE), true);
            }
            () = until(end), if end.is_some() => break,
        }
    }
    Played { tally, was_interrupted }
}

/// Publishes on without printing, until Ctrl-C.
async fn go_on(stage: &mut Stage, tally: &mut DeliveryTally) {
    let mut publish = interval(PUBLISH_IN_CONSOLE_EVERY);
    let mut samples = (0..SAMPLES.len()).cycle();
    while !is_output_closed() {
        tokio::select! {
            _ = publish.tick() => {
                let sample = samples.next().unwrap_or_default();
                stage.publish(sample, tally.publish(sample, Instant::now()));
            }
            Some(_) = stage.calls.recv() => {}
            Some(_) = stage.received.recv() => {}
            _ = tokio::signal::ctrl_c() => return,
        }
    }
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
