//! Selections: parts of a fleet as people write them.

use std::collections::BTreeSet;
use std::net::IpAddr;

use thiserror::Error;

use super::part::FleetPart;
use crate::agent::fabric::{Fabric, NodeRef, SiteId};
use crate::diagnostic::Quoted;
use crate::document::nearest;
use crate::net::Cidr;

/// The reason why a text selects no part of a fleet.
#[derive(Debug, Error)]
pub enum SelectionError {
    /// No cluster has this name, or none with a snapshot.
    #[error("no cluster {0}")]
    Cluster(String),
    /// The cluster has no node or location of this name.
    #[error("cluster `{cluster}` has no {kind} {}; {help}", Quoted(.name))]
    Missing {
        /// The cluster.
        cluster: String,
        /// `node` or `location`.
        kind: &'static str,
        /// The text.
        name: String,
        /// The name that is probably meant, or the first names.
        help: String,
    },
    /// No cluster has this name, but a node of one has.
    #[error("{} is a node; write `{meant}`", Quoted(.name))]
    Node {
        /// The text.
        name: String,
        /// The node with its cluster.
        meant: String,
    },
    /// No node has an address in the range.
    #[error(
        "no node has an endpoint or address of its own in {0}; to lose nodes by name, write `CLUSTER`, `CLUSTER/NODE` or \
         `CLUSTER:LOCATION`"
    )]
    Range(Cidr),
}

impl FleetPart {
    /// Reads `CLUSTER`, `CLUSTER/NODE`, `CLUSTER:LOCATION`, a range or an address.
    ///
    /// # Errors
    /// No part has this name.
    pub fn select(text: &str, fabric: &Fabric) -> Result<Self, SelectionError> {
        let range = text.parse::<Cidr>().ok();
        let address = || text.parse::<IpAddr>().ok().map(Cidr::host);
        if let Some(range) = range.or_else(address) {
            let part = Self::Range(range);
            let is_empty = part.nodes(fabric).is_empty();
            return (!is_empty).then_some(part).ok_or(SelectionError::Range(range));
        }
        let cut = text.find(['/', ':']);
        let (cluster, rest) = cut.map_or((text, ""), |it| text.split_at(it));
        let site = fabric.site_named(cluster);
        let site = site.ok_or_else(|| match elsewhere(text, fabric) {
            Some(meant) => SelectionError::Node { name: text.to_owned(), meant },
            None => SelectionError::Cluster(cluster.to_owned()),
        })?;
        match rest.split_at_checked(1) {
            None => Ok(Self::Cluster(site)),
            Some(("/", name)) => Self::node(name, site, fabric),
            Some((_, name)) => Self::location(name, site, fabric),
        }
    }

    fn node(name: &str, site: SiteId, fabric: &Fabric) -> Result<Self, SelectionError> {
        let it = fabric.site(site);
        let names = it.reading.nodes.iter().map(|it| it.node.name.as_str());
        let node = it.node_named(name);
        let node = node.ok_or_else(|| {
            let cluster = it.cluster.as_str();
            let mut missing = missing(cluster, ("node", name), names);
            if let SelectionError::Missing { help, .. } = &mut missing
                && let Some(meant) = elsewhere(name, fabric)
            {
                *help = format!("did you mean `{meant}`?");
            }
            missing
        });
        Ok(Self::Node(NodeRef { site, node: node? }))
    }

    fn location(name: &str, site: SiteId, fabric: &Fabric) -> Result<Self, SelectionError> {
        let it = fabric.site(site);
        let nodes = it.reading.nodes.iter();
        let names: BTreeSet<&str> = nodes.map(|it| it.kilo.location.as_str()).collect();
        if names.contains(name) {
            return Ok(Self::Location(site, name.to_owned()));
        }
        let cluster = it.cluster.as_str();
        Err(missing(cluster, ("location", name), names.iter().copied()))
    }
}

/// Returns the only node of this name, with its cluster.
fn elsewhere(name: &str, fabric: &Fabric) -> Option<String> {
    let mut found = fabric.sites.numbered().filter_map(|(site, it)| {
        let node = it.node_named(name)?;
        Some(fabric.name(NodeRef { site, node }))
    });
    found.next().filter(|_| found.next().is_none())
}

/// The number of names that are listed.
const LISTED: usize = 8;

fn missing<'n>(
    cluster: &str,
    (kind, name): (&'static str, &str),
    names: impl Iterator<Item = &'n str> + Clone,
) -> SelectionError {
    let quoted = |it: &str| Quoted(it).to_string();
    let help = if let Some(meant) = nearest(name, names.clone()) {
        format!("did you mean {}?", quoted(meant))
    } else {
        let are = if names.clone().count() <= LISTED { "are" } else { "begin with" };
        let first: Vec<String> = names.take(LISTED).map(quoted).collect();
        format!("its {kind}s {are} {}", first.join(", "))
    };
    SelectionError::Missing { cluster: cluster.to_owned(), kind, name: name.to_owned(), help }
}
