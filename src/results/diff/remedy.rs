//! Remedies: for what a change costs, and for keys that agents may forget, one for each tool that applies the Peers.

use crate::changes::{KeyMove, TargetChange};
use crate::manifest::{MESH_LABEL, SOURCE_LABEL};
use crate::mesh::Mesh;
use crate::name::{PeerSetName, is_peer_of};
use crate::text::shell_word;

use super::{Compared, wording};

/// Returns what to do about a target.
pub(super) fn of_target(target: &TargetChange, compared: &Compared) -> Vec<String> {
    // No engine delivers to an external peer.
    if let Some(name) = target.cluster.external()
        && !target.peers.is_empty()
    {
        let is_there = compared.meshes.iter().any(|it| it.entry(&target.cluster).is_some());
        return vec![if is_there {
            format!(
                "install the output of `clustermesh wireguard {name}` on the host; until then it keeps its old \
                 configuration"
            )
        } else {
            "remove the configuration from the host; clustermesh cannot do that".to_owned()
        }];
    }
    let of_costs = wording::helps(target, compared).into_iter();
    let of_key_moves = of_key_moves(target, &target.key_moves, compared);
    of_costs.chain(of_key_moves).collect()
}

/// Returns what to do about some key moves of a target.
pub(super) fn of_key_moves<'k>(
    target: &TargetChange,
    key_moves: impl IntoIterator<Item = &'k KeyMove>,
    compared: &Compared,
) -> Vec<String> {
    let mut needs_background = false;
    let mut touched = Vec::new();
    for key_move in key_moves {
        needs_background |= key_move.needs_background;
        touched.extend(key_move.touched.iter().map(String::as_str));
    }
    let cluster = &target.cluster;
    let background = needs_background.then(|| {
        format!(
            "with Argo CD, set `PrunePropagationPolicy=background` in the Application of {cluster} before this change"
        )
    });
    let touch = (!touched.is_empty()).then(|| {
        let with = if needs_background { "with Flux or kubectl, " } else { "" };
        format!(
            "{with}after the change, run `{} annotate peers --overwrite {} touched=1`",
            compared.config.kubectl(cluster),
            selection(&touched, compared.meshes)
        )
    });
    background.into_iter().chain(touch).collect()
}

/// Returns the arguments of kubectl that select some Peers. Those of one cluster or mesh are selected by its label, with
/// others of it, for which a new annotation changes nothing.
fn selection(peers: &[&str], meshes: &[Mesh]) -> String {
    let is_every = |name: &str| peers.iter().all(|it| is_peer_of(name, it));
    let mut sources = meshes.iter().flat_map(|mesh| {
        mesh.entries.iter().map(|it| (PeerSetName::new(&mesh.name, &it.name), &it.name))
    });
    let mesh = || meshes.iter().find(|it| is_every(it.name.as_str()));
    match peers {
        [peer] => shell_word(&wording::name(peer)),
        _ => {
            if let Some((_, source)) = sources.find(|it| is_every(it.0.as_str())) {
                format!("-l {SOURCE_LABEL}={source}")
            } else if let Some(mesh) = mesh() {
                format!("-l {MESH_LABEL}={}", mesh.name)
            } else {
                peers.iter().map(|it| shell_word(&wording::name(it))).collect::<Vec<_>>().join(" ")
            }
        }
    }
}
