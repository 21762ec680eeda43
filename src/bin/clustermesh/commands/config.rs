//! `clustermesh config`

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::ValueEnum;
use clustermesh::config::capacity::Quantity;
use clustermesh::config::ceilings::Counted;
use clustermesh::config::{Ignore, Limits, RuleLevel};
use clustermesh::name::ClusterName;
use clustermesh::place::Place;

use crate::Outcome;
use crate::failure::CommandFailure;
use crate::input_file;
use crate::output::terminal;
use crate::output::{self, Printer};
use crate::settings::{ClusterAccess, CommonOptions, Setting, SettingOrigin, Settings};

mod shown;

use shown::{Shown, ShownValue};

/// Print all settings and their origins
///
/// Precedence: flags, `CLUSTERMESH_*` variables, config file, defaults. Lists the clusters of the config
/// and of the meshes.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ConfigArgs {
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "human")]
    pub(crate) output: ConfigFormat,

    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

const EXAMPLES: &str = "\
Examples:
  clustermesh config
  clustermesh config --output json | jq '.settings[] | select(.origin.kind == \"variable\")'";

/// The format of the settings.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ConfigFormat {
    /// A table
    Human,
    /// JSON
    Json,
    /// YAML, with the fields of the JSON
    Yaml,
}

impl From<ConfigFormat> for output::ReportFormat {
    /// Returns the form of findings.
    fn from(format: ConfigFormat) -> Self {
        match format {
            ConfigFormat::Human => Self::Human,
            ConfigFormat::Json | ConfigFormat::Yaml => Self::Json,
        }
    }
}

pub(crate) fn run(args: &ConfigArgs, printer: &mut Printer) -> Result<Outcome, CommandFailure> {
    let settings = args.common.files.settle()?;
    let config = &settings.config.content;
    let named = config.clusters.keys().chain(config.accepted.keys());
    let mut clusters: BTreeSet<ClusterName> = named.cloned().collect();
    match clusters_of_meshes(&settings) {
        Ok(found) => clusters.extend(found),
        Err(failure) => printer.note(&format!(
            "clusters of unreadable meshes are missing: {failure}"
        )),
    }
    let shown = all(&settings, &clusters);
    let text = match args.output {
        ConfigFormat::Human => shown::table(&shown, terminal::stdout()),
        ConfigFormat::Json => shown::json(&shown)?,
        ConfigFormat::Yaml => shown::yaml(&shown)?,
    };
    printer.write(text.as_bytes())?;
    Ok(Outcome::Clean)
}

fn clusters_of_meshes(settings: &Settings) -> Result<Vec<ClusterName>, CommandFailure> {
    let read = input_file::meshes(&settings.mesh_files()?, settings.ceilings)?;
    let entries = read.into_iter().flat_map(|mesh| mesh.entries);
    Ok(entries.map(|entry| entry.name).collect())
}

/// Returns all settings, in the order of the config's fields.
fn all(settings: &Settings, clusters: &BTreeSet<ClusterName>) -> Vec<Shown> {
    let config = &settings.config;
    let shown = |name: &str, value: ShownValue, origin: &SettingOrigin| {
        Shown::new(name, value, origin, config)
    };
    let paths = |name: &str, setting: &Setting<Vec<PathBuf>>| {
        shown(name, ShownValue::paths(&setting.value), &setting.origin)
    };
    let path = |name: &str, setting: &Setting<PathBuf>| {
        shown(name, ShownValue::path(&setting.value), &setting.origin)
    };
    let any_path = |name: &str, setting: &Setting<Option<PathBuf>>| {
        let none = ShownValue::Nothing("none");
        let value = setting.value.as_deref().map_or(none, ShownValue::path);
        shown(name, value, &setting.origin)
    };
    // A folder that cannot be listed has no files, and the note explains why.
    let meshes: Vec<PathBuf> = settings
        .mesh_files_if_any()
        .unwrap_or_default()
        .into_iter()
        .map(|file| file.path)
        .collect();
    let mut all = vec![
        any_path("config", &config.path),
        shown(
            "meshes",
            ShownValue::paths(&meshes),
            &settings.meshes.origin,
        ),
        path("snapshots", &settings.snapshots),
        shown(
            "snapshot.dropLabels",
            ShownValue::List(settings.dropped_labels.value.clone()),
            &settings.dropped_labels.origin,
        ),
        path("rendered", &settings.rendered),
        any_path("expectations", &settings.expectations),
        paths("kubeconfig", &settings.kubeconfig),
    ];
    all.extend(clusters.iter().flat_map(|it| of_cluster(settings, it)));
    all.extend(limits(settings));
    all.extend(ceilings(settings));
    all.extend(rules(settings));
    all.extend(ignores(settings));
    all
}

/// Returns the settings of a cluster.
fn of_cluster(settings: &Settings, cluster: &ClusterName) -> Vec<Shown> {
    let config = &settings.config;
    let mut all = Vec::new();
    let mut add = |field: &str, value: ShownValue, origin: &SettingOrigin| {
        let name = format!("clusters.{cluster}.{field}");
        all.push(Shown::new(&name, value, origin, config));
    };
    let origin = |field| config.origin(&["clusters", cluster.as_str(), field]);
    let access = settings.access(cluster);
    let is_in_cluster = ShownValue::Boolean(matches!(access, ClusterAccess::InCluster));
    if let ClusterAccess::Secret { namespace, secret } = &access {
        let value = format!("{namespace}/{} ({})", secret.name, secret.key);
        let field = "kubeconfigSecret";
        add(field, ShownValue::Text(value), &origin(field));
    }
    if let ClusterAccess::Kubeconfig { files, context } = access {
        let value = context
            .value
            .map_or(ShownValue::Nothing("the only one"), ShownValue::Text);
        add("kubeconfig", ShownValue::paths(&files.value), &files.origin);
        add("context", value, &context.origin);
    }
    add("inCluster", is_in_cluster, &origin("inCluster"));
    let accepted = config
        .content
        .accepted
        .get(cluster)
        .map_or(ShownValue::Nothing("from the mesh"), |ranges| {
            ShownValue::List(ranges.iter().map(|it| it.cidr.to_string()).collect())
        });
    add("acceptedNetworks", accepted, &origin("acceptedNetworks"));
    all
}

fn ceilings(settings: &Settings) -> impl Iterator<Item = Shown> {
    Counted::ALL.into_iter().map(|counted| {
        let config = &settings.config;
        let most = settings.ceilings.most(counted);
        let origin = if most == config.content.ceilings.most(counted) {
            config.origin(&["limits", "ceilings", counted.name()])
        } else {
            SettingOrigin::Flag("--ceiling")
        };
        let name = format!("limits.ceilings.{}", counted.name());
        Shown::new(&name, ShownValue::Number(most as u64), &origin, config)
    })
}

fn limits(settings: &Settings) -> impl Iterator<Item = Shown> {
    // Named one by one, so that one more is not forgotten here.
    let Limits {
        nodes,
        lost_nodes,
        lost_percent,
        gone_percent,
        stale_after_seconds,
        lost_peers,
        lost_peers_percent,
        peer_bytes,
        capacity,
    } = settings.config.content.limits;
    let limits = [
        ("nodes", nodes as u64),
        ("lostNodes", lost_nodes as u64),
        ("lostPercent", lost_percent as u64),
        ("gonePercent", gone_percent as u64),
        ("staleAfterSeconds", u64::from(stale_after_seconds)),
        ("lostPeers", lost_peers as u64),
        ("lostPeersPercent", lost_peers_percent as u64),
        ("peerBytes", peer_bytes as u64),
    ];
    let config = &settings.config;
    let limits = limits.into_iter().map(|(field, number)| {
        let origin = config.origin(&["limits", field]);
        let name = format!("limits.{field}");
        Shown::new(&name, ShownValue::Number(number), &origin, config)
    });
    let steps = Quantity::ALL.iter().map(move |&quantity| {
        let origin = config.origin(&["limits", "capacity", quantity.key()]);
        let name = format!("limits.capacity.{}", quantity.key());
        Shown::new(
            &name,
            ShownValue::Steps(capacity.steps(quantity)),
            &origin,
            config,
        )
    });
    limits.chain(steps).chain(costs(settings))
}

fn costs(settings: &Settings) -> impl Iterator<Item = Shown> {
    let config = &settings.config;
    let costs = config.content.limits.capacity.costs.all();
    costs.into_iter().map(move |(field, number)| {
        let origin = config.origin(&["limits", "capacity", "costs", field]);
        let name = format!("limits.capacity.costs.{field}");
        Shown::new(&name, ShownValue::Number(number), &origin, config)
    })
}

fn rules(settings: &Settings) -> Vec<Shown> {
    let mut all = Vec::new();
    for said in &settings.config.content.rules {
        let RuleLevel {
            rule,
            level,
            reason,
            until,
            place,
        } = said;
        let fields = [
            ("level", Some(level.to_string())),
            ("reason", reason.clone()),
            ("until", until.map(|it| it.to_string())),
        ];
        all.extend(shown_fields(
            settings,
            &format!("rules.{rule}"),
            place,
            fields,
        ));
    }
    all
}

fn ignores(settings: &Settings) -> Vec<Shown> {
    let mut all = Vec::new();
    for (index, said) in settings.config.content.ignore.iter().enumerate() {
        let Ignore {
            rule,
            cluster,
            node,
            reason,
            until,
            place,
        } = said;
        let fields = [
            ("rule", Some(rule.clone())),
            ("cluster", cluster.as_ref().map(ToString::to_string)),
            ("node", node.clone()),
            ("reason", Some(reason.clone())),
            ("until", until.map(|it| it.to_string())),
        ];
        all.extend(shown_fields(
            settings,
            &format!("ignore.{index}"),
            place,
            fields,
        ));
    }
    all
}

/// Returns the fields that the config sets at a place.
fn shown_fields<const N: usize>(
    settings: &Settings,
    name: &str,
    place: &Place,
    fields: [(&str, Option<String>); N],
) -> impl Iterator<Item = Shown> {
    fields.into_iter().filter_map(move |(field, said)| {
        let origin = SettingOrigin::File(place.key(field));
        let name = format!("{name}.{field}");
        Some(Shown::new(
            &name,
            ShownValue::Text(said?),
            &origin,
            &settings.config,
        ))
    })
}
