//! The modules that feeds carry: one file each, listed here and nowhere else.
//!
//! A module says what its namespace is called and reads those of its elements that have
//! a home in Atom. Everything else is kept as it is, under the right URI and the usual
//! prefix, by [`Home::foreign`].

mod activity;
mod dc;
mod dcterms;
mod geo;
mod googleplay;
mod home;
mod itunes;
mod kept;
mod media;
mod syndication;
mod text;

pub(super) use home::{Home, Of};
pub(super) use kept::RSSCLOUD;

use super::vocabulary::Vocabulary;

/// Every module we know.
pub(super) static VOCABULARIES: &[&Vocabulary] = &[
    &dc::DC,
    &dcterms::DCTERMS,
    &text::CONTENT,
    &syndication::SY,
    &media::MEDIA,
    &itunes::ITUNES,
    &googleplay::GOOGLEPLAY,
    &geo::GEORSS,
    &geo::GEO,
    &geo::GML,
    &geo::ICBM,
    &geo::GEOURL,
    &activity::ACTIVITY,
    &activity::POCO,
    &kept::SLASH,
    &kept::WFW,
    &kept::THR,
    &kept::PODCAST,
    &kept::PSC,
    &kept::CREATIVE_COMMONS,
    &kept::CC,
    &kept::FEEDBURNER,
    &kept::SOURCE,
    &kept::RSSCLOUD,
    &kept::DELETED,
    &kept::HISTORY,
    &kept::ADMIN,
    &kept::APP,
    &kept::OPENSEARCH,
    &kept::TRACKBACK,
    &kept::PINGBACK,
    &kept::TAXONOMY,
    &kept::ANNOTATE,
    &kept::ATOM_EXTENSIONS,
    &kept::MICROBLOG,
    &kept::BLOGCHANNEL,
    &kept::SUPERFEEDR,
];
