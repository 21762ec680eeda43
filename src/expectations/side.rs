//! Sides of paths: which clusters, nodes and addresses send or receive.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::{SelectedClusters, Selection};
use crate::diagnostic::{Finding, Mistakes, Quoted, Slip, escaped, mistake};
use crate::document::nearest;
use crate::mesh::{AddressClass, KnownGroups, WrittenSelector, member_name, selector};
use crate::net::Cidr;
use crate::place::Place;

/// Both sides of paths, as they are written.
pub(super) struct WrittenPaths {
    pub(super) from: WrittenSide,
    pub(super) to: WrittenSide,
}

/// The fields that both sides have.
pub(super) struct WrittenSide {
    pub(super) cluster: Option<String>,
    pub(super) clusters: Option<Vec<String>>,
    pub(super) group: Option<String>,
    /// Whether its clusters are those of the other side. Only `true` has a meaning.
    pub(super) other: Option<bool>,
    pub(super) node_selector: Option<WrittenSelector>,
    pub(super) addresses: Option<Vec<String>>,
    pub(super) class: Option<SideClass>,
}

/// The class of addresses of a side.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SideClass {
    /// Every class.
    Any,
    One(AddressClass),
}

/// A reader of sides, which reports what is wrong with them.
pub(super) struct SideReader<'r> {
    pub(super) groups: &'r KnownGroups<'r>,
    pub(super) findings: &'r mut Mistakes,
}

impl SideReader<'_> {
    /// Returns the sender and the receiver of paths.
    pub(super) fn paths(
        &mut self,
        paths: WrittenPaths,
        place: &Place,
    ) -> Option<(Selection, Selection)> {
        let WrittenPaths { from, to } = paths;
        let ranges = [AddressClass::Service, AddressClass::Network].map(SideClass::One);
        if to.class.is_some_and(|it| ranges.contains(&it)) && to.node_selector.is_some() {
            self.findings.push(behind_no_node(place));
        }
        let [of_sender, of_receiver] = [&from, &to].map(|it| it.other == Some(true));
        // Both, so that all mistakes are reported.
        let from = self.side(from, place.key("from"), "from");
        let to = self.side(to, place.key("to"), "to");
        let (mut from, mut to) = (from?, to?);
        if of_sender {
            from.clusters = self.others(&to, &from.place, "to")?;
        } else if of_receiver {
            to.clusters = self.others(&from, &to.place, "from")?;
        }
        Some((from, to))
    }

    /// Returns the clusters of the other side, of which there must be several.
    #[expect(clippy::option_option, reason = "a field, and whether it is right")]
    fn others(
        &mut self,
        side: &Selection,
        place: &Place,
        field: &str,
    ) -> Option<Option<SelectedClusters>> {
        let place = place.key("other");
        let clusters = side.clusters.as_ref().filter(|it| 1 < it.members.len());
        let Some(clusters) = clusters else {
            let message = format!("`other: true` needs several clusters in `{field}`");
            let finding = Finding::new(&mistake::CONTRADICTING_FIELDS, message);
            let finding = finding.at(place, "").at(side.place.clone(), "");
            self.findings.push(finding.help(format!(
                "write `group` or `clusters` in `{field}`, or replace `other: true` by a `cluster`"
            )));
            return None;
        };
        let members = clusters.members.keys();
        Some(Some(SelectedClusters {
            members: members.map(|it| (it.clone(), place.clone())).collect(),
            group: clusters.group.clone(),
        }))
    }

    fn side(&mut self, side: WrittenSide, place: Place, field: &str) -> Option<Selection> {
        if side.other == Some(false) {
            let finding = Finding::new(&mistake::INVALID_VALUE, "`other` can only be `true`");
            let finding = finding.at(place.key("other"), "");
            self.findings
                .push(finding.help("remove `other`, or write the clusters that are meant"));
            return None;
        }
        if !side.selects() {
            let message = format!("`{field}` selects nothing");
            self.findings.push(
                Finding::new(&mistake::MISSING_FIELD, message)
                    .at(place, "")
                    .help("add a `cluster`, a `group`, a `nodeSelector` or `addresses`"),
            );
            return None;
        }
        let before = self.findings.errors();
        let clusters = self.clusters(&side, &place);
        let nodes = side
            .node_selector
            .and_then(|written| selector(Some(written), &place.key("nodeSelector"), self.findings));
        let by_default = side.addresses.is_none().then_some(AddressClass::Pod);
        let addresses = side.addresses.unwrap_or_default();
        let addresses = addresses.iter().enumerate();
        let addresses = addresses.filter_map(|(index, text)| {
            address(text, place.key("addresses").index(index), self.findings)
        });
        let selection = Selection {
            clusters,
            nodes,
            addresses: addresses.collect(),
            class: match side.class {
                Some(SideClass::Any) => None,
                Some(SideClass::One(class)) => Some(class),
                None => by_default,
            },
            place,
        };
        (self.findings.errors() == before).then_some(selection)
    }

    /// Returns the clusters that a side names.
    fn clusters(&mut self, side: &WrittenSide, place: &Place) -> Option<SelectedClusters> {
        if let [one, other, ..] = side.choices().as_slice() {
            let field = place.pointer.steps().last().unwrap_or_default();
            let message = format!("`{field}` has both `{one}` and `{other}`");
            let finding = Finding::new(&mistake::CONTRADICTING_FIELDS, message);
            let finding = finding.at(place.key(one).named(), "").at(place.key(other).named(), "");
            self.findings.push(finding.help("keep one of them"));
            return None;
        }
        if let Some(name) = &side.group {
            return self.group(name, place.key("group"));
        }
        let one = side.cluster.iter().map(|it| (it, place.key("cluster")));
        let several = side.clusters.iter().flatten().enumerate();
        let several = several.map(|(index, it)| (it, place.key("clusters").index(index)));
        let members: BTreeMap<_, _> = one
            .chain(several)
            .filter_map(|(text, place)| Some((member_name(text, &place, self.findings)?, place)))
            .collect();
        (!members.is_empty()).then_some(SelectedClusters { members, group: None })
    }

    fn group(&mut self, name: &str, place: Place) -> Option<SelectedClusters> {
        let Some(group) = self.groups.get(name) else {
            let message = format!("unknown group {}", Quoted(name));
            let finding = Finding::new(&mistake::UNKNOWN_CLUSTER, message).at(place, "").shadow();
            let finding = finding.of_name(name);
            let known: Vec<String> = self.groups.names().map(|it| Quoted(it).to_string()).collect();
            let declare =
                "declare it under `spec.groups` of a mesh, or under `groups` of the config";
            self.findings.push(match nearest(name, self.groups.names()) {
                Some(meant) => finding.meant(meant),
                None if known.is_empty() => finding.help(declare),
                None => finding.help(format!(
                    "write the group that is meant ({}), or {declare}",
                    known.join(", ")
                )),
            });
            return None;
        };
        let members = group.clusters.iter();
        Some(SelectedClusters {
            members: members.map(|it| (it.clone(), place.clone())).collect(),
            group: Some(name.to_owned()),
        })
    }
}

impl WrittenSide {
    /// Returns the fields that select clusters.
    fn choices(&self) -> Vec<&'static str> {
        let choices = [
            ("cluster", self.cluster.is_some()),
            ("clusters", self.clusters.is_some()),
            ("group", self.group.is_some()),
            ("other", self.other == Some(true)),
        ];
        let written = choices.into_iter().filter(|(_, is_written)| *is_written);
        written.map(|(field, _)| field).collect()
    }

    fn selects(&self) -> bool {
        !self.choices().is_empty()
            || self.node_selector.is_some()
            || self.addresses.is_some()
            || self.class.is_some()
    }
}

/// Reads a range, of which host bits are dropped, or a single address.
fn address(text: &str, place: Place, findings: &mut Mistakes) -> Option<Cidr> {
    let read = match text.parse::<IpAddr>() {
        Ok(address) if address.to_canonical() == address => Ok(Cidr::host(address)),
        Ok(_) => Err("IPv4-mapped IPv6 address; write it as IPv4".to_owned()),
        Err(_) if !text.contains('/') => Err("not an IP address".to_owned()),
        Err(_) => text.parse().map_err(|error| format!("{error}")),
    };
    match read {
        Ok(range) => Some(range),
        Err(reason) => {
            let slip = Slip::find::<IpAddr>(text).or_else(|| Slip::find::<Cidr>(text));
            let reason = slip
                .as_ref()
                .map_or_else(|| escaped(&reason, 240), |it| format!("it {}", it.problem));
            let message = format!("{} is neither an address nor a range: {reason}", Quoted(text));
            let finding = Finding::new(&mistake::INVALID_RANGE, message).at(place, "");
            findings.push(Finding { help: slip.map(|it| it.help), ..finding });
            None
        }
    }
}

fn behind_no_node(place: &Place) -> Finding {
    let message = "the classes `Service` and `Network` cannot be combined with `nodeSelector`";
    Finding::new(&mistake::CONTRADICTING_FIELDS, message)
        .at(place.key("to").key("nodeSelector").named(), "")
        .at(place.key("class"), "")
        .help("remove one of the two fields")
}
