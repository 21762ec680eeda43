//! What `diff` shows of many links and targets on a page: a graph, and those that change alike as one.

use super::*;
use crate::support::assert_contains;

/// Returns the page up to the Peers of the targets, which are folded.
fn beginning(repository: &Repository) -> String {
    let run = repository.diff(&["--output", "markdown"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    run.stdout.split("\n<details>").next().unwrap().to_owned()
}

#[test]
fn a_page_has_the_changed_links_and_alike_targets_as_one() {
    let repository = Repository::committed();
    repository.remove_node();
    let page = repository.diff(&["--output", "markdown"]).stdout;
    insta::assert_snapshot!(page, @r#"
    ### clustermesh diff: cleanup

    Only paths to nodes or addresses that no longer exist are removed, and nothing that works is disturbed. 2 of 3 targets changed compared with `HEAD`: +0 ~0 -2 Peers.

    | cause | changes of Peers |
    | --- | --- |
    | node `west/n2` was removed | `east +0 ~0 -1, north +0 ~0 -1` |

    ```mermaid
    flowchart LR
        n0["west"] -.-|"-1 Peer, 4 paths ended"| n1["east"]
        n0 -.-|"-1 Peer, 4 paths ended"| n2["north"]
        linkStyle 0,1 stroke:#d55e00,stroke-width:3px
    ```

    | target | grade | Peers | why |
    | --- | --- | --- | --- |
    | 2 targets: `east`, `north` | cleanup | 4 → 3 (+0 ~0 -1) | 1 node removed; 4 declared paths to and from it end |

    | from | to | paths |
    | --- | --- | --- |
    | `east` | `west` | 2 declared paths ended, because a node or an address no longer exists |
    | `north` | `west` | 2 declared paths ended, because a node or an address no longer exists |
    | `west` | `east` | 2 declared paths ended, because a node or an address no longer exists |
    | `west` | `north` | 2 declared paths ended, because a node or an address no longer exists |

    after the merge, other clusters no longer dial: UDP `198.18.113.32:51820` (`west/n2`)

    <details>
    <summary>2 targets: cleanup (+0 ~0 -1)</summary>

    - `east`, `north`
    - 1 node removed; 4 declared paths to and from it end
    - 1 Peer removed
    - Kilo needs 2 ms to apply the change
    - `- prod--west--n2 with 10.3.2.0/24, 10.103.0.2/32`

    </details>
    "#);
}

#[test]
fn a_page_without_changed_links_has_no_graph() {
    let repository = Repository::committed();
    assert!(!beginning(&repository).contains("mermaid"));
}

/// A node of a hub leaves, and all other clusters lose the same. Each name has 63 characters.
#[test]
fn many_alike_targets_are_one_row() {
    const SPOKES: u8 = 40;
    let spoke = |number: u8| format!("spoke-{number:03}{}", "x".repeat(54));
    let folder = Folder::empty();
    let entry = |name: &str, number: u8| {
        format!(
            "    - name: {name}\n      podCIDRs: [10.{number}.0.0/16]\n      wireguardCIDR: 10.{}.0.0/24\n",
            100 + number
        )
    };
    let spokes: String = (2..2 + SPOKES).map(|it| entry(&spoke(it), it)).collect();
    let head = MESH.split("  clusters:").next().unwrap();
    let topology = "  topology: { mode: Hub, hubs: [hub] }\n  clusters:\n";
    let hub = entry("hub", 1);
    folder.write("mesh.yaml", format!("{head}{topology}{hub}{spokes}"));
    for number in 2..2 + SPOKES {
        folder.keep(&spoke(number), &[wide(number, 1, 0)]);
    }
    folder.keep("hub", &[wide(1, 1, 0), wide(1, 2, 0)]);
    assert_eq!(folder.run(&["render"]).code, 0);
    let repository = Repository::of(folder);
    repository.commit();
    repository.folder.keep("hub", &[wide(1, 1, 0)]);
    insta::assert_snapshot!(beginning(&repository), @r#"
    ### clustermesh diff: cleanup

    Only paths to nodes or addresses that no longer exist are removed, and nothing that works is disturbed. 40 of 41 targets changed compared with `HEAD`: +0 ~0 -40 Peers.

    note: the rendered tree is not up to date, so this is about what `clustermesh render` would write

    | cause | changes of Peers |
    | --- | --- |
    | node `hub/n2` was removed | `spoke-002xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx +0 ~0 -1, spoke-003xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx +0 ~0 -1, spoke-004xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx +0 ~0 -1, spoke-005xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx +0 ~0 -1, spoke-006xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx +0 ~0 -1, and 35 more targets` |

    ```mermaid
    flowchart LR
        n0["hub"] -.-|"each -1 Peer, 2 paths ended"| n1["40 clusters: spoke-002xxx#8230;xxxxxxxxxxxx, spoke-003xxx#8230;xxxxxxxxxxxx, spoke-004xxx#8230;xxxxxxxxxxxx and 37 more"]
        linkStyle 0 stroke:#d55e00,stroke-width:3px
    ```

    | target | grade | Peers | why |
    | --- | --- | --- | --- |
    | 40 targets: `spoke-002xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx`, `spoke-003xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx`, `spoke-004xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx` and 37 more | cleanup | 2 → 1 (+0 ~0 -1) | 1 node removed; 2 declared paths to and from it end |

    | from | to | paths |
    | --- | --- | --- |
    | `hub` | 40 clusters: `spoke-002xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx`, `spoke-003xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx`, `spoke-004xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx` and 37 more | each 1 declared path ended, because a node or an address no longer exists |
    | 40 clusters: `spoke-002xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx`, `spoke-003xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx`, `spoke-004xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx` and 37 more | `hub` | each 1 declared path ended, because a node or an address no longer exists |

    after the merge, other clusters no longer dial: UDP `198.18.1.20:51820` (`hub/n2`)
    "#);
    // The names of all are with their Peers, and programs get all of them.
    let page = repository.diff(&["--output", "markdown"]).stdout;
    let object = repository.diff(&["--output", "json"]).json();
    for number in 2..2 + SPOKES {
        assert_contains(&page, &format!("`{}`", spoke(number)));
    }
    let targets = object["targets"].as_array().unwrap();
    assert_eq!(targets.len(), usize::from(SPOKES));
    assert_eq!(page.matches("<details>").count(), 1, "{page}");
}
