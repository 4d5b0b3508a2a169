//! Places: GeoRSS and GML, as `where` with a type and coordinates, longitude first.

use feedgate_feed::model::Element;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::dictionary::Writer;
use super::elements::children;
use super::namespaces::{attribute, names};

/// How deep elements of GML are read.
const DEEPEST: usize = 8;

/// A shape: whether its coordinates are one pair, a list of pairs, or a ring.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Shape {
    Point,
    Line,
    Polygon,
    Box,
}

/// Sets the place of an element.
pub(super) fn set(element: &Element, writer: &Writer<'_, '_>) -> PyResult<()> {
    let place = writer.dictionary()?;
    fill(element, None, &place, 0)?;
    writer.set_dictionary("where", &place)
}

fn fill(
    element: &Element,
    shape: Option<Shape>,
    place: &Writer<'_, '_>,
    depth: usize,
) -> PyResult<()> {
    let (prefix, name) = names(element);
    let shape = match name.as_str() {
        "point" => Some(Shape::Point),
        "line" | "linestring" => Some(Shape::Line),
        "polygon" | "linearring" => Some(Shape::Polygon),
        "box" => Some(Shape::Box),
        _ => shape,
    };
    if prefix == "gml" && matches!(name.as_str(), "point" | "linestring" | "polygon") {
        place.set_or_none("srsName", attribute(element, "srsName"))?;
        let dimension = attribute(element, "srsDimension").and_then(|text| text.parse().ok());
        place.set_object("srsDimension", dimension.unwrap_or(2_u8))?;
    }
    let holds = prefix == "georss" || matches!(name.as_str(), "pos" | "poslist");
    if let Some(shape) = shape.filter(|_| holds) {
        return set_shape(shape, &element.text(), place);
    }
    if depth == DEEPEST {
        return Ok(());
    }
    children(element).try_for_each(|child| fill(child, shape, place, depth + 1))
}

fn set_shape(shape: Shape, text: &str, place: &Writer<'_, '_>) -> PyResult<()> {
    let dimension = match place.get("srsDimension")? {
        Some(dimension) => dimension.extract()?,
        None => 2,
    };
    let name: Option<String> = place.get("srsName")?.and_then(|name| name.extract().ok());
    let Some(points) = points(text, dimension, is_latitude_first(name.as_deref())) else {
        return Ok(());
    };
    let py = place.py();
    let pairs: Vec<_> =
        points.iter().map(|pair| PyTuple::new(py, pair)).collect::<PyResult<_>>()?;
    let (kind, coordinates) = match (shape, pairs.as_slice()) {
        (Shape::Point, [first, ..]) => ("Point", first.clone().into_any()),
        (Shape::Line, _) => ("LineString", PyList::new(py, pairs)?.into_any()),
        (Shape::Polygon, [_, _, _, _, ..]) => {
            ("Polygon", PyTuple::new(py, [PyList::new(py, pairs)?])?.into_any())
        }
        (Shape::Box, _) => ("Box", PyTuple::new(py, pairs)?.into_any()),
        _ => return Ok(()),
    };
    place.set("type", kind)?;
    place.set_object("coordinates", coordinates)
}

/// Returns whether a reference system begins with the latitude, as those of EPSG do that are
/// geographic: their codes are about 3819 to 4999.
fn is_latitude_first(name: Option<&str>) -> bool {
    let Some(name) = name.filter(|name| name.contains("EPSG")) else { return true };
    let code = name.rsplit(':').next().and_then(|code| code.parse::<u32>().ok());
    code.is_none_or(|code| (3819..5000).contains(&code))
}

/// Returns the points of a text, or nothing if one is no number.
fn points(text: &str, dimension: usize, is_swapped: bool) -> Option<Vec<Vec<f64>>> {
    let numbers = text.split([' ', ',', '\t', '\n', '\r']).filter(|part| !part.is_empty());
    let numbers: Option<Vec<f64>> = numbers.map(|part| part.parse().ok()).collect();
    let whole = numbers?;
    let points = whole.chunks_exact(dimension.clamp(2, 3)).map(|point| {
        let mut point = point.to_vec();
        if is_swapped {
            point.swap(0, 1);
        }
        point
    });
    Some(points.collect())
}
