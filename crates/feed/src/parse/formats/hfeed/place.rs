//! Locations: a name, coordinates, or both, written as GeoRSS.

use super::{OutputNamespace, PageReading, element};
use crate::model::{Element, Node};
use crate::parse::microformats::{MicroformatItem, Property};

const GEORSS: OutputNamespace =
    OutputNamespace { uri: "http://www.georss.org/georss", prefix: "georss" };

/// The maximum nesting at which coordinates are searched: a `geo` in an `adr` in a `card`.
const DEPTH: usize = 3;

impl PageReading<'_> {
    /// Returns the elements for a `location` or `geo` property.
    pub(super) fn place(&self, property: Property<'_>) -> Vec<Element> {
        let Some(item) = property.item else {
            let text = property.text();
            let address = property.tag.attr("href").unwrap_or(&text);
            return match geo_uri(address).or_else(|| pair(&text)) {
                Some(point) => vec![georss("point", point)],
                None if text.is_empty() => Vec::new(),
                None => vec![georss("featureName", text)],
            };
        };
        let is_place = !item.is("h-geo");
        let name = is_place.then(|| self.name_of(item).or_else(|| parts_of(item))).flatten();
        let name = name.map(|name| georss("featureName", name));
        let point = point_of(item).map(|point| georss("point", point));
        name.into_iter().chain(point).collect()
    }
}

/// Returns a `georss:point`: "latitude longitude".
pub(super) fn point(latitude: &str, longitude: &str) -> Option<Element> {
    number(latitude, longitude).map(|point| georss("point", point))
}

/// Returns the coordinates of an item, or of an item nested in it.
fn point_of(item: MicroformatItem<'_>) -> Option<String> {
    let mut around = Some(item);
    for _ in 0..DEPTH {
        let held = around?.properties();
        let named = |name: &str| held.iter().find(|property| property.name == name);
        if let (Some(latitude), Some(longitude)) = (named("latitude"), named("longitude")) {
            return number(&latitude.text(), &longitude.text());
        }
        let geo = named("geo");
        if let Some(uri) = geo.and_then(|geo| geo_uri(geo.tag.attr("href")?)) {
            return Some(uri);
        }
        around = geo.or_else(|| named("adr")).and_then(|held| held.item);
        if around.is_none() {
            return geo.and_then(|geo| pair(&geo.text()));
        }
    }
    None
}

/// Returns the name of an address without one, put together from its parts.
fn parts_of(item: MicroformatItem<'_>) -> Option<String> {
    let held = item.properties();
    let parts = ["street-address", "locality", "region", "country-name"];
    let named = parts.iter().filter_map(|name| held.iter().find(|held| held.name == *name));
    let texts: Vec<_> = named.map(|held| held.text()).filter(|text| !text.is_empty()).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// Returns the point of a geo URI such as `geo:48.2,16.4;u=10` (RFC 5870).
fn geo_uri(address: &str) -> Option<String> {
    pair(address.strip_prefix("geo:")?.split([';', '?']).next()?)
}

/// Returns the point of `48.2;16.4`, the form of classic microformats, or `48.2, 16.4`.
fn pair(text: &str) -> Option<String> {
    let mut numbers = text.split([';', ',']);
    number(numbers.next()?, numbers.next()?)
}

/// Returns a point, if both numbers are valid degrees.
fn number(latitude: &str, longitude: &str) -> Option<String> {
    let degrees = |text: &str, most: f64| {
        let value: f64 = text.trim().parse().ok()?;
        (value.abs() <= most).then(|| text.trim().to_owned())
    };
    Some(format!("{} {}", degrees(latitude, 90.0)?, degrees(longitude, 180.0)?))
}

fn georss(name: &str, text: String) -> Element {
    let mut element = element(GEORSS, name, Vec::new());
    element.children.push(Node::Text(text));
    element
}
