//! The form that has entries sent again to a subscription: the newest ones, those from a number on, or
//! those received since a time.

use chrono::{DateTime, NaiveDateTime, Utc};
use maud::{Markup, html};

use super::visit::Visit;
use crate::http::kit::html::parts::grouped;
use crate::http::kit::rejection::Rejection;
use feedgate_core::record::Seq;
use feedgate_core::store::ListedSubscription;

/// The parameter that says which of the fields counts.
const CHOICE: &str = "which";
/// The most entries that a form replays.
const MOST_REPLAYED: i64 = 1_000;

/// Returns the cursor from which the entries that a form names are sent again.
pub(super) async fn cursor(visit: &Visit, listed: &ListedSubscription) -> Result<Seq, Rejection> {
    let owed = listed.delivery.owed.0;
    let number = |field: &str, of_what: &str| {
        let number = visit.value(field).trim().parse::<i64>().ok().filter(|number| *number > 0);
        number.ok_or_else(|| Rejection::bad_request(format!("Enter {of_what}, such as 10.")))
    };
    let cursor = match visit.value(CHOICE) {
        "from" => number("from", "the number of the first entry")? - 1,
        "since" => before(visit, listed, parse_time(visit.value("since"))?).await?,
        _ if visit.value("count").is_empty() => owed - 1,
        _ => owed - number("count", "how many of the newest entries are sent")?.min(owed),
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
    let most = MOST_REPLAYED;
    let choices = [
        (
            "count",
            "The newest",
            html! {
                input name="count" type="number" min="1" max=(most) value="1" aria-label="How many entries";
            },
        ),
        (
            "from",
            "From the entry with the number",
            html! {
                input name="from" type="number" min="1" aria-label="Number of the first entry";
            },
        ),
        (
            "since",
            "Received since, in UTC",
            html! {
                input name="since" type="datetime-local" aria-label="Time in UTC";
            },
        ),
    ];
    html! {
        h2 { "Replay" }
        p.soft {
            "Sends entries again, at most " (grouped(most.unsigned_abs())) ". The time is that of their arrival here."
        }
        form.replay method="post" action=(address) {
            (visit.csrf_field())
            @for (n, (word, label, field)) in choices.into_iter().enumerate() {
                div.actions data-choice {
                    label.choice { input type="radio" name=(CHOICE) value=(word) checked[n == 0]; (label) }
                    (field)
                }
            }
            button type="submit" name="action" value="replay" { "Replay" }
        }
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
