//! Background jobs. Each item is claimed in the store, and may be processed twice; the heartbeat, the clock and
//! the signing keys are work of every node.

pub mod alerts;
pub mod backfill;
pub(crate) mod claim_renewal;
pub mod clock_sync;
pub mod collect;
pub mod deliver;
pub(crate) mod failure_log;
pub mod fan_out;
pub mod forward_pings;
pub mod heartbeat;
pub mod host_gate;
pub mod host_permits;
pub mod maintenance;
pub mod poll;
pub mod runner;
pub mod search_index;
pub mod signing_keys;
pub mod track;
pub mod traffic_writer;
pub mod upstream;
