//! The judgement: which rules of a guard a Peer breaks. Each line here has its counterpart in
//! `templates/admission/policy.yaml.j2`.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::form::{PeerForm, RangeForm, address};
use super::{ANY, Guard, MOST_COMPARED, MOST_RANGES, Refusal};
use crate::name::is_dns_subdomain;
use crate::net::{Cidr, Interface};
use crate::wireguard::{Endpoint, Host, PublicKey, text_of_key};

/// A Peer, and what a guard declares about its labels.
struct Judgement<'g> {
    guard: &'g Guard,
    form: &'g PeerForm<'g>,
    /// The mesh and the source in its labels.
    key: String,
    /// Its ranges, if all of them can be read.
    ranges: Vec<Interface>,
    /// Those that are not accepted of its source.
    outside: Vec<Cidr>,
    address: Option<IpAddr>,
}

impl Guard {
    /// Returns the rules that a Peer breaks, in order of weight. The rules about its writer are not checked.
    pub fn refusals(&self, form: &PeerForm) -> Vec<Refusal> {
        let judgement = Judgement::new(self, form);
        let rules = Refusal::ALL.iter().copied();
        rules.filter(|it| judgement.breaks(*it)).collect()
    }

    /// Returns the ranges that are accepted of a Peer.
    fn accepted(&self, form: &PeerForm, key: &str) -> &[Cidr] {
        let accepted = if form.is_ours() {
            self.declared.sources.get(key)
        } else {
            self.access.peers.get(form.name)
        };
        accepted.map_or(&[], Vec::as_slice)
    }
}

impl<'g> Judgement<'g> {
    fn new(guard: &'g Guard, form: &'g PeerForm<'g>) -> Self {
        let key = form.key();
        let read = form.ranges.iter().map(|it| match it {
            RangeForm::Range(range) => Some(*range),
            RangeForm::Mapped | RangeForm::Unreadable => None,
        });
        let ranges: Option<Vec<Interface>> =
            (form.ranges.len() <= MOST_RANGES).then(|| read.collect()).flatten();
        let ranges = ranges.unwrap_or_default();
        let accepted = guard.accepted(form, &key);
        let networks = ranges.iter().map(|it| it.network);
        let outside = networks.filter(|it| !accepted.iter().any(|range| range.contains(*it)));
        let endpoint = form.endpoint.as_ref();
        Self {
            guard,
            form,
            outside: outside.collect(),
            ranges,
            address: endpoint.and_then(|it| address(&it.ip)),
            key,
        }
    }

    /// Returns whether the Peer breaks a rule.
    fn breaks(&self, rule: Refusal) -> bool {
        let form = self.form;
        let is_small = form.ranges.len() <= MOST_RANGES;
        match rule {
            // A person or a program writes it, which is not known here.
            Refusal::Writer | Refusal::PeerWriter => false,
            Refusal::Unlisted => !form.is_ours() && !self.is_listed(),
            Refusal::Source => form.is_ours() && !self.declared_source(),
            Refusal::Name => form.is_ours() && !form.is_named_as_labelled(),
            Refusal::ManyRanges => !is_small,
            Refusal::NoRange => form.ranges.is_empty(),
            Refusal::MappedRange => is_small && form.ranges.contains(&RangeForm::Mapped),
            Refusal::UnreadableRange => {
                let is_range = |it: &RangeForm| matches!(it, RangeForm::Range(_));
                is_small && !form.ranges.iter().all(is_range)
            }
            Refusal::DefaultRoute => {
                let mut lengths = self.ranges.iter().map(|it| it.network.prefix_length());
                lengths.any(|it| it == 0)
            }
            Refusal::OwnRange => {
                let own = self.of_mesh(&self.guard.declared.own);
                let is_own = |it: &Cidr| own.iter().any(|own| own.overlaps(*it));
                self.outside.iter().any(is_own)
            }
            Refusal::Family => {
                let families = &self.guard.declared.families;
                let mut outside = self.outside.iter();
                outside.any(|it| !families.contains(&it.family()))
            }
            Refusal::Outside => !self.outside.is_empty(),
            Refusal::HostBits => !self.ranges.iter().all(|it| it.is_network()),
            Refusal::Twice => {
                let different: BTreeSet<&Interface> = self.ranges.iter().collect();
                self.ranges.len() <= MOST_COMPARED && different.len() < self.ranges.len()
            }
            Refusal::Key => {
                let key = PublicKey::bytes_as_kilo_reads(&form.key);
                key.is_none_or(|it| text_of_key(&it) != *form.key)
            }
            Refusal::Keepalive => u16::try_from(form.keepalive).is_err(),
            _ => self.breaks_of_endpoint(rule),
        }
    }

    /// Returns whether the endpoint breaks a rule.
    fn breaks_of_endpoint(&self, rule: Refusal) -> bool {
        let Some(endpoint) = &self.form.endpoint else {
            return rule == Refusal::NoEndpoint && (self.form.is_ours() || !self.is_listed());
        };
        let is_inside = |ranges: &[Cidr]| {
            let address = self.address.into_iter();
            address.flat_map(|it| ranges.iter().map(move |range| range.holds(it))).any(|it| it)
        };
        match rule {
            Refusal::Address => endpoint.dns.is_empty() && self.address.is_none(),
            Refusal::NameAndAddress => !endpoint.dns.is_empty() && !endpoint.ip.is_empty(),
            Refusal::Domain => !endpoint.dns.is_empty() && !self.is_declared_name(endpoint.dns),
            Refusal::Undialable => self.address.is_some_and(|it| Host::Ip(it).check().is_err()),
            Refusal::Loop => {
                let networks: Vec<Cidr> = self.ranges.iter().map(|it| it.network).collect();
                is_inside(&networks)
            }
            Refusal::OwnEndpoint => is_inside(self.of_mesh(&self.guard.declared.closed)),
            Refusal::IdlePlaceholder => {
                let placeholder = Endpoint::PLACEHOLDER;
                let is_port = i64::from(placeholder.port.get()) == endpoint.port;
                let is_placeholder = is_port && self.address == placeholder.address();
                is_placeholder && self.form.keepalive == 0
            }
            Refusal::Port => !(1..=65535).contains(&endpoint.port),
            _ => false,
        }
    }

    fn is_listed(&self) -> bool {
        self.guard.access.peers.contains_key(self.form.name)
    }

    fn declared_source(&self) -> bool {
        // The value of the other label could look like an external peer.
        let looks_external = self.form.source.as_ref();
        let looks_external = looks_external.is_some_and(|it| it.starts_with("external."));
        let is_consistent = self.form.is_external == looks_external;
        is_consistent && self.guard.declared.sources.contains_key(&self.key)
    }

    /// Returns the ranges of the mesh in the labels.
    fn of_mesh(&self, ranges: &'g BTreeMap<String, Vec<Cidr>>) -> &'g [Cidr] {
        let mesh = self.form.mesh.unwrap_or(ANY);
        ranges.get(mesh).map_or(&[], Vec::as_slice)
    }

    /// Returns whether a name is under a domain of its source.
    fn is_declared_name(&self, name: &str) -> bool {
        let domains = self.guard.declared.domains.get(&self.key);
        let is_under = |domain: &String| {
            let rest = name.strip_suffix(domain.as_str());
            rest.is_some_and(|it| it.is_empty() || it.ends_with('.'))
        };
        let is_name = is_dns_subdomain(name) && address(name).is_none();
        is_name && domains.into_iter().flatten().any(is_under)
    }
}
