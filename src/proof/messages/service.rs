//! Words about the paths to Services that clusters get of others.

use crate::agent::fabric::Fabric;
use crate::diagnostic::{Finding, Severity};
use crate::mesh::MirroredService;
use crate::packet::messages::{verdict, whose};
use crate::proof::expectation::Check;
use crate::proof::rule;

/// Returns why pods do not reach a Service, if some do not. It is a warning if a few nodes are the reason.
pub fn unreached(fabric: &Fabric, service: &MirroredService, pods: &Check) -> Option<Finding> {
    let trace = pods.counterexample.as_ref().or(pods.excused_example.as_ref())?;
    let packet = &trace.packet;
    let ending = verdict(fabric, trace);
    let why = ending.as_ref().map(|it| format!(": {}", it.message));
    let message = format!(
        "Service `{}` of `{}`: {} ({}) does not reach {} ({} of {} pairs){}",
        service.name,
        service.source,
        packet.source,
        whose(fabric, packet.from.site, packet.source),
        packet.destination,
        pods.failing(),
        pods.pairs,
        why.unwrap_or_default()
    );
    let finding = Finding::new(&rule::UNREACHED_SERVICE, message);
    let mut finding = finding.at(service.place.clone(), "the Service");
    let (labels, help) = ending.map(|it| (it.labels, it.help)).unwrap_or_default();
    finding.labels.extend(labels);
    finding.help = help;
    if pods.counterexample.is_none() {
        finding.severity = Severity::Warning;
    }
    Some(finding)
}
