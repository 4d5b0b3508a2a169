//! ActivityStreams in Atom, and Portable Contacts with it: kept under the prefixes that
//! subscribers know (seed 003).

use crate::parse::vocabulary::{Vocabulary, keep};

pub(super) static ACTIVITY: Vocabulary = Vocabulary {
    prefix: "as",
    uris: &["http://activitystrea.ms/spec/1.0/", "http://activitystrea.ms/schema/1.0/"],
    read: keep,
};

pub(super) static POCO: Vocabulary =
    Vocabulary { prefix: "poco", uris: &["http://portablecontacts.net/spec/1.0"], read: keep };
