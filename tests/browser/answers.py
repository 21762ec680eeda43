"""The answers that a page must have for fleets with planted troubles."""

import checks
import figures


def lacks(text, *words):
    return [f"{word!r} is missing in: {text[:300]}" for word in words if word not in text]


def cut_off(browser, fleet):
    """Which cluster is cut off, and why?"""
    found = dict(checks.call(browser, "figures")["cutOff"])
    faults = figures.differ("clusters that are cut off", sorted(found), ["mill", "south"])
    faults += lacks(found.get("mill", ""), "none of its 3 nodes", "endpoint")
    return faults + lacks(found.get("south", ""), "no Peer of north has its key", "clustermesh render")


def unread(browser, fleet):
    """A cluster without a snapshot is not called broken, and not left out."""
    page = checks.call(browser, "figures")
    found = dict(page["cutOff"])
    faults = figures.differ("clusters that are cut off", sorted(found), ["ghost"])
    return faults + lacks(found.get("ghost", ""), "its snapshot is missing", "clustermesh snapshot ghost")


def single_gateway(browser, fleet):
    """What ends if `gw-1` fails? Everything between other nodes: here another computation than that of the page."""
    outage = fleet.json("outage", "vault/gw-1")["together"]
    page = checks.call(browser, "figures")
    losses = {part: [summary, *pairs] for part, summary, pairs in page["losses"]}
    found = losses.get("vault/gw-1", ["no row"])
    paths = sum(it["paths"] for it in outage["ended"])
    # Each of 3 and 4 nodes outside has 35 paths from and to the other 4 nodes, and these have 12 to ranges of its cluster.
    faults = figures.differ("paths without gw-1", paths, sum(35 * nodes + 12 for nodes in (3, 4)))
    faults += figures.differ("the first loss", next(iter(losses), None), "vault/gw-1")
    faults += lacks(found[0], "vault/gw-1", f"{paths} paths between other nodes end")
    for it in outage["ended"]:
        faults += lacks("; ".join(found), f"{it['from']} → {it['to']}: {it['paths']} path")
    others = {f"vault → {it}" for it in ("branch", "depot")} | {f"{it} → vault" for it in ("branch", "depot")}
    return faults + lacks("; ".join(found), *sorted(others))


def known_ranges(browser, fleet):
    """Which ranges are free?"""
    fields = ("podCIDRs", "additionalCIDRs")
    declared = [it for entry in fleet.entries for field in fields for it in entry[field]]
    declared += [entry[field] for entry in fleet.entries for field in ("wireguardCIDR", "serviceCIDR")]
    expected = figures.free(declared)
    assert expected["10.0.0.0/8"][:2] == ["10.224.0.0/11", "10.208.0.0/12"], "the fleet leaves these free"
    found = {space: shown for space, shown, _ in checks.call(browser, "figures")["free"]}
    return [fault for space in expected for fault in figures.differ(space, found.get(space), expected[space])]


def changed(browser, fleet):
    """What does this change do?"""
    page = checks.call(browser, "figures")
    # `annex` gets 6 Peers and gives 2 to each of 3 clusters; 2 clusters and the office have the old key, and 2 clusters and
    # 2 hosts the node that is gone.
    faults = lacks(page["change"], "brief", "12 Peers added", "3 Peers changed", "4 Peers removed")
    faults += lacks(page["changes"], "cluster annex joined", "node east/east-3 was removed", "node west/west-2 has a new key")
    return faults
