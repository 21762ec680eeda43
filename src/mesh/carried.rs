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
        "`podCIDRs: Declared` and `wireguardAddresses: Carrier` need the typed form, but {} has `allowedNetworks`",
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
        "`podCIDRs: Declared` of {} would advertise the pods of nodes that `nodeSelector` excludes",
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
    let anchors = ranges
        .iter()
        .map(|it| format!("{{ ranges: [{}], nodes: [NODE] }}", it.cidr));
    Some(
        finding
            .at(first.place.clone(), "")
            .at(value(draft), "")
            .help(format!(
                "add to `anchors`, with a node of the location that carries the range: `{}`",
                anchors.collect::<Vec<_>>().join(", ")
            )),
    )
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
        error[contradicting-fields]: `podCIDRs: Declared` of `a` would advertise the pods of nodes that `nodeSelector` excludes
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
