//! `feedgate simulate-schedule FILE.csv`: plays a trace of publication times through the schedule,
//! and through the formulas of other programs.
//!
//! The schedule is the code that `serve` runs, with the same settings. Time is simulated and
//! nothing is fetched. The jitter is seeded, so that the same trace gives the same table.

mod play;
mod policy;
mod trace;

use std::path::PathBuf;
use std::process::ExitCode;

use super::{Outcome, help, print_line};
use crate::config::Config;
use feedgate_core::schedule::K_LEAST;

use play::{Rules, Score};
use policy::Policy;

/// Play a trace of publication times through the schedule, and through those of other programs.
///
/// FILE.csv has two columns: a feed (any name), and the time at which one of its entries was
/// published, in RFC 3339 or in seconds since 1970. A header line and lines that begin with # are
/// ignored. For each policy, the command prints how often it polls, and how long after their
/// publication entries are found.
#[derive(Debug, clap::Args)]
#[command(after_long_help = help::SIMULATE.text())]
pub(super) struct SimulateArgs {
    /// The CSV file.
    #[arg(value_name = "FILE.csv")]
    file: PathBuf,
    /// Days at the beginning of the trace that are not measured, because policies are still
    /// learning. The default is a third of the trace, at most 30.
    #[arg(long, value_name = "DAYS")]
    warm_up: Option<f64>,
    /// Polls per feed and day to which the second table scales all policies. The default is the
    /// number that the schedule of feedgate needs.
    #[arg(long, value_name = "POLLS")]
    budget: Option<f64>,
    /// The number of entries in a feed document.
    #[arg(long, value_name = "ENTRIES", default_value_t = 20)]
    window: usize,
    /// The seed of the jitter.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Read settings from this TOML file.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// What the columns measure. The two kinds of means favor different schedules, and must not be
/// compared with each other (`docs/contributing/polling.md`, "What is minimized").
const COLUMNS: &str = "\
mean, p50 and p90 are over all entries. \"per feed\" is the mean of the feeds' means, in which a feed with one
entry counts as much as a feed with a thousand: a fixed period is the best possible schedule by that measure.";

/// How many times the scale of a policy is adjusted to meet a budget.
const ROUNDS: usize = 12;

pub(super) fn run(args: &SimulateArgs) -> Outcome {
    let (config, _) = Config::load(args.config.clone(), &[])?;
    let text = std::fs::read_to_string(&args.file)
        .map_err(|err| format!("cannot read {}: {err}", args.file.display()))?;
    let trace = trace::read(&text).map_err(|why| format!("{}: {why}", args.file.display()))?;
    let days = (trace.end_s - trace.start_s) as f64 / 86_400.0;
    let warm_up = args.warm_up.unwrap_or_else(|| (days / 3.0).min(30.0));
    if !(0.0..days).contains(&warm_up) {
        return Err(format!("--warm-up must be less than the {days:.1} days of the trace").into());
    }
    let rules = Rules {
        measured_from_s: trace.start_s + (warm_up * 86_400.0) as i64,
        window: args.window.max(1),
        min_period_s: config.min_period_s,
        seed: args.seed,
    };
    let entries: usize = trace.feeds.iter().map(Vec::len).sum();
    print_line(format!(
        "{} feeds, {entries} entries, {days:.1} days, of which {warm_up:.1} are not measured",
        trace.feeds.len()
    ));

    print_line("\nwith the settings of their authors");
    print_line(headings());
    let mut ours = 0.0;
    for policy in Policy::ALL {
        let score = play::play(&trace, policy, 1.0, &rules);
        if policy == Policy::Ours {
            ours = score.polls_a_day;
        }
        print_line(row(policy, &score));
    }
    let budget = args.budget.unwrap_or(ours);
    print_line(format!("\nscaled to {budget:.1} polls per feed and day"));
    print_line(headings());
    for policy in Policy::ALL {
        print_line(row(
            policy,
            &scaled(policy, budget, |scale| play::play(&trace, policy, scale, &rules)),
        ));
    }
    print_line(format!("\n{COLUMNS}"));
    if budget > ours * 1.01 {
        print_line(format!(
            "\nfeedgate stays at k = {K_LEAST} with {ours:.1} polls, and does not use a larger budget"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the score of a policy at the scale at which it polls as often as `budget` allows, as
/// closely as possible.
fn scaled(policy: Policy, budget: f64, play: impl Fn(f64) -> Score) -> Score {
    let mut scale = 1.0;
    let mut score = play(scale);
    for _ in 0..ROUNDS {
        let off = score.polls_a_day / budget;
        if (off - 1.0).abs() < 0.005 {
            break;
        }
        scale = policy.bounded(scale * off);
        score = play(scale);
    }
    score
}

fn headings() -> String {
    let columns = ["polls/day", "mean", "p50", "p90", "per feed", "missed"];
    let columns: String = columns.iter().map(|column| format!("{column:>10}")).collect();
    format!("{:<28}{columns}", "policy (delays in minutes)")
}

fn row(policy: Policy, score: &Score) -> String {
    let minutes = |secs: f64| format!("{:>10.1}", secs / 60.0);
    format!(
        "{:<28}{:>10.1}{}{}{}{}{:>10}",
        policy.name(),
        score.polls_a_day,
        minutes(score.mean_s),
        minutes(score.p50_s),
        minutes(score.p90_s),
        minutes(score.per_feed_s),
        score.missed
    )
}
