//! Policies: what the owner of a cluster accepts from others, in a file of its own.

use std::collections::{BTreeMap, BTreeSet};

use schemars::{JsonSchema, Schema};
use serde::Deserialize;

use crate::diagnostic::{Finding, Mistakes, Quoted, Severity, few, mistake};
use crate::document::{Form, SingleDocument, Source};
use crate::mesh::{self, Mesh, Range, RefusedLinks, or_group, unknown_cluster};
use crate::name::ClusterName;
use crate::place::Place;
use crate::schema::{self, ExampleFile, pattern};
use crate::text::{list, listed};

/// The policy of a cluster. It only narrows what meshes allow.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The cluster.
    pub cluster: ClusterName,
    /// The ranges that it accepts from others; none for everything.
    accepted: Option<Vec<Range>>,
    /// The clusters with which it exchanges Peers; none for all.
    clusters: Option<BTreeMap<ClusterName, Place>>,
    /// Networks of its own that no Peer may take over.
    local_networks: Vec<Range>,
    /// The fields.
    place: Place,
    /// Findings about a file that can still be used.
    pub warnings: Vec<Finding>,
}

/// The limits that the owner of a cluster sets, in addition to those of meshes. The name of the
/// file is `<cluster>.yaml`.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ClusterPolicy", example = ExampleFile(include_str!("policy/example.json")))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[expect(dead_code, reason = "the walk has looked at version and kind")]
struct WrittenPolicy {
    /// The version of this format.
    api_version: PolicyApiVersion,
    /// The kind of this document.
    kind: PolicyKind,
    /// The limits.
    spec: WrittenLimits,
}

/// The only version of this format.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ApiVersion")]
enum PolicyApiVersion {
    /// The first version.
    #[serde(rename = "kilo-clustermesh.io/v1")]
    V1,
}

/// The only kind of this format.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Kind")]
enum PolicyKind {
    /// A policy.
    ClusterPolicy,
}

/// The limits of a cluster.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Limits")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct WrittenLimits {
    /// The ranges that this cluster accepts from others. If the mesh also has `acceptedNetworks`
    /// for the cluster, the addresses of a range must be in both; default: everything.
    #[schemars(length(min = 1), inner(regex(pattern = pattern::range())), example = ["10.0.0.0/8"])]
    accepted_networks: Option<Vec<String>>,
    /// The clusters with which this cluster exchanges Peers, if a mesh links them; default: all. With an empty
    /// list, it exchanges Peers with no cluster.
    #[schemars(inner(regex(pattern = pattern::MEMBER_NAME)), example = ["hub"])]
    accepted_clusters: Option<Vec<String>>,
    /// Networks of this cluster that no Peer may take over, such as the LAN of its nodes, in addition to those in
    /// the mesh.
    #[schemars(length(min = 1), inner(regex(pattern = pattern::range())), example = ["192.168.1.0/24"])]
    local_networks: Option<Vec<String>>,
}

/// Reads the policy of a cluster.
///
/// # Errors
/// Everything that is wrong with it.
pub fn read(cluster: &ClusterName, source: &Source) -> Result<Policy, Vec<Finding>> {
    let SingleDocument { place, content, others } = source
        .single_document("the policy is empty", "a policy must be a single document")
        .map_err(|empty| vec![empty])?;
    let written = Form::<WrittenPolicy>::new().read(content, &place);
    let written = written.map_err(Mistakes::into_findings)?;
    let (place, mut findings) = (place.key("spec"), Mistakes::default());
    let WrittenLimits { accepted_networks, accepted_clusters, local_networks } = written.spec;
    let accepted = accepted_networks
        .map(|it| mesh::accepted(&it, &place.key("acceptedNetworks"), &mut findings));
    let clusters = accepted_clusters.map(|it| {
        let own = place.key("acceptedClusters");
        let names = it.iter().enumerate();
        let names = names.filter_map(|(index, text)| {
            let place = own.index(index);
            let name = mesh::member_name(text, &place, &mut findings)?;
            Some((name, place))
        });
        names.collect()
    });
    let own = place.key("localNetworks");
    let local_networks = local_networks.map(|it| mesh::local_networks(&it, &own, &mut findings));
    findings.extend(others);
    if findings.errors() != 0 {
        return Err(findings.into_findings());
    }
    Ok(Policy {
        cluster: cluster.clone(),
        accepted: accepted.flatten(),
        clusters,
        local_networks: local_networks.flatten().unwrap_or_default(),
        place,
        warnings: findings.into_findings(),
    })
}

/// Reports a file that looks like the policy or another file of a cluster and has another name than `<cluster>.yaml`.
pub fn misnamed(noun: &str, cluster: &str, place: Place) -> Finding {
    let message =
        format!("not read: the {noun} of {} must be called `{cluster}.yaml`", Quoted(cluster));
    Finding::new(&mistake::INVALID_VALUE, message)
        .at(place, "")
        .help("rename the file, or remove it")
}

/// Reports that the folder at this place of the config has the policy of no cluster.
pub fn none_in(place: Place) -> Finding {
    let message = "the folder has no policy of any cluster, so every cluster accepts all";
    Finding::new(&mistake::EMPTY_POLICIES, message)
        .at(place, "")
        .help("correct the path or add a policy `<cluster>.yaml` to the folder; if none is needed, remove the line")
}

/// Returns the JSON Schema of a policy.
pub fn schema() -> Schema {
    schema::of_written::<WrittenPolicy>()
}

/// Narrows meshes by policies, and reports what the policies contradict, and names that no mesh has if the meshes were read
/// as a whole.
pub fn apply(policies: &[Policy], meshes: &mut [Mesh], is_whole: bool) -> Vec<Finding> {
    let policies: BTreeMap<&ClusterName, &Policy> =
        policies.iter().map(|it| (&it.cluster, it)).collect();
    let entries = meshes.iter().flat_map(Mesh::all_entries);
    let known: BTreeSet<ClusterName> = entries.map(|it| it.name.clone()).collect();
    let named = policies.values().filter(|_| is_whole);
    let groups = || meshes.iter().flat_map(|it| &it.groups);
    let unknown = named.flat_map(|it| it.unknown(&known));
    let mut findings: Vec<Finding> = unknown.map(|it| or_group(it, groups(), false)).collect();
    for mesh in meshes {
        let one_sided = refuse(mesh, &policies);
        findings.extend(one_sided);
        for entry in &mut mesh.entries {
            let Some(policy) = policies.get(&entry.name) else {
                continue;
            };
            entry.local_networks.extend(policy.local_networks.clone());
            entry.accepted_by_policy.clone_from(&policy.accepted);
        }
    }
    findings
}

/// Separates the clusters of a mesh that do not accept each other, and reports links that only one end accepts.
fn refuse(mesh: &mut Mesh, policies: &BTreeMap<&ClusterName, &Policy>) -> Vec<Finding> {
    let accepts = |one: &ClusterName, other: &ClusterName| {
        policies.get(one).is_none_or(|it| it.accepts(other))
    };
    let (mut refused, mut findings) = (RefusedLinks::default(), Vec::new());
    let mut reported = BTreeSet::new();
    for entry in &mesh.entries {
        let Some(policy) = policies.get(&entry.name).filter(|it| it.clusters.is_some()) else {
            continue;
        };
        let others = mesh.entries.iter().map(|it| &it.name);
        let others = others.filter(|it| **it != entry.name && mesh.topology.links(&entry.name, it));
        let hosts = mesh.externals.iter();
        let hosts = hosts.filter(|it| it.clusters.contains(&entry.name));
        let others = others.chain(hosts.map(|it| &it.entry.name));
        let others: Vec<&ClusterName> = others.filter(|it| !policy.accepts(it)).collect();
        for &other in &others {
            refused.add(&entry.name, other, policy.place.key("acceptedClusters"));
        }
        let (willing, mut unwilling): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|it| accepts(it, &entry.name));
        findings.extend(policy.one_sided(mesh, &willing));
        // One finding for both ends.
        unwilling.retain(|it| !reported.contains(it));
        findings.extend(policy.refused_by_both(mesh, &unwilling));
        reported.insert(&entry.name);
    }
    mesh.refused = refused;
    findings
}

impl Policy {
    /// Returns the fields that it has, each with its values and its place.
    pub fn limits(&self) -> Vec<(&'static str, Vec<String>, Place)> {
        let ranges = |ranges: &[Range]| ranges.iter().map(|it| it.cidr.to_string()).collect();
        let names =
            |names: &BTreeMap<ClusterName, Place>| names.keys().map(ToString::to_string).collect();
        let local = Some(&self.local_networks).filter(|it| !it.is_empty());
        let fields = [
            ("acceptedClusters", self.clusters.as_ref().map(names)),
            ("acceptedNetworks", self.accepted.as_deref().map(ranges)),
            ("localNetworks", local.map(|it| ranges(it))),
        ];
        let fields = fields.into_iter();
        fields.filter_map(|(field, values)| Some((field, values?, self.place.key(field)))).collect()
    }

    /// Returns whether it exchanges Peers with another cluster.
    pub fn accepts(&self, other: &ClusterName) -> bool {
        let clusters = self.clusters.as_ref();
        clusters.is_none_or(|it| it.contains_key(other))
    }

    /// Reports accepted clusters that are in no mesh, as warnings: the owner of another file can remove a cluster.
    fn unknown(&self, known: &BTreeSet<ClusterName>) -> Vec<Finding> {
        let clusters = self.clusters.iter().flatten();
        let unknown = clusters.filter(|it| !known.contains(it.0));
        let finding = |(name, place): (&ClusterName, &Place)| {
            let known = known.iter().map(ClusterName::as_str);
            let unknown =
                unknown_cluster(name.as_str(), place.clone(), known, "no mesh has a cluster");
            Finding { severity: Severity::Warning, ..unknown }
        };
        few(unknown.collect(), "cluster", finding)
    }

    /// Reports clusters that a mesh links to this one, that accept it, and that it does not accept.
    fn one_sided(&self, mesh: &Mesh, willing: &[&ClusterName]) -> Option<Finding> {
        let first = willing.first()?;
        let names = listed(willing.iter().map(|it| format!("`{it}`")));
        let message = format!(
            "the policy does not accept {names}, which mesh `{}` links to `{}`, so they exchange no Peers",
            mesh.name, self.cluster
        );
        let finding = Finding::on_cluster(&mistake::ONE_SIDED_LINK, &self.cluster, message);
        let finding = finding.at(self.place.key("acceptedClusters"), "");
        Some(finding.help(format!(
            "add {} to `acceptedClusters` if {} intended; otherwise {}",
            list(willing.iter().map(|it| format!("`{it}`"))),
            if willing.len() == 1 { "the link is" } else { "these links are" },
            if first.is_external() {
                format!("remove `{}` from `clusters` of the external peer", self.cluster)
            } else {
                "unlink the clusters with the mesh's `topology`".to_owned()
            }
        )))
    }

    /// Reports clusters that a mesh links to this one, and that refuse it as it refuses them.
    fn refused_by_both(&self, mesh: &Mesh, others: &[&ClusterName]) -> Option<Finding> {
        let first = others.first()?;
        let names = listed(others.iter().map(|it| format!("`{it}`")));
        let message = format!(
            "mesh `{}` links {names} to `{}`, and the policies of both sides refuse it, so they exchange no Peers",
            mesh.name, self.cluster
        );
        let finding = Finding::on_cluster(&mistake::REFUSED_LINK, &self.cluster, message);
        let finding = finding.at(self.place.key("acceptedClusters"), "");
        Some(finding.help(format!(
            "if the link is intended, add `{first}` here and `{}` to `acceptedClusters` of `{first}`; otherwise unlink the \
             clusters with the mesh's `topology`",
            self.cluster
        )))
    }
}

#[cfg(test)]
mod tests;
