//! Advertise: which addresses of a cluster's nodes other clusters get.

use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::diagnostic::{Finding, Mistakes, Quoted, mistake};
use crate::granularity::Granularity;
use crate::place::Place;
use crate::text;

use super::entry::Draft;
use super::raw::RawAdvertise;
use super::{Anchor, Networks, Range};

/// The addresses of a cluster's nodes that other clusters get. By default, these are the ones that the
/// operator gives.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Advertise {
    /// The ranges of pods.
    pub pods: PodRanges,
    /// Whether internal addresses in declared ranges are given.
    pub node_addresses: bool,
    /// The addresses in Kilo's subnet.
    pub wireguard: WireguardAddresses,
}

/// The ranges of pods that other clusters get.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq)]
pub enum PodRanges {
    /// The pod CIDRs of each node.
    #[default]
    PerNode,
    /// The pod CIDRs of each segment as the fewest ranges with exactly the same addresses.
    Merged,
    /// The declared ranges, each carried by the segment of a node that `anchors` names, and the pod CIDRs of
    /// nodes in other segments.
    Declared,
}

/// The addresses in Kilo's subnet that other clusters get.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq)]
pub enum WireguardAddresses {
    /// The address of each segment.
    #[default]
    PerNode,
    /// The whole `wireguardCIDR`, carried by an anchor, and the addresses of the other segments.
    Carrier,
    /// No address.
    None,
}

impl Default for Advertise {
    fn default() -> Self {
        Self {
            pods: PodRanges::default(),
            node_addresses: true,
            wireguard: WireguardAddresses::default(),
        }
    }
}

impl fmt::Display for Advertise {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let Self {
            pods,
            node_addresses,
            wireguard,
        } = self;
        write!(
            formatter,
            "podCIDRs: {pods:?}, nodeAddresses: {node_addresses}, wireguardAddresses: {wireguard:?}"
        )
    }
}

impl Advertise {
    pub(super) fn new(written: Option<&RawAdvertise>) -> Self {
        let default = Self::default();
        let Some(written) = written else {
            return default;
        };
        Self {
            pods: written.pod_cidrs.unwrap_or_default(),
            node_addresses: written.node_addresses.unwrap_or(default.node_addresses),
            wireguard: written.wireguard_addresses.unwrap_or_default(),
        }
    }

    /// Returns the pod ranges that anchors carry as a whole. An entry with `allowedNetworks` does not show which
    /// of its ranges are for pods.
    pub(super) fn carried_pods(self, networks: &Networks) -> &[Range] {
        match networks {
            Networks::Typed { pods, .. } if self.pods == PodRanges::Declared => pods,
            Networks::Typed { .. } | Networks::Flat { .. } => &[],
        }
    }

    /// Returns whether a range is Kilo's subnet, and no other cluster gets addresses in it.
    pub(super) fn keeps(self, networks: &Networks, range: &Range) -> bool {
        let is_subnet =
            matches!(networks, Networks::Typed { wireguard, .. } if wireguard.place == range.place);
        is_subnet && self.wireguard == WireguardAddresses::None
    }

    /// Returns Kilo's subnet, if an anchor carries it as a whole.
    pub(super) fn carried_subnet(self, networks: &Networks) -> Option<&Range> {
        match networks {
            Networks::Typed { wireguard, .. } => {
                (self.wireguard == WireguardAddresses::Carrier).then_some(wireguard)
            }
            Networks::Flat { .. } => None,
        }
    }
}

/// Reports what keeps anchors from carrying ranges that are declared for nodes. No node must be able to become the
/// carrier of all pods, so people name it.
pub(super) fn check(draft: &Draft, findings: &mut Mistakes) {
    let carries = draft.advertise.wireguard == WireguardAddresses::Carrier;
    let is_declared = draft.advertise.pods == PodRanges::Declared;
    if matches!(draft.declared.networks, Some(Networks::Flat { .. })) && (carries || is_declared) {
        findings.push(flat(draft));
        return;
    }
    if is_declared {
        findings.extend(granularity(draft));
        findings.extend(selector(draft));
        anchors(draft, findings);
    }
}

fn value(draft: &Draft) -> Place {
    draft.place.key("advertise").key("podCIDRs")
}

fn flat(draft: &Draft) -> Finding {
    let message = format!(
        "`advertise` of {} gives whole ranges of nodes, but `allowedNetworks` does not show which ranges \
         are for nodes",
        Quoted(&draft.text)
    );
    Finding::new(&mistake::CONTRADICTING_FIELDS, message)
        .at(draft.place.key("advertise").named(), "")
        .at(draft.place.key("allowedNetworks").named(), "")
        .help("write `podCIDRs`, `wireguardCIDR` and the fields for other ranges instead of `allowedNetworks`")
}

fn granularity(draft: &Draft) -> Option<Finding> {
    let place = draft.place.key("granularity");
    match draft.granularity {
        Some(Granularity::Location) => None,
        Some(other) => {
            let message = format!(
                "`podCIDRs: Declared` of {} cannot be used with `granularity: {other}`, in which each node \
                 needs a Peer",
                Quoted(&draft.text)
            );
            let finding = Finding::new(&mistake::CONTRADICTING_FIELDS, message);
            let finding = finding.at(value(draft), "").at(place, "");
            Some(finding.help("write `podCIDRs: Merged`"))
        }
        None => {
            let message = format!(
                "{} needs `granularity: Location` for `podCIDRs: Declared`",
                Quoted(&draft.text)
            );
            let finding = Finding::new(&mistake::MISSING_FIELD, message);
            let help =
                "add `granularity: Location` if Kilo runs with it, else write `podCIDRs: Merged`";
            Some(finding.at(value(draft), "").help(help))
        }
    }
}

fn selector(draft: &Draft) -> Option<Finding> {
    draft.selector.as_ref().filter(|it| !it.is_everything())?;
    let message = format!(
        "`podCIDRs: Declared` of {} gives the pods of all nodes, also of those that `nodeSelector` leaves \
         out",
        Quoted(&draft.text)
    );
    let finding = Finding::new(&mistake::CONTRADICTING_FIELDS, message);
    let places = finding
        .at(value(draft), "")
        .at(draft.place.key("nodeSelector").named(), "");
    Some(places.help("remove `nodeSelector`, or write `podCIDRs: Merged`"))
}

/// Reports pod ranges without a named node, and those that an anchor splits.
fn anchors(draft: &Draft, findings: &mut Mistakes) {
    let (Some(anchors), Some(networks)) = (draft.anchors.as_deref(), &draft.declared.networks)
    else {
        return;
    };
    let Networks::Typed { pods, .. } = networks else {
        return;
    };
    let mut without = Vec::new();
    for range in pods {
        let cidr = range.cidr;
        match Anchor::of(anchors, cidr) {
            Some(anchor) if 0 < anchor.spread => {
                let message = format!("`count` splits {cidr}, which one node carries as a whole");
                let finding = Finding::new(&mistake::INVALID_ANCHOR, message);
                let places = finding.at(anchor.place.key("count"), "");
                findings.push(places.at(range.place.clone(), "declared here").help(format!(
                    "remove `count`, or add an anchor for this range: `{{ ranges: [{cidr}], nodes: [NODE] }}`"
                )));
            }
            Some(anchor) if !anchor.nodes.is_empty() => {}
            _ => without.push(range),
        }
    }
    findings.extend(unnamed(draft, &without));
}

fn unnamed(draft: &Draft, ranges: &[&Range]) -> Option<Finding> {
    let first = ranges.first()?;
    let message = format!(
        "no anchor of {} names a node for {}",
        Quoted(&draft.text),
        text::listed(ranges.iter().map(|it| it.cidr))
    );
    let finding = Finding::new(&mistake::MISSING_FIELD, message);
    let anchors = ranges
        .iter()
        .map(|it| format!("{{ ranges: [{}], nodes: [NODE] }}", it.cidr));
    Some(finding.at(first.place.clone(), "").at(value(draft), "").help(format!(
        "for each range, name a node of the location that carries it; items of `anchors`: `{}`",
        anchors.collect::<Vec<_>>().join(", ")
    )))
}

#[cfg(test)]
mod tests {
    use crate::mesh::tests::report;

    #[test]
    fn declared_pods_need_a_location_and_a_named_node() {
        insta::assert_snapshot!(report("
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata: { name: m }
spec:
  clusters:
    - name: a
      podCIDRs: [10.1.0.0/16, 10.2.0.0/16]
      wireguardCIDR: 10.101.0.0/24
      nodeSelector: { role: gateway }
      advertise: { podCIDRs: Declared }
      anchors: [{ ranges: [10.1.0.0/16], nodes: [n1], count: 2 }]
    - name: b
      podCIDRs: [10.3.0.0/16]
      wireguardCIDR: 10.103.0.0/24
      granularity: Full
      advertise: { podCIDRs: Declared }
      anchors: [{}]
    - name: c
      allowedNetworks: [10.4.0.0/16]
      advertise: { podCIDRs: Declared, nodeAddresses: maybe, wireguardAddresses: Carrier }
    - name: d
      allowedNetworks: [10.5.0.0/16]
      advertise: { podCIDRs: declared, wireguard: None }
"), @"
        error[invalid-type]: `nodeAddresses` must be `true` or `false`, not the string `maybe`
          21:55 | maybe
        error[invalid-value]: `podCIDRs` cannot be `declared`
          24:30 | declared
          help: did you mean `Declared`?
        error[unknown-field]: unknown field `wireguard`
          24:40 | wireguard
          help: did you mean `wireguardAddresses`?
        error[missing-field]: `a` needs `granularity: Location` for `podCIDRs: Declared`
          11:30 | Declared
          help: add `granularity: Location` if Kilo runs with it, else write `podCIDRs: Merged`
        error[contradicting-fields]: `podCIDRs: Declared` of `a` gives the pods of all nodes, also of those that `nodeSelector` leaves out
          11:30 | Declared
          10:7 | nodeSelector
          help: remove `nodeSelector`, or write `podCIDRs: Merged`
        error[invalid-anchor]: `count` splits 10.1.0.0/16, which one node carries as a whole
          12:62 | 2
          8:18 | 10.1.0.0/16 | declared here
          help: remove `count`, or add an anchor for this range: `{ ranges: [10.1.0.0/16], nodes: [NODE] }`
        error[missing-field]: no anchor of `a` names a node for 10.2.0.0/16
          8:31 | 10.2.0.0/16
          11:30 | Declared
          help: for each range, name a node of the location that carries it; items of `anchors`: `{ ranges: [10.2.0.0/16], nodes: [NODE] }`
        error[contradicting-fields]: `podCIDRs: Declared` of `b` cannot be used with `granularity: Full`, in which each node needs a Peer
          17:30 | Declared
          16:20 | Full
          help: write `podCIDRs: Merged`
        error[missing-field]: no anchor of `b` names a node for 10.3.0.0/16
          14:18 | 10.3.0.0/16
          17:30 | Declared
          help: for each range, name a node of the location that carries it; items of `anchors`: `{ ranges: [10.3.0.0/16], nodes: [NODE] }`
        ");
    }

    #[test]
    fn anchors_may_name_what_they_carry() {
        let text = "
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata: { name: m }
spec:
  clusters:
    - name: a
      podCIDRs: [10.1.0.0/16, 10.2.0.0/16]
      wireguardCIDR: 10.101.0.0/24
      granularity: Location
      advertise: { podCIDRs: Declared, wireguardAddresses: Carrier }
      anchors: [{ ranges: [10.1.0.0/16, 10.101.0.0/24], nodes: [n1] }, { nodes: [n2] }]
    - { name: b, allowedNetworks: [10.3.0.0/16] }
";
        assert_eq!(report(text), "");
    }
}
