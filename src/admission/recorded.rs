//! Recorded guards: read from a repository or from a cluster, to be compared with what would be printed now.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Enforcement, Guard, GuardAccess, GuardDeclarations, NAME};
use crate::document::{Source, TreeNode};
use crate::net::{Cidr, Family, merged};

/// The API of both objects.
const API_VERSION: &str = "admissionregistration.k8s.io/v1";

/// The annotation that names the cluster of a guard.
const CLUSTER: &str = "/metadata/annotations/kilo-clustermesh.io~1cluster";

/// A guard that is written down.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Recorded {
    /// The guard.
    pub guard: Guard,
    /// Whether its rules are those that this version prints.
    pub is_whole: bool,
    /// The place of the policy among the documents.
    pub policy: usize,
}

/// Something that a recorded guard accepts and the meshes do not.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Excess {
    /// Peers of a source: `MESH/SOURCE`.
    Source(String),
    /// A range of a source.
    Range(String, Cidr),
    /// A domain of a source.
    Domain(String, String),
    /// Peers on a range of the cluster itself, or endpoints in one.
    Own(Cidr),
}

impl fmt::Display for Excess {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Source(source) => write!(formatter, "Peers of {source}"),
            Self::Range(source, range) => write!(formatter, "{range} of {source}"),
            Self::Domain(source, domain) => write!(formatter, "names under {domain} of {source}"),
            Self::Own(range) => write!(formatter, "{range} of the cluster itself"),
        }
    }
}

impl Recorded {
    /// Reads the policy and the binding of a guard, in any order. `kubectl apply` would also apply a third object, and of two
    /// with one name the last.
    pub fn read(objects: &[Value]) -> Option<Self> {
        if objects.iter().filter(|it| !it.is_null()).count() != 2 {
            return None;
        }
        let policy = find(objects, "ValidatingAdmissionPolicy")?;
        let place = objects.iter().position(|it| it == policy)?;
        let binding = find(objects, "ValidatingAdmissionPolicyBinding")?;
        let variables = Variables::read(policy)?;
        let cluster = policy.pointer(CLUSTER)?.as_str()?.parse().ok()?;
        let actions = binding.pointer("/spec/validationActions")?;
        let is_deny = actions.as_array()?.iter().any(|it| it == "Deny");
        let families: Vec<u8> = variables.value("families")?;
        let writers = match variables.0.get("writers") {
            Some(_) => Some(variables.value("writers")?),
            None => None,
        };
        let guard = Guard {
            cluster,
            declared: GuardDeclarations {
                sources: variables.ranges("sources")?,
                domains: variables.map("endpointDomains")?,
                own: variables.ranges("ownRanges")?,
                closed: variables.ranges("closedRanges")?,
                families: families
                    .into_iter()
                    .map(|it| if it == 4 { Family::V4 } else { Family::V6 })
                    .collect(),
            },
            access: GuardAccess {
                writers,
                peers: variables.ranges("allowedPeers")?,
                peer_writers: variables.value("peerWriters")?,
                enforcement: if is_deny { Enforcement::Deny } else { Enforcement::Warn },
            },
        };
        let printed = guard.manifests().ok()?;
        let printed = Self::objects(&printed)?;
        let is_same = |kind: &str| {
            let spec = |objects| find(objects, kind).and_then(|it| it.get("spec"));
            spec(objects) == spec(&printed)
        };
        let is_whole =
            is_same("ValidatingAdmissionPolicy") && is_same("ValidatingAdmissionPolicyBinding");
        Some(Self { guard, is_whole, policy: place })
    }

    /// Returns the documents of a text, if it is YAML.
    pub fn objects(text: &str) -> Option<Vec<Value>> {
        let source = Source::parse("guard", text).ok()?;
        Some(source.documents.iter().map(TreeNode::to_json).collect())
    }
}

impl Guard {
    /// Returns what this guard accepts and another does not.
    pub fn beyond(&self, other: &Self) -> Vec<Excess> {
        let mut excess = Vec::new();
        let (all, others) = (&self.declared, &other.declared);
        for (source, ranges) in &all.sources {
            let Some(accepted) = others.sources.get(source) else {
                excess.push(Excess::Source(source.clone()));
                continue;
            };
            let rest = ranges.iter().flat_map(|it| it.without(accepted));
            excess.extend(rest.map(|it| Excess::Range(source.clone(), it)));
            let accepted = others.domains.get(source);
            let domains = all.domains.get(source).into_iter().flatten();
            let domains = domains.filter(|it| !accepted.is_some_and(|all| all.contains(it)));
            excess.extend(domains.map(|it| Excess::Domain(source.clone(), it.clone())));
        }
        for (ours, theirs) in [(&all.own, &others.own), (&all.closed, &others.closed)] {
            for (mesh, ranges) in theirs {
                let held = ours.get(mesh).map_or(&[][..], Vec::as_slice);
                let rest = ranges.iter().flat_map(|it| it.without(held));
                excess.extend(rest.map(Excess::Own));
            }
        }
        excess.sort();
        excess.dedup();
        excess
    }
}

fn find<'v>(objects: &'v [Value], kind: &str) -> Option<&'v Value> {
    objects.iter().find(|it| {
        let name = it.pointer("/metadata/name");
        let is = |field: &str, text: &str| it.get(field).is_some_and(|it| it == text);
        is("apiVersion", API_VERSION) && is("kind", kind) && name.is_some_and(|it| it == NAME)
    })
}

/// The variables of a policy that hold declarations.
struct Variables<'v>(BTreeMap<&'v str, &'v str>);

impl<'v> Variables<'v> {
    fn read(policy: &'v Value) -> Option<Self> {
        let variables = policy.pointer("/spec/variables")?.as_array()?.iter();
        let read = variables.map(|it| {
            let text = |field: &str| it.get(field)?.as_str();
            Some((text("name")?, text("expression")?))
        });
        read.collect::<Option<_>>().map(Self)
    }

    fn value<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        serde_json::from_str(self.0.get(name)?).ok()
    }

    /// Returns the entries of all variables that hold one map together.
    fn map<T: DeserializeOwned>(&self, name: &str) -> Option<BTreeMap<String, T>> {
        let mut all = BTreeMap::new();
        let mut number = 1;
        while let Some(chunk) = self.0.get(format!("{name}{number}").as_str()) {
            all.extend(serde_json::from_str::<BTreeMap<String, T>>(chunk).ok()?);
            number += 1;
        }
        (1 < number).then_some(all)
    }

    fn ranges(&self, name: &str) -> Option<BTreeMap<String, Vec<Cidr>>> {
        parsed(self.map(name)?)
    }
}

fn parsed(texts: BTreeMap<String, Vec<String>>) -> Option<BTreeMap<String, Vec<Cidr>>> {
    let ranges = texts.into_iter().map(|(name, texts)| {
        let ranges: Option<Vec<Cidr>> = texts.iter().map(|it| it.parse().ok()).collect();
        Some((name, merged(ranges?)))
    });
    ranges.collect()
}
