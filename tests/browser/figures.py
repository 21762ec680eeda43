"""Compares what the page shows with the JSON documents of the commands, which it is made from."""

import ipaddress
import re
from collections import Counter

import checks

CLASSES = ("pod", "node", "service", "network")
# The most links that the picture shows as lines.
LINES = 30
# The most failing pairs, losses and declared ranges that the page lists.
PAIRS, LOSSES, RANGES = 400, 500, 2000
SPACES = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")
FREE = 8


class Documents:
    """The documents that a page of a fleet shows."""

    def __init__(self, fleet, against=None):
        self.validation = fleet.json("validate")
        self.verification = fleet.json("verify")
        self.outage = fleet.json("outage")
        self.capacity = fleet.json("capacity")
        self.graph = fleet.json("graph", "--level", "nodes")
        self.difference = fleet.json("diff", "--against", against) if against else None


def compare(browser, documents):
    """Returns the faults by part of the page."""
    page = checks.call(browser, "figures")
    parts = {
        "verdict": verdict(page, documents),
        "graph": graph(page, documents),
        "matrix": matrix(page, documents),
        "pairs": pairs(page, documents),
        "clusters": cards(page, documents),
        "findings": findings(page, documents),
        "expectations": expectations(page, documents),
        "losses": losses(page, documents),
        "ranges": ranges(page, documents),
        "load": load(page, documents),
    }
    if documents.difference:
        parts["change"] = change(page, documents)
    return parts


def differ(what, found, expected):
    return [] if found == expected else [f"{what}: {found!r} instead of {expected!r}"]


def numbers(text):
    return [int(it.replace(",", "")) for it in re.findall(r"\d[\d,]*", text or "")]


def verdict(page, documents):
    total = documents.verification["total"]
    failing = total["declared"] - total["working"] - total["assumed"]
    expected = {failing, total["declared"]} if failing else {total["declared"]}
    found = numbers(page["verdict"])
    faults = [f"{it} is missing in: {page['verdict']}" for it in sorted(expected) if it not in found]
    holds = documents.verification["holds"] and not severities(documents)["error"]
    return faults + differ("holds", any(it in page["word"] for it in ("Works", "Needs attention")), holds)


def graph(page, documents):
    """The picture names every cluster and counts the links."""
    clusters, links = documents.graph["clusters"], documents.graph["links"]
    if not page["picture"] and LINES < len(links):
        return []  # The matrix of the page shows the same.
    counts = Counter(it["state"] for it in links)
    faults = differ("numbers", sorted(numbers(page["picture"])), sorted([len(clusters), len(links), *counts.values()]))
    return faults + [f"{it['name']} is missing" for it in clusters if it["name"] not in page["pictureTexts"]]


def state(tally, is_linked):
    """The state of a cell of the matrix."""
    working = tally["working"] + tally["assumed"]
    if not tally["declared"]:
        return "undeclared" if tally["undeclaredWorking"] and not is_linked else "unlinked"
    if not working:
        return "fails"
    if working < tally["declared"]:
        return "partly"
    return "assumed" if tally["assumed"] else "works"


def tallies(pairing):
    """The numbers of paths of all classes, and of each."""
    fields = ("declared", "working", "assumed", "undeclaredWorking")
    whole = {it: sum(one[it] for one in pairing["classes"]) for it in fields}
    return {"all paths": whole} | {f"{it['from']} → {it['to']}": it for it in pairing["classes"]}


def matrix(page, documents):
    expected = {}
    for pairing in documents.verification["pairings"]:
        for layer, tally in tallies(pairing).items():
            counts = f"{tally['working'] + tally['assumed']}/{tally['declared']}" if tally["declared"] else ""
            expected[layer, pairing["from"], pairing["to"]] = (state(tally, pairing["linked"]), counts)
    found = {}
    shared = set()
    for layer, starts, ends, state_, counts in page["cells"]:
        places = [(layer, start, end) for start in starts for end in ends if start != end]
        found |= {it: (state_, counts) for it in places}
        shared |= set(places) if 1 < len(places) else set()
    is_picture = not found
    names = page["names"]
    for layer, state_, path in page["lines"]:
        for x, y, length in re.findall(r"M(\d+) (\d+)\.5h(\d+)", path):
            for column in range(int(x), int(x) + int(length)):
                found[layer, names[int(y)], names[column]] = (state_, None)
    layers = {it[0] for it in found}
    missing = {f"{it['from']} → {it['to']}" for one in documents.verification["pairings"] for it in one["classes"] if it["declared"]}
    faults = [f"no layer {it}" for it in sorted(missing - layers)] if found else ["the matrix is missing"]
    for place, (its_state, counts) in expected.items():
        if place[0] in layers:
            here = found.pop(place, ("unlinked", None if is_picture else ""))
            # Clusters that share a cell have the sum of their paths in it.
            here = (here[0], counts) if place in shared else here
            faults += differ(" ".join(place), here, (its_state, None if is_picture else counts))
    # What is left is declared by nothing.
    return faults + [f"{' '.join(it)}: {value}" for it, value in found.items() if value[0] not in ("unlinked", "unread")]


def pairs(page, documents):
    expected = {}
    for pairing in documents.verification["pairings"]:
        its = tallies(pairing)
        total = its.pop("all paths")
        if state(total, pairing["linked"]) in ("fails", "partly", "undeclared", "assumed"):
            failing = total["declared"] - total["working"] - total["assumed"]
            rows = {key: [it[one] for one in ("declared", "working", "assumed", "undeclaredWorking")] for key, it in its.items()}
            expected[f"{pairing['from']} {pairing['to']}"] = ([failing, total["declared"]] if failing else [], rows)
    found = {}
    for names, summary, rows in page["pairs"]:
        after = summary.partition(": ")[2]
        found[names] = (numbers(after), {re.sub(r"^\W+", "", row[0]): [int(it) for it in row[1:]] for row in rows})
    faults = differ("number of pairs", len(found), min(len(expected), PAIRS))
    return faults + [fault for name in found for fault in differ(name, found[name], expected.get(name))]


def cards(page, documents):
    expected, given = {}, Counter()
    for cluster in documents.graph["clusters"]:
        for supply in cluster.get("gets", []):
            given[supply["from"]] += supply["peers"]
    for cluster in documents.graph["clusters"]:
        nodes = cluster.get("nodes", [])
        left_out = sorted(it["name"] for it in nodes if it["role"] == "excluded")
        got = sum(it["peers"] for it in cluster.get("gets", []))
        counts = [len(nodes)] + ([len(left_out)] if left_out else []) + [given[cluster["name"]], got]
        is_counted = cluster["kind"] == "cluster" and not cluster["isUnread"]
        expected[cluster["name"]] = (counts if is_counted else [], left_out)
    found = {name: (numbers(summary), sorted(left_out)) for name, summary, left_out in page["cards"]}
    return differ("clusters", found, expected)


def all_findings(documents):
    """The findings of `validate` and `verify`, each once."""
    unique = {}
    for it in documents.validation["findings"] + documents.verification["findings"]:
        unique[it["rule"], it.get("cluster"), it.get("node"), it["message"]] = it
    return list(unique.values())


def severities(documents):
    return Counter(it["severity"] for it in all_findings(documents))


def findings(page, documents):
    """Each finding is there once: by itself, or below the one that it follows from."""
    plain = lambda text: re.sub(r"[`*\s]+", "", text)
    texts = page["findings"] + [it for it in page["consequences"] if not it.startswith("…")]
    # Of many that follow from one, only the number is there.
    more = sum(numbers(it)[0] for it in page["consequences"] if it.startswith("…"))
    shown = "\n".join(map(plain, texts))
    expected = all_findings(documents)
    missing = [f"missing: {it['message'][:100]}" for it in expected if plain(it["message"]) not in shown]
    faults = missing if more < len(missing) else []
    faults += differ("number", len(texts) + more, len(expected))
    heads = [it for it in page["severities"] if re.search(r"\d", it)]
    return faults + differ("sum of the headings", sum(numbers(it)[0] for it in heads), len(page["findings"]))


def expectations(page, documents):
    expected = []
    for number, it in enumerate(documents.verification["expectations"], 1):
        name = it.get("name") or f"expectation {number}"
        expected.append([name, f"{name}: {'met' if it['holds'] else 'not met'}", [it["broken"], it["pairs"]] if it["broken"] else [it["pairs"]]])
    found = [[name, summary.partition(" ")[2], numbers(text)] for name, summary, text in page["expectations"]]
    return differ("expectations", found, expected)


def losses(page, documents):
    survey = documents.outage["single"]
    expected = [[it["part"], it["paths"]] for it in survey["harmful"]]
    found = [[part, numbers(summary.rpartition(" fails, ")[2])[0]] for part, summary, _ in page["losses"]]
    counts = ([len(expected)] if expected else []) + [survey["parts"]]
    faults = differ("losses", found, expected[:LOSSES])
    return faults + differ("numbers of parts", [it for it in numbers(page["lossCount"]) if it in counts], counts)


def ranges(page, documents):
    clusters = documents.graph["clusters"]
    expected = {(it["range"], cluster["name"], it.get("class", "any")) for cluster in clusters for it in cluster.get("ranges", [])}
    found = [tuple(it) for it in page["ranges"]]
    faults = differ("number of ranges", len(found), min(len(expected), RANGES))
    return faults + [f"{it} is not declared" for it in found if it not in expected]


def free(declared):
    """The largest prefixes of each private space that nothing declares, in the order of the page."""
    declared = [ipaddress.ip_network(it) for it in declared]
    result = {}
    for space in SPACES:
        left = [ipaddress.ip_network(space)]
        for taken in declared:
            rest = []
            for it in left:
                if it.version != taken.version or not it.overlaps(taken):
                    rest.append(it)
                elif taken.prefixlen > it.prefixlen:
                    rest += it.address_exclude(taken)
            left = rest
        left.sort(key=lambda it: (it.prefixlen, it.network_address))
        result[space] = [str(it) for it in left[:FREE]]
    return result


def load(page, documents):
    """The grades of all quantities, and the numbers that have no unit."""
    # Without a capacity, the document has the errors.
    faults, expected = [], {it["cluster"]: it for it in documents.capacity.get("targets", [])}
    faults += differ("clusters", sorted(row[0] for row in page["loads"]), sorted(expected))
    for row in page["loads"]:
        target = expected.get(row[0])
        if target:
            faults += differ(f"grade of {row[0]}", row[5], target["grade"])
    for name, tables in page["cardLoads"]:
        target = expected.get(name)
        rows = tables[0] if tables else []
        found = [[row[0], row[4]] for row in rows]
        wanted = [[it["name"], it["grade"]] for it in target["quantities"]] if target else []
        faults += differ(f"load of {name}", found, wanted)
        values = {row[0]: row[2] for row in rows}
        for it in target["quantities"] if target else []:
            if it["name"] in ("peers", "ranges", "rules", "routes", "tunnels"):
                faults += differ(f"{it['name']} of {name}", values.get(it["name"]), f"{it['value']:,}")
    return faults


def change(page, documents):
    difference = documents.difference
    targets = difference["targets"]
    sums = [sum(it[one] for it in targets) for one in ("added", "changed", "removed")]
    fates = Counter()
    for pair in difference["paths"]:
        for fate, counts in pair.items():
            if isinstance(counts, dict):
                fates[fate] += counts.get("declared", 0) + counts.get("undeclared", 0)
    expected = [it for it in sums if it] + [len(targets)] + [it for it in fates.values() if it]
    found = Counter(numbers(page["change"].replace(difference["against"], "")))
    faults = [f"{it} is missing in: {page['change']}" for it in expected if not found[it]]
    if difference["grade"] not in page["change"]:
        faults.append(f"{difference['grade']} is missing in: {page['change']}")
    plain = lambda text: re.sub(r"[`\s]+", "", text)
    whole = plain(page["changes"])
    return faults + [f"missing: {it['message']}" for it in difference["causes"] if plain(it["message"]) not in whole]
