//! Ranges of nodes that anchors carry as a whole, and what their entry needs for that.

use crate::diagnostic::{Finding, Mistakes, Quoted, mistake};
use crate::granularity::Granularity;
use crate::place::Place;
use crate::text;

use super::entry::Draft;
use super::{Anchor, Networks, PodRanges, Range, WireguardAddresses};

/// Reports what keeps anchors from carrying ranges that are declared for nodes. No node must be able to become the
/// carrier of all pods, so people name it.
pub(super) fn check(draft: &Draft, findings: &mut Mistakes) {
    let is_declared = draft.advertise.pods == PodRanges::Declared;
    if is_declared {
        findings.extend(granularity(draft));
        findings.extend(selector(draft));
    }
    match &draft.declared.networks {
        Some(Networks::Typed { pods, .. }) if is_declared => anchors(draft, pods, findings),
        Some(Networks::Flat { .. }) => findings.extend(unnamed_flat(draft)),
        Some(Networks::Typed { .. }) | None => {}
    }
}

fn value(draft: &Draft) -> Place {
    draft.field("advertise").key("podCIDRs")
}

/// Reports an entry with `allowedNetworks` of which no anchor names the range that it should carry: only that shows
/// what the range is for.
fn unnamed_flat(draft: &Draft) -> Option<Finding> {
    let named = |it: &Anchor| it.ranges.is_some() && !it.nodes.is_empty();
    if draft.anchors.as_ref()?.iter().any(named) {
        return None;
    }
    let (field, text, what) = if draft.advertise.pods == PodRanges::Declared {
        ("podCIDRs", "podCIDRs: Declared", "of the pods")
    } else if draft.advertise.wireguard == WireguardAddresses::Carrier {
        ("wireguardAddresses", "wireguardAddresses: Carrier", "of Kilo's `--subnet`")
    } else {
        return None;
    };
    let message = format!(
        "no anchor of {} names the range {what}, which `{text}` needs with `allowedNetworks`",
        Quoted(&draft.text)
    );
    let places = Finding::new(&mistake::MISSING_FIELD, message)
        .at(draft.field("advertise").key(field), "")
        .at(draft.place.key("allowedNetworks").named(), "");
    Some(places.help(format!(
        "add to `anchors` the range {what}, with a node that should carry it: `{{ ranges: [RANGE], nodes: [NODE] }}`"
    )))
}

fn granularity(draft: &Draft) -> Option<Finding> {
    let place = draft.field("granularity");
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
        "`podCIDRs: Declared` of {} would advertise the pods of nodes that `nodeSelector` leaves out",
        Quoted(&draft.text)
    );
    let finding = Finding::new(&mistake::CONTRADICTING_FIELDS, message);
    let places = finding.at(value(draft), "").at(draft.field("nodeSelector").named(), "");
    Some(places.help("remove `nodeSelector`, or write `podCIDRs: Merged`"))
}

/// Reports pod ranges without a named node, and those that an anchor splits.
fn anchors(draft: &Draft, pods: &[Range], findings: &mut Mistakes) {
    let Some(anchors) = draft.anchors.as_deref() else {
        return;
    };
    let mut without = Vec::new();
    for range in pods {
        let cidr = range.cidr;
        match Anchor::of(anchors, cidr) {
            Some(anchor) if 0 < anchor.spread => {
                let message = format!(
                    "`count` would split {cidr}, but one location carries a declared pod range"
                );
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
    let anchors = ranges.iter().map(|it| format!("{{ ranges: [{}], nodes: [NODE] }}", it.cidr));
    Some(finding.at(first.place.clone(), "").at(value(draft), "").help(format!(
        "add to `anchors`, with a node of the location that carries the range: `{}`",
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
    - name: e
      allowedNetworks: [10.6.0.0/16]
      granularity: Location
      anchors: [{ nodes: [n1] }]
      advertise: { podCIDRs: Declared }
    - name: f
      allowedNetworks: [10.7.0.0/16]
      anchors: [{ ranges: [10.7.0.0/16] }]
      advertise: { wireguardAddresses: Carrier }
    - name: d
      allowedNetworks: [10.5.0.0/16]
      advertise: { podCIDRs: declared, wireguard: None }
"), @"
        error[invalid-type]: `nodeAddresses` must be `true` or `false`, not the string `maybe`
          21:55 | maybe
        error[invalid-value]: `podCIDRs` cannot be `declared`
          33:30 | declared
          help: did you mean `Declared`?
        error[unknown-field]: unknown field `wireguard`
          33:40 | wireguard
          help: did you mean `wireguardAddresses`?
        error[missing-field]: `a` needs `granularity: Location` for `podCIDRs: Declared`
          11:30 | Declared
          help: add `granularity: Location` if Kilo runs with it, else write `podCIDRs: Merged`
        error[contradicting-fields]: `podCIDRs: Declared` of `a` would advertise the pods of nodes that `nodeSelector` leaves out
          11:30 | Declared
          10:7 | nodeSelector
          help: remove `nodeSelector`, or write `podCIDRs: Merged`
        error[invalid-anchor]: `count` would split 10.1.0.0/16, but one location carries a declared pod range
          12:62 | 2
          8:18 | 10.1.0.0/16 | declared here
          help: remove `count`, or add an anchor for this range: `{ ranges: [10.1.0.0/16], nodes: [NODE] }`
        error[missing-field]: no anchor of `a` names a node for 10.2.0.0/16
          8:31 | 10.2.0.0/16
          11:30 | Declared
          help: add to `anchors`, with a node of the location that carries the range: `{ ranges: [10.2.0.0/16], nodes: [NODE] }`
        error[contradicting-fields]: `podCIDRs: Declared` of `b` cannot be used with `granularity: Full`, in which each node needs a Peer
          17:30 | Declared
          16:20 | Full
          help: write `podCIDRs: Merged`
        error[missing-field]: no anchor of `b` names a node for 10.3.0.0/16
          14:18 | 10.3.0.0/16
          17:30 | Declared
          help: add to `anchors`, with a node of the location that carries the range: `{ ranges: [10.3.0.0/16], nodes: [NODE] }`
        error[missing-field]: `c` needs `granularity: Location` for `podCIDRs: Declared`
          21:30 | Declared
          help: add `granularity: Location` if Kilo runs with it, else write `podCIDRs: Merged`
        error[missing-field]: no anchor of `c` names the range of the pods, which `podCIDRs: Declared` needs with `allowedNetworks`
          21:30 | Declared
          20:7 | allowedNetworks
          help: add to `anchors` the range of the pods, with a node that should carry it: `{ ranges: [RANGE], nodes: [NODE] }`
        error[missing-field]: no anchor of `e` names the range of the pods, which `podCIDRs: Declared` needs with `allowedNetworks`
          26:30 | Declared
          23:7 | allowedNetworks
          help: add to `anchors` the range of the pods, with a node that should carry it: `{ ranges: [RANGE], nodes: [NODE] }`
        error[missing-field]: no anchor of `f` names the range of Kilo's `--subnet`, which `wireguardAddresses: Carrier` needs with `allowedNetworks`
          30:40 | Carrier
          28:7 | allowedNetworks
          help: add to `anchors` the range of Kilo's `--subnet`, with a node that should carry it: `{ ranges: [RANGE], nodes: [NODE] }`
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
