//! Services: their ranges, which no node reports, and what other clusters declare there.

use super::UNDECLARED_SERVICES;
use crate::fleet::{Fleet, Member};
use crate::mesh::{KUBEADM, Networks, Range};
use crate::net::Cidr;
use crate::proposal::distribution;
use crate::rules::Finding;

/// Returns findings about clusters that declare no Services and get a range where these are by default.
pub(super) fn findings(fleet: &Fleet) -> Vec<Finding> {
    fleet.first_memberships().filter_map(|member| finding(fleet, member)).collect()
}

fn finding(fleet: &Fleet, member: &Member) -> Option<Finding> {
    let entry = member.entry;
    // A flat list may have a range of Services among the others.
    let Networks::Typed { pods, services: None, .. } = &entry.networks else {
        return None;
    };
    if !entry.local_networks.is_empty() {
        return None;
    }
    let known = distribution(&member.file.snapshot, pods.iter().map(|it| it.cidr));
    let distribution = known.unwrap_or(KUBEADM);
    let services: Cidr = distribution.services.parse().ok()?;
    if entry.networks.all().iter().any(|it| it.cidr.overlaps(services)) {
        return None;
    }
    let (other, range) = met(fleet, member, services, known.is_some())?;
    let (cluster, name) = (&entry.name, distribution.with_services);
    let message = format!(
        "no Services are declared, and {} of `{}` meets {services}, their default range in {name}",
        range.cidr, other.entry.name
    );
    Some(Finding::on_cluster(&UNDECLARED_SERVICES, cluster, message)
        .at(range.place.clone(), "declared here")
        .help(format!(
            "look up the `--service-cidr` of `{cluster}` and write it into the entry: `localNetworks: [{services}]` if it is the \
             default; the range of `{}` is then left out in `{cluster}` (`captured-network`)",
            other.entry.name
        )))
}

/// Returns the first range that a cluster accepts and that meets a default range of Services. If its pods have
/// no default range, only Services of another cluster suggest that both have the default.
fn met<'f, 'a>(
    fleet: &'f Fleet<'a>,
    member: &'f Member<'a>,
    services: Cidr,
    is_known: bool,
) -> Option<(&'f Member<'a>, &'a Range)> {
    fleet.sources(&member.entry.name).find_map(|source| {
        let takes = |range: &Range| {
            let mut lists = source.own.entry.accepted_lists();
            lists.all(|it| it.iter().any(|it| it.cidr.overlaps(range.cidr)))
        };
        let entry = source.member.entry;
        let is_compared = |range: &Range| match &entry.networks {
            Networks::Typed { services, .. } => is_known || services.as_ref() == Some(range),
            Networks::Flat { .. } => is_known,
        };
        let mut given = entry.given().into_iter();
        let met = given.find(|it| it.cidr.overlaps(services) && is_compared(it) && takes(it));
        met.map(|it| (source.member, it))
    })
}
