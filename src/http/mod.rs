//! The doors that others knock on, and the listener they stand behind.

pub mod listener;
