//! The config: where this repository keeps its files, how its clusters are reached, what is too much
//! to be believed, and which findings matter more or less than usual.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::{JsonSchema, Schema};
use serde::Deserialize;
use serde_json::json;

use crate::diagnostic::{Finding, Mistakes, escaped, mistake};
use crate::document::{Form, SingleDocument, Source};
use crate::mesh::{Group, WrittenGroups, groups, invalid_name, members};
use crate::name::ClusterName;
use crate::place::{Part, Place};
use crate::schema::{self, ExampleFile, pattern};
use crate::text::shell_word;

pub mod capacity;
pub mod ceilings;
mod access;
mod exception;

pub use access::Access;
pub use capacity::Capacity;
pub use ceilings::{Ceilings, Limits};
pub(crate) use exception::read_date;
pub use exception::{Date, DateError, Ignore, Level, RuleLevel};

use access::WrittenCluster;
use ceilings::{WrittenCeilings, WrittenLimits};
use exception::{WrittenIgnore, WrittenLevel};

/// The content of a config file, each path relative to its folder. The shell decides on missing
/// fields.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Config {
    /// The config's folder as seen from the working folder.
    pub folder: String,
    /// The files and folders of the meshes.
    pub meshes: Vec<String>,
    /// The folder of the snapshots.
    pub snapshots: Option<String>,
    /// Prefixes of labels that snapshots leave out.
    pub dropped_labels: Option<Vec<String>>,
    /// The folder of the rendered manifests.
    pub rendered: Option<String>,
    /// The file of the expectations.
    pub expectations: Option<String>,
    /// The files that are filled in from templates.
    pub outputs: Vec<Output>,
    /// The access to each cluster, if set.
    pub clusters: BTreeMap<ClusterName, Access>,
    /// Clusters that expectations select under one name.
    pub groups: Vec<Group>,
    /// The folder of the policies of clusters.
    pub policies: Option<String>,
    /// The limits of plausible input.
    pub limits: Limits,
    /// The largest accepted input.
    pub ceilings: Ceilings,
    /// The levels of findings, by rule.
    pub rules: Vec<RuleLevel>,
    /// The findings to hide.
    pub ignore: Vec<Ignore>,
}

/// The longest path or name of a context that is shown, in characters.
const SHOWN: usize = 300;

/// Returns `kubectl` with these flags, as a shell takes them.
pub fn kubectl(kubeconfig: Option<&str>, context: Option<&str>) -> String {
    let flags = [("kubeconfig", kubeconfig), ("context", context)];
    let flags = flags.into_iter().filter_map(|(flag, value)| {
        let value = shell_word(&escaped(value?, SHOWN));
        Some(format!(" --{flag} {value}"))
    });
    format!("kubectl{}", flags.collect::<String>())
}

impl Config {
    /// Returns `kubectl` with the kubeconfig and context of a cluster, by default the context of its name.
    pub fn kubectl(&self, cluster: &ClusterName) -> String {
        let (path, context) = match self.clusters.get(cluster) {
            Some(Access::Kubeconfig { path, context }) => (path.as_ref(), context.as_deref()),
            Some(Access::InCluster | Access::Secret { .. }) | None => (None, None),
        };
        let path = path.map(|path| Path::new(&self.folder).join(path));
        // The only context of a file of its own can have any name.
        let default = path.is_none().then_some(cluster.as_str());
        let path = path.as_deref().map(Path::to_string_lossy);
        kubectl(path.as_deref(), context.or(default))
    }
}

/// The config of a repository: where its meshes, snapshots and manifests are, how its clusters are
/// reached, limits, and the levels of findings. Paths are relative to this file.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Config", example = ExampleFile(include_str!("config/example.json")))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[expect(dead_code, reason = "the walk has looked at version and kind")]
struct WrittenConfig {
    /// The version of this format.
    api_version: ConfigApiVersion,
    /// The kind of this document.
    kind: ConfigKind,
    /// Mesh files, and folders in which every `*.yaml` and `*.yml` is a mesh file.
    #[schemars(length(min = 1), inner(length(min = 1)), example = ["mesh.yaml"])]
    meshes: Option<Vec<String>>,
    /// The folder of snapshots, with one `<cluster>.json` for each cluster.
    #[schemars(length(min = 1), example = &"clusters/snapshots")]
    snapshots: Option<String>,
    /// The contents of snapshots.
    snapshot: Option<WrittenSnapshot>,
    /// The folder that `clustermesh render` writes.
    #[schemars(length(min = 1), example = &"clusters/rendered")]
    rendered: Option<String>,
    /// The file of expectations that `clustermesh verify` checks; default: `expectations.yaml`
    /// beside this file, if it exists.
    #[schemars(length(min = 1), example = &"clusters/expectations.yaml")]
    expectations: Option<String>,
    /// Files that `clustermesh render` fills in from templates and keeps up to date, such as an Argo CD
    /// `Application` for each cluster.
    outputs: Option<Vec<WrittenOutput>>,
    /// The access of `clustermesh snapshot` to each cluster, by its name in the mesh. Without an
    /// entry, the kubeconfig context with the cluster's name is used.
    #[schemars(extend("propertyNames" = { "pattern": pattern::CLUSTER_NAME }))]
    clusters: Option<BTreeMap<String, WrittenCluster>>,
    /// Clusters that expectations select under one name.
    #[schemars(
        extend("propertyNames" = { "pattern": pattern::CLUSTER_NAME }, "additionalProperties" = members()),
        example = json!({ "tenants": ["east", "west"] })
    )]
    groups: Option<WrittenGroups>,
    /// The folder of policies, with one `<cluster>.yaml` for each cluster that limits what it accepts;
    /// default: `policies` beside this file, if it exists.
    #[schemars(length(min = 1), example = &"clusters/policies")]
    policies: Option<String>,
    /// Limits for snapshots, rendered manifests and the load of clusters.
    limits: Option<WrittenLimits>,
    /// Levels of findings, by the name of the rule or the operator's reason code; the name takes
    /// precedence. Levels never change the output.
    rules: Option<BTreeMap<String, WrittenLevel>>,
    /// Findings to hide. An entry that matches nothing is reported.
    ignore: Option<Vec<WrittenIgnore>>,
}

/// The contents of snapshots.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Snapshot")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct WrittenSnapshot {
    /// Prefixes of labels that `clustermesh snapshot` leaves out; default:
    /// `[feature.node.kubernetes.io/]`, the labels of Node Feature Discovery. A `nodeSelector` cannot
    /// use these labels.
    #[schemars(inner(length(min = 1)), example = ["feature.node.kubernetes.io/"])]
    drop_labels: Option<Vec<String>>,
}

/// The only version of a config.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ApiVersion")]
enum ConfigApiVersion {
    /// The first version.
    #[serde(rename = "kilo-clustermesh.io/v1")]
    V1,
}

/// The only kind of a config.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Kind")]
enum ConfigKind {
    /// A config.
    Config,
}

/// Reads a config file.
///
/// # Errors
/// Everything that is wrong with its structure.
pub fn read(source: &Source) -> Result<Config, Vec<Finding>> {
    let SingleDocument { place, content, others } = source
        .single_document("the config is empty", "the config must be a single document")
        .map_err(|empty| vec![empty])?;
    let written = Form::<WrittenConfig>::new().read(content, &place);
    let read = written.and_then(|written| written.config(&place));
    match read {
        Ok(config) if others.is_empty() => Ok(config),
        read => {
            let mut problems = read.err().unwrap_or_default();
            problems.extend(others);
            let mut problems = problems.into_findings();
            problems.iter_mut().for_each(explain_level);
            Err(problems)
        }
    }
}

/// Adds the form of a level to a finding about one that is not a mapping.
fn explain_level(problem: &mut Finding) {
    let value = problem.labels.first().filter(|it| it.place.part == Part::Value);
    let steps = value.map(|it| it.place.pointer.steps().collect::<Vec<_>>());
    if let Some([field, _]) = steps.as_deref()
        && field == "rules"
        && problem.rule == &mistake::INVALID_TYPE
    {
        let form = "write `{ level: LEVEL }` with `error`, `warning` or `notice`, or `{ level: off, reason: TEXT }`";
        problem.help = Some(form.to_owned());
    }
}

/// Returns the JSON Schema of a config.
pub fn schema() -> Schema {
    schema::of_written::<WrittenConfig>()
}

impl WrittenConfig {
    fn config(self, place: &Place) -> Result<Config, Mistakes> {
        let (mut clusters, mut problems) = (BTreeMap::new(), Mistakes::default());
        for (name, written) in self.clusters.unwrap_or_default() {
            let place = place.key("clusters").key(&name);
            let named = cluster_name(&name, place.clone().named());
            match (named, written.access(&place)) {
                (Ok(name), Ok(access)) => {
                    clusters.insert(name, access);
                }
                (name, access) => problems.extend(name.err().into_iter().chain(access.err())),
            }
        }
        let groups = groups(self.groups, &place.key("groups"), &mut problems);
        let rules = self.rules.unwrap_or_default().into_iter();
        let place_of = |rule: &str| place.key("rules").key(rule);
        let rules = rules.map(|(rule, written)| written.read(rule.clone(), place_of(&rule)));
        let rules: Vec<RuleLevel> = rules.filter_map(|it| problems.without(it)).collect();
        let ignore = self.ignore.unwrap_or_default().into_iter().enumerate();
        let ignore = ignore.map(|(index, it)| it.read(place.key("ignore").index(index)));
        let ignore: Vec<Ignore> = ignore.filter_map(|it| problems.without(it)).collect();
        let outputs = self.outputs.unwrap_or_default().into_iter().enumerate();
        let outputs = outputs.map(|(index, it)| it.read(place.key("outputs").index(index)));
        let ceilings = self.limits.as_ref().and_then(|it| it.ceilings.as_ref());
        let ceilings = ceilings.map_or_else(Ceilings::default, WrittenCeilings::ceilings);
        let limits = self.limits.map(|it| it.limits(&place.key("limits")));
        let limits = limits.and_then(|it| problems.without(it));
        if !problems.is_empty() {
            return Err(problems);
        }
        let folder = Path::new(&*place.source).parent();
        Ok(Config {
            folder: folder.map_or_else(String::new, |it| it.to_string_lossy().into_owned()),
            meshes: self.meshes.unwrap_or_default(),
            snapshots: self.snapshots,
            dropped_labels: self.snapshot.and_then(|it| it.drop_labels),
            rendered: self.rendered,
            expectations: self.expectations,
            outputs: outputs.collect(),
            clusters,
            groups,
            policies: self.policies,
            limits: limits.unwrap_or_default(),
            ceilings,
            rules,
            ignore,
        })
    }
}

fn cluster_name(name: &str, place: Place) -> Result<ClusterName, Finding> {
    let parsed = name.parse();
    parsed.map_err(|error| invalid_name("cluster", name, &error, place))
}

/// A template, and where its results are written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Output {
    /// The file of the template.
    pub template: String,
    /// The path of each result: itself a template.
    pub path: String,
    /// The unit for which `render` writes a result.
    pub per: Per,
    /// The place in the config.
    pub place: Place,
}

/// The unit for which `render` writes a result.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq)]
pub enum Per {
    /// Each cluster that gets Peers; the template has `target`.
    #[default]
    Target,
    /// Each mesh; the template has `mesh`.
    Mesh,
    /// The repository as a whole.
    Repository,
}

/// A file that `render` fills in from a template, beside the rendered tree.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Output")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct WrittenOutput {
    /// The template (Jinja syntax), as a path relative to this file. `clustermesh schema
    /// template-context` describes the values that it can use.
    #[schemars(length(min = 1), example = &"templates/application.yaml")]
    template: String,
    /// The path of the result, relative to this file. Its extension decides how strings are written:
    /// `.yaml`, `.yml`, `.json`, or plain text.
    #[schemars(length(min = 1), example = &"apps/{{ target.name }}.yaml")]
    path: String,
    /// Whether there is a result for each target, for each mesh, or one for the repository;
    /// default: `Target`.
    per: Option<Per>,
}

impl WrittenOutput {
    fn read(self, place: Place) -> Output {
        Output {
            template: self.template,
            path: self.path,
            per: self.per.unwrap_or_default(),
            place,
        }
    }
}

#[cfg(test)]
mod tests;
