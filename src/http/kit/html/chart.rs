//! Small charts as SVG within the page: bars over time, with a text for those who do not see them.

use maud::{Markup, html};

/// The height of a chart, in units of its view box.
const HEIGHT: u64 = 48;
/// The width of a bar with the gap after it, and without.
const STEP: usize = 10;
const WIDTH: usize = 8;

/// A bar: what went well below what did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bar {
    /// The part at the bottom.
    pub(crate) good: u64,
    /// The part on top of it.
    pub(crate) bad: u64,
}

/// Returns a chart that is as high as a line of text.
pub(crate) fn sparkline(text: &str, counts: &[u64]) -> Markup {
    // One path is a third of the bytes of an element for each bar: a list has many.
    let highest = counts.iter().max().copied().unwrap_or(0).max(1);
    let mut bars = String::new();
    for (n, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let height = scaled(*count, highest);
        bars.push_str(&format!("M{} {HEIGHT}v-{height}h{WIDTH}v{height}z", n * STEP + 1));
    }
    let width = (counts.len() * STEP).max(1);
    html! {
        svg.spark role="img" aria-label=(text) viewBox=(format!("0 0 {width} {HEIGHT}"))
            preserveAspectRatio="none" {
            path.axis d=(format!("M0 {HEIGHT}H{width}")) {}
            path d=(bars) {}
        }
    }
}

/// Returns the height of a bar. What happened at least once can be seen.
fn scaled(count: u64, highest: u64) -> u64 {
    match count {
        0 => 0,
        _ => (u128::from(count) * u128::from(HEIGHT) / u128::from(highest)).max(2) as u64,
    }
}

/// Returns a chart of bars from left to right, the highest of which has its full height. `text` says
/// what it shows.
pub(crate) fn bar_chart(text: &str, bars: &[Bar]) -> Markup {
    let highest = bars.iter().map(|bar| bar.good.saturating_add(bar.bad)).max().unwrap_or(0).max(1);
    let width = (bars.len() * STEP).max(1);
    html! {
        svg.chart role="img" aria-label=(text) viewBox=(format!("0 0 {width} {HEIGHT}"))
            preserveAspectRatio="none" {
            path.axis d=(format!("M0 {HEIGHT}H{width}")) {}
            @for (n, bar) in bars.iter().enumerate() {
                @let (good, bad) = (scaled(bar.good, highest), scaled(bar.bad, highest));
                @let good = good.min(HEIGHT.saturating_sub(bad));
                @if good > 0 {
                    rect x=(n * STEP + 1) width=(WIDTH) y=(HEIGHT - good) height=(good) {}
                }
                @if bad > 0 {
                    rect.bad x=(n * STEP + 1) width=(WIDTH) y=(HEIGHT - good - bad) height=(bad) {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_bar_has_the_full_height_and_none_is_invisible() {
        let bars = [Bar { good: 96, bad: 0 }, Bar::default(), Bar { good: 0, bad: 1 }];
        let chart = bar_chart("a \"b\"", &bars).into_string();
        assert!(chart.contains("aria-label=\"a &quot;b&quot;\""), "{chart}");
        assert!(chart.contains("<rect x=\"1\" width=\"8\" y=\"0\" height=\"48\">"), "{chart}");
        assert!(chart.contains("<rect class=\"bad\" x=\"21\" width=\"8\" y=\"46\" height=\"2\">"));
        assert_eq!(chart.matches("<rect").count(), 2, "{chart}");
        let spark = sparkline("some", &[0, 48, 1]).into_string();
        assert!(spark.contains("<path d=\"M11 48v-48h8v48zM21 48v-2h8v2z\">"), "{spark}");
        let most = bar_chart("", &[Bar { good: u64::MAX, bad: u64::MAX }]).into_string();
        assert!(most.contains("height=\"48\""), "{most}");
    }
}
