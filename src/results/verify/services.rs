//! Services that clusters get of others, as far as their paths are proved.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::mirror::ServicePath;
use crate::name::ServiceName;
use crate::place::Place;
use crate::text::{count, listed};
use schemars::JsonSchema;
use serde::Serialize;

use super::Verified;

/// The paths to a Service, with how many there are and how many of these fail.
pub struct ProvedService<'a> {
    /// The Service, its address, and the clusters that get it.
    pub path: &'a ServicePath<'a>,
    /// The paths of pods.
    pub pods: (u64, u64),
    /// The paths of nodes.
    pub nodes: (u64, u64),
}

/// A Service that clusters get of another one. That its cluster IP leads on to pods is not proved.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "ServicePaths")]
#[serde(rename_all = "camelCase")]
pub struct WrittenService {
    /// The cluster that has it.
    #[schemars(example = &"west")]
    source: String,
    /// Its namespace there.
    #[schemars(example = &"shop")]
    namespace: String,
    /// Its name there.
    #[schemars(example = &"api")]
    name: String,
    /// Its cluster IP.
    address: IpAddr,
    /// The clusters that get it.
    targets: Vec<String>,
    /// The paths from their pods.
    pods: WrittenServiceReach,
    /// The paths from their nodes. They work only for clusters that give the addresses of their nodes.
    nodes: WrittenServiceReach,
}

/// Numbers of paths.
#[derive(JsonSchema, Serialize)]
struct WrittenServiceReach {
    /// All.
    paths: u64,
    /// Those that fail.
    failing: u64,
}

impl ProvedService<'_> {
    /// Returns whether there are pods that use it, and all of them reach it.
    fn is_reached(&self) -> bool {
        0 < self.pods.0 && self.pods.1 == 0
    }
}

impl Verified<'_, '_> {
    /// Returns a sentence about the Services.
    pub(super) fn services_sentence(&self) -> Option<String> {
        // A Service with addresses of both families has two paths.
        let places = |of: fn(&ProvedService) -> bool| -> BTreeSet<&Place> {
            let services = self.services.iter().filter(|it| of(it));
            services.map(|it| &it.path.service.place).collect()
        };
        let all = places(|_| true).len();
        let reached = match all - places(|it| !it.is_reached()).len() {
            _ if all == 0 => return None,
            reached if reached == all => count(all, "Service"),
            reached => format!("{reached} of {}", count(all, "Service")),
        };
        let silent = self.services.iter().filter(|it| 0 < it.nodes.1);
        let silent: BTreeSet<&ServiceName> = silent.map(|it| &it.path.service.local).collect();
        let silent = match &*listed(silent) {
            "" => String::new(),
            silent => format!(" Some nodes do not reach {silent}."),
        };
        Some(format!(
            "Pods reach {reached} of other clusters, if the proxies of their clusters work and have the Services that `render` \
             writes.{silent}"
        ))
    }

    pub(super) fn written_services(&self) -> Vec<WrittenService> {
        let paths = |(paths, failing)| WrittenServiceReach { paths, failing };
        let services = self.services.iter().map(|it| {
            let service = it.path.service;
            WrittenService {
                source: service.source.to_string(),
                namespace: service.name.namespace.to_string(),
                name: service.name.name().to_owned(),
                address: it.path.address,
                targets: it.path.targets.iter().map(ToString::to_string).collect(),
                pods: paths(it.pods),
                nodes: paths(it.nodes),
            }
        });
        services.collect()
    }
}
