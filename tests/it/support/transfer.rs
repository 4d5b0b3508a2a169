//! Exports and imports, without the commands.

use feedgate_store::{ImportReport, Importer, export};

use super::postgres::Database;
use crate::store::at;

/// The lines of an export.
pub(crate) async fn export_lines(database: &Database, with_secrets: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let mut write = |line: &str| {
        lines.push(line.to_owned());
        Ok(())
    };
    export(&database.settings(), with_secrets, &mut write, &mut |_| {}).await.unwrap();
    lines
}

/// Imports the lines of an export.
pub(crate) async fn import_lines(database: &Database, lines: &[String]) -> ImportReport {
    let mut importer = Importer::begin(&database.settings(), &lines[0], at(3)).await.unwrap();
    for (line, number) in lines[1..].iter().zip(2..) {
        importer.add_line(number, line).await.unwrap();
    }
    importer.finish().await.unwrap()
}
