//! Access: could `snapshot` reach the clusters with the Secrets that their meshes name for the
//! operator?

use std::collections::{BTreeMap, BTreeSet};

use crate::mesh::{Entry, Mesh, SecretKeyRef};
use crate::name::ClusterName;

/// An entry of a mesh, for the operator's access to its cluster.
#[derive(Clone, Copy)]
pub struct EntryAccess<'a> {
    /// The mesh.
    pub mesh: &'a Mesh,
    /// The entry.
    pub entry: &'a Entry,
}

/// The location of a cluster's kubeconfig.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
pub struct SecretLocation<'a> {
    /// The namespace, if the mesh has one.
    pub namespace: Option<&'a str>,
    /// The Secret, and the key in it.
    pub secret: &'a SecretKeyRef,
}

/// A problem of the access to a cluster.
pub struct AccessProblem<'a> {
    /// The entry.
    pub access: EntryAccess<'a>,
    /// The problem.
    pub kind: AccessProblemKind<'a>,
}

/// The kind of a problem of the access to a cluster.
pub enum AccessProblemKind<'a> {
    /// The entry declares no access, unlike others of its mesh.
    Missing,
    /// The entry names a Secret, but the cluster is local.
    Unused,
    /// The namespace of the Secret is unknown.
    NoNamespace(&'a SecretKeyRef),
    /// The reference is not valid.
    Invalid {
        /// The reference.
        secret: &'a SecretKeyRef,
        /// The reason.
        problem: &'static str,
    },
    /// Another mesh names another Secret for the same cluster.
    Contradicting {
        /// The entry there.
        earlier: EntryAccess<'a>,
        /// Its Secret.
        there: SecretLocation<'a>,
        /// The Secret of this entry.
        here: SecretLocation<'a>,
    },
    /// Another cluster has the same Secret: the two are one cluster, or one of them is wrong.
    Shared {
        /// The entry of the other one.
        earlier: EntryAccess<'a>,
        /// The Secret.
        secret: SecretLocation<'a>,
    },
    /// Another cluster is local too: the operator runs in one only.
    Scattered(EntryAccess<'a>),
}

/// Finds the problems of the access to clusters, except those whose access the config sets.
pub fn problems<'a>(
    meshes: &'a [Mesh],
    configured: &BTreeSet<&ClusterName>,
) -> Vec<AccessProblem<'a>> {
    let mut problems = Vec::new();
    let mut accesses = Vec::new();
    for mesh in meshes {
        let own: Vec<EntryAccess> = mesh
            .entries
            .iter()
            .map(|entry| EntryAccess { mesh, entry })
            .filter(|access| !configured.contains(access.cluster()))
            .collect();
        // A mesh without any of these fields was never used by the operator.
        if own.iter().any(EntryAccess::is_declared) {
            problems.extend(own.iter().filter_map(EntryAccess::problem));
            accesses.extend(own);
        }
    }
    problems.extend(contradictions(&accesses));
    problems.extend(shared(&accesses));
    problems.extend(scattered(&accesses));
    problems
}

impl<'a> EntryAccess<'a> {
    /// Returns the cluster.
    pub fn cluster(&self) -> &'a ClusterName {
        &self.entry.name
    }

    fn is_declared(&self) -> bool {
        self.entry.local || self.entry.kubeconfig.is_some()
    }

    fn location(&self) -> Option<SecretLocation<'a>> {
        Some(SecretLocation {
            namespace: self.mesh.namespace.as_deref(),
            secret: self.entry.kubeconfig.as_ref()?,
        })
    }

    /// Returns what is wrong with the entry by itself.
    fn problem(&self) -> Option<AccessProblem<'a>> {
        let kind = match (&self.entry.kubeconfig, &self.mesh.namespace) {
            (None, _) if self.entry.local => return None,
            (None, _) => AccessProblemKind::Missing,
            (Some(_), _) if self.entry.local => AccessProblemKind::Unused,
            (Some(secret), None) => AccessProblemKind::NoNamespace(secret),
            (Some(secret), Some(namespace)) => AccessProblemKind::Invalid {
                secret,
                problem: secret.problem(namespace)?,
            },
        };
        let access = *self;
        Some(AccessProblem { access, kind })
    }
}

fn contradictions<'a>(accesses: &[EntryAccess<'a>]) -> Vec<AccessProblem<'a>> {
    let mut first: BTreeMap<&ClusterName, (EntryAccess, SecretLocation)> = BTreeMap::new();
    let mut problems = Vec::new();
    for &access in accesses {
        let Some(here) = access.location() else {
            continue;
        };
        let (earlier, there) = *first.entry(access.cluster()).or_insert((access, here));
        if there != here {
            let kind = AccessProblemKind::Contradicting {
                earlier,
                there,
                here,
            };
            problems.push(AccessProblem { access, kind });
        }
    }
    problems
}

fn shared<'a>(accesses: &[EntryAccess<'a>]) -> Vec<AccessProblem<'a>> {
    let mut first: BTreeMap<SecretLocation, EntryAccess> = BTreeMap::new();
    let mut problems = Vec::new();
    for &access in accesses {
        let Some(secret) = access.location() else {
            continue;
        };
        let earlier = *first.entry(secret).or_insert(access);
        if earlier.cluster() != access.cluster() {
            let kind = AccessProblemKind::Shared { earlier, secret };
            problems.push(AccessProblem { access, kind });
        }
    }
    problems
}

fn scattered<'a>(accesses: &[EntryAccess<'a>]) -> Vec<AccessProblem<'a>> {
    let mut local = accesses.iter().filter(|access| access.entry.local);
    let Some(&first) = local.next() else {
        return Vec::new();
    };
    let mut seen = BTreeSet::from([first.cluster()]);
    local
        .filter(|access| seen.insert(access.cluster()))
        .map(|&access| AccessProblem {
            access,
            kind: AccessProblemKind::Scattered(first),
        })
        .collect()
}
