//! Charts of the height of a line, as SVG within the page, with a text for those who do not see them.

use maud::{Markup, html};

/// The height of the chart, in units of its view box.
const HEIGHT: u64 = 48;
/// The width of a bar with the gap after it, and without.
const STEP: usize = 10;
const WIDTH: usize = 8;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_bar_has_the_full_height_and_none_is_invisible() {
        let spark = sparkline("a \"b\"", &[0, 48, 1]).into_string();
        assert!(spark.contains("aria-label=\"a &quot;b&quot;\""), "{spark}");
        assert!(spark.contains("<path d=\"M11 48v-48h8v48zM21 48v-2h8v2z\">"), "{spark}");
        assert!(sparkline("", &[u64::MAX]).into_string().contains("v-48h8"));
    }
}
