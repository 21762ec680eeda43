//! Files of a tree that are compared with each other.

use super::*;

fn on_disk(files: Vec<ChangedFile>) -> OnDiskTree {
    OnDiskTree { root: "rendered".to_owned(), files, ..OnDiskTree::default() }
}

#[test]
fn a_kustomization_is_held_against_what_is_beside_it() {
    let peers = || file("east/m--west.yaml", &["a A 10.1.0.0/24"]);
    let mismatch = |text: &str| {
        let on_disk = on_disk(vec![read("east/kustomization.yaml", text), peers()]);
        on_disk.mismatches().pop().map(|it| (it.absent, it.unnamed))
    };
    let list = |names: &[&str]| names.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
    assert_eq!(mismatch("resources: [m--west.yaml]"), None);
    assert_eq!(mismatch("resources: [./m--west.yaml, ../base]"), None);
    assert_eq!(mismatch("resources: []"), Some((vec![], list(&["m--west.yaml"]))));
    let other = mismatch("resources: [m--east.yaml, m--west.yaml]");
    assert_eq!(other, Some((list(&["m--east.yaml"]), vec![])));

    let mut on_disk = on_disk(vec![peers()]);
    assert_eq!(on_disk.mismatches(), [], "no mismatch");
    on_disk.same = same();
    on_disk.missing = list(&["east/m--south.yaml", "north/m--south.yaml"]);
    let found = on_disk.mismatches().pop().unwrap();
    assert_eq!((found.absent, found.unnamed), (list(&["m--south.yaml"]), list(&["m--west.yaml"])));
}

#[test]
fn peers_of_one_name_clash_within_a_target() {
    let lines = ["a A 10.1.0.0/24"];
    let plan = plan(&["a A 10.1.0.0/24"]);
    let two = on_disk(vec![file("east/copy.yaml", &lines), file("east/other.yaml", &lines)]);
    let clashes = two.clashes(&plan);
    assert_eq!(clashes.len(), 1);
    assert_eq!(
        (clashes[0].first.as_str(), &*clashes[0].place.source),
        ("east/copy.yaml", "rendered/east/other.yaml")
    );
    let mut one = on_disk(vec![file("east/copy.yaml", &lines), file("north/copy.yaml", &lines)]);
    assert_eq!(one.clashes(&plan), []);
    one.same.insert("east/m--west.yaml".to_owned());
    assert_eq!(one.clashes(&plan)[0].first, "east/m--west.yaml");
}

#[test]
fn what_a_cluster_that_leaves_takes_along_is_no_loss() {
    let mut plan = plan(&[]);
    plan.targets[0].without.clear();
    plan.targets[0].parted.insert("west".parse().unwrap());
    let of_west = file("east/m--west.yaml", &["a A 10.1.0.0/24"]);
    assert_eq!(losses(&plan, std::slice::from_ref(&of_west), &same()), [""; 0]);
    // Everything else needs a word of its own.
    let text =
        crate::manifest::text(super::tests::plan(&["a A 10.1.0.0/24"]).peer_sets.first().unwrap());
    let of_north = read("east/m--north.yaml", &text.replace("west", "north"));
    assert_eq!(losses(&plan, &[of_north, of_west], &same()), ["east loses 1 of north"]);
}

#[test]
fn a_folder_that_was_rendered_without_peers_can_go() {
    let empty = |text: &str| {
        let mut file = read("north/kustomization.yaml", text);
        file.is_stale = true;
        losses(&plan(&["a A 10.1.0.0/24"]), &[file], &same())
    };
    let ours = crate::template::kustomization(&[]).unwrap();
    assert_eq!(empty(&ours), [""; 0]);
    assert_eq!(empty(&format!("{ours}# mine\n")), ["north is gone with 0"]);
    let named = crate::template::kustomization(&["m--east.yaml"]).unwrap();
    assert_eq!(empty(&named), ["north is gone with 0"]);
}
