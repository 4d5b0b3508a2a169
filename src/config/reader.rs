//! Reads one setting after the other, and collects a sentence for each that is wrong.

use super::setting::{Origin, Setting};
use super::values::ValueKind;

/// What was given under a name in the environment, and where.
pub(super) type SettingLookup<'a> = &'a dyn Fn(&str) -> Option<(String, Origin)>;

/// Reads settings through a lookup.
pub(super) struct SettingReader<'a> {
    lookup: SettingLookup<'a>,
    /// What is wrong so far.
    pub(super) faults: Vec<String>,
}

impl<'a> SettingReader<'a> {
    pub(super) fn new(lookup: SettingLookup<'a>) -> SettingReader<'a> {
        SettingReader { lookup, faults: Vec::new() }
    }

    /// The value of a setting. A wrong one is reported, and its default used instead, so that
    /// all others are checked too.
    pub(super) fn value<T>(&mut self, setting: &Setting, kind: &ValueKind<T>) -> T {
        if let Some((text, origin)) = (self.lookup)(setting.name) {
            match kind.parse(text.trim()) {
                Ok(value) => return value,
                Err(reason) => self.faults.push(fault(setting, (&text, origin), &reason)),
            }
        }
        // Cannot fail: a test reads every default.
        kind.parse(setting.default).expect("a default is a valid value")
    }

    /// The name of a setting as it is spelled where this one was set.
    pub(super) fn spelled(&self, setting: &Setting) -> String {
        let given = (self.lookup)(setting.name);
        setting.spelled(given.map_or(Origin::Default, |(_, origin)| origin))
    }
}

/// What to say of a wrong value. One that is meant to be secret is not shown, nor any part of it.
fn fault(setting: &Setting, (text, origin): (&str, Origin), reason: &str) -> String {
    let name = setting.spelled(origin);
    let default = if setting.default.is_empty() { "none" } else { setting.default };
    let must = format!("{name} must be {} (default: {default})", setting.expected);
    let place = origin.place();
    match (setting.is_secret, reason) {
        (true, _) => format!("{must}, but the value {place} is something else"),
        (false, "") => format!("{must}, but is {text:?} {place}"),
        (false, reason) => format!("{must}, but is {text:?} {place}: {reason}"),
    }
}
