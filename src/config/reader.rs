//! The reader of settings, which collects a sentence for each fault.

use super::setting::{Origin, Setting};
use super::values::ValueKind;

/// A lookup of the value of a setting by its name in the environment, with its origin.
pub(super) type SettingLookup<'a> = &'a dyn Fn(&str) -> Option<(String, Origin)>;

/// Reads settings through a lookup.
pub(super) struct SettingReader<'a> {
    lookup: SettingLookup<'a>,
    /// The faults found so far.
    pub(super) faults: Vec<String>,
}

impl<'a> SettingReader<'a> {
    pub(super) fn new(lookup: SettingLookup<'a>) -> SettingReader<'a> {
        SettingReader { lookup, faults: Vec::new() }
    }

    /// Returns the value of a setting. An invalid value is reported and replaced by the default, so
    /// that all other settings are checked too.
    pub(super) fn value<T>(&mut self, setting: &Setting, kind: &ValueKind<T>) -> T {
        if let Some((text, origin)) = (self.lookup)(setting.name) {
            match kind.parse(text.trim()) {
                Ok(value) => return value,
                Err(reason) => self.faults.push(fault(setting, &text, origin, &reason)),
            }
        }
        // This cannot fail: a test parses every default.
        kind.parse(setting.default).expect("a default is a valid value")
    }

    /// Returns the name of a setting as spelled in the layer where it was set.
    pub(super) fn spelled(&self, setting: &Setting) -> String {
        let given = (self.lookup)(setting.name);
        setting.spelled(given.map_or(Origin::Default, |(_, origin)| origin))
    }
}

/// Returns the error message for an invalid value. The value of a secret is not shown, not even in
/// part.
fn fault(setting: &Setting, text: &str, origin: Origin, reason: &str) -> String {
    let name = setting.spelled(origin);
    let default = if setting.default.is_empty() { "none" } else { setting.default };
    let must = format!("{name} must be {} (default: {default})", setting.expected);
    let place = origin.place();
    match (setting.is_secret, reason) {
        (true, _) => format!("{must}, but the value {place} is not valid"),
        (false, "") => format!("{must}, but is {text:?} {place}"),
        (false, reason) => format!("{must}, but is {text:?} {place}: {reason}"),
    }
}
