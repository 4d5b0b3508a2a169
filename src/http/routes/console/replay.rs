//! The form that has entries sent again to a subscription: the newest ones, those from a number on, or
//! those received since a time.

use chrono::{DateTime, NaiveDateTime, Utc};
use maud::{Markup, html};

use super::visit::Visit;
use crate::http::kit::html::parts::grouped;
use crate::http::kit::rejection::Rejection;
use feedgate_core::record::Seq;
use feedgate_core::store::ListedSubscription;

/// The most entries that a form replays.
const MOST_REPLAYED: i64 = 1_000;

/// Returns the cursor from which the entries that a form names are sent again.
pub(super) async fn cursor(visit: &Visit, listed: &ListedSubscription) -> Result<Seq, Rejection> {
    let owed = listed.delivery.owed.0;
    let from = visit.value("from").parse::<i64>().ok().map(|from| from - 1);
    let count = visit.value("count").parse::<i64>().unwrap_or(1);
    let cursor = match (from, visit.value("since")) {
        (Some(from), _) => from,
        (None, "") => owed - count,
        (None, since) => before(visit, listed, parse_time(since)?).await?,
    };
    Ok(Seq(cursor.max(owed - MOST_REPLAYED).clamp(0, (owed - 1).max(0))))
}

/// Parses the value of a field of the type `datetime-local`, which has no time zone, as UTC.
fn parse_time(text: &str) -> Result<DateTime<Utc>, Rejection> {
    let formats = ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%.f"];
    let mut parsed = formats.iter().map(|format| NaiveDateTime::parse_from_str(text, format));
    let time = parsed.find_map(Result::ok).map(|time| time.and_utc());
    time.ok_or_else(|| {
        Rejection::bad_request("The time must be written as 2026-01-31T18:00, in UTC.")
    })
}

/// Returns the number of the last entry received before `since`. Entries are numbered in the order in
/// which they were received, so that a few of them are read.
async fn before(
    visit: &Visit,
    listed: &ListedSubscription,
    since: DateTime<Utc>,
) -> Result<i64, Rejection> {
    let owed = listed.delivery.owed.0;
    let (mut low, mut high) = ((owed - MOST_REPLAYED).max(0), owed);
    while low < high {
        let middle = low + (high - low) / 2;
        let next = visit.gateway.store.read_after(listed.resource.id, Seq(middle), 1).await;
        let next = next.map_err(|err| Rejection::unavailable(&err))?.pop();
        match next.filter(|record| record.at < since) {
            Some(record) => low = record.seq.0,
            None => high = middle,
        }
    }
    match low < owed {
        true => Ok(low),
        false => Err(Rejection::unprocessable("No entry was received since that time.")),
    }
}

/// Returns the form, which is sent to `address`.
pub(super) fn form(visit: &Visit, address: &str) -> Markup {
    html! {
        h2 { "Replay" }
        p.soft {
            "Sends entries again, at most " (grouped(MOST_REPLAYED.unsigned_abs())) ". The time is that of their arrival here."
        }
        @for field in [count_field(), number_field(), time_field()] {
            form.inline method="post" action=(address) {
                (visit.csrf_field())
                (field)
                button type="submit" name="action" value="replay" { "Replay" }
            }
        }
    }
}

fn count_field() -> Markup {
    html! {
        label { "The newest entries "
            input name="count" type="number" min="1" max=(MOST_REPLAYED) value="1" required;
        }
    }
}

fn number_field() -> Markup {
    html! { label { "From number " input name="from" type="number" min="1" required; } }
}

fn time_field() -> Markup {
    html! {
        label { "Since " small { "(UTC)" } input name="since" type="datetime-local" required; }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_forms_are_utc() {
        let time = |text: &str| parse_time(text).ok().map(|time| time.to_rfc3339());
        assert_eq!(time("2026-01-31T18:00").as_deref(), Some("2026-01-31T18:00:00+00:00"));
        assert_eq!(time("2026-01-31T18:00:07").as_deref(), Some("2026-01-31T18:00:07+00:00"));
        for wrong in ["2026-01-31", "18:00", "2026-02-30T00:00", "2026-01-31T18:00+01:00"] {
            assert_eq!(time(wrong), None, "{wrong}");
        }
    }
}
