//! Places: GeoRSS, W3C geo, GML, ICBM and GeoURL. All are kept as they are.

use crate::parse::vocabulary::{Vocabulary, keep};

pub(super) static GEORSS: Vocabulary = Vocabulary {
    prefix: "georss",
    uris: &[
        "http://www.georss.org/georss",
        "http://www.georss.org/georss/10",
        "http://www.georss.org/georss/11",
    ],
    read: keep,
};

pub(super) static GEO: Vocabulary = Vocabulary {
    prefix: "geo",
    uris: &["http://www.w3.org/2003/01/geo/wgs84_pos#", "http://www.w3.org/2003/01/geo/"],
    read: keep,
};

pub(super) static GML: Vocabulary = Vocabulary {
    prefix: "gml",
    uris: &["http://www.opengis.net/gml", "http://www.opengis.net/gml/3.2"],
    read: keep,
};

pub(super) static ICBM: Vocabulary =
    Vocabulary { prefix: "icbm", uris: &["http://postneo.com/icbm"], read: keep };

pub(super) static GEOURL: Vocabulary =
    Vocabulary { prefix: "geourl", uris: &["http://geourl.org/rss/module/"], read: keep };
