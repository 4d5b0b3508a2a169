//! The memory that this process may use: the limit of its cgroup, or the memory of the machine.

use std::fs;
use std::path::Path;

/// The limit if the system does not tell any.
const UNKNOWN_BYTES: u64 = 1 << 30;
/// Limits from here on mean "unlimited": cgroup v1 writes the greatest number of pages.
const UNLIMITED_BYTES: u64 = 1 << 60;

/// Returns the memory that this process may use, in bytes: the least limit of its cgroup and those
/// around it, but no more than the machine has.
pub(super) fn memory_limit_bytes() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_bytes(&text));
    let cgroups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let cgroup = cgroup_limit_bytes(&cgroups, Path::new("/sys/fs/cgroup"));
    machine.into_iter().chain(cgroup).min().unwrap_or(UNKNOWN_BYTES)
}

/// Returns `MemTotal` of `/proc/meminfo`.
fn total_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    kilobytes.checked_mul(1_024)
}

/// Returns the least limit of the cgroups in `/proc/self/cgroup` and their ancestors. `mounted` is
/// where the file system of cgroups is mounted.
fn cgroup_limit_bytes(cgroups: &str, mounted: &Path) -> Option<u64> {
    let limits = cgroups.lines().flat_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let (root, file) = match controllers {
            "" => (mounted.to_owned(), "memory.max"),
            names if names.split(',').any(|name| name == "memory") => {
                (mounted.join("memory"), "memory.limit_in_bytes")
            }
            _ => return None,
        };
        least_limit(&root, path.trim_start_matches('/'), file)
    });
    limits.min()
}

/// Returns the least limit of the cgroup at `path` below `root` and its ancestors. Inside a
/// container `path` may be that of the host, of which only the root is visible.
fn least_limit(root: &Path, path: &str, file: &str) -> Option<u64> {
    let groups = Path::new(path).ancestors();
    let limits = groups.filter_map(|group| {
        let text = fs::read_to_string(root.join(group).join(file)).ok()?;
        text.trim().parse().ok().filter(|limit| *limit < UNLIMITED_BYTES)
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_the_least_of_the_cgroup_and_those_around_it() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("memory.max", "max\n");
        write("outer/memory.max", "1000\n");
        write("outer/inner/memory.max", "max\n");
        write("outer/less/memory.max", "500\n");
        write("memory/memory.limit_in_bytes", "9223372036854771712\n");
        write("memory/docker/memory.limit_in_bytes", "2000\n");
        let cases = [
            ("version 2", "0::/outer/inner\n", Some(1_000)),
            ("its own", "0::/outer/less\n", Some(500)),
            ("none", "0::/elsewhere\n", None),
            ("version 1", "9:cpu:/docker\n4:memory,hugetlb:/docker\n", Some(2_000)),
            ("version 1 without a limit", "4:memory:/other\n", None),
            ("nothing", "", None),
        ];
        for (why, cgroups, want) in cases {
            assert_eq!(cgroup_limit_bytes(cgroups, folder.path()), want, "{why}");
        }
        assert_eq!(total_bytes("MemFree: 1 kB\nMemTotal:       2 kB\n"), Some(2_048));
    }
}
