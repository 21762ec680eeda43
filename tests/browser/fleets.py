"""Small fleets with planted troubles, and large ones: meshes and snapshots as Kilo would have left them."""

import base64
import hashlib
import ipaddress
import json
import os
import subprocess
from pathlib import Path

REGION = "topology.kubernetes.io/region"
KILO = "kilo.squat.ai/"


def key(text):
    """A public key that depends on this text only."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def part(network, prefix, number):
    """The subnet of this number, with its prefix length."""
    network = ipaddress.ip_network(network)
    step = 1 << (network.max_prefixlen - prefix)
    return f"{network.network_address + number * step}/{prefix}"


def host(network, number):
    return str(ipaddress.ip_network(network).network_address + number)


def node(cluster, number, pods, lan, wireguard, *, name=None, public=None, location=None, leads=True, **more):
    """A node with its place in the ranges of a cluster. Without `public`, it is behind NAT. `more` are annotations."""
    name = name or f"{cluster}-{number}"
    internal = host(lan, number)
    annotations = {
        KILO + "endpoint": f"{public or internal}:51820",
        KILO + "granularity": "location" if location else "full",
        KILO + "internal-ip": f"{internal}/{ipaddress.ip_network(lan).prefixlen}",
        KILO + "key": key(f"{cluster}/{name}"),
        KILO + "persistent-keepalive": "25",
        KILO + "wireguard-ip": f"{wireguard}" if leads else "",
        **({KILO + "clustermesh-endpoint": f"{public}:51820"} if public else {}),
        **{KILO + it.replace("_", "-"): value for it, value in more.items()},
    }
    return {
        "addresses": [{"address": internal, "type": "InternalIP"}],
        "annotations": annotations,
        "labels": {REGION: location} if location else {},
        "name": name,
        "podCIDRs": pods,
        "uid": f"{cluster}-{name}",
    }


def cluster(name, place, nodes, *, locations=(), nat=False, dual=False, lan=None, carries=True, **fields):
    """An entry of a mesh, and its nodes. Its ranges follow from its place, unless `fields` has others."""
    pods = [f"10.{place}.0.0/16"] + ([f"fd00:{place:x}::/48"] if dual else [])
    network, lan = part("100.64.0.0/12", 24, place), lan or part("172.16.0.0/12", 22, place)
    entry = {"name": name, "podCIDRs": pods, "wireguardCIDR": network}
    if carries:
        entry |= {"serviceCIDR": part("100.96.0.0/11", 20, place), "additionalCIDRs": [lan]}
    if nat:
        entry["persistentKeepalive"] = 25
    members, segments, led = [], 0, set()
    for number in range(1, nodes + 1):
        location = locations[(number - 1) % len(locations)] if locations else None
        leads = not locations or location not in led
        led.add(location)
        segments += leads
        ranges = [part(pods[0], 24, number)] + ([part(pods[1], 64, number)] if dual else [])
        public = None if nat else host("198.18.0.0/15", place << 8 | number)
        address = f"{host(network, segments)}/24"
        member = node(name, number, ranges, lan, address, public=public, location=location, leads=leads)
        if leads and locations:
            member["annotations"][KILO + "leader"] = "true"
        members.append(member)
    return entry | fields, members


class Folder:
    """A folder with a mesh, and the program that reads it."""

    def __init__(self, program, folder):
        self.program = program
        self.folder = Path(folder)

    def run(self, *arguments):
        """Runs the program. Returns its output, also if it has findings."""
        command = [self.program, *arguments]
        run = subprocess.run(command, cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if run.returncode not in (0, 1):
            raise SystemExit(f"{' '.join(command)}: exit code {run.returncode}\n{run.stderr}")
        return run.stdout

    def json(self, *arguments):
        return json.loads(self.run(*arguments, "-o", "json"))

    def report(self, page, *arguments):
        """Writes the page. Returns its path."""
        page.write_text(self.run("report", *arguments), encoding="utf-8")
        return page


class Fleet(Folder):
    """A mesh and its snapshots, which can be changed."""

    def __init__(self, program, folder, clusters, **spec):
        super().__init__(program, folder)
        self.entries = [entry for entry, _ in clusters]
        self.nodes = {entry["name"]: nodes for entry, nodes in clusters}
        self.spec = spec
        (self.folder / "snapshots").mkdir(parents=True)
        self.write()

    def write(self):
        mesh = {
            "apiVersion": "kilo.squat.ai/v1alpha1",
            "kind": "ClusterMesh",
            "metadata": {"name": "atlas"},
            "spec": self.spec | {"clusters": self.entries},
        }
        (self.folder / "mesh.yaml").write_text(json.dumps(mesh, indent=2, ensure_ascii=False) + "\n")
        for name, nodes in self.nodes.items():
            snapshot = {
                "apiVersion": "kilo-clustermesh.io/v1",
                "cluster": name,
                "kind": "NodeSnapshot",
                "nodes": sorted(nodes, key=lambda it: it["name"]),
            }
            (self.folder / f"snapshots/{name}.json").write_text(json.dumps(snapshot, indent=2) + "\n")

    def expect(self, *expectations):
        document = {"apiVersion": "kilo-clustermesh.io/v1", "kind": "Expectations", "spec": expectations}
        text = json.dumps(document, indent=2, ensure_ascii=False)
        (self.folder / "expectations.yaml").write_text(text + "\n")

    def render(self):
        self.write()
        self.run("render")
        return self

    def commit(self):
        """Commits everything, to compare with it later."""
        who = ["-c", "user.name=ci", "-c", "user.email=ci@example.com", "-c", "gc.auto=0"]
        env = os.environ | {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
        for command in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "before"]):
            subprocess.run(["git", *who, *command], cwd=self.folder, check=True, env=env)


def without_endpoint(nodes):
    """What an upgrade of nodes does that forgets their annotations."""
    for it in nodes:
        it["annotations"].pop(KILO + "clustermesh-endpoint", None)


def cut_off(program, folder):
    """`mill` gets no Peers, because none of its nodes can be dialled, and `south` has new keys, which its Peers lack."""
    fleet = Fleet(
        program,
        folder,
        [
            cluster("north", 11, 4, dual=True),
            cluster("south", 12, 6, locations=("eu-1", "eu-2")),
            cluster("harbor", 13, 3, nat=True, carries=False),
            cluster("mill", 14, 3),
        ],
    ).render()
    without_endpoint(fleet.nodes["mill"])
    for it in fleet.nodes["south"]:
        it["annotations"][KILO + "key"] = key(it["name"] + " reinstalled")
    fleet.write()
    return fleet


def unread(program, folder):
    """The snapshot of `ghost` is missing."""
    clusters = [cluster("near", 16, 3), cluster("far", 17, 2, nat=True, carries=False), cluster("ghost", 18, 2)]
    fleet = Fleet(program, folder, clusters).render()
    (fleet.folder / "snapshots/ghost.json").unlink()
    return fleet


def single_gateway(program, folder):
    """All that other clusters reach of `vault` is carried by `gw-1`, the leader of its only location."""
    vault = cluster("vault", 21, 5, locations=("basement",), dual=True)
    vault[1][0]["name"] = "gw-1"
    fleet = Fleet(
        program,
        folder,
        [vault, cluster("branch", 22, 3), cluster("depot", 23, 4, locations=("a", "b"))],
        topology={"mode": "Hub", "hubs": ["vault"]},
    )
    fleet.expect(
        {"name": "the branch reaches the vault", "from": {"cluster": "branch"}, "to": {"cluster": "vault"}, "expect": "Reach"},
        {"name": "the depot does not", "from": {"cluster": "depot"}, "to": {"cluster": "vault"}, "expect": "Deny"},
        {"from": {"cluster": "branch"}, "to": {"cluster": "depot"}, "expect": "Deny"},
    )
    return fleet.render()


def known_ranges(program, folder):
    """Two clusters that leave only a few large prefixes of private space free."""
    fleet = Fleet(
        program,
        folder,
        [
            cluster("left", 31, 3, podCIDRs=["10.0.0.0/9"]),
            cluster("right", 141, 3, podCIDRs=["10.128.0.0/10"], serviceCIDR="10.200.0.0/16"),
        ],
    )
    return fleet.render()


# Every text sets this global variable if it runs.
MARK = "hostileName"
HOSTILE = (
    f"<script>{MARK}=1</script>",
    f"<img src=x onerror={MARK}=1>",
    f"\"' onfocus={MARK}=1 autofocus x='",
    f"</script><script>{MARK}=1</script>",
    f"</style></title></textarea><svg onload={MARK}=1>",
    f"javascript:{MARK}=1//",
    f"--><script>{MARK}=1</script>",
    f"{{{{ {MARK} }}}}{{% raw %}} ${{{MARK}=1}} &lt;script&gt; &quot;",
    "\u202e\u2066right to left\u2069",
    "\0\x1b[31m\u2028\u2029\ufeff",
    "long " + "x<" * 5000,
)
# What a page shows of them.
SHOWN = (*HOSTILE[:8], "\\u{202e}\\u{2066}right to left\\u{2069}", "long x<x<x<")


def hostile(program, folder):
    """Texts of HTML, quotes, controls of direction and 10 kB in every place where nodes and files can have them."""
    texts = iter(HOSTILE * 9)
    clusters = [cluster("calm", 41, 3), cluster("rogue", 42, len(HOSTILE), locations=("a", "b")), cluster("loud", 43, len(HOSTILE))]
    fleet = Fleet(program, folder, clusters).render()
    for nodes in (fleet.nodes["rogue"], fleet.nodes["loud"]):
        for it, text in zip(nodes, texts):
            it["annotations"][KILO + "location"] = text
            it["labels"][REGION] = text
    for it, text in zip(fleet.nodes["rogue"], HOSTILE):
        it["annotations"][KILO + "clustermesh-endpoint"] = text
    for at, it in enumerate(fleet.nodes["loud"]):
        if at % 2:
            it["annotations"][KILO + "key"] = HOSTILE[at]
        else:
            it["name"] = HOSTILE[at]
    fleet.expect(
        *({"name": text[:200], "from": {"cluster": "calm"}, "to": {"cluster": "loud"}, "expect": "Deny"} for text in HOSTILE)
    )
    fleet.write()
    return fleet


def changed(program, folder):
    """Compared with the last commit, `annex` has joined with two nodes, `east-3` is gone and `west-2` has a new key."""
    clusters = [
        cluster("east", 51, 3),
        cluster("west", 52, 4, locations=("a", "b"), dual=True),
        cluster("store", 53, 2, nat=True, carries=False),
    ]
    hosts = [
        {"name": "laptop", "publicKey": key("laptop"), "ranges": ["10.250.0.5/32"], "clusters": ["east"]},
        {"name": "office", "publicKey": key("office"), "ranges": ["10.250.1.0/24"], "endpoint": "198.18.250.1:51820", "clusters": ["east", "west"]},
    ]
    fleet = Fleet(program, folder, clusters, externalPeers=hosts).render()
    fleet.commit()
    entry, fleet.nodes["annex"] = cluster("annex", 54, 2)
    fleet.entries.append(entry)
    fleet.nodes["east"].pop()
    fleet.nodes["west"][1]["annotations"][KILO + "key"] = key("reinstalled")
    return fleet.render()


def full_mesh(program, folder):
    """50 clusters of 50 nodes, each linked with each; the Peers of one have old keys."""
    fleet = Fleet(program, folder, [cluster(f"cluster-{at:02}", at, 50) for at in range(1, 51)]).render()
    for it in fleet.nodes["cluster-33"]:
        it["annotations"][KILO + "key"] = key(it["name"] + " reinstalled")
    fleet.write()
    return fleet


def spokes(program, folder):
    """200 clusters of 20 nodes around one of 30."""
    hub = cluster("hub", 250, 30)
    others = [cluster(f"spoke-{at:03}", at, 20, locations=("a", "b")) for at in range(1, 201)]
    return Fleet(program, folder, [hub, *others], topology={"mode": "Hub", "hubs": ["hub"]}).render()
