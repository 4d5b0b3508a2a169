//! Ports for programs that must know theirs before they start, and keep it over a restart.

use std::fs::{self, File};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the range from which Linux numbers outgoing connections and port 0 (32768 to 60999,
/// ip(7)), so that neither takes a port while the program that owns it restarts.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

/// A port that nothing listens on, and that no other test is given while this process lives:
/// each test process holds a lock on a file named after the port.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let locks = std::env::temp_dir().join("feedgate-test-ports");
    fs::create_dir_all(&locks).unwrap();
    // Processes that start one after the other begin far from each other.
    let start = std::process::id().wrapping_mul(2_654_435_761) % u32::from(COUNT);
    let start = u16::try_from(start).unwrap();
    for _ in 0..COUNT {
        let port = FIRST + (start + NEXT.fetch_add(1, Ordering::Relaxed) % COUNT) % COUNT;
        let lock = File::create(locks.join(port.to_string())).unwrap();
        if lock.try_lock().is_ok() && TcpListener::bind(("127.0.0.1", port)).is_ok() {
            std::mem::forget(lock);
            return port;
        }
    }
    panic!("all ports from {FIRST} are in use");
}
