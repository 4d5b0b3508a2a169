//! Serialization of enums as their stable words.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::model::FeedFormat;
use crate::repair::RepairCode;

macro_rules! as_words {
    ($($name:ident)*) => {
        $(
            impl Serialize for $name {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    serializer.serialize_str(self.as_str())
                }
            }

            impl<'de> Deserialize<'de> for $name {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    let word = String::deserialize(deserializer)?;
                    word.parse().map_err(|err| de::Error::custom(format_args!("{err}: {word:?}")))
                }
            }
        )*
    };
}

as_words! { FeedFormat RepairCode }
