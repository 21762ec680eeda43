//! Joins Kubernetes clusters with Kilo and WireGuard, the GitOps way: snapshots of nodes and a
//! `ClusterMesh` in, the Kilo `Peer` manifests of every cluster out.
//!
//! This is the pure core: same input, same bytes. It has no clock, no files, no environment and no
//! network; the binary around it has. Modules are listed in reading order, and each uses only those
//! above it.

pub mod text;
pub mod id;
pub mod name;
pub mod net;
pub mod wireguard;
pub mod granularity;
pub mod port;
pub mod place;
#[macro_use]
pub mod diagnostic;
pub mod string_map;
pub mod selector;
pub mod schema;
pub mod yaml;
pub mod document;
pub mod mesh;
pub mod snapshot;
pub mod config;
pub mod policy;
pub mod expectations;
pub mod kilo;
pub mod membership;
pub mod guard;
pub mod fleet;
pub mod plan;
pub mod host_config;
pub mod dns_config;
pub mod firewall;
pub mod node_changes;
pub mod template;
pub mod manifest;
pub mod mirror;
pub mod tree_diff;
pub mod engine;
pub mod agent;
pub mod admission;
pub mod packet;
pub mod proof;
pub mod capacity;
pub mod joining;
pub mod changes;
pub mod outage;
pub mod proposal;
pub mod outputs;
pub mod rules;
pub mod controls;
pub mod report;
pub mod results;
pub mod node_gates;
pub mod graph;
pub mod html_report;

#[cfg(test)]
mod testing;
