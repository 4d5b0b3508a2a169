//! The free space on the disk of the database, and how much of it is kept free.
//!
//! A full disk stops everything. So what only subscribers without an account watch is not stored any
//! more when little space is left: its resources are fetched again once there is more. The disk of a
//! PostgreSQL server cannot be seen from here.

use std::path::{Path, PathBuf};

/// The most that is kept free by default, in bytes.
const DEFAULT_FLOOR_BYTES: u64 = 1 << 30;
/// The part of the disk that is kept free by default if that is less.
const DEFAULT_FLOOR_PART: u64 = 20;

/// The disk of the database.
#[derive(Clone, Debug, Default)]
pub struct DiskSpace {
    /// The folder of the database; `None` if its disk cannot be seen.
    folder: Option<PathBuf>,
    /// The space that is kept free, in bytes; `None` leaves it to the size of the disk.
    floor_bytes: Option<u64>,
}

/// Less space is free than is to be kept free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskShortage {
    /// The free space, in bytes.
    pub free_bytes: u64,
    /// The space that is kept free, in bytes.
    pub floor_bytes: u64,
}

impl DiskSpace {
    /// Creates the disk of the file at `database`; `None` is a database elsewhere.
    pub fn new(database: Option<&Path>, floor_bytes: Option<u64>) -> DiskSpace {
        let folder = database.map(|path| match path.parent() {
            Some(folder) if folder != Path::new("") => folder.to_owned(),
            _ => PathBuf::from("."),
        });
        DiskSpace { folder, floor_bytes }
    }

    /// Returns how much is free if that is too little.
    pub fn shortage(&self) -> Option<DiskShortage> {
        let folder = self.folder.as_ref().filter(|_| self.floor_bytes != Some(0))?;
        let disk = rustix::fs::statvfs(folder).ok()?;
        let (free_blocks, all_blocks) = (disk.f_bavail, disk.f_blocks);
        let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
        shortage(bytes(free_blocks), bytes(all_blocks), self.floor_bytes)
    }
}

fn shortage(free_bytes: u64, disk_bytes: u64, floor_bytes: Option<u64>) -> Option<DiskShortage> {
    let default = || DEFAULT_FLOOR_BYTES.min(disk_bytes / DEFAULT_FLOOR_PART);
    let floor_bytes = floor_bytes.unwrap_or_else(default);
    (free_bytes < floor_bytes).then_some(DiskShortage { free_bytes, floor_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t02_some_space_is_kept_free() {
        let (mb, gb) = (1_u64 << 20, 1_u64 << 30);
        #[rustfmt::skip]
        let cases = [
            ("enough",                        2 * gb,   252 * gb, None,          None),
            ("less than 1 GiB",               gb - 1,   252 * gb, None,          Some(gb)),
            ("a small disk",                  60 * mb,  gb,       None,          None),
            ("less than 5 % of a small disk", 50 * mb,  gb,       None,          Some(gb / 20)),
            ("less than configured",          2 * gb,   252 * gb, Some(3 * gb),  Some(3 * gb)),
            ("as much as configured",         3 * gb,   252 * gb, Some(3 * gb),  None),
        ];
        for (why, free, disk, floor, want) in cases {
            let found = shortage(free, disk, floor);
            assert_eq!(found.map(|found| found.floor_bytes), want, "{why}");
        }
        let here = Some(Path::new("Cargo.toml"));
        assert!(DiskSpace::new(here, Some(u64::MAX)).shortage().is_some());
        assert_eq!(DiskSpace::new(here, Some(0)).shortage(), None);
        assert_eq!(DiskSpace::new(None, Some(u64::MAX)).shortage(), None);
    }
}
