//! Problems of a fleet, as facts. `rules` puts them into words.

pub mod access;
pub mod captured_endpoint;
pub mod cloned_key;
pub mod endpoint;
pub mod inspected_cluster;
pub mod learned_endpoint;
pub mod location;
pub mod location_range;
pub mod mixed_families;
pub mod roaming_pairs;
pub mod shared_endpoint;
pub mod shared_internal_ip;
pub mod shared_nodes;
pub mod silent_leaders;
pub mod spelling;
pub mod target_load;
pub mod undone_selector;
pub mod unproved_nodes;
