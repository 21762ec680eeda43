//! Entries: what is written about one cluster, checked on its own.

use std::collections::BTreeSet;
use std::num::NonZeroU16;

use crate::diagnostic::Mistakes;
use crate::granularity::Granularity;
use crate::name::{ClusterName, Namespace, nearest_label};
use crate::place::Place;
use crate::selector::Selector;
use crate::wireguard::Keepalive;

use super::defaults::{Inherited, MeshDefaults};
use super::dns::{self, ClusterDns};
use super::mistakes::cluster_name;
use super::mtu::{self, Mtu};
use super::networks::{self, DeclaredNetworks};
use super::raw::RawCluster;
use super::{
    Advertise, Anchor, DEFAULT_PORT, EndpointSource, Entry, PodSource, Range, SecretKeyRef, State,
    Underlay, selector,
};
use super::{anchor, fields, underlay};

/// An entry of which some parts may be wrong; these are reported already and omitted.
pub(super) struct Draft {
    /// The name as it is written, or as it was probably meant.
    pub(super) text: String,
    pub(super) name: Option<ClusterName>,
    state: State,
    pub(super) local: bool,
    pub(super) declared: DeclaredNetworks,
    pub(super) place: Place,
    kubeconfig: Option<SecretKeyRef>,
    port: NonZeroU16,
    keepalive: Option<Keepalive>,
    pub(super) selector: Option<Selector>,
    pub(super) granularity: Option<Granularity>,
    topology_label: Option<String>,
    endpoint_from: Option<Vec<EndpointSource>>,
    endpoint_domains: Option<Vec<String>>,
    /// None of them where nothing is written: what is written is never an empty list.
    accepted: Option<Vec<Range>>,
    pub(super) accepted_services: Option<BTreeSet<Namespace>>,
    local_networks: Option<Vec<Range>>,
    pub(super) anchors: Option<Vec<Anchor>>,
    pub(super) advertise: Advertise,
    /// None of them where nothing is written.
    #[expect(clippy::option_option, reason = "a field, and whether it is right")]
    dns: Option<Option<ClusterDns>>,
    pod_source: Option<PodSource>,
    mtu: Option<Mtu>,
    underlays: Option<Vec<Underlay>>,
    inherited: Inherited,
}

/// Returns the valid parts of an entry, and reports its mistakes.
pub(super) fn draft(
    mut cluster: RawCluster,
    defaults: &MeshDefaults,
    place: Place,
    findings: &mut Mistakes,
) -> Draft {
    findings.extend(defaults.overridden(&cluster, &place));
    let inherited = defaults.fill(&mut cluster);
    let name = cluster_name(&cluster.name, &place.key("name"), findings);
    // So that no finding is about the same name elsewhere.
    let meant = nearest_label(&cluster.name).filter(|_| name.is_none());
    let declared = networks::declared(&cluster, &place, findings);
    let accepted = accepted(cluster.accepted_networks.as_deref(), &place, findings);
    let services = cluster.accepted_services.unwrap_or_default();
    let accepted_services = fields::accepted_services(&services, &place, findings);
    let local_networks = networks::local_networks(
        &cluster.local_networks.unwrap_or_default(),
        &place.key("localNetworks"),
        findings,
    );
    let written = cluster.anchors.unwrap_or_default();
    let advertise = Advertise::new(cluster.advertise.as_ref());
    let anchors_place = place.key("anchors");
    let anchors = anchor::anchors(written, advertise, &declared, &anchors_place, findings);
    let dns = dns::dns(cluster.dns, &declared, &place.key("dns"), findings);
    let mtu = mtu::mtu(cluster.mtu.as_ref(), &declared, &place.key("mtu"), findings);
    let underlays =
        underlay::underlays(cluster.underlays.as_deref(), &place.key("underlays"), findings);
    Draft {
        name,
        state: cluster.state.unwrap_or_default(),
        local: cluster.local.unwrap_or(false),
        declared,
        kubeconfig: cluster
            .kubeconfig_secret_ref
            .map(|reference| SecretKeyRef { name: reference.name, key: reference.key }),
        // The schema keeps zero out.
        port: cluster.wireguard_port.and_then(NonZeroU16::new).unwrap_or(DEFAULT_PORT),
        keepalive: fields::keepalive(cluster.persistent_keepalive, &place, findings),
        selector: selector::selector(cluster.node_selector, &place.key("nodeSelector"), findings),
        granularity: cluster.granularity,
        topology_label: fields::topology_label(cluster.topology_label, &place, findings),
        endpoint_from: fields::endpoint_from(cluster.endpoint_from, &place, findings),
        endpoint_domains: fields::endpoint_domains(cluster.endpoint_domains, &place, findings),
        inherited,
        accepted,
        accepted_services,
        local_networks,
        anchors,
        advertise,
        dns,
        pod_source: cluster.pod_source,
        mtu,
        underlays,
        text: meant.unwrap_or(cluster.name),
        place,
    }
}

/// Returns the ranges that a cluster accepts; none of them where nothing is written.
fn accepted(
    written: Option<&[String]>,
    place: &Place,
    findings: &mut Mistakes,
) -> Option<Vec<Range>> {
    let Some(texts) = written else {
        return Some(Vec::new());
    };
    networks::accepted(texts, &place.key("acceptedNetworks"), findings)
}

impl Draft {
    /// Returns whether a range of it is Kilo's subnet, and no other cluster gets addresses in it.
    pub(super) fn keeps(&self, range: &Range) -> bool {
        self.declared.networks.as_ref().is_some_and(|it| self.advertise.keeps(it, range))
    }

    /// Returns whether an endpoint may be this DNS name.
    pub(super) fn declares_domain(&self, name: &str) -> bool {
        let domains = self.endpoint_domains.as_deref().unwrap_or_default();
        fields::is_under(domains, name)
    }

    /// Returns the place of a field: in the entry, or in the mesh's `defaults`.
    pub(super) fn field(&self, field: &str) -> Place {
        self.inherited.place(&self.place, field)
    }

    /// Returns the entry, if every part of it is right.
    pub(super) fn finished(self) -> Option<Entry> {
        Some(Entry {
            name: self.name?,
            state: self.state,
            local: self.local,
            kubeconfig: self.kubeconfig,
            networks: self.declared.networks?,
            port: self.port,
            keepalive: self.keepalive,
            selector: self.selector?,
            granularity: self.granularity,
            topology_label: self.topology_label?,
            endpoint_from: self.endpoint_from?,
            endpoint_domains: self.endpoint_domains?,
            accepted: Some(self.accepted?).filter(|it| !it.is_empty()),
            accepted_by_policy: None,
            accepted_services: self.accepted_services?,
            local_networks: self.local_networks?,
            anchors: self.anchors?,
            advertise: self.advertise,
            dns: self.dns?,
            pod_source: self.pod_source,
            mtu: self.mtu?,
            underlays: self.underlays?,
            inherited: self.inherited,
            place: self.place,
        })
    }
}

impl Entry {
    /// Returns whether it is that of a cluster whose links are all in use.
    pub fn is_joined_cluster(&self) -> bool {
        !self.name.is_external() && self.state == State::Joined
    }

    /// Returns the lists in which every range must be that it accepts from other clusters.
    pub fn accepted_lists(&self) -> impl Iterator<Item = &[Range]> {
        self.accepted.iter().chain(&self.accepted_by_policy).map(Vec::as_slice)
    }
}
