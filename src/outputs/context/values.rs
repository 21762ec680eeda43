//! Values: a context as the template engine takes it, once for all results.

use std::collections::BTreeMap;

use minijinja::value::Serde;
use minijinja::{Value, context};

use super::{ContextApiVersion, ContextKind, ContextTarget, Facts};
use crate::outputs::order::ResultSubject;

/// The values of all results of a run.
#[derive(Debug)]
pub struct Values {
    targets: BTreeMap<String, Value>,
    meshes: BTreeMap<String, Value>,
    /// The values that all results have.
    shared: Value,
}

impl Facts {
    /// Returns the values for templates.
    pub fn values(self) -> Values {
        let sources: Vec<Value> =
            self.sources.into_iter().map(|it| Value::from(Serde(it))).collect();
        let target = |it: ContextTarget<usize>| {
            let name = it.name.clone();
            (name, Value::from(Serde(it.with_sources(&sources))))
        };
        let targets: Vec<(String, Value)> = self.targets.into_iter().map(target).collect();
        let meshes = self.meshes.into_iter();
        let meshes: Vec<(String, Value)> =
            meshes.map(|it| (it.name.clone(), Value::from(Serde(it)))).collect();
        let all = |of: &[(String, Value)]| of.iter().map(|(_, it)| it.clone()).collect::<Value>();
        Values {
            shared: context! {
                apiVersion => Value::from(Serde(ContextApiVersion::V1)),
                kind => Value::from(Serde(ContextKind::TemplateContext)),
                targets => all(&targets),
                meshes => all(&meshes),
                clusters => Value::from(Serde(self.clusters)),
            },
            targets: targets.into_iter().collect(),
            meshes: meshes.into_iter().collect(),
        }
    }
}

impl ContextTarget<usize> {
    fn with_sources(self, sources: &[Value]) -> ContextTarget<Value> {
        let used = self.sources.iter().filter_map(|&it| sources.get(it).cloned());
        ContextTarget {
            sources: used.collect(),
            name: self.name,
            delivery_name: self.delivery_name,
            path: self.path,
            peers: self.peers,
            files: self.files,
            reconcile_minutes: self.reconcile_minutes,
            firewall: self.firewall,
            capacity: self.capacity,
        }
    }
}

impl Values {
    /// Returns the values of a template for a subject.
    pub fn of(&self, subject: &ResultSubject) -> Value {
        let (name, value) = match subject {
            ResultSubject::Target(target) => ("target", self.targets.get(target)),
            ResultSubject::Mesh(mesh) => ("mesh", self.meshes.get(mesh)),
            ResultSubject::Repository => ("", None),
        };
        let shared = self.shared.clone();
        match value {
            Some(value) => {
                let subject = Value::from_pairs([(name, value.clone())]);
                context! { ..subject, ..shared }
            }
            None => shared,
        }
    }
}
