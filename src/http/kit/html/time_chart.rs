//! Charts of values over time, as SVG within the page: with axes, the values of each period under the pointer (and the
//! arrow keys, with the script of the console), and all of them in a table.

use std::fmt::Write;

use maud::{Markup, html};

use super::parts::{grouped, span};

/// The height of the chart, in units of its view box.
const HEIGHT: u64 = 200;
/// The width of a period, in units of the view box, and that of a bar.
const STEP: usize = 10;
const WIDTH: usize = 8;
/// The number of labels below the chart, without that of its end. They do not overlap on a phone.
const LABELS: usize = 2;
/// The ends of a scale of times, in seconds: half of each is a round number of one unit.
const SCALE_ENDS_S: [u64; 17] = [
    2, 4, 10, 20, 60, 120, 240, 600, 1_200, 3_600, 7_200, 14_400, 28_800, 43_200, 86_400, 172_800,
    345_600,
];
const DAY_S: u64 = 86_400;
const SECOND_MICROS: u64 = 1_000_000;

/// A chart of values over time.
pub(crate) struct TimeChart<'c> {
    /// What it shows.
    pub(crate) title: &'c str,
    /// What it says in one sentence.
    pub(crate) summary: String,
    /// The time of each period, as people read it.
    pub(crate) periods: &'c [String],
    /// The end of the last period.
    pub(crate) end: &'c str,
    /// How the values are drawn.
    pub(crate) shape: ChartShape,
    /// What is counted.
    pub(crate) unit: ChartUnit,
    /// The values of each kind; bars are stacked in this order.
    pub(crate) series: Vec<ChartSeries>,
}

/// How values are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChartShape {
    /// As bars on top of each other.
    Bars,
    /// As lines.
    Lines,
}

/// What values count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChartUnit {
    /// Things.
    Count,
    /// Microseconds.
    Micros,
    /// Seconds.
    Seconds,
}

/// The values of one kind.
pub(crate) struct ChartSeries {
    /// What they are.
    pub(crate) name: &'static str,
    /// Its colour: `good`, `soft`, `warning` or `bad`.
    pub(crate) colour: &'static str,
    /// One value for each period; `None`: there is none.
    pub(crate) values: Vec<Option<u64>>,
}

impl ChartUnit {
    /// Returns a value for people.
    pub(crate) fn written(self, value: u64) -> String {
        match (self, value) {
            (ChartUnit::Count, _) => grouped(value),
            (ChartUnit::Seconds, _) => span(value),
            (ChartUnit::Micros, 0..10_000) => format!("{}\u{a0}ms", decimal(value, 1_000)),
            (ChartUnit::Micros, 10_000..SECOND_MICROS) => format!("{}\u{a0}ms", value / 1_000),
            (ChartUnit::Micros, SECOND_MICROS..60_000_000) => {
                format!("{}\u{a0}s", decimal(value, SECOND_MICROS))
            }
            (ChartUnit::Micros, _) => span(value / SECOND_MICROS),
        }
    }

    /// Returns the end of a scale that has half of it as a round number.
    fn scale_end(self, highest: u64) -> u64 {
        match self {
            ChartUnit::Seconds => {
                let end = SCALE_ENDS_S.into_iter().find(|end| *end >= highest);
                end.unwrap_or_else(|| round_end(highest.div_ceil(DAY_S)).saturating_mul(DAY_S))
            }
            ChartUnit::Micros if highest > SECOND_MICROS => {
                let end = ChartUnit::Seconds.scale_end(highest.div_ceil(SECOND_MICROS));
                end.saturating_mul(SECOND_MICROS)
            }
            ChartUnit::Count | ChartUnit::Micros => round_end(highest),
        }
    }
}

/// Returns the least number that has one even digit, or is a power of ten, and is not below `highest`.
fn round_end(highest: u64) -> u64 {
    let mut power: u64 = 1;
    while power.saturating_mul(10) < highest {
        power = power.saturating_mul(10);
    }
    let digit = [2, 4, 6, 8, 10].into_iter().find(|digit| power.saturating_mul(*digit) >= highest);
    power.saturating_mul(digit.unwrap_or(10))
}

/// Returns a number of units, with one digit after the point unless that is zero.
fn decimal(value: u64, unit: u64) -> String {
    match value % unit * 10 / unit {
        0 => (value / unit).to_string(),
        tenths => format!("{}.{tenths}", value / unit),
    }
}

impl TimeChart<'_> {
    /// Returns the chart with its table.
    pub(crate) fn to_markup(&self) -> Markup {
        html! {
            figure.chart {
                figcaption {
                    h3 { (self.title) }
                    p.soft { (self.summary) }
                }
                @let highest = self.highest();
                @if highest > 0 { (self.plot(self.unit.scale_end(highest))) }
            }
        }
    }

    fn plot(&self, top: u64) -> Markup {
        html! {
            p.legend { @for series in &self.series {
                span.(series.colour) { (series.name) } " "
            } }
            div.plot {
                p.scale {
                    @for value in [top, top / 2] { small { (self.unit.written(value)) } }
                    small { "0" }
                }
                (self.drawing(top))
                p.times {
                    @for n in 0..LABELS {
                        small { (self.periods.get(self.periods.len() * n / LABELS).map_or("", String::as_str)) }
                    }
                    small { (self.end) }
                }
            }
            output {}
            details { summary { "Values" } (self.table()) }
        }
    }

    /// Returns the greatest value, of bars the height of all that are on top of each other.
    fn highest(&self) -> u64 {
        let value =
            |series: &ChartSeries, n: usize| series.values.get(n).copied().flatten().unwrap_or(0);
        let values = (0..self.periods.len()).map(|n| {
            let values = self.series.iter().map(|series| value(series, n));
            match self.shape {
                ChartShape::Bars => values.fold(0, u64::saturating_add),
                ChartShape::Lines => values.max().unwrap_or(0),
            }
        });
        values.max().unwrap_or(0)
    }

    fn drawing(&self, top: u64) -> Markup {
        let width = (self.periods.len() * STEP).max(1);
        let name = format!("{}. {}", self.title, self.summary);
        let mut below = vec![0; self.periods.len()];
        html! {
            svg.time role="img" tabindex="0" aria-label=(name) viewBox=(format!("0 0 {width} {HEIGHT}"))
                preserveAspectRatio="none" {
                path.axis d=(format!("M0 0H{width}M0 {}H{width}M0 {HEIGHT}H{width}", HEIGHT / 2)) {}
                @for series in &self.series {
                    @match self.shape {
                        ChartShape::Bars => path.(series.colour) d=(bars(series, &mut below, top)) {},
                        ChartShape::Lines => path.line.(series.colour) d=(line(series, top)) {},
                    }
                }
                g.at { @for n in 0..self.periods.len() {
                    rect x=(n * STEP) width=(STEP) height=(HEIGHT) { title { (self.values_of(n)) } }
                } }
            }
        }
    }

    /// Returns the values of one period in a line.
    fn values_of(&self, n: usize) -> String {
        let mut text = self.periods[n].clone();
        for series in &self.series {
            if let Some(value) = series.values.get(n).copied().flatten() {
                let value = self.unit.written(value);
                // Writing to a String does not fail.
                write!(text, " · {value} {}", series.name).unwrap_or_default();
            }
        }
        text
    }

    fn table(&self) -> Markup {
        html! {
            div.scroll tabindex="0" role="region" aria-label=(format!("{}: values", self.title)) {
                table.values {
                    thead { tr {
                        th scope="col" { "Time" }
                        @for series in &self.series { th scope="col" { (series.name) } }
                    } }
                    tbody { @for (n, period) in self.periods.iter().enumerate() {
                        tr {
                            th scope="row" { (period) }
                            @for series in &self.series { td {
                                @if let Some(value) = series.values.get(n).copied().flatten() {
                                    (self.unit.written(value))
                                }
                            } }
                        }
                    } }
                }
            }
        }
    }
}

/// Returns the bars of one kind, on top of those `below`, to which they are added.
fn bars(series: &ChartSeries, below: &mut [u64], top: u64) -> String {
    let mut path = String::new();
    for (n, value) in series.values.iter().enumerate() {
        let (Some(value @ 1..), Some(below)) = (*value, below.get_mut(n)) else { continue };
        // What happened at least once can be seen.
        let height = scaled(value, top).max(2).min(HEIGHT.saturating_sub(*below));
        let (x, y) = (n * STEP + 1, HEIGHT - *below);
        write!(path, "M{x} {y}v-{height}h{WIDTH}v{height}z").unwrap_or_default();
        *below += height;
    }
    path
}

/// Returns a line through the values of one kind, with gaps where there are none. A value between two gaps is as wide
/// as its period.
fn line(series: &ChartSeries, top: u64) -> String {
    let mut path = String::new();
    let values = &series.values;
    for (n, value) in values.iter().enumerate() {
        let Some(value) = value else { continue };
        let has_value = |n: Option<usize>| n.and_then(|n| *values.get(n)?).is_some();
        let (is_drawn, goes_on) = (has_value(n.checked_sub(1)), has_value(Some(n + 1)));
        let (left, y) = (n * STEP, HEIGHT - scaled(*value, top));
        let middle = left + STEP / 2;
        let part = match (is_drawn, goes_on) {
            (true, _) => format!("L{middle} {y}"),
            (false, true) => format!("M{middle} {y}"),
            (false, false) => format!("M{} {y}h{WIDTH}", left + 1),
        };
        path.push_str(&part);
    }
    path
}

fn scaled(value: u64, top: u64) -> u64 {
    let scaled = u128::from(value) * u128::from(HEIGHT) / u128::from(top.max(1));
    u64::try_from(scaled).unwrap_or(HEIGHT).min(HEIGHT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(shape: ChartShape, values: [[Option<u64>; 3]; 2]) -> String {
        let periods = ["10:00", "10:30", "11:00"].map(str::to_owned);
        let [first, second] = values.map(|values| values.to_vec());
        let series = vec![
            ChartSeries { name: "accepted", colour: "good", values: first },
            ChartSeries { name: "refused", colour: "bad", values: second },
        ];
        let (title, summary) = ("Deliveries", "3 \"of\" 4".to_owned());
        let (unit, periods) = (ChartUnit::Count, &periods);
        TimeChart { title, summary, periods, end: "11:30", shape, unit, series }
            .to_markup()
            .into_string()
    }

    #[test]
    fn c02_a_chart_has_axes_values_and_a_table() {
        let bars = chart(ChartShape::Bars, [[Some(60), Some(0), Some(1)], [Some(40), None, None]]);
        for part in [
            "aria-label=\"Deliveries. 3 &quot;of&quot; 4\"",
            "<small>100</small><small>50</small><small>0</small>",
            "<small>10:00</small><small>10:30</small><small>11:30</small>",
            "d=\"M1 200v-120h8v120zM21 200v-2h8v2z\"",
            "d=\"M1 80v-80h8v80z\"",
            "<title>10:00 · 60 accepted · 40 refused</title>",
            "<title>10:30 · 0 accepted</title>",
            "<th scope=\"row\">10:00</th><td>60</td><td>40</td>",
        ] {
            assert!(bars.contains(part), "{part} not in {bars}");
        }
        let lines =
            chart(ChartShape::Lines, [[Some(1), None, Some(2)], [Some(2), Some(2), Some(0)]]);
        assert!(lines.contains("d=\"M1 100h8M21 0h8\""), "{lines}");
        assert!(lines.contains("d=\"M5 0L15 0L25 200\""), "{lines}");
        let empty = chart(ChartShape::Bars, [[None, Some(0), None], [None; 3]]);
        assert!(!empty.contains("<svg"), "{empty}");
    }

    #[test]
    fn scales_end_at_round_numbers() {
        #[rustfmt::skip]
        let cases = [
            (ChartUnit::Count, 1, 2, "2"), (ChartUnit::Count, 61, 80, "80"), (ChartUnit::Count, 100, 100, "100"),
            (ChartUnit::Count, 1_001, 2_000, "2 000"), (ChartUnit::Micros, 780, 800, "0.8 ms"),
            (ChartUnit::Micros, 61_000, 80_000, "80 ms"), (ChartUnit::Seconds, 61, 120, "2 min"),
            (ChartUnit::Micros, 1_500_000, 2_000_000, "2 s"), (ChartUnit::Micros, 68_000_000, 120_000_000, "2 min"),
            (ChartUnit::Seconds, 90_000, 172_800, "2 d"), (ChartUnit::Seconds, 400_000, 518_400, "6 d"),
        ];
        for (unit, highest, end, text) in cases {
            assert_eq!(unit.scale_end(highest), end);
            assert_eq!(unit.written(end).replace('\u{a0}', " "), text);
        }
        assert_eq!(ChartUnit::Count.scale_end(u64::MAX), u64::MAX);
        for (micros, want) in [(780, "0.7 ms"), (1_000, "1 ms"), (1_500_000, "1.5 s")] {
            assert_eq!(ChartUnit::Micros.written(micros).replace('\u{a0}', " "), want);
        }
    }
}
