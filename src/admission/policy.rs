//! The policy: the manifests of a guard, and guards that are recorded in a repository or a cluster, to be compared with
//! what would be printed now.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use minijinja::context;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use thiserror::Error;

use super::{
    ANY, Accounts, Enforcement, Guard, GuardAccess, GuardDeclarations, MOST_COMPARED, MOST_RANGES,
    Refusal,
};
use crate::document::{Source, TreeNode};
use crate::net::prefixes::Prefixes;
use crate::net::{Cidr, Family, merged};
use crate::template::{self, Format, TemplateError};
use crate::text;

/// The name of the policy and of its binding.
pub const NAME: &str = "clustermesh-peers";

/// The most characters of a variable. An API server compiles no expression of more than 100,000.
const MOST_CHARACTERS: usize = 90_000;

/// The most bytes of a printed value that a message shows.
const MOST_SHOWN: usize = 40;

/// The reason why there are no manifests.
#[derive(Debug, Error)]
pub enum GuardError {
    /// More ranges of one source than a variable has room for.
    #[error("`{0}` has more ranges than a policy has room for; declare fewer, wider ranges")]
    Large(String),
    /// More than one object can hold.
    #[error(transparent)]
    Template(#[from] TemplateError),
}

/// A variable with a part of a map from names to lists. Its expression is JSON, which CEL reads alike.
struct Variable {
    name: String,
    entries: Vec<(String, Vec<String>)>,
}

impl Guard {
    /// Returns the policy and its binding as manifests.
    ///
    /// # Errors
    /// More ranges than fit into a policy.
    pub fn manifests(&self) -> Result<String, GuardError> {
        let GuardDeclarations { sources, domains, own, closed, families } = &self.declared;
        let ranges = |it: &BTreeMap<String, Vec<Cidr>>| {
            let texts = |ranges: &Vec<Cidr>| ranges.iter().map(Cidr::to_string).collect();
            it.iter().map(|(name, it)| (name.clone(), texts(it))).collect()
        };
        let maps = [
            ("sources", ranges(sources)),
            ("endpointDomains", domains.clone()),
            ("ownRanges", ranges(own)),
            ("closedRanges", ranges(closed)),
            ("allowedPeers", ranges(&self.access.peers)),
        ];
        let mut numbers: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let mut declared = Vec::new();
        for (name, map) in maps {
            let variables = variables(name, map)?;
            numbers.insert(name.to_owned(), (1..=variables.len()).collect());
            declared.extend(variables.into_iter().map(Variable::values));
        }
        let families = families.iter().map(|it| match it {
            Family::V4 => 4,
            Family::V6 => 6,
        });
        let families: Vec<u8> = families.collect();
        let json = |accounts: &Accounts| json!(accounts).to_string();
        let sentences = Refusal::ALL.iter().map(|it| (format!("{it:?}"), it.to_string()));
        let sentences: BTreeMap<String, String> = sentences.collect();
        let actions = match self.access.enforcement {
            Enforcement::Warn => vec!["Warn", "Audit"],
            Enforcement::Deny => vec!["Deny"],
        };
        let values = context! {
            cluster => self.cluster.as_str(),
            declared => declared,
            families => json!(families).to_string(),
            writers => self.access.writers.as_ref().map(json),
            peer_writers => json(&self.access.peer_writers),
            chunks => minijinja::Value::from(numbers),
            most_ranges => MOST_RANGES,
            most_compared => MOST_COMPARED,
            sentences => minijinja::Value::from(sentences),
            actions => actions,
        };
        let text = include_str!("../../templates/admission/policy.yaml.j2");
        Ok(template::filled("policy", text, Format::Yaml, values)?)
    }
}

impl Variable {
    fn values(self) -> minijinja::Value {
        let entries = self.entries.into_iter();
        let entries = entries.map(|(key, values)| context! { key => key, values => values });
        context! { name => self.name, entries => entries.collect::<minijinja::Value>() }
    }
}

/// Distributes the entries of a map to as few variables as have room for them; at least one. Each has its number.
fn variables(
    name: &str,
    entries: BTreeMap<String, Vec<String>>,
) -> Result<Vec<Variable>, GuardError> {
    let mut parts = vec![(0, Vec::new())];
    for (key, values) in entries {
        // Each text has two quotes, a comma or colon and a space.
        let size: usize = values.iter().chain([&key]).map(|it| it.len() + 4).sum();
        if MOST_CHARACTERS < size {
            return Err(GuardError::Large(key));
        }
        match parts.last_mut() {
            Some((used, part)) if *used + size <= MOST_CHARACTERS => {
                *used += size;
                part.push((key, values));
            }
            _ => parts.push((size, vec![(key, values)])),
        }
    }
    let variables = parts
        .into_iter()
        .zip(1..)
        .map(|((_, entries), number)| Variable { name: format!("{name}{number}"), entries });
    Ok(variables.collect())
}

/// The API of both objects.
const API_VERSION: &str = "admissionregistration.k8s.io/v1";

/// The annotation that names the cluster of a guard.
const CLUSTER: &str = "/metadata/annotations/kilo-clustermesh.io~1cluster";

/// A guard that is written down.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Recorded {
    /// The guard.
    pub guard: Guard,
    /// Its rules, if they are not those that this version prints.
    pub other_rules: Option<OtherRules>,
    /// The place of the policy among the documents.
    pub policy: usize,
}

/// Rules that this version does not print.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OtherRules {
    /// The rules, as JSON.
    pub text: String,
    /// The first part of the printed rules that these do not have.
    pub printed: String,
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

/// The reason why a text is not a guard.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum RecordedError {
    /// Two versions were not merged.
    #[error("contains {}", text::CONFLICT)]
    Conflict,
    /// Not YAML.
    #[error("is not YAML")]
    Syntax,
    /// No objects.
    #[error("is empty")]
    Empty,
    /// Without one of the two objects.
    #[error("contains no {0} `{NAME}`")]
    Missing(&'static str),
    /// More objects, or others than those that are printed.
    #[error(
        "is not what `clustermesh guard` prints: a policy and its binding, and no other objects"
    )]
    Other,
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
        let actions = binding.pointer("/spec/validationActions")?.as_array()?;
        let has = |action: &str| actions.iter().any(|it| it == action);
        let is_warning = has("Warn") && !has("Deny");
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
                enforcement: if is_warning { Enforcement::Warn } else { Enforcement::Deny },
            },
        };
        let printed = guard.manifests().ok()?;
        let printed = Self::objects(&printed)?;
        let rules = |objects| {
            let kinds = ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"];
            kinds.map(|it| find(objects, it).and_then(|it| it.get("spec")))
        };
        let [recorded, printed] = [rules(objects), rules(&printed)];
        let mut both = recorded.into_iter().zip(printed);
        let other_rules =
            both.find(|(recorded, printed)| recorded != printed).map(|(first, wanted)| {
                OtherRules {
                    text: recorded.into_iter().flatten().map(Value::to_string).collect(),
                    printed: wanted.map_or_else(String::new, |it| expected(first, it, "spec")),
                }
            });
        Some(Self { guard, other_rules, policy: place })
    }

    /// Returns whether its rules are those that this version prints.
    pub fn is_whole(&self) -> bool {
        self.other_rules.is_none()
    }

    /// Reads the text of a guard.
    ///
    /// # Errors
    /// It is not what `clustermesh guard` prints.
    pub fn of_text(text: &str) -> Result<Self, RecordedError> {
        if text::conflict(text).is_some() {
            return Err(RecordedError::Conflict);
        }
        let objects = Self::objects(text).ok_or(RecordedError::Syntax)?;
        if objects.iter().all(Value::is_null) {
            return Err(RecordedError::Empty);
        }
        let kinds = ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"];
        let missing = kinds.into_iter().find(|kind| find(&objects, kind).is_none());
        match (Self::read(&objects), missing) {
            (Some(read), _) => Ok(read),
            (None, Some(kind)) => Err(RecordedError::Missing(kind)),
            (None, None) => Err(RecordedError::Other),
        }
    }

    /// Returns the documents of a text, if it is YAML.
    pub fn objects(text: &str) -> Option<Vec<Value>> {
        let source = Source::parse("guard", text).ok()?;
        Some(source.documents.iter().map(TreeNode::to_json).collect())
    }
}

impl Guard {
    /// Returns the keys of its declarations: `MESH/SOURCE` and `MESH`.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        let GuardDeclarations { sources, own, closed, .. } = &self.declared;
        let meshes = own.keys().chain(closed.keys());
        sources.keys().chain(meshes).map(String::as_str)
    }

    /// Returns the guard under other keys. A key that replaces several others has what all of them declared.
    #[must_use]
    pub fn renamed(&self, old_keys: &BTreeMap<&str, BTreeSet<String>>) -> Self {
        let ranges = |all: &BTreeMap<String, Vec<Cidr>>| {
            renamed(all, old_keys, |one, other| {
                let other = Prefixes::union(other.iter().copied());
                one.iter().flat_map(|it| other.common(*it)).collect()
            })
        };
        let domains = renamed(&self.declared.domains, old_keys, |one, other| {
            one.iter().filter(|it| other.contains(it)).cloned().collect()
        });
        let declared = GuardDeclarations {
            sources: ranges(&self.declared.sources),
            domains,
            own: ranges(&self.declared.own),
            closed: ranges(&self.declared.closed),
            families: self.declared.families.clone(),
        };
        Self { declared, cluster: self.cluster.clone(), access: self.access.clone() }
    }

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
        // A mesh without sources has no Peer that is accepted, on its own ranges or elsewhere.
        let meshes: BTreeSet<&str> =
            all.sources.keys().filter_map(|it| Some(it.split_once('/')?.0)).collect();
        let is_of = |mesh: &str| mesh == ANY || meshes.contains(mesh);
        for (ours, theirs) in [(&all.own, &others.own), (&all.closed, &others.closed)] {
            for (mesh, ranges) in theirs.iter().filter(|it| is_of(it.0)) {
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

/// Returns a map under other keys, with what all old keys of each have in common. A key is left out if one had nothing.
fn renamed<T: Clone>(
    all: &BTreeMap<String, Vec<T>>,
    old_keys: &BTreeMap<&str, BTreeSet<String>>,
    common: impl Fn(&[T], &[T]) -> Vec<T>,
) -> BTreeMap<String, Vec<T>> {
    let renamed = old_keys.iter().filter_map(|(key, old)| {
        let old: Option<Vec<&Vec<T>>> = old.iter().map(|it| all.get(it)).collect();
        let (first, rest) = old.as_deref()?.split_first()?;
        let values = rest.iter().fold((*first).clone(), |values, it| common(&values, it));
        Some(((*key).to_owned(), values))
    });
    renamed.collect()
}

/// Returns the first part of a printed value that another value does not have, with its path. An expression can have 90,000
/// characters, so only a short part is shown itself.
fn expected(other: Option<&Value>, printed: &Value, path: &str) -> String {
    let parts: Vec<(Option<&Value>, &Value, String)> = match (other, printed) {
        (Some(Value::Object(other)), Value::Object(all)) => {
            all.iter().map(|(key, it)| (other.get(key), it, format!("{path}.{key}"))).collect()
        }
        (Some(Value::Array(other)), Value::Array(all)) => {
            let places = all.iter().enumerate();
            places.map(|(place, it)| (other.get(place), it, format!("{path}[{place}]"))).collect()
        }
        _ => Vec::new(),
    };
    let first = parts.into_iter().find(|(other, printed, _)| *other != Some(*printed));
    match (first, printed) {
        (Some((other, printed, path)), _) => expected(other, printed, &path),
        (None, Value::String(text)) if text.len() <= MOST_SHOWN => format!("`{path}: {text}`"),
        (None, _) => format!("another `{path}`"),
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
