//! The cell of a topic, and of a number: the bits of a number above the lowest 40 are its cell.

use sha2::{Digest, Sha256};

/// The number of low bits of a number that count within its cell: enough for a million million
/// rows. With the cell in the ten bits above, numbers are exact in JavaScript.
pub(crate) const LOCAL_BITS: u32 = 40;

/// Returns the cell of a topic: a hash, so that the topics of one host are spread over all cells.
pub(crate) fn cell_of_topic(topic: &str, cells: usize) -> usize {
    let hash = Sha256::digest(topic);
    let number = hash.iter().take(8).fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
    (number % cells as u64) as usize
}

/// Returns the first number of a cell's rows, less one.
pub(crate) fn number_at(cell: usize) -> i64 {
    (cell as i64) << LOCAL_BITS
}

/// Returns the cell that is part of a number.
pub(crate) fn cell_of_number(number: i64) -> usize {
    usize::try_from(number >> LOCAL_BITS).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_spread_evenly_and_stay_where_they_are() {
        assert_eq!(cell_of_topic("https://example.org/feed", 64), 44);
        let mut counts = [0; 64];
        for number in 0..64_000 {
            counts[cell_of_topic(&format!("https://example.org/{number}/feed"), 64)] += 1;
        }
        assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
    }

    #[test]
    fn numbers_contain_their_cell() {
        for cell in [0, 1, 63, 999] {
            assert_eq!(cell_of_number(number_at(cell) + 1), cell);
            assert_eq!(cell_of_number(number_at(cell + 1)), cell + 1);
            assert!(number_at(cell + 1) < 1 << 53, "exact in JavaScript");
        }
        assert_eq!(cell_of_number(-1), 0);
    }
}
