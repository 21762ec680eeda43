//! Remedies for what a cluster has as Peers: a render, or the delivery of what is rendered already.

use super::peer;
use crate::agent::fabric::{Fabric, Site, SiteId};
use crate::agent::model::TunnelClaim;
use crate::diagnostic::Quoted;
use crate::net::Cidr;
use crate::packet::{Ending, Packet};

/// The remedies for a packet that fails for the Peers that a cluster has.
#[derive(Clone, Copy)]
pub(super) struct Remedies<'t> {
    /// If the rendered tree may be out of date.
    pub(super) of_old_tree: &'t str,
    /// If it is up to date, and the packet fails with its Peers too.
    pub(super) of_current_tree: &'t str,
}

/// The remedies for manifests that lack a range: they are out of date, or it was left out.
pub(super) const LEFT_OUT: Remedies = Remedies {
    of_old_tree: "run `clustermesh render` and apply the result; if nothing changes, \
        `clustermesh validate` lists the nodes and ranges that are left out",
    of_current_tree: "`clustermesh validate` lists the nodes and ranges that are left out",
};

/// A packet that is not delivered.
#[derive(Clone, Copy)]
pub(super) struct FailedPacket<'f, 'a> {
    pub(super) fabric: &'f Fabric<'a>,
    pub(super) packet: &'f Packet,
    pub(super) ending: &'f Ending,
}

/// Returns what gives a cluster the Peers of a rendered tree that is up to date.
pub fn delivery(fabric: &Fabric, site: SiteId) -> String {
    let own = fabric.site(site);
    let cluster = own.cluster;
    let is_dumped = fabric.is_dumped(site);
    if let Some(why) = wrong_dump(own).filter(|_| is_dumped) {
        return format!("dump the Peers of `{cluster}` again: {why}");
    }
    let otherwise = if is_dumped {
        "if that is done, dump the Peers again: the file of `--peers` is old".to_owned()
    } else {
        format!("`clustermesh status {cluster}` lists what differs")
    };
    format!(
        "the rendered tree is up to date: let Flux or Argo CD apply it in `{cluster}`; {otherwise}"
    )
}

/// Returns why a file with the Peers of a cluster may be that of another one.
pub fn wrong_dump(site: &Site) -> Option<String> {
    let mut peers = site.model.peers.numbered();
    peers.any(|(peer, _)| site.has_own_key(peer)).then(|| {
        format!(
            "the file of `--peers` has a Peer with the key of a node of `{}`, so it is probably of another cluster",
            site.cluster
        )
    })
}

impl FailedPacket<'_, '_> {
    /// Returns the file of a cluster that cannot be read, and what helps: the Peers in it are unknown.
    pub(super) fn unread(self, site: SiteId) -> Option<(String, String)> {
        let files = self.fabric.site(site).files;
        let file = files.iter().find(|it| it.content.is_broken())?;
        Some((
            format!("{} cannot be read", Quoted(&file.source)),
            format!("delete {}, then run `clustermesh render`", Quoted(&file.source)),
        ))
    }

    /// Returns the delivery of the rendered tree to a cluster as a remedy, if the packet gets further with it.
    pub(super) fn delivery(self, site: SiteId) -> Option<String> {
        let then = self.fabric.delivered()?.way(self.packet).ending;
        if then.rule() == self.ending.rule() && then.at() == self.ending.at() {
            return None;
        }
        Some(delivery(self.fabric, site))
    }

    /// Returns what applies the rendered tree, if that helps, else another remedy.
    pub(super) fn delivery_or(self, site: SiteId, remedy: &str) -> String {
        self.delivery(site).unwrap_or_else(|| remedy.to_owned())
    }

    /// Returns what helps.
    pub(super) fn remedy(self, site: SiteId, of: Remedies) -> String {
        let own = match self.fabric.delivered() {
            None => of.of_old_tree,
            Some(_) => of.of_current_tree,
        };
        self.delivery_or(site, own)
    }

    /// Returns what helps if the Peer with the range is one that clustermesh did not render.
    pub(super) fn of_foreign_peer(
        self,
        site: SiteId,
        claim: TunnelClaim,
        range: Cidr,
    ) -> Option<String> {
        let applied = peer(self.fabric, site, claim.tunnel)?.applied;
        applied.claims.source.is_none().then(|| {
            format!(
                "remove {range} from the Peer {}, which clustermesh did not render",
                applied.name
            )
        })
    }
}
