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

/// Returns a chart of bars from left to right, the highest of which has its full height. `text` says
/// what it shows.
pub(crate) fn bar_chart(text: &str, bars: &[Bar]) -> Markup {
    chart("chart", text, bars)
}

/// Returns a chart that is as high as a line of text.
pub(crate) fn sparkline(text: &str, counts: &[u64]) -> Markup {
    let bars: Vec<Bar> = counts.iter().map(|count| Bar { good: *count, bad: 0 }).collect();
    chart("spark", text, &bars)
}

fn chart(class: &str, text: &str, bars: &[Bar]) -> Markup {
    let highest = bars.iter().map(|bar| bar.good.saturating_add(bar.bad)).max().unwrap_or(0).max(1);
    let scaled = |count: u64| match count {
        0 => 0,
        // What happened at least once can be seen.
        _ => (u128::from(count) * u128::from(HEIGHT) / u128::from(highest)).max(2) as u64,
    };
    let width = (bars.len() * STEP).max(1);
    html! {
        svg.(class) role="img" aria-label=(text) viewBox=(format!("0 0 {width} {HEIGHT}"))
            preserveAspectRatio="none" {
            path.axis d=(format!("M0 {HEIGHT}H{width}")) {}
            @for (n, bar) in bars.iter().enumerate() {
                @let (good, bad) = (scaled(bar.good), scaled(bar.bad));
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
        assert!(!sparkline("none", &[]).into_string().contains("<rect"));
        let most = bar_chart("", &[Bar { good: u64::MAX, bad: u64::MAX }]).into_string();
        assert!(most.contains("height=\"48\""), "{most}");
    }
}
