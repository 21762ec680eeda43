//! Values: a context as the template engine takes it, once for all results.

use minijinja::value::Serde;
use minijinja::{Value, context};

use super::{Context, ContextApiVersion, ContextKind, ContextMesh, ContextTarget};
use crate::config::Per;

/// The values of all results of a run.
#[derive(Debug)]
pub struct Values {
    targets: Vec<(String, Value)>,
    meshes: Vec<(String, Value)>,
    clusters: Value,
}

impl Context {
    /// Returns the values for templates.
    pub fn values(self) -> Values {
        let target = |it: ContextTarget| (it.name.clone(), Value::from(Serde(it)));
        let mesh = |it: ContextMesh| (it.name.clone(), Value::from(Serde(it)));
        Values {
            targets: self.targets.into_iter().map(target).collect(),
            meshes: self.meshes.into_iter().map(mesh).collect(),
            clusters: Value::from(Serde(self.clusters)),
        }
    }
}

impl Values {
    /// Returns the values of each result, and whom it is for.
    pub(in crate::outputs) fn each(&self, per: Per) -> Vec<(Option<&str>, Value)> {
        match per {
            Per::Target => self
                .targets
                .iter()
                .map(|(name, it)| (Some(name.as_str()), self.with("target", Some(it))))
                .collect(),
            Per::Mesh => self
                .meshes
                .iter()
                .map(|(name, it)| (Some(name.as_str()), self.with("mesh", Some(it))))
                .collect(),
            Per::Repository => vec![(None, self.with("", None))],
        }
    }

    /// Returns the values of a template that is for a cluster, or for the repository; none if no
    /// target has this name.
    pub fn for_target(&self, target: Option<&str>) -> Option<Value> {
        let Some(name) = target else {
            return Some(self.with("", None));
        };
        let (_, target) = self.targets.iter().find(|(it, _)| it == name)?;
        Some(self.with("target", Some(target)))
    }

    fn with(&self, name: &'static str, subject: Option<&Value>) -> Value {
        let all = |of: &[(String, Value)]| of.iter().map(|(_, it)| it.clone()).collect::<Vec<_>>();
        let shared = context! {
            apiVersion => Value::from(Serde(ContextApiVersion::V1)),
            kind => Value::from(Serde(ContextKind::TemplateContext)),
            targets => all(&self.targets),
            meshes => all(&self.meshes),
            clusters => self.clusters.clone(),
        };
        match subject {
            Some(subject) => {
                let subject = Value::from_pairs([(name, subject.clone())]);
                context! { ..subject, ..shared }
            }
            None => shared,
        }
    }
}
