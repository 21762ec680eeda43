//! Defaults: the values of a mesh for fields that entries leave out.

use crate::diagnostic::{Finding, Mistakes, Quoted, mistake};
use crate::place::Place;

use super::raw::{RawCluster, RawDefaults};
use super::{DEFAULT_PORT, entry, selector};

/// The defaults of a mesh, without those that are wrong.
pub(super) struct MeshDefaults {
    values: RawDefaults,
    place: Place,
}

/// The fields that an entry leaves to the mesh, each with the place of the default.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Inherited(Vec<(&'static str, Place)>);

impl Inherited {
    /// Returns the place of a field of the entry at `place`.
    pub(super) fn place(&self, place: &Place, field: &str) -> Place {
        let inherited = self.0.iter().find(|it| it.0 == field);
        inherited.map_or_else(|| place.key(field), |it| it.1.clone())
    }
}

impl MeshDefaults {
    /// Returns the valid defaults, and reports mistakes in the others.
    pub(super) fn new(mut values: RawDefaults, place: Place, findings: &mut Mistakes) -> Self {
        let RawDefaults {
            topology_label,
            endpoint_from,
            endpoint_domains,
            node_selector,
            ..
        } = values.clone();
        if entry::topology_label(topology_label, &place, findings).is_none() {
            values.topology_label = None;
        }
        if entry::endpoint_from(endpoint_from, &place, findings).is_none() {
            values.endpoint_from = None;
        }
        if entry::endpoint_domains(endpoint_domains, &place, findings).is_none() {
            values.endpoint_domains = None;
        }
        if selector::selector(node_selector, &place.key("nodeSelector"), findings).is_none() {
            values.node_selector = None;
        }
        Self { values, place }
    }

    /// Returns the fields that have a default.
    pub(super) fn fields(&self) -> Vec<&'static str> {
        let Inherited(fields) = self.fill(&mut RawCluster::default());
        fields.into_iter().map(|it| it.0).collect()
    }

    /// Writes the defaults into the fields that an entry leaves out.
    pub(super) fn fill(&self, cluster: &mut RawCluster) -> Inherited {
        let RawDefaults {
            wireguard_port,
            node_selector,
            granularity,
            topology_label,
            endpoint_from,
            endpoint_domains,
            advertise,
        } = &self.values;
        let filled = [
            (
                "wireguardPort",
                fill(&mut cluster.wireguard_port, wireguard_port),
            ),
            (
                "nodeSelector",
                fill(&mut cluster.node_selector, node_selector),
            ),
            ("granularity", fill(&mut cluster.granularity, granularity)),
            (
                "topologyLabel",
                fill(&mut cluster.topology_label, topology_label),
            ),
            (
                "endpointFrom",
                fill(&mut cluster.endpoint_from, endpoint_from),
            ),
            (
                "endpointDomains",
                fill(&mut cluster.endpoint_domains, endpoint_domains),
            ),
            ("advertise", fill(&mut cluster.advertise, advertise)),
        ];
        let filled = filled.into_iter().filter(|(_, is_filled)| *is_filled);
        Inherited(
            filled
                .map(|(field, _)| (field, self.place.key(field)))
                .collect(),
        )
    }

    /// Reports an entry with the default of the operator's CRD instead of the mesh's: the API server writes it into
    /// every object, so it is in objects that were copied from a cluster.
    pub(super) fn overridden(&self, cluster: &RawCluster, place: &Place) -> Option<Finding> {
        let default = self.values.wireguard_port?;
        let written = cluster.wireguard_port?;
        if written != DEFAULT_PORT.get() || written == default {
            return None;
        }
        let message = format!(
            "`wireguardPort: {written}` of {} overrides the mesh's default {default}",
            Quoted(&cluster.name)
        );
        let finding = Finding::new(&mistake::OVERRIDDEN_DEFAULT, message)
            .at(place.key("wireguardPort"), "")
            .at(self.place.key("wireguardPort"), "the default");
        Some(finding.help(
            "remove the line if it was copied from an object in a cluster, where the operator's CRD adds it",
        ))
    }
}

/// Writes a default into a field without a value, and returns whether it did.
fn fill<T: Clone>(field: &mut Option<T>, default: &Option<T>) -> bool {
    let is_filled = field.is_none() && default.is_some();
    if is_filled {
        field.clone_from(default);
    }
    is_filled
}
