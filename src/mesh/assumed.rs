//! Assumed values: fields of entries that have other values than the file, for a computation.

use std::fmt;
use std::str::FromStr;

use schemars::schema_for;
use serde_json::Value;
use thiserror::Error;

use super::raw::RawCluster;
use crate::diagnostic::Quoted;
use crate::document::{Source, TreeNode, TreeValue, nearest};
use crate::text::list;

/// A field of the entry of a cluster, or of all clusters, and its value.
#[derive(Clone, Debug)]
pub struct AssumedValue {
    text: String,
    /// None for all clusters.
    cluster: Option<String>,
    /// The keys that lead to the field.
    keys: Vec<String>,
    value: TreeNode,
}

/// The reason why a text is not an assumed value.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum AssumedValueError {
    /// No cluster, no field or no value.
    #[error("expected CLUSTER.FIELD=VALUE, for example `east.advertise.podCIDRs=Merged`")]
    Form,
    /// No entry has such a field.
    #[error("no cluster of a mesh has a field {field}; {1}", field = Quoted(.0))]
    Field(String, String),
    /// The value is not one of YAML.
    #[error("{text} is not valid YAML", text = Quoted(.0))]
    Value(String),
}

impl FromStr for AssumedValue {
    type Err = AssumedValueError;

    fn from_str(text: &str) -> Result<Self, AssumedValueError> {
        let (field, value) = text.split_once('=').ok_or(AssumedValueError::Form)?;
        let mut keys = field.split('.').map(str::to_owned);
        let cluster = keys.next().ok_or(AssumedValueError::Form)?;
        let keys: Vec<String> = keys.collect();
        if value.is_empty()
            || cluster.is_empty()
            || keys.is_empty()
            || keys.iter().any(String::is_empty)
        {
            return Err(AssumedValueError::Form);
        }
        let fields = schema_for!(RawCluster);
        let fields = fields.get("properties").and_then(Value::as_object).into_iter().flatten();
        let fields: Vec<&str> = fields.map(|it| it.0.as_str()).collect();
        if let Some(unknown) = keys.first().filter(|it| !fields.contains(&it.as_str())) {
            let help = match nearest(unknown, fields.iter().copied()) {
                _ if unknown == "nodes" => {
                    "the numbers of nodes are those of the snapshots".to_owned()
                }
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("its fields: {}", list(fields)),
            };
            return Err(AssumedValueError::Field(unknown.clone(), help));
        }
        let wrong = || AssumedValueError::Value(value.to_owned());
        let source = Source::parse("--with", value).map_err(|_| wrong())?;
        let [value] = source.documents.as_slice() else {
            return Err(wrong());
        };
        Ok(Self {
            text: text.to_owned(),
            cluster: Some(cluster).filter(|it| it != "*"),
            keys,
            value: value.clone(),
        })
    }
}

impl fmt::Display for AssumedValue {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl AssumedValue {
    /// Writes the value into every entry of its cluster, and returns whether there is any.
    pub fn apply(&self, sources: &mut [Source]) -> bool {
        let mut is_found = false;
        let keys: Vec<&str> = self.keys.iter().map(String::as_str).collect();
        for document in sources.iter_mut().flat_map(|it| &mut it.documents) {
            let Some(clusters) = document.get("spec").and_then(|it| it.get("clusters")) else {
                continue;
            };
            let TreeValue::Sequence(entries) = &clusters.value else {
                continue;
            };
            let is_meant = |entry: &TreeNode| {
                let name = entry.get("name").and_then(TreeNode::text);
                name.is_some() && (self.cluster.is_none() || name == self.cluster.as_deref())
            };
            is_found |= entries.iter().any(is_meant);
            let entries = entries.iter().map(|entry| {
                if is_meant(entry) {
                    entry.with(&keys, self.value.at(&entry.span))
                } else {
                    entry.clone()
                }
            });
            let changed =
                TreeNode { value: TreeValue::Sequence(entries.collect()), ..clusters.clone() };
            *document = document.with(&["spec", "clusters"], changed);
        }
        is_found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::{self, PodRanges};

    const MESH: &str = "
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata: { name: m }
spec:
  clusters:
    - { name: a, podCIDRs: [10.1.0.0/16], wireguardCIDR: 10.101.0.0/24, granularity: Full }
    - { name: b, podCIDRs: [10.2.0.0/16], wireguardCIDR: 10.102.0.0/24 }
";

    fn read(assumed: &[&str]) -> mesh::MeshReading {
        let mut sources = [Source::parse("mesh.yaml", MESH).unwrap()];
        for text in assumed {
            assert!(text.parse::<AssumedValue>().unwrap().apply(&mut sources), "{text}");
        }
        mesh::read(&sources)
    }

    #[test]
    fn a_field_is_added_or_replaced_in_one_entry_or_in_all() {
        let one = read(&[
            "a.advertise.podCIDRs=Merged",
            "a.granularity=Cross",
            "a.anchors=[{nodes: [n1]}]",
        ]);
        let [a, b] = one.meshes[0].entries.as_slice() else {
            panic!("{:?}", one.diagnostics);
        };
        assert_eq!((a.advertise.pods, b.advertise.pods), (PodRanges::Merged, PodRanges::PerNode));
        assert_eq!(a.granularity, Some(crate::granularity::Granularity::Cross));
        assert_eq!(a.anchors[0].nodes[0].name, "n1");
        let all = read(&["*.advertise={podCIDRs: Merged, nodeAddresses: false}"]);
        assert!(all.meshes[0].entries.iter().all(|it| !it.advertise.node_addresses));
    }

    #[test]
    fn a_wrong_value_is_reported_at_the_entry() {
        let wrong = read(&["b.advertise.podCIDRs=merged"]);
        let source = Source::parse("mesh.yaml", MESH).unwrap();
        let report = crate::document::tests::report(&source, &wrong.diagnostics);
        insta::assert_snapshot!(report, @"
        error[invalid-value]: `podCIDRs` cannot be `merged`
          8:7 | { name: b, podCIDRs: [10.2.0.0/16], wireguardCIDR: 10.102.0.0/24 }
          help: did you mean `Merged`?
        ");
    }

    #[test]
    fn cluster_field_and_value_are_needed() {
        for text in ["a", "a=1", "a.b", ".b=1", "a..b=1", "a.b=[", "a.b="] {
            assert!(text.parse::<AssumedValue>().is_err(), "{text}");
        }
        let mut sources = [Source::parse("mesh.yaml", MESH).unwrap()];
        let unknown: AssumedValue = "c.granularity=Full".parse().unwrap();
        assert!(!unknown.apply(&mut sources));
    }
}
