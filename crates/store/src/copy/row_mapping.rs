//! What changes in a row when it is copied: its place, and the numbers in it.

use std::collections::{BTreeSet, HashMap};

use crate::cells::numbers::cell_of_topic;
use crate::copy::copied_value::number;
use crate::copy::numbering::Numbering;
use crate::copy::source::NewPlace;
use crate::copy::tables::{CopiedTable, Location, Rule};
use crate::engine::sql::Value;
use feedgate_core::store::StoreError;

/// A row as it is written to the target.
#[derive(Clone, Debug)]
pub(crate) struct MappedRow {
    pub(crate) destination: Destination,
    pub(crate) values: Vec<Value>,
}

/// The schemas of the target that a row is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    Shared,
    Cell(usize),
    Everywhere,
}

/// Maps the rows of one table.
pub(crate) struct RowMapper<'a> {
    numbering: &'a Numbering,
    cells: usize,
    location: Location,
    columns: &'a [String],
    /// The columns that change, by their places.
    rules: Vec<(usize, Rule)>,
}

impl<'a> RowMapper<'a> {
    /// Returns the mapper of a table with these columns, for a target with `cells` cells.
    pub(crate) fn new(
        table: &CopiedTable,
        columns: &'a [String],
        numbering: &'a Numbering,
        cells: usize,
    ) -> RowMapper<'a> {
        let place = |name: &str| columns.iter().position(|column| column == name);
        let rules = table.rules.iter().filter_map(|(name, rule)| Some((place(name)?, *rule)));
        let rules = rules.collect();
        RowMapper { numbering, cells, location: table.location, columns, rules }
    }

    /// Returns the numbers of all resources that these rows name.
    pub(crate) fn named_resources(&self, rows: &[Vec<Value>]) -> Vec<i64> {
        let columns = self.rules.iter().filter(|(_, rule)| *rule == Rule::Resource);
        let columns: Vec<usize> = columns.map(|(column, _)| *column).collect();
        let numbers = rows.iter().flat_map(|row| columns.iter().map(|column| &row[*column]));
        let numbers: BTreeSet<i64> = numbers.filter_map(number).collect();
        numbers.into_iter().collect()
    }

    /// Maps a row; `places` has the resources that it names, as far as they exist.
    pub(crate) fn map(
        &self,
        mut values: Vec<Value>,
        places: &HashMap<i64, NewPlace>,
    ) -> Result<MappedRow, StoreError> {
        let destination = self.destination(&values, places)?;
        for (column, rule) in &self.rules {
            let value = &mut values[*column];
            let changed = match (rule, number(value)) {
                (Rule::NoClaim, _) => Some(Value::Null),
                (Rule::Zero, _) => Some(Value::Int(0)),
                (Rule::PingedAgain, Some(2)) => Some(Value::Int(1)),
                // A resource that was forgotten keeps its number, which no other ever gets.
                (Rule::Resource, Some(old)) => {
                    places.get(&old).map(|place| Value::Int(place.number))
                }
                (Rule::Number, Some(old)) => match destination {
                    Destination::Cell(cell) => Some(Value::Int(self.numbering.renumber(old, cell))),
                    Destination::Shared | Destination::Everywhere => None,
                },
                _ => None,
            };
            if let Some(changed) = changed {
                *value = changed;
            }
        }
        Ok(MappedRow { destination, values })
    }

    fn destination(
        &self,
        values: &[Value],
        places: &HashMap<i64, NewPlace>,
    ) -> Result<Destination, StoreError> {
        let of_resource = |column: &str| {
            let place = self.column(values, column).and_then(number);
            place.and_then(|number| places.get(&number)).map(|place| place.cell)
        };
        let of_text = |column: &str| match self.column(values, column) {
            Some(Value::Text(text)) => Some(cell_of_topic(text, self.cells)),
            _ => None,
        };
        let cell = match self.location {
            Location::Shared => return Ok(Destination::Shared),
            Location::Everywhere => return Ok(Destination::Everywhere),
            Location::Resource(column) => of_resource(column),
            Location::Text(column) => of_text(column),
            Location::ResourceOrText(resource, text) => {
                of_resource(resource).or_else(|| of_text(text))
            }
        };
        let missing = || StoreError::Corrupt("a row belongs to no resource".to_owned());
        cell.map(Destination::Cell).ok_or_else(missing)
    }

    fn column<'v>(&self, values: &'v [Value], name: &str) -> Option<&'v Value> {
        let place = self.columns.iter().position(|column| column == name)?;
        values.get(place)
    }
}
