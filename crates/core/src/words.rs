//! Closed lists of words: enums whose values have a word each in the store and on the wire.

/// Makes an enum with a word for each variant.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal),* $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$doc])* $variant),* }

        impl $name {
            /// All values, in display order.
            pub const ALL: &[$name] = &[$($name::$variant),*];

            /// The word in the store and on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word),* }
            }

            /// Parses the word.
            pub fn from_word(word: &str) -> Option<$name> {
                $name::ALL.iter().copied().find(|held| held.as_str() == word)
            }
        }
    };
}

pub(crate) use words;
