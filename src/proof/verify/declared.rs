//! Declared paths: which blocks of two clusters a link lets reach each other.

use super::judge::are_promised;
use super::links::{Asked, MeshLinks};
use super::promise::Promises;
use crate::agent::fabric::{Fabric, SiteId, Sites};
use crate::mesh::AddressClass;
use crate::proof::reach::AddressBlock;

/// The paths that the meshes of a fabric declare.
pub struct Declared<'f, 'a, 'm> {
    fabric: &'f Fabric<'a>,
    links: MeshLinks<'m>,
    promises: Sites<Promises>,
}

impl<'f, 'a, 'm> Declared<'f, 'a, 'm> {
    /// Finds what is declared.
    pub fn new(fabric: &'f Fabric<'a>, asked: Asked<'m>) -> Self {
        Self {
            fabric,
            links: MeshLinks::new(fabric, asked.meshes),
            promises: fabric.sites.map_ids(|site| Promises::collect(fabric, site, None)),
        }
    }

    /// Returns which blocks of `home` a link promises to `viewer`, for each of them.
    pub fn promised(&self, home: SiteId, viewer: SiteId, blocks: &[AddressBlock]) -> Vec<bool> {
        let Some(link) = self.links.exchange(home, viewer) else {
            return vec![false; blocks.len()];
        };
        let site = self.fabric.site(home);
        let terms = link.terms(&self.promises[home]);
        blocks.iter().map(|it| terms.promise(site, it)).collect()
    }

    /// Returns whether a link declares paths between blocks of these classes at all.
    pub fn are_declared(from: AddressClass, to: AddressClass) -> bool {
        are_promised(from, to)
    }
}
