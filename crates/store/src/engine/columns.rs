//! The columns of a table, listed once: the list makes the text that reads or writes them, the values
//! that are stored, and what reads them back, so that the three cannot differ in their order.

/// Declares columns: the name of each, its value, and what reads it.
///
/// ```text
/// columns! {
///     names NAMES;                             // a list of all names
///     select SELECT = "select x.id", "x", "from t x";  // what reads all of them
///     values fn values(stored: &Stored);       // their values, in the same order
///     read fn read(row) -> Whole { … };        // reads them from a row, and makes the whole of them
///     "name" stored.name.as_str() => name = row.text()?;
/// }
/// ```
macro_rules! columns {
    (
        names $names:ident;
        select $select:ident = $before:literal, $alias:literal, $after:literal;
        values fn $values:ident($stored:ident: $Stored:ty);
        read fn $read:ident($row:ident) -> $Whole:ty { $whole:expr }
        $($column:literal $value:expr => $name:pat = $from_row:expr;)*
    ) => {
        /// The names of the columns.
        const $names: &[&str] = &[$($column),*];
        /// Reads the columns, after those that it names itself.
        pub(super) const $select: &str =
            concat!($before $(, ", ", $alias, ".", $column)*, " ", $after);
        /// Returns the values of the columns.
        fn $values($stored: $Stored) -> Vec<$crate::engine::sql::Value> {
            vec![$($crate::engine::sql::Value::from($value)),*]
        }
        /// Reads the columns.
        pub(super) fn $read(
            $row: &mut $crate::engine::row::Row,
        ) -> Result<$Whole, feedgate_core::store::StoreError> {
            $(let $name = $from_row;)*
            Ok($whole)
        }
    };
}
pub(crate) use columns;

/// Returns the columns of an insert with the places of their values: `(a, b) values ($1, $2)`.
pub(crate) fn inserted(names: &[&str]) -> String {
    let places: Vec<String> = (1..=names.len()).map(|n| format!("${n}")).collect();
    format!("({}) values ({})", names.join(", "), places.join(", "))
}

/// Returns assignments of the values of a row that could not be inserted: `a = excluded.a, b = excluded.b`.
pub(crate) fn excluded(names: &[&str]) -> String {
    let assigned: Vec<String> =
        names.iter().map(|name| format!("{name} = excluded.{name}")).collect();
    assigned.join(", ")
}

/// Returns assignments of values whose places are numbered on from `first`: `a = $7, b = $8`.
pub(crate) fn assigned(names: &[&str], first: usize) -> String {
    let assigned = names.iter().zip(first..).map(|(name, n)| format!("{name} = ${n}"));
    assigned.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_names_makes_the_texts_of_statements() {
        let names = ["a", "b"];
        assert_eq!(inserted(&names), "(a, b) values ($1, $2)");
        assert_eq!(excluded(&names), "a = excluded.a, b = excluded.b");
        assert_eq!(assigned(&names, 7), "a = $7, b = $8");
    }
}
