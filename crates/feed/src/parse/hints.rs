//! The polling hints of RSS: `ttl`, `skipHours` and `skipDays` (seed 002, "Syndication Hints"). The
//! elements are kept as extensions as well.

use super::target::Target;
use super::tree::XmlElement;

/// The days of the week as RSS names them; index 0 is Monday.
const DAYS: [&str; 7] =
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// Reads the polling hint in an element of a channel.
pub(super) fn read(element: XmlElement<'_>, target: &mut Target<'_>) {
    let Some(hints) = target.hints() else { return };
    if element.named("ttl") {
        hints.ttl_min = element.text().parse().ok();
    } else if element.named("skipHours") {
        let hours = element.elements().filter_map(|hour| hour.text().parse::<u8>().ok());
        // Feeds after RSS 0.91 count hours from 1 to 24, so 24 is accepted as 0.
        hints.skip_hours = hours.filter(|hour| *hour <= 24).map(|hour| hour % 24).collect();
        hints.skip_hours.sort_unstable();
        hints.skip_hours.dedup();
    } else if element.named("skipDays") {
        let days = element.elements().filter_map(|day| {
            let name = day.text().to_ascii_lowercase();
            let at = DAYS.iter().position(|held| *held == name)?;
            u8::try_from(at).ok()
        });
        hints.skip_days = days.collect();
        hints.skip_days.sort_unstable();
        hints.skip_days.dedup();
    }
}
