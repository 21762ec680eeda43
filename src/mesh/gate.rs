//! The gate: a `ClusterMesh` as it is written into one that is right in itself, or into what can be
//! judged of one that is not.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::successors;

use crate::diagnostic::{Finding, Mistakes, Quoted, mistake};
use crate::name::MeshName;
use crate::place::{Place, Pointer};

use super::anchored_ranges;
use super::defaults::MeshDefaults;
use super::entry::{self, Draft};
use super::group::or_group;
use super::mistakes::name_or_finding;
use super::raw::{RawExternalPeer, RawMesh};
use super::{
    Entry, ExternalPeer, Group, Mesh, MirroredService, RefusedLinks, Topology, external, group,
    overlap, service, topology,
};

/// A mesh of which some parts may be wrong; these are reported already and omitted.
pub(super) struct Outline {
    /// The names of its clusters.
    pub(super) named: BTreeSet<String>,
    name: Option<MeshName>,
    namespace: Option<String>,
    topology: Option<Topology>,
    groups: Vec<Group>,
    defaults: Vec<&'static str>,
    entries: Vec<Option<Entry>>,
    externals: Option<Vec<ExternalPeer>>,
    services: Option<Vec<MirroredService>>,
    place: Place,
}

/// Returns the valid parts of a mesh, and reports its mistakes.
pub(super) fn outline(resource: RawMesh, place: &Place, findings: &mut Mistakes) -> Outline {
    let name = resource.metadata.name.parse();
    let name_place = place.key("metadata").key("name");
    let name = name_or_finding("mesh", &resource.metadata.name, name, &name_place, findings);

    let spec_place = place.key("spec");
    let clusters_place = spec_place.key("clusters");
    let defaults = resource.spec.defaults.unwrap_or_default();
    let defaults = MeshDefaults::new(defaults, spec_place.key("defaults"), findings);
    let clusters = resource.spec.clusters.into_iter().enumerate();
    let drafts: Vec<Draft> = clusters
        .map(|(index, it)| entry::draft(it, &defaults, clusters_place.index(index), findings))
        .collect();
    for draft in &drafts {
        anchored_ranges::check(draft, findings);
    }
    unique_names(&drafts, findings);
    one_local(&drafts, findings);
    findings.extend(overlap::within(&drafts));

    let written = resource.spec.topology.unwrap_or_default();
    let topology = topology::topology(&written, &drafts, &spec_place.key("topology"), findings);
    let groups = group::groups(resource.spec.groups, &spec_place.key("groups"), findings);
    let externals = resource.spec.external_peers.unwrap_or_default();
    let hosts: Vec<String> = externals.iter().map(RawExternalPeer::member_name).collect();
    let clusters = drafts.iter().map(|it| &*it.text);
    let known: BTreeSet<&str> = clusters.chain(hosts.iter().map(String::as_str)).collect();
    for group in &groups {
        group.find_unknown(&known, "this mesh has no cluster", findings);
    }
    let externals_place = spec_place.key("externalPeers");
    let services = resource.spec.services.unwrap_or_default();
    let services_place = spec_place.key("services");
    let externals = external::externals(externals, &drafts, &externals_place, findings);
    let services =
        service::services(&services, &drafts, topology.as_ref(), &services_place, findings);
    findings.explain(&mistake::UNKNOWN_CLUSTER, |it| or_group(it, &groups, false));
    Outline {
        externals,
        services,
        named: drafts.iter().map(|draft| draft.text.clone()).collect(),
        name,
        namespace: resource.metadata.namespace,
        topology,
        defaults: defaults.fields(),
        groups,
        entries: drafts.into_iter().map(Draft::finished).collect(),
        place: place.clone(),
    }
}

impl Outline {
    /// Returns the mesh, if nothing is missing.
    pub(super) fn finished(self) -> Option<Mesh> {
        let entries: Option<Vec<_>> = self.entries.into_iter().collect();
        Some(Mesh {
            name: self.name?,
            namespace: self.namespace,
            topology: self.topology?,
            entries: entries?,
            externals: self.externals?,
            services: self.services?,
            groups: self.groups,
            defaults: self.defaults,
            refused: RefusedLinks::default(),
            place: self.place,
        })
    }

    /// Returns the part of the mesh with which nodes can be compared: the entries without mistakes,
    /// each cluster once. Without a topology, no clusters are linked.
    pub(super) fn salvaged(self, problems: &[Finding]) -> Option<Mesh> {
        let places = problems.iter().filter_map(|it| it.labels.first());
        let wrong: BTreeSet<Pointer> = places
            .flat_map(|label| successors(Some(label.place.pointer.clone()), Pointer::around))
            .collect();
        let is_wrong = |entry: &Entry| wrong.contains(&entry.place.pointer);
        let mut names = BTreeSet::new();
        let entries = self
            .entries
            .into_iter()
            .flatten()
            .filter(|entry| names.insert(entry.name.clone()) && !is_wrong(entry));
        Some(Mesh {
            name: self.name?,
            namespace: self.namespace,
            entries: entries.collect(),
            externals: Vec::new(),
            services: Vec::new(),
            groups: self.groups,
            defaults: self.defaults,
            refused: RefusedLinks::default(),
            topology: self.topology.unwrap_or_else(|| Topology::Links(BTreeSet::new())),
            place: self.place,
        })
    }
}

fn unique_names(drafts: &[Draft], findings: &mut Mistakes) {
    let mut first: BTreeMap<&str, &Draft> = BTreeMap::new();
    for again in drafts {
        let Some(first) = first.get(&*again.text) else {
            first.insert(&again.text, again);
            continue;
        };
        let message = format!("duplicate cluster name {}", Quoted(&again.text));
        findings.push(
            Finding::new(&mistake::DUPLICATE_NAME, message)
                .at_both(again.place.key("name"), first.place.key("name"))
                .help("give each cluster a name of its own, or remove one of the two entries"),
        );
    }
}

fn one_local(drafts: &[Draft], findings: &mut Mistakes) {
    let mut locals = drafts.iter().filter(|draft| draft.local);
    let Some(first) = locals.next() else { return };
    for again in locals {
        let message =
            format!("{} and {} cannot both be local", Quoted(&first.text), Quoted(&again.text));
        findings.push(
            Finding::new(&mistake::CONTRADICTING_FIELDS, message)
                .at_both(again.place.key("local"), first.place.key("local"))
                .help("keep `local: true` only for the cluster in which the operator runs"),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::mesh::tests::report;

    #[test]
    fn ten_mistakes_are_reported_at_once() {
        insta::assert_snapshot!(report("
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata: { name: Prod }
spec:
  topology: { mode: Hub, hubs: [eats] }
  clusters:
    - name: east
      local: true
      podCIDRs: [10.4.0.0/16]
      wireguardCIDR: 10.5.0.0/33
    - name: west
      local: true
      podCIDRs: [10.4.128.0/17]
      wireguardCIDR: 10.6.0.9/24
    - name: west
      allowedNetworks: [10.9.0.0/16]
      podCIDRs: [10.10.0.0/16]
      topologyLabel: a/b/c
      endpointDomains: ['*.example.org']
      endpointFrom: [Kilo, Annotation, Kilo]
    - name: no_rth
"), @"
error[invalid-value]: `Prod` is not a valid mesh name: expected lowercase letters, digits, inner dashes and dots (a DNS-1123 subdomain)
  4:19 | Prod
  help: write `prod`
error[invalid-range]: invalid range: `33` is not a prefix length from 0 to 32
  11:22 | 10.5.0.0/33
  help: write ADDRESS/LENGTH, for example `10.42.0.0/16` or `fd00:42::/56`
warning[host-bits]: `10.6.0.9/24` has host bits set; clustermesh reads it as 10.6.0.0/24
  15:22 | 10.6.0.9/24
  help: write `10.6.0.0/24`
error[contradicting-fields]: `west` has both `podCIDRs` and `allowedNetworks`
  17:7 | allowedNetworks
  18:7 | podCIDRs
  help: use either `allowedNetworks` or the fields that end in `CIDR` or `CIDRs`
error[invalid-value]: `a/b/c` is not a valid label key
  19:22 | a/b/c
  help: write `name` or `prefix/name`, such as `topology.kubernetes.io/zone`
error[duplicate-item]: duplicate endpoint source `Kilo`
  21:40 | Kilo | second here
  21:22 | Kilo | first here
  help: remove one of the two
error[invalid-value]: `*.example.org` is not a lowercase DNS name
  20:25 | '*.example.org'
  help: write `example.org`, which matches every name under it
error[invalid-value]: `no_rth` is not a valid cluster name: expected lowercase letters, digits and inner dashes (a DNS-1123 label)
  22:13 | no_rth
  help: write `no-rth`
error[missing-field]: `no_rth` declares no networks
  22:7 | name: no_rth
  help: add `podCIDRs` and `wireguardCIDR`, or `allowedNetworks`
error[duplicate-name]: duplicate cluster name `west`
  16:13 | west | second here
  12:13 | west | first here
  help: give each cluster a name of its own, or remove one of the two entries
error[contradicting-fields]: `east` and `west` cannot both be local
  13:14 | true | second here
  9:14 | true | first here
  help: keep `local: true` only for the cluster in which the operator runs
error[overlapping-ranges]: 10.4.128.0/17 of `west` overlaps 10.4.0.0/16 of `east`
  14:18 | 10.4.128.0/17 | of `west`
  10:18 | 10.4.0.0/16 | of `east`
  help: correct the range that is wrong or too wide; clusters whose nodes really use the same pod CIDR cannot be joined: create one of them again with another `--cluster-cidr`
error[unknown-cluster]: this mesh has no cluster `eats`
  6:33 | eats
  help: did you mean `east`?
");
    }

    #[test]
    fn a_mesh_with_wrong_structure_tells_that_at_once() {
        insta::assert_snapshot!(report("
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata: { nmae: prod }
spec:
  topologie: {}
  topology: { mode: hub, hubs: [], links: [[a, b, c]] }
  clusters:
    - { name: no, podCidrs: [10.4.0.0/16], wireguardPort: 0 }
    - { name: b, allowedNetworks: 10.0.0.0/8, persistentKeepalive: 65536, local: yes }
    - { name: c, exports: [], acceptedNetworks: [], kubeconfigSecretRef: { name: '' } }
"), @r#"
error[unknown-field]: unknown field `nmae`
  4:13 | nmae
  help: did you mean `name`?
error[unknown-field]: unknown field `topologie`
  6:3 | topologie
  help: did you mean `topology`?
error[invalid-value]: `mode` cannot be `hub`
  7:21 | hub
  help: did you mean `Hub`?
error[invalid-value]: `hubs` needs at least 1 item, not 0
  7:32 | []
error[invalid-value]: an item of `links` needs exactly 2 items, not 3
  7:44 | [a, b, c]
error[invalid-type]: `name` must be a string, but YAML reads `no` as a boolean
  9:15 | no
  help: add quotes: `"no"`
error[unknown-field]: unknown field `podCidrs`
  9:19 | podCidrs
  help: did you mean `podCIDRs`?
error[invalid-value]: `wireguardPort` must be from 1 to 65535, not `0`
  9:59 | 0
  help: write a number from 1 to 65535
error[invalid-type]: `allowedNetworks` must be a list, not the string `10.0.0.0/8`
  10:35 | 10.0.0.0/8
  help: write a list with one item as `[10.0.0.0/8]`
error[invalid-value]: `persistentKeepalive` must be from 0 to 65535, not `65536`
  10:68 | 65536
  help: write a number from 0 to 65535
error[invalid-type]: `local` must be `true` or `false`, not `yes`
  10:82 | yes
error[unknown-field]: unknown field `exports`
  11:18 | exports
  help: allowed here: `acceptedNetworks`, `acceptedServices`, `additionalCIDRs`, `advertise`, `allowedNetworks`, `anchors`, `dns`, `endpointDomains`, `endpointFrom`, `granularity`, `kubeconfigSecretRef`, `local`, `localNetworks`, `mtu`, `name`, `nodeSelector`, `persistentKeepalive`, `podCIDRs`, `podSource`, `serviceCIDR`, `state`, `topologyLabel`, `underlays`, `wireguardCIDR`, `wireguardPort`
error[invalid-value]: `acceptedNetworks` needs at least 1 item, not 0
  11:49 | []
error[invalid-value]: `name` must not be empty
  11:82 | ''
error[missing-field]: `key` is missing in `kubeconfigSecretRef`
  11:53 | kubeconfigSecretRef
  help: add a line `key: …`
"#);
    }

    #[test]
    fn one_cluster_is_no_mesh() {
        insta::assert_snapshot!(report("
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata: { name: m }
spec: { clusters: [{ name: a, allowedNetworks: [10.0.0.0/8] }] }
"), @r"
        error[invalid-value]: `clusters` needs at least 2 items, not 1
          5:19 | [{ name: a, allowedNetworks: [10.0.0.0/8] }]
        ");
    }

    /// A mesh without mistakes.
    const MESH: &str = "
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata: { name: m }
spec:
  clusters:
    - name: east
      podCIDRs: [10.1.0.0/16]
      wireguardCIDR: 10.101.0.0/24
    - name: west
      podCIDRs: [10.2.0.0/16]
      wireguardCIDR: 10.102.0.0/24
      acceptedNetworks: [10.1.0.0/16]
      persistentKeepalive: 25
  externalPeers:
    - name: laptop
      publicKey: avkTN5T8tciVq9GCSK17SucfkRrmiGHQh4Z8+C4lxhs=
      ranges: [10.250.0.5/32]
      clusters: [east, west]
";

    /// Returns the report about the mesh with an edit.
    fn slip(from: &str, to: &str) -> String {
        assert_eq!(MESH.matches(from).count(), 1, "{from}");
        report(&MESH.replace(from, to))
    }

    /// Ranges and names that are nearly right.
    #[test]
    fn a_slip_in_a_value_is_corrected() {
        insta::assert_snapshot!(slip("10.102.0.0/24", "10.102,0.0/24"), @"
        error[invalid-range]: invalid range: `10.102,0.0/24` contains a comma
          12:22 | 10.102,0.0/24
          help: write `10.102.0.0/24`
        ");
        insta::assert_snapshot!(slip("[10.2.0.0/16]", "[10.2,0.0/16]"), @"
        error[invalid-range]: invalid range: `10.2,0.0/16` contains a comma
          11:18 | 10.2,0.0/16
          help: write `10.2.0.0/16`
        ");
        insta::assert_snapshot!(slip("10.102.0.0/24", "10.102.0.0/24# k3s"), @"
        error[invalid-range]: invalid range: `10.102.0.0/24# k3s` has no space before `#`
          12:22 | 10.102.0.0/24# k3s
          help: write a space before `#`, and no quotes around the comment
        ");
        insta::assert_snapshot!(slip("name: west", "name: \u{201c}West\u{201d}"), @"
        error[invalid-value]: `“West”` is not a valid cluster name: expected lowercase letters, digits and inner dashes (a DNS-1123 label)
          10:13 | “West”
          help: write `west`
        ");
        let without_spec = MESH.replace("metadata: { name: m }\nspec:\n", "metadata:\n  name: m\n");
        insta::assert_snapshot!(report(&without_spec), @"
        error[missing-field]: `spec` is missing
          6:3 | clusters
          help: write a line `spec:` before `clusters`
        ");
    }

    /// Edits of one mesh, each by itself.
    #[test]
    fn a_slip_in_an_entry_is_one_finding_with_its_remedy() {
        assert_eq!(report(MESH), "");
        insta::assert_snapshot!(slip("acceptedNetworks: [10.1.0.0/16]", "acceptedNetworks:"), @"
        error[missing-field]: `acceptedNetworks` is empty
          13:7 | acceptedNetworks
          help: write a value, or remove the line
        ");
        insta::assert_snapshot!(slip("acceptedNetworks: [10.1.0.0/16]", "nodeSelector:"), @"
        error[missing-field]: `nodeSelector` is empty
          13:7 | nodeSelector
          help: write a value, or remove the line
        ");
        insta::assert_snapshot!(slip("acceptedNetworks: [10.1.0.0/16]", "kubeconfig: ~/.kube/west"), @"
        error[unknown-field]: unknown field `kubeconfig`
          13:7 | kubeconfig
          help: move it to `clustermesh.yaml`: `clusters: { NAME: { kubeconfig: … } }`
        ");
        insta::assert_snapshot!(slip("acceptedNetworks: [10.1.0.0/16]", "allowedNetworks: [10.2.0.0/16]"), @"
        error[contradicting-fields]: `west` has both `podCIDRs` and `allowedNetworks`
          13:7 | allowedNetworks
          11:7 | podCIDRs
          help: use either `allowedNetworks` or the fields that end in `CIDR` or `CIDRs`
        ");
        insta::assert_snapshot!(slip("[10.2.0.0/16]", "['10.2.0.0/16, 10.3.0.0/16']"), @"
        error[invalid-range]: one range is expected here, not 2
          11:18 | '10.2.0.0/16, 10.3.0.0/16'
          help: write each range as an item of its own
        ");
        insta::assert_snapshot!(slip("10.102.0.0/24", "10.96.0.0/12,fd00:96::/112"), @"
        error[invalid-range]: one range is expected here, not 2
          12:22 | 10.96.0.0/12,fd00:96::/112
          help: write only one of them
        ");
        insta::assert_snapshot!(slip("10.102.0.0/24", "10.101.0.0/24"), @"
        error[overlapping-ranges]: 10.101.0.0/24 of `west` overlaps 10.101.0.0/24 of `east`
          12:22 | 10.101.0.0/24 | of `west`
          9:22 | 10.101.0.0/24 | of `east`
          help: correct the range that is wrong; if both clusters use these addresses, start Kilo in one of the two with another `--subnet`, and declare that range
        ");
        insta::assert_snapshot!(slip("persistentKeepalive: 25", "persistentKeepalive: 2500"), @"
        warning[invalid-value]: a NAT forgets a connection long before 2500 seconds
          14:28 | 2500
          help: write `25`; the unit is seconds
        ");
        insta::assert_snapshot!(slip("[10.250.0.5/32]", "[10.250.0.5]"), @"
        error[invalid-range]: `10.250.0.5` has no prefix length
          18:16 | 10.250.0.5
          help: write `10.250.0.5/32`
        ");
        insta::assert_snapshot!(slip("[east, west]", "[weast]"), @"
        error[unknown-cluster]: this mesh has no cluster `weast`
          19:18 | weast
          help: did you mean `east` or `west`?
        ");
        let entry =
            "    - name: west\n      podCIDRs: [10.2.0.0/16]\n      wireguardCIDR: 10.102.0.0/24\n";
        insta::assert_snapshot!(slip(entry, &entry.repeat(2)), @"
        error[duplicate-name]: duplicate cluster name `west`
          13:13 | west | second here
          10:13 | west | first here
          help: give each cluster a name of its own, or remove one of the two entries
        ");
        let (start, external) = MESH.split_at(MESH.find("    - name: laptop").unwrap());
        insta::assert_snapshot!(report(&format!("{start}{external}{}", external.replace("0.5", "0.6"))), @"
        error[duplicate-name]: duplicate external peer `laptop`
          20:13 | laptop | second here
          16:13 | laptop | first here
          help: give each external peer a name of its own, or remove one of the two entries
        ");
    }
}
