//! Categories, as all formats but Atom list them.

use crate::model::Category;

/// Returns the categories, each once: elements of podcasts are read as categories again when stored Atom
/// is.
pub(super) fn distinct_categories(categories: &[Category]) -> Vec<&Category> {
    let mut distinct: Vec<&Category> = Vec::with_capacity(categories.len());
    for category in categories {
        let is_known = distinct
            .iter()
            .any(|known| known.term == category.term && known.scheme == category.scheme);
        if !is_known {
            distinct.push(category);
        }
    }
    distinct
}
