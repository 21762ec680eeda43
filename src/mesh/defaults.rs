//! Defaults: the values of a mesh for fields that entries leave out.

use crate::diagnostic::{Finding, Mistakes, Quoted, mistake};
use crate::place::Place;

use super::raw::{RawCluster, RawDefaults};
use super::{DEFAULT_PORT, fields, selector};

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
        self.0.iter().find(|it| it.0 == field).map_or_else(|| place.key(field), |it| it.1.clone())
    }
}

impl MeshDefaults {
    /// Returns the valid defaults, and reports mistakes in the others.
    pub(super) fn new(mut values: RawDefaults, place: Place, findings: &mut Mistakes) -> Self {
        let RawDefaults { topology_label, endpoint_from, endpoint_domains, node_selector, .. } =
            values.clone();
        if fields::topology_label(topology_label, &place, findings).is_none() {
            values.topology_label = None;
        }
        if fields::endpoint_from(endpoint_from, &place, findings).is_none() {
            values.endpoint_from = None;
        }
        if fields::endpoint_domains(endpoint_domains, &place, findings).is_none() {
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
            ("wireguardPort", fill(&mut cluster.wireguard_port, wireguard_port.as_ref())),
            ("nodeSelector", fill(&mut cluster.node_selector, node_selector.as_ref())),
            ("granularity", fill(&mut cluster.granularity, granularity.as_ref())),
            ("topologyLabel", fill(&mut cluster.topology_label, topology_label.as_ref())),
            ("endpointFrom", fill(&mut cluster.endpoint_from, endpoint_from.as_ref())),
            ("endpointDomains", fill(&mut cluster.endpoint_domains, endpoint_domains.as_ref())),
            ("advertise", fill(&mut cluster.advertise, advertise.as_ref())),
        ];
        let filled = filled.into_iter().filter(|(_, is_filled)| *is_filled);
        Inherited(filled.map(|(field, _)| (field, self.place.key(field))).collect())
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
fn fill<T: Clone>(field: &mut Option<T>, default: Option<&T>) -> bool {
    let is_filled = field.is_none() && default.is_some();
    if is_filled {
        *field = default.cloned();
    }
    is_filled
}

#[cfg(test)]
mod tests {
    use crate::document::Source;
    use crate::mesh::tests::{mesh, report};
    use crate::mesh::{EndpointSource, PodRanges};

    /// A mesh of `a` and `b` with defaults, and with fields of `b`.
    fn with(defaults: &str, fields: &str) -> String {
        let clusters = mesh("m", &["a: 10.0.0.0/16", "b: 10.1.0.0/16"]);
        let clusters = clusters.replace("10.1.0.0/16]", &format!("10.1.0.0/16]{fields}"));
        format!("{clusters}  defaults: {defaults}\n")
    }

    #[test]
    fn an_entry_replaces_a_value_as_a_whole() {
        let defaults = "{ wireguardPort: 51871, nodeSelector: { mesh: 'yes' }, granularity: Full, topologyLabel: zone, \
                        endpointFrom: [Kilo], endpointDomains: [a.example], \
                        advertise: { podCIDRs: Merged, nodeAddresses: false } }";
        let own = ", advertise: { wireguardAddresses: None }, endpointFrom: [ExternalIP], granularity: Location";
        let source = Source::parse("mesh.yaml", with(defaults, own)).unwrap();
        let reading = crate::mesh::read(&[source]);
        let [a, b] = reading.meshes[0].entries.as_slice() else {
            panic!("{:?}", reading.diagnostics);
        };
        assert_eq!((a.port.get(), b.port.get()), (51871, 51871));
        assert_eq!(a.selector, b.selector);
        assert!(!a.selector.is_everything());
        assert_eq!([&a.topology_label, &b.topology_label], ["zone"; 2]);
        assert_eq!(a.endpoint_from, [EndpointSource::Kilo]);
        assert_eq!(b.endpoint_from, [EndpointSource::ExternalIP]);
        assert_eq!(a.endpoint_domains, b.endpoint_domains);
        assert_eq!((a.advertise.pods, a.advertise.node_addresses), (PodRanges::Merged, false));
        assert_eq!((b.advertise.pods, b.advertise.node_addresses), (PodRanges::PerNode, true));
        assert!(a.field("granularity").pointer.to_string().ends_with("/defaults/granularity"));
        assert!(b.field("granularity").pointer.to_string().ends_with("/1/granularity"));
    }

    #[test]
    fn a_wrong_default_is_reported_once() {
        let defaults = "{ topologyLabel: a/b/c, endpointDomains: ['*.x.org'], endpointFrom: [Kilo, Kilo], \
                        nodeSelector: { 'a/b/c': x }, keepalive: 3 }";
        insta::assert_snapshot!(report(&with(defaults, "")), @"
        error[unknown-field]: unknown field `keepalive`
          8:125 | keepalive
          help: allowed here: `advertise`, `endpointDomains`, `endpointFrom`, `granularity`, `nodeSelector`, `topologyLabel`, `wireguardPort`
        error[invalid-value]: `a/b/c` is not a valid label key
          8:30 | a/b/c
          help: write `name` or `prefix/name`, such as `topology.kubernetes.io/zone`
        error[duplicate-item]: duplicate endpoint source `Kilo`
          8:88 | Kilo | second here
          8:82 | Kilo | first here
          help: remove one of the two
        error[invalid-value]: `*.x.org` is not a lowercase DNS name
          8:55 | '*.x.org'
          help: write `x.org`, which matches every name under it
        error[invalid-value]: `a/b/c` is not a valid label key
          8:111 | 'a/b/c'
          help: write `name` or `prefix/name`, such as `topology.kubernetes.io/zone`
        ");
    }

    #[test]
    fn the_port_of_the_operator_s_crd_is_reported_only_beside_another_default() {
        let crd = ", wireguardPort: 51820";
        insta::assert_snapshot!(report(&with("{ wireguardPort: 51871 }", crd)), @"
        warning[overridden-default]: `wireguardPort: 51820` of `b` overrides the mesh's default 51871
          7:65 | 51820
          8:30 | 51871 | the default
          help: remove the line if it was copied from an object in a cluster, where the operator's CRD adds it
        ");
        assert_eq!(report(&with("{ wireguardPort: 51820 }", crd)), "");
        assert_eq!(report(&with("{ granularity: Full }", crd)), "");
        assert_eq!(report(&with("{ wireguardPort: 51871 }", ", wireguardPort: 51900")), "");
    }
}
