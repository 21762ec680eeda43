//! Service changes: what becomes of the Services that clusters get of others.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::grade::Grade;
use crate::mirror::{Mirror, Mirrors};
use crate::name::{ClusterName, ServiceName};
use crate::port::ServicePort;

/// The difference of a Service that a cluster gets.
#[derive(Clone, Debug)]
pub struct ServiceChange {
    /// The cluster that gets it.
    pub target: ClusterName,
    /// Its name there.
    pub name: ServiceName,
    /// The cluster that has it; if that changes, the new one.
    pub source: ClusterName,
    /// The difference.
    pub kind: ServiceChangeKind,
}

/// The difference of a Service.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ServiceChangeKind {
    /// The cluster did not get it before.
    Added,
    /// The cluster gets it no more: programs that use it fail.
    Removed,
    /// It leads to another address. Connections that exist go on to the old one.
    Moved {
        /// The address before.
        from: IpAddr,
        /// The address now.
        to: IpAddr,
    },
    /// Its ports are others.
    Ports {
        /// Those that it has no more.
        lost: Vec<ServicePort>,
        /// Those that it did not have.
        gained: Vec<ServicePort>,
        /// Those that have another name or application protocol: before and now.
        changed: Vec<[ServicePort; 2]>,
    },
}

impl ServiceChange {
    /// Returns the grade.
    pub fn grade(&self) -> Grade {
        match &self.kind {
            ServiceChangeKind::Ports { lost, .. } if !lost.is_empty() => Grade::Disruptive,
            ServiceChangeKind::Added | ServiceChangeKind::Ports { .. } => Grade::Additive,
            ServiceChangeKind::Moved { .. } => Grade::Brief,
            ServiceChangeKind::Removed => Grade::Disruptive,
        }
    }

    /// Returns the differences between two versions, in the order of clusters and names.
    pub fn all(before: &Mirrors, after: &Mirrors) -> Vec<Self> {
        let (before, after) = (by_name(before), by_name(after));
        let mut changes = Vec::new();
        for ((target, name), now) in &after {
            let kind = match before.get(&(*target, *name)) {
                Some(then) => difference(then, now),
                None => Some(ServiceChangeKind::Added),
            };
            changes.extend(kind.map(|kind| Self::new(target, now, kind)));
        }
        let gone = before.iter().filter(|it| !after.contains_key(it.0));
        changes.extend(
            gone.map(|((target, _), then)| Self::new(target, then, ServiceChangeKind::Removed)),
        );
        changes.sort_by(|a, b| (&a.target, &a.name).cmp(&(&b.target, &b.name)));
        changes
    }

    fn new(target: &ClusterName, mirror: &Mirror, kind: ServiceChangeKind) -> Self {
        Self {
            target: target.clone(),
            name: mirror.service.local.clone(),
            source: mirror.service.source.clone(),
            kind,
        }
    }
}

/// The Services of all clusters.
type NamedMirrors<'m> = BTreeMap<(&'m ClusterName, &'m ServiceName), &'m Mirror<'m>>;

fn by_name<'m>(mirrors: &'m Mirrors) -> NamedMirrors<'m> {
    let targets = mirrors.targets.iter();
    let services =
        targets.flat_map(|(target, services)| services.iter().map(move |it| (target, it)));
    services.map(|(target, it)| ((*target, &it.service.local), it)).collect()
}

fn difference(before: &Mirror, after: &Mirror) -> Option<ServiceChangeKind> {
    let [before_ports, after_ports] = [before, after].map(|it| &it.service.ports);
    let same = |port: &ServicePort, others: &[ServicePort]| {
        others.iter().find(|it| it.is_same(port)).cloned()
    };
    let without = |some: &[ServicePort], others: &[ServicePort]| -> Vec<ServicePort> {
        some.iter().filter(|it| same(it, others).is_none()).cloned().collect()
    };
    let (lost, gained) = (without(before_ports, after_ports), without(after_ports, before_ports));
    let both = before_ports.iter().filter_map(|it| Some([it.clone(), same(it, after_ports)?]));
    let changed: Vec<[ServicePort; 2]> = both.filter(|[then, now]| then != now).collect();
    let is_other = !gained.is_empty() || !changed.is_empty();
    if !lost.is_empty() || before.address == after.address && is_other {
        return Some(ServiceChangeKind::Ports { lost, gained, changed });
    }
    (before.address != after.address)
        .then_some(ServiceChangeKind::Moved { from: before.address, to: after.address })
}
