//! The trace of a poll for the console.

use super::report::PollReport;
use crate::fetch_traces::FetchTrace;

/// Returns the trace of a recorded poll that added `new` records.
pub(super) fn trace(report: PollReport, new: usize) -> FetchTrace {
    let status = report.poll.status;
    let is_failing = status.is_failing();
    FetchTrace {
        at: report.poll.at - report.took,
        trigger: report.poll.trigger,
        requests: report.requests,
        took: report.took,
        wire_bytes: report.wire_bytes,
        outcome: report.outcome,
        new,
        message: if is_failing { status.http_message } else { String::new() },
        hints: report.poll.polling.hints,
        steps: report.steps,
        next_fetch: report.poll.next_fetch,
        period_s: status.period_s,
        period_reason: status.period_reason,
    }
}
