//! Presets: settings that change the defaults of others.

use super::reader::SettingLookup;
use super::setting::{Origin, Setting};
use super::settings::*;

/// The defaults of other settings with `FEEDGATE_RSSCLOUD_COMPATIBLE=on`: what rsscloud-server does.
const RSSCLOUD_COMPATIBLE: &[(Setting, &str)] = &[
    (FEEDGATE_PING_MIN_INTERVAL_MS, "0"),
    (FEEDGATE_PING_WAIT, "on"),
    (FEEDGATE_RSSCLOUD_TELL_EXPIRY, "off"),
];

/// Returns the value that is given for a setting, or else that of a preset.
pub(super) fn given_or_preset(lookup: SettingLookup<'_>, name: &str) -> Option<(String, Origin)> {
    let is_on = || {
        let preset = lookup(FEEDGATE_RSSCLOUD_COMPATIBLE.name);
        preset.is_some_and(|(value, _)| value.trim() == "on")
    };
    lookup(name).or_else(|| {
        let (_, value) = RSSCLOUD_COMPATIBLE.iter().find(|(setting, _)| setting.name == name)?;
        is_on().then(|| ((*value).to_owned(), Origin::Preset))
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::config::Config;

    #[test]
    fn a10_one_setting_replaces_rsscloud_server_and_others_take_precedence() {
        let read = |pairs: &[(&str, &str)]| {
            let given = |name: &str| pairs.iter().find(|(given, _)| *given == name);
            let config = Config::read(|name| given(name).map(|(_, value)| (*value).to_owned()));
            let config = config.unwrap();
            (config.ping_min_interval, config.ping_wait, config.rsscloud_tell_expiry)
        };
        let on = ("FEEDGATE_RSSCLOUD_COMPATIBLE", "on");
        let second = Duration::from_secs(1);
        assert_eq!(read(&[]), (second, false, true));
        assert_eq!(read(&[on]), (Duration::ZERO, true, false));
        assert_eq!(read(&[on, ("FEEDGATE_PING_WAIT", "off")]), (Duration::ZERO, false, false));
        assert_eq!(read(&[("FEEDGATE_RSSCLOUD_COMPATIBLE", "off")]), (second, false, true));
    }
}
