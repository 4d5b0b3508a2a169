//! The `georss:point` of entries that have a location.
//!
//! Subscribers read one form, `georss:point` with latitude and longitude (seed 003). Feeds use five
//! others; an entry with one of these and no point gets a point as well. The elements of the source
//! are kept. Lines and polygons have no point.

use crate::model::{Element, Entry, Feed, Node};

const GEORSS: &str = "http://www.georss.org/georss";
const GML: &str = "http://www.opengis.net/gml";

/// Vocabularies with separate elements for latitude and longitude: namespace and names.
const PAIRS: [(&str, &str, &str); 3] = [
    ("http://www.w3.org/2003/01/geo/wgs84_pos#", "lat", "long"),
    ("http://postneo.com/icbm", "latitude", "longitude"),
    ("http://geourl.org/rss/module/", "latitude", "longitude"),
];

/// The elements of GeoRSS.
const NAMES: [&str; 10] = [
    "box",
    "elev",
    "featureName",
    "featureTypeTag",
    "floor",
    "line",
    "point",
    "polygon",
    "radius",
    "relationshipTag",
];

/// Adds a point to every entry that has a location.
pub(super) fn add_points(mut feed: Feed) -> Feed {
    feed.entries.iter_mut().for_each(add_point);
    feed
}

fn add_point(entry: &mut Entry) {
    let held = &entry.extensions;
    if held.iter().any(|element| is(element, GEORSS, "point")) {
        convert_box(entry);
        return;
    }
    let inside = held.iter().filter(|element| element.name == "Point");
    let point = pair(held.iter())
        .or_else(|| inside.clone().find_map(|point| pair(elements(point))))
        .or_else(|| held.iter().filter(|e| is(e, GEORSS, "where")).find_map(gml_point));
    if let Some(text) = point {
        entry.extensions.push(Element {
            namespace: GEORSS.to_owned(),
            prefix: "georss".to_owned(),
            name: "point".to_owned(),
            children: vec![Node::Text(text)],
            ..Element::default()
        });
    }
}

/// Gives an element of GeoRSS the name that GeoRSS has for it.
pub(super) fn conform(element: &mut Element) {
    if element.namespace != GEORSS {
        return;
    }
    let known = NAMES.iter().find(|name| element.name.eq_ignore_ascii_case(name));
    if let Some(name) = known.filter(|name| element.name != **name) {
        element.name = (*name).to_owned();
    }
}

/// Makes a box around a point, as blogs have it, the polygon of its corners, because validators know no
/// boxes. A box without a point is the only place of an entry, and stays.
fn convert_box(entry: &mut Entry) {
    for element in entry.extensions.iter_mut().filter(|element| is(element, GEORSS, "box")) {
        if let Some(corners) = corners(text(element)) {
            element.name = "polygon".to_owned();
            element.children = vec![Node::Text(corners)];
        }
    }
}

/// Returns the corners of a box, from its lower and its upper corner and back to the first.
fn corners(text: &str) -> Option<String> {
    let numbers = text.split(|c: char| c.is_whitespace() || c == ',').filter(|n| !n.is_empty());
    let numbers: Vec<&str> = numbers.collect();
    let [south, west, north, east] = numbers[..] else { return None };
    point(south, west).and(point(north, east))?;
    Some(format!("{south} {west} {north} {west} {north} {east} {south} {east} {south} {west}"))
}

/// Returns the point of separate elements for latitude and longitude.
fn pair<'e>(beside: impl Iterator<Item = &'e Element> + Clone) -> Option<String> {
    PAIRS.iter().find_map(|(space, latitude, longitude)| {
        let find = |name| beside.clone().find(|element| is(element, space, name)).map(text);
        point(find(latitude)?, find(longitude)?)
    })
}

/// Returns the point of a `gml:pos` in a `gml:Point` in a `georss:where`.
fn gml_point(around: &Element) -> Option<String> {
    let held = elements(around).find(|element| is(element, GML, "Point"))?;
    let position = text(elements(held).find(|element| is(element, GML, "pos"))?);
    let mut numbers = position.split(|c: char| c.is_whitespace() || c == ',');
    let mut number = || numbers.find(|word| !word.is_empty());
    let (first, second) = (number()?, number()?);
    let system = held.attributes.iter().find(|attribute| attribute.name == "srsName");
    match system.map(|attribute| attribute.value.as_str()) {
        // The default of GeoRSS is WGS 84 with the latitude first.
        None => point(first, second),
        Some(name) if name.ends_with("4326") => point(first, second),
        Some(name) if name.ends_with("CRS84") => point(second, first),
        Some(_) => None,
    }
}

/// Returns a `georss:point`, if the coordinates are valid.
fn point(latitude: &str, longitude: &str) -> Option<String> {
    let within = |text: &str, limit: f64| text.parse::<f64>().is_ok_and(|n| n.abs() <= limit);
    let (latitude, longitude) = (latitude.trim(), longitude.trim());
    let sound = within(latitude, 90.0) && within(longitude, 180.0);
    sound.then(|| format!("{latitude} {longitude}"))
}

fn is(element: &Element, namespace: &str, name: &str) -> bool {
    element.namespace == namespace && element.name == name
}

fn elements(around: &Element) -> impl Iterator<Item = &Element> + Clone {
    around.children.iter().filter_map(|child| match child {
        Node::Element(element) => Some(element),
        Node::Text(_) => None,
    })
}

fn text(element: &Element) -> &str {
    match element.children.as_slice() {
        [Node::Text(text)] => text,
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(namespace: &str, name: &str, children: Vec<Node>) -> Node {
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        Node::Element(Element { namespace, name, children, ..Element::default() })
    }

    fn text_element(namespace: &str, name: &str, text: &str) -> Node {
        element(namespace, name, vec![Node::Text(text.to_owned())])
    }

    #[test]
    fn n10_elements_have_the_names_of_georss() {
        let cases = [
            ("featurename", "featureName"),
            ("Point", "point"),
            ("box", "box"),
            ("other", "other"),
        ];
        for (name, want) in cases {
            let Node::Element(mut given) = text_element(GEORSS, name, "x") else { continue };
            conform(&mut given);
            assert_eq!(given.name, want);
        }
    }

    #[test]
    fn n10_a_box_around_a_point_is_the_polygon_of_its_corners() {
        let extensions = |node| match node {
            Node::Element(element) => Some(element),
            Node::Text(_) => None,
        };
        let place = |nodes: Vec<Node>| {
            let extensions = nodes.into_iter().filter_map(extensions).collect();
            let entry = Entry { extensions, ..Entry::default() };
            let feed = add_points(Feed { entries: vec![entry], ..Feed::default() });
            let around = feed.entries[0].extensions.iter().find(|e| e.name != "point").unwrap();
            format!("{} {}", around.name, text(around))
        };
        let point = || text_element(GEORSS, "point", "1 2");
        let around = |text| text_element(GEORSS, "box", text);
        let corners = "polygon 0 1 2 1 2 3 0 3 0 1";
        assert_eq!(place(vec![point(), around("0 1 2 3")]), corners);
        assert_eq!(place(vec![point(), around("0 1")]), "box 0 1");
        assert_eq!(place(vec![around("0 1 2 3")]), "box 0 1 2 3");
    }

    fn points(held: Vec<Node>) -> Vec<String> {
        let only = |node| match node {
            Node::Element(element) => Some(element),
            Node::Text(_) => None,
        };
        let extensions = held.into_iter().filter_map(only).collect();
        let entry = Entry { extensions, ..Entry::default() };
        let feed = add_points(Feed { entries: vec![entry], ..Feed::default() });
        let held = feed.entries[0].extensions.iter();
        held.filter(|e| is(e, GEORSS, "point")).map(|point| text(point).to_owned()).collect()
    }

    #[test]
    fn a_place_in_any_form_becomes_a_point() {
        let (geo, icbm) = (PAIRS[0].0, PAIRS[1].0);
        let two = |space, lat, long| {
            vec![text_element(space, lat, " 47.6"), text_element(space, long, "-122.1")]
        };
        let gml = |position| {
            let point = element(GML, "Point", vec![text_element(GML, "pos", position)]);
            vec![element(GEORSS, "where", vec![point])]
        };
        #[rustfmt::skip]
        let cases = [
            ("geo",             two(geo, "lat", "long"),                                  vec!["47.6 -122.1"]),
            ("geo, in a Point", vec![element(geo, "Point", two(geo, "lat", "long"))],     vec!["47.6 -122.1"]),
            ("ICBM",            two(icbm, "latitude", "longitude"),                       vec!["47.6 -122.1"]),
            ("GML",             gml("47.6\n -122.1"),                                     vec!["47.6 -122.1"]),
            ("a point",         vec![text_element(GEORSS, "point", "1 2")],                       vec!["1 2"]),
            ("half of one",     vec![text_element(geo, "lat", "47.6")],                           vec![]),
            ("nowhere",         gml("470.6 -122.1"),                                      vec![]),
            ("no numbers",      gml("here there"),                                        vec![]),
            ("a line",          vec![text_element(GEORSS, "line", "1 2 3 4")],                    vec![]),
        ];
        for (why, held, want) in cases {
            assert_eq!(points(held), want, "{why}");
        }
    }
}
