//! `clustermesh config`

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::ValueEnum;
use clustermesh::config::capacity::Quantity;
use clustermesh::config::ceilings::Counted;
use clustermesh::config::{Ignore, RuleLevel};
use clustermesh::document::Source;
use clustermesh::mesh::Mesh;
use clustermesh::name::ClusterName;
use clustermesh::place::Place;
use clustermesh::policy::Policy;

use crate::Outcome;
use crate::failure::CommandResult;
use crate::input_file::{self, Clusters};
use crate::inputs::{KnownClusters, ReadPolicies};
use crate::output::{Printer, terminal};
use crate::settings::{ClusterAccess, ConfigFile, FileOptions, Setting, SettingOrigin, Settings};

mod shown;

use shown::{Shown, ShownValue};

/// Print all settings and their origins
///
/// Precedence: flags, `CLUSTERMESH_*` variables, config file, defaults. Lists the clusters of the config
/// and of the meshes, what their policies limit, the groups, and the fields that a mesh has `defaults` for.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ConfigArgs {
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "human")]
    output: ConfigFormat,
}

const EXAMPLES: &str = "\
Examples:
  clustermesh config
  clustermesh config --output json | jq '.settings[] | select(.origin.kind == \"variable\")'";

/// The format of the settings.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ConfigFormat {
    /// A table
    Human,
    /// JSON
    Json,
    /// YAML, with the fields of the JSON
    Yaml,
}

pub(crate) fn run(args: &ConfigArgs, files: &FileOptions, printer: &mut Printer) -> CommandResult {
    let settings = files.settle()?;
    let config = &settings.config.content;
    let mut clusters: BTreeSet<ClusterName> = config.clusters.keys().cloned().collect();
    let (mut meshes, mut sources) = (Vec::new(), Vec::new());
    match read_meshes(&settings) {
        Ok(read) => (meshes, sources) = (read.meshes, read.sources),
        Err(failure) => {
            printer.note(&format!("clusters of unreadable meshes are missing: {failure}"));
        }
    }
    clusters.extend(meshes.iter().flat_map(|mesh| &mesh.entries).map(|entry| entry.name.clone()));
    sources.extend(settings.config.source.clone());
    let named = clusters.iter().map(ToString::to_string).collect();
    let policies = ReadPolicies::read(&settings, KnownClusters::new(&named, false)).unwrap_or_else(
        |failure| {
            printer.note(&format!("policies cannot be read: {failure}"));
            ReadPolicies::default()
        },
    );
    if policies.is_broken {
        printer.note("policies with mistakes are missing: run `clustermesh validate`");
    }
    sources.extend(policies.sources);
    let shown = all(&settings, &clusters, (&meshes, &policies.policies), &sources);
    let text = match args.output {
        ConfigFormat::Human => shown::table(&shown, terminal::stdout()),
        ConfigFormat::Json => shown::json(&shown)?,
        ConfigFormat::Yaml => shown::yaml(&shown)?,
    };
    printer.write(text.as_bytes())?;
    Ok(Outcome::Clean)
}

fn read_meshes(settings: &Settings) -> CommandResult<Clusters> {
    input_file::clusters(&settings.mesh_files()?, settings.ceilings)
}

/// Returns all settings, in the order of the config's fields.
fn all(
    settings: &Settings,
    clusters: &BTreeSet<ClusterName>,
    (meshes, policies): (&[Mesh], &[Policy]),
    sources: &[Source],
) -> Vec<Shown> {
    let mut list = SettingList { config: &settings.config, sources, all: Vec::new() };
    // A folder that cannot be listed has no files, and the note explains why.
    let files = settings.mesh_files_if_any().unwrap_or_default();
    let files: Vec<PathBuf> = files.into_iter().map(|file| file.path).collect();
    list.add_any_path("config", &settings.config.path);
    list.add_paths("meshes", &files, &settings.meshes.origin);
    list.add_path("snapshots", &settings.snapshots);
    let dropped = ShownValue::List(settings.dropped_labels.value.clone());
    list.add("snapshot.dropLabels", dropped, &settings.dropped_labels.origin);
    list.add_path("rendered", &settings.rendered);
    list.add_any_path("expectations", &settings.expectations);
    list.add_any_path("policies", &settings.policies);
    let Setting { value, origin } = &settings.kubeconfig;
    list.add_paths("kubeconfig", value, origin);
    for cluster in clusters {
        list.add_cluster(settings, cluster);
    }
    for policy in policies {
        list.add_policy(policy);
    }
    let of_meshes = meshes.iter().flat_map(|it| &it.groups);
    for group in of_meshes.chain(&settings.config.content.groups) {
        let clusters = group.clusters.iter().map(ToString::to_string);
        let name = format!("groups.{}", group.name);
        let origin = SettingOrigin::File(group.place.clone());
        list.add(&name, ShownValue::List(clusters.collect()), &origin);
    }
    for mesh in meshes {
        list.add_defaults(mesh);
    }
    list.add_limits();
    list.add_ceilings(settings);
    list.add_rules();
    list.add_ignores();
    list.all
}

/// A list of settings in progress.
struct SettingList<'s> {
    config: &'s ConfigFile,
    /// The files that set values.
    sources: &'s [Source],
    all: Vec<Shown>,
}

impl SettingList<'_> {
    fn add(&mut self, name: &str, value: ShownValue, origin: &SettingOrigin) {
        self.all.push(Shown::new(name, value, origin, self.sources));
    }

    /// Adds a value that only the config can change, at these keys.
    fn add_configured(&mut self, keys: &[&str], value: ShownValue) {
        self.add(&keys.join("."), value, &self.config.origin(keys));
    }

    fn add_paths(&mut self, name: &str, paths: &[PathBuf], origin: &SettingOrigin) {
        self.add(name, ShownValue::paths(paths), origin);
    }

    fn add_path(&mut self, name: &str, Setting { value, origin }: &Setting<PathBuf>) {
        self.add(name, ShownValue::path(value), origin);
    }

    fn add_any_path(&mut self, name: &str, setting: &Setting<Option<PathBuf>>) {
        let none = ShownValue::Nothing("none");
        let value = setting.value.as_deref().map_or(none, ShownValue::path);
        self.add(name, value, &setting.origin);
    }

    /// Adds the settings of a cluster.
    fn add_cluster(&mut self, settings: &Settings, cluster: &ClusterName) {
        let keys = |field| ["clusters", cluster.as_str(), field];
        let access = settings.access(cluster);
        let is_in_cluster = ShownValue::Boolean(matches!(access, ClusterAccess::InCluster));
        if let ClusterAccess::Secret { namespace, secret } = &access {
            let value = format!("{namespace}/{} ({})", secret.name, secret.key);
            self.add_configured(&keys("kubeconfigSecret"), ShownValue::Text(value));
        }
        if let ClusterAccess::Kubeconfig { files, context } = access {
            let value = context.value.map_or(ShownValue::Nothing("the only one"), ShownValue::Text);
            self.add_paths(&keys("kubeconfig").join("."), &files.value, &files.origin);
            self.add(&keys("context").join("."), value, &context.origin);
        }
        self.add_configured(&keys("inCluster"), is_in_cluster);
    }

    /// Adds the limits that the owner of a cluster sets.
    fn add_policy(&mut self, policy: &Policy) {
        for (field, values, place) in policy.limits() {
            let name = ["policies", policy.cluster.as_str(), field].join(".");
            self.add(&name, ShownValue::List(values), &SettingOrigin::File(place));
        }
    }

    /// Adds the values that entries of a mesh have for the fields of its `defaults`.
    fn add_defaults(&mut self, mesh: &Mesh) {
        let fields = |entry| mesh.defaults.iter().map(move |field| (entry, *field));
        for (entry, field) in mesh.entries.iter().flat_map(fields) {
            let name = ["mesh", mesh.name.as_str(), entry.name.as_str(), field].join(".");
            let origin = SettingOrigin::File(entry.field(field));
            self.add(&name, ShownValue::List(entry.values(field)), &origin);
        }
    }

    fn add_limits(&mut self) {
        let limits = self.config.content.limits;
        for (field, number) in limits.all() {
            self.add_configured(&["limits", field], ShownValue::Number(number));
        }
        for &quantity in Quantity::ALL {
            let steps = ShownValue::Steps(limits.capacity.steps(quantity));
            self.add_configured(&["limits", "capacity", quantity.key()], steps);
        }
        for (field, number) in limits.capacity.costs.all() {
            let keys = ["limits", "capacity", "costs", field];
            self.add_configured(&keys, ShownValue::Number(number));
        }
    }

    fn add_ceilings(&mut self, settings: &Settings) {
        for counted in Counted::ALL {
            let most = settings.ceilings.most(counted);
            let keys = ["limits", "ceilings", counted.name()];
            let origin = if most == self.config.content.ceilings.most(counted) {
                self.config.origin(&keys)
            } else {
                SettingOrigin::Flag("--ceiling")
            };
            self.add(&keys.join("."), ShownValue::Number(most as u64), &origin);
        }
    }

    fn add_rules(&mut self) {
        for said in &self.config.content.rules {
            let RuleLevel { rule, level, reason, until, place } = said;
            let fields = [
                ("level", Some(level.to_string())),
                ("reason", reason.clone()),
                ("until", until.map(|it| it.to_string())),
            ];
            self.add_fields(&format!("rules.{rule}"), place, fields);
        }
    }

    fn add_ignores(&mut self) {
        for (index, said) in self.config.content.ignore.iter().enumerate() {
            let Ignore { rule, cluster, node, reason, until, place } = said;
            let fields = [
                ("rule", Some(rule.clone())),
                ("cluster", cluster.as_ref().map(ToString::to_string)),
                ("node", node.clone()),
                ("reason", Some(reason.clone())),
                ("until", until.map(|it| it.to_string())),
            ];
            self.add_fields(&format!("ignore.{index}"), place, fields);
        }
    }

    /// Adds the fields that the config sets at a place.
    fn add_fields<const N: usize>(
        &mut self,
        name: &str,
        place: &Place,
        fields: [(&str, Option<String>); N],
    ) {
        for (field, said) in fields {
            if let Some(said) = said {
                let origin = SettingOrigin::File(place.key(field));
                self.add(&format!("{name}.{field}"), ShownValue::Text(said), &origin);
            }
        }
    }
}
