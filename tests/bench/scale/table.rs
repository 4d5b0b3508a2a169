//! What was measured, as a table that can be put into a document.

use std::time::Duration;

/// A row for each operation, and columns for each number of resources.
pub(crate) struct Table {
    store: &'static str,
    unit: &'static str,
    rows: Vec<(&'static str, Vec<Cost>)>,
}

/// What an operation costs in a database of one size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) median: Duration,
    pub(crate) p99: Duration,
    /// Rows, or kilobytes, that were read for each operation.
    pub(crate) read: f64,
}

impl Table {
    pub(crate) fn new(store: &'static str, unit: &'static str) -> Table {
        Table { store, unit, rows: Vec::new() }
    }

    /// Adds the next size of an operation.
    pub(crate) fn add(&mut self, operation: &'static str, cost: Cost) {
        match self.rows.iter_mut().find(|(name, _)| *name == operation) {
            Some((_, costs)) => costs.push(cost),
            None => self.rows.push((operation, vec![cost])),
        }
    }

    /// Prints the costs by size, and by how much the medians grow when there is ten times as much.
    pub(crate) fn print(&self) {
        println!("\n| {} | median, µs | p99, µs | {} | growth per decade |", self.store, self.unit);
        println!("| --- | ---: | ---: | ---: | ---: |");
        for (name, costs) in &self.rows {
            let list =
                |of: fn(&Cost) -> String| costs.iter().map(of).collect::<Vec<_>>().join(" / ");
            let growth = costs
                .windows(2)
                .map(|two| two[1].median.as_secs_f64() / two[0].median.as_secs_f64());
            let growth: Vec<_> = growth.map(|times| format!("{times:.2}x")).collect();
            println!(
                "| {name} | {} | {} | {} | {} |",
                list(|cost| cost.median.as_micros().to_string()),
                list(|cost| cost.p99.as_micros().to_string()),
                list(|cost| format!("{:.0}", cost.read)),
                growth.join(", "),
            );
        }
    }
}
