//! Charts of what happened in the last time: of the gateway, and of one feed, host of callbacks or account. They are of
//! all nodes; of the minute in progress, they have what this node has counted of the gateway.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use maud::{Markup, html};

use super::visit::Visit;
use crate::http::kit::html::parts::grouped;
use crate::http::kit::html::time_chart::{ChartSeries, ChartShape, ChartUnit, TimeChart};
use crate::http::kit::rejection::Rejection;
use crate::jobs::runner;
use feedgate_core::resource_id::ResourceId;
use feedgate_core::traffic::{
    DeliveryClass, PollClass, TrafficCounts, TrafficPeriod, TrafficSubject, TrafficUnit,
};

/// A chart of what happened.
type Chart = fn(&ChartedTraffic) -> Markup;

/// The charts of the gateway.
pub(super) const OF_GATEWAY: &[Chart] = &[deliveries, delays, polls, entries, queues];
/// The charts of a feed, for administrators.
const OF_FEED: &[Chart] = &[entries, notable_polls, deliveries, delays];
/// The charts of a feed, for its subscribers: what is sent to others is not theirs to see.
const OF_SUBSCRIBED_FEED: &[Chart] = &[entries, notable_polls];
/// The charts of a host of callbacks, and of an account.
pub(super) const OF_DELIVERIES: &[Chart] = &[deliveries, delays];
/// The charts of the live page.
const OF_LAST_HOUR: &[Chart] = &[deliveries, delays, polls];

/// A time for which charts are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChartRange {
    Hour,
    Day,
    Week,
}

impl ChartRange {
    /// The value of the parameter `range`.
    fn as_str(self) -> &'static str {
        match self {
            ChartRange::Hour => "1h",
            ChartRange::Day => "24h",
            ChartRange::Week => "7d",
        }
    }

    fn name(self) -> &'static str {
        match self {
            ChartRange::Hour => "hour",
            ChartRange::Day => "24 hours",
            ChartRange::Week => "7 days",
        }
    }

    /// Returns how many periods of how many minutes are shown. Of the gateway, there are minutes of the last day.
    fn periods(self, subject: &TrafficSubject) -> (usize, i64) {
        match (self, subject) {
            (ChartRange::Hour, _) => (60, 1),
            (ChartRange::Day, TrafficSubject::Gateway(_)) => (48, 30),
            (ChartRange::Day, _) => (24, 60),
            (ChartRange::Week, _) => (42, 240),
        }
    }

    /// Returns the unit of the periods of the gateway that are read.
    fn unit(self) -> TrafficUnit {
        match self {
            ChartRange::Hour | ChartRange::Day => TrafficUnit::Minute,
            ChartRange::Week => TrafficUnit::Hour,
        }
    }

    fn label(self, at: DateTime<Utc>) -> String {
        let format = if self == ChartRange::Week { "%b %-d %H:%M" } else { "%H:%M" };
        at.format(format).to_string()
    }
}

/// What happened in consecutive periods.
pub(super) struct ChartedTraffic {
    labels: Vec<String>,
    counts: Vec<TrafficCounts>,
    total: TrafficCounts,
}

impl ChartedTraffic {
    async fn read(
        visit: &Visit,
        subject: &TrafficSubject,
        range: ChartRange,
    ) -> Result<ChartedTraffic, Rejection> {
        let now = runner::now();
        let (many, minutes) = range.periods(subject);
        let step_s = minutes * 60;
        let end_s = (now.timestamp().div_euclid(step_s) + 1) * step_s;
        let time = |n: usize| {
            let before_s = (many - n) as i64 * step_s;
            DateTime::from_timestamp(end_s - before_s, 0).unwrap_or(now)
        };
        let periods = visit.gateway.store.traffic(subject, time(0)..time(many)).await;
        let periods = periods.map_err(|err| Rejection::unavailable(&err))?;
        let mut counts = gathered(&periods, (time(0), many), TimeDelta::seconds(step_s));
        if let (TrafficSubject::Gateway(_), Some(last)) = (subject, counts.last_mut()) {
            last.add(&visit.gateway.metrics.traffic().total());
        }
        let mut total = TrafficCounts::default();
        counts.iter().for_each(|counts| total.add(counts));
        let labels = (0..many).map(|n| range.label(time(n))).collect();
        Ok(ChartedTraffic { labels, counts, total })
    }

    fn chart(
        &self,
        (title, summary): (&str, String),
        (shape, unit): (ChartShape, ChartUnit),
        series: Vec<ChartSeries>,
    ) -> Markup {
        // The last period is not over.
        let (periods, end) = (&self.labels, "now");
        TimeChart { title, summary, periods, end, shape, unit, series }.to_markup()
    }

    fn series(
        &self,
        (name, colour): (&'static str, &'static str),
        value: impl Fn(&TrafficCounts) -> Option<u64>,
    ) -> ChartSeries {
        ChartSeries { name, colour, values: self.counts.iter().map(value).collect() }
    }
}

/// Returns the sums of the stored periods, for each of `many` steps since the first.
fn gathered(
    periods: &[TrafficPeriod],
    (first, many): (DateTime<Utc>, usize),
    step: TimeDelta,
) -> Vec<TrafficCounts> {
    let mut counts = vec![TrafficCounts::default(); many];
    for period in periods {
        let place = (period.at - first).num_seconds().div_euclid(step.num_seconds().max(1));
        if let Some(sum) = usize::try_from(place).ok().and_then(|place| counts.get_mut(place)) {
            sum.add(&period.counts);
        }
    }
    counts
}

/// Returns a part of the page at `path` with charts of the last day, or of the week if the reader chose that.
pub(super) async fn section(
    visit: &Visit,
    path: &str,
    subject: TrafficSubject,
    charts: &[Chart],
) -> Result<Markup, Rejection> {
    let range = match visit.value("range") == ChartRange::Week.as_str() {
        true => ChartRange::Week,
        false => ChartRange::Day,
    };
    let subject = match subject {
        TrafficSubject::Gateway(_) => TrafficSubject::Gateway(range.unit()),
        subject => subject,
    };
    let traffic = ChartedTraffic::read(visit, &subject, range).await?;
    let left_out = traffic.total.left_out();
    Ok(html! {
        div.ranges #traffic {
            h2 { "Traffic" }
            nav aria-label="Time of the charts" {
                @for other in [ChartRange::Day, ChartRange::Week] {
                    a href=(visit.address(&format!("{path}?range={}#traffic", other.as_str())))
                        aria-current=[(other == range).then_some("true")] { (other.name()) }
                }
            }
            span.soft { "Times are in UTC." }
        }
        div.charts { @for chart in charts { (chart(&traffic)) } }
        @if left_out > 0 {
            p.soft {
                (grouped(left_out)) " deliveries and fetches are missing in the charts of feeds, hosts or \
                 accounts, because too many of these had some within one minute."
            }
        }
    })
}

/// Returns the charts of a feed. What is sent to all of its subscribers is for administrators.
pub(super) async fn of_feed(visit: &Visit, feed: ResourceId) -> Result<Markup, Rejection> {
    let charts = if visit.is_admin() { OF_FEED } else { OF_SUBSCRIBED_FEED };
    section(visit, &format!("console/feeds/{feed}"), TrafficSubject::Feed(feed), charts).await
}

/// Returns the charts of the gateway for the last hour.
pub(super) async fn last_hour(visit: &Visit) -> Result<Markup, Rejection> {
    let (subject, range) = (TrafficSubject::Gateway(TrafficUnit::Minute), ChartRange::Hour);
    let traffic = ChartedTraffic::read(visit, &subject, range).await?;
    Ok(html! {
        h2 { "The last hour" }
        p.soft {
            "By minutes in UTC. What other nodes do is here when the minute is over."
        }
        div.charts { @for chart in OF_LAST_HOUR { (chart(&traffic)) } }
    })
}

fn deliveries(traffic: &ChartedTraffic) -> Markup {
    let classes = [
        (DeliveryClass::Accepted, "accepted", "good"),
        (DeliveryClass::Refused, "refused", "bad"),
        (DeliveryClass::Unanswered, "unanswered", "warning"),
    ];
    let total = |class| grouped(traffic.total.deliveries(class));
    let summary = format!(
        "{} accepted, {} refused, {} unanswered.",
        total(DeliveryClass::Accepted),
        total(DeliveryClass::Refused),
        total(DeliveryClass::Unanswered)
    );
    let series = classes.map(|(class, name, colour)| {
        traffic.series((name, colour), move |counts| Some(counts.deliveries(class)))
    });
    let drawn = (ChartShape::Bars, ChartUnit::Count);
    traffic.chart(("Deliveries", summary), drawn, series.into())
}

fn delays(traffic: &ChartedTraffic) -> Markup {
    let micros = |delay: Duration| u64::try_from(delay.as_micros()).unwrap_or(u64::MAX);
    let of_all = |percent| {
        let delay = traffic.total.delay(percent).map_or(0, micros);
        ChartUnit::Micros.written(delay)
    };
    let summary = match traffic.total.delay(50) {
        None => "Nothing was measured: only first deliveries of new entries are.".to_owned(),
        Some(_) => format!(
            "Half within {}, 95\u{a0}% within {}, 99\u{a0}% within {}.",
            of_all(50),
            of_all(95),
            of_all(99)
        ),
    };
    let lines = [(50, "half", "good"), (95, "95\u{a0}%", "warning"), (99, "99\u{a0}%", "bad")];
    let series = lines.map(|(percent, name, colour)| {
        traffic.series((name, colour), move |counts| counts.delay(percent).map(micros))
    });
    let drawn = (ChartShape::Lines, ChartUnit::Micros);
    traffic.chart(("From the discovery of an entry to its delivery", summary), drawn, series.into())
}

fn polls(traffic: &ChartedTraffic) -> Markup {
    let classes = [
        (PollClass::New, "with new entries", "good"),
        (PollClass::Same, "with nothing new", "soft"),
        (PollClass::NotModified, "not modified", "link"),
        (PollClass::Failed, "failed", "bad"),
    ];
    poll_chart(traffic, "Fetches", &classes)
}

/// The fetches of one feed: those that found nothing are not counted.
fn notable_polls(traffic: &ChartedTraffic) -> Markup {
    let classes =
        [(PollClass::New, "with new entries", "good"), (PollClass::Failed, "failed", "bad")];
    poll_chart(traffic, "Fetches that found something or failed", &classes)
}

fn poll_chart(
    traffic: &ChartedTraffic,
    title: &str,
    classes: &[(PollClass, &'static str, &'static str)],
) -> Markup {
    let totals = classes
        .iter()
        .map(|(class, name, _)| format!("{} {name}", grouped(traffic.total.polls(*class))));
    let summary = format!("{}.", totals.collect::<Vec<_>>().join(", "));
    let series = classes.iter().map(|&(class, name, colour)| {
        traffic.series((name, colour), move |counts| Some(counts.polls(class)))
    });
    let drawn = (ChartShape::Bars, ChartUnit::Count);
    traffic.chart((title, summary), drawn, series.collect())
}

fn entries(traffic: &ChartedTraffic) -> Markup {
    let summary = format!("{} in all.", grouped(traffic.total.entries()));
    let series = traffic.series(("entries and updates", "good"), |counts| Some(counts.entries()));
    let drawn = (ChartShape::Bars, ChartUnit::Count);
    traffic.chart(("Entries and updates", summary), drawn, vec![series])
}

fn queues(traffic: &ChartedTraffic) -> Markup {
    let written = |age_s| ChartUnit::Seconds.written(age_s);
    let ages = traffic.total.ages();
    let summary = match (ages.deliveries_s, ages.polls_s) {
        (0, 0) => "Nothing was late.".to_owned(),
        (deliveries_s, polls_s) => format!(
            "A delivery was due for {} at most, a fetch for {}.",
            written(deliveries_s),
            written(polls_s)
        ),
    };
    let series = vec![
        traffic.series(("oldest delivery", "good"), |counts| Some(counts.ages().deliveries_s)),
        traffic.series(("oldest fetch", "warning"), |counts| Some(counts.ages().polls_s)),
    ];
    let drawn = (ChartShape::Lines, ChartUnit::Seconds);
    traffic.chart(("Longest wait in the queues", summary), drawn, series)
}
