//! The RSS syndication module: how often a feed is updated. Its elements are kept and read as
//! polling hints.

use crate::parse::dates;
use crate::parse::target::Target;
use crate::parse::tree::XmlElement;

/// The seconds in an hour.
const HOUR_S: u32 = 3600;

pub(super) fn read(element: XmlElement<'_>, target: &mut Target<'_>) -> bool {
    let text = element.text();
    let Some(hints) = target.hints() else { return false };
    if element.named("updatePeriod") && hints.update_period_s.is_none() {
        let hours = match text.to_ascii_lowercase().as_str() {
            "hourly" => 1,
            "daily" => 24,
            "weekly" => 24 * 7,
            "monthly" => 24 * 30,
            "yearly" => 24 * 365,
            _ => return false,
        };
        hints.update_period_s = Some(hours * HOUR_S / frequency(element));
    } else if element.named("updateBase") {
        hints.update_base = dates::parse(&text);
    }
    false
}

/// Returns the number of updates per period, from the element beside it.
fn frequency(period: XmlElement<'_>) -> u32 {
    let beside = period.parent().and_then(|around| around.child("updateFrequency"));
    beside.and_then(|element| element.text().parse().ok()).filter(|times| *times > 0).unwrap_or(1)
}
