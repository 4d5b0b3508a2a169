//! The macro that makes everything from the table of settings: the struct [`Config`] with a field
//! for each, a constant that describes each, the list [`SETTINGS`] of these, and the function that
//! reads them all.
//!
//! [`Config`]: super::Config
//! [`SETTINGS`]: super::SETTINGS

/// Declares the settings. `settings.rs` is its only use, and explains the entries.
macro_rules! settings {
    ($($section:literal {$(
        $(#[doc = $help:literal])+
        $name:ident = $default:literal => $field:ident: $type:ty, $kind:expr $(, $flag:ident)?;
    )+})+) => {
        /// All settings, in the types of the modules that use them.
        #[derive(Clone, Debug)]
        pub struct Config {$($(
            $(#[doc = $help])+
            pub $field: $type,
        )+)+}

        $($(
            #[doc = concat!("Describes `", stringify!($name), "`.")]
            pub const $name: Setting = Setting {
                name: stringify!($name),
                default: $default,
                section: $section,
                help: concat!($($help),+),
                expected: {
                    const KIND: ValueKind<$type> = $kind;
                    KIND.expected()
                },
                is_secret: settings!(@is_secret $($flag)?),
            };
        )+)+

        /// All settings, in the order in which they are listed.
        pub const SETTINGS: &[Setting] = &[$($($name,)+)+];

        impl Config {
            /// Reads all settings; `reader` collects their faults.
            pub(super) fn read_with(reader: &mut SettingReader<'_>) -> Config {
                Config {$($(
                    $field: reader.value(&$name, &$kind),
                )+)+}
            }
        }
    };
    (@is_secret) => { false };
    (@is_secret secret) => { true };
}

pub(super) use settings;
