//! Lists of a feed that mostly have one item, such as the links of an entry.

/// Appends an item. `Vec` begins with room for four, which is most of the memory of a feed with many
/// entries.
pub(crate) fn push_to_short_list<T>(list: &mut Vec<T>, item: T) {
    if list.is_empty() {
        list.reserve_exact(1);
    }
    list.push(item);
}
