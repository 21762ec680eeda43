//! The policy: the manifests of a guard.

use std::collections::BTreeMap;

use minijinja::{Value, context};
use serde_json::json;
use thiserror::Error;

use super::{Accounts, Enforcement, Guard, GuardDeclarations, MOST_COMPARED, MOST_RANGES, Refusal};
use crate::net::{Cidr, Family};
use crate::template::{self, Format, TemplateError};

/// The name of the policy and of its binding.
pub const NAME: &str = "clustermesh-peers";

/// The most characters of a variable. An API server compiles no expression of more than 100,000.
const MOST_CHARACTERS: usize = 90_000;

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
            chunks => Value::from(numbers),
            most_ranges => MOST_RANGES,
            most_compared => MOST_COMPARED,
            sentences => Value::from(sentences),
            actions => actions,
        };
        let text = include_str!("../../templates/admission/policy.yaml.j2");
        Ok(template::filled("policy", text, Format::Yaml, values)?)
    }
}

impl Variable {
    fn values(self) -> Value {
        let entries = self.entries.into_iter();
        let entries = entries.map(|(key, values)| context! { key => key, values => values });
        context! { name => self.name, entries => entries.collect::<Value>() }
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
