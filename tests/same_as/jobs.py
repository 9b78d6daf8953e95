"""The jobs of scripts/same-as: what both programs are told to do.

A job is a name, a kind and commands, which run one after the other in an empty folder. Its kind says what can be compared
(measured.txt): `virtual` all but how long it took here; `process` no times; `dealt` neither times nor who did how much; `async`
little more than keys and files, for its nodes do not wait for each other and every run is another.
"""
import collections
import glob
import json
import os
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
Job = collections.namedtuple("Job", "name kind commands")

ON_PROCESSES = ["--cluster", os.path.join(HERE, "here.toml")]
DETERMINISTIC = ["task.deterministic=true"]
# Every variant of the catalog: its settings, its kind on the process fabric, and settings that it needs there. Virtual runs
# say which variants there are, so that none is forgotten.
OUTER = 'outer={kind="nesterov", lr=0.5, momentum=0.5}'
VARIANTS = {
    "solo": ("solo", [], "process", ["cluster.workers=1"]),
    "ring": ("allreduce", ["topology=ring"], "process", DETERMINISTIC),
    "butterfly": ("allreduce", ["topology=butterfly"], "process", []),
    "tree": ("allreduce", ["topology=tree"], "process", []),
    "all_to_all": ("allreduce", ["topology=all_to_all"], "process", DETERMINISTIC),
    "hierarchical": ("allreduce", ["topology=hierarchical"], "process", ["cluster.workers=4", "cluster.racks=2"]),
    "direct": ("allreduce", ["topology=direct"], "process", DETERMINISTIC),
    "ring-balanced": ("allreduce", ["topology=ring", "balance=true"], "async", []),
    "early-exit": ("early_exit", [], "process", []),
    "elastic-averaging": ("elastic_averaging", [], "process", []),
    "elastic-averaging-async": ("elastic_averaging", ["mode=async"], "async", []),
    "fedavg": ("federated_averaging", [], "dealt", []),
    "fedprox": ("federated_averaging", ["proximal=0.01"], "dealt", []),
    "scaffold": ("federated_averaging", ["algorithm=scaffold"], "dealt", []),
    "fednova": ("federated_averaging", ["algorithm=fednova"], "dealt", []),
    "gossip-ring": ("gossip", ["graph=ring"], "process", ["cluster.workers=3"]),
    "gossip-exponential": ("gossip", ["graph=one_peer_exponential"], "process", []),
    "gossip-async": ("gossip", ["graph=complete", "mode=async"], "async", []),
    "hogwild": ("hogwild", [], "async", []),
    "hybrid-auto": ("hybrid", ["data=auto", "stages=auto", "shards=auto"], "process", []),
    "local-sgd-16": ("local_sgd", ["sync_every=16"], "process", []),
    "diloco": ("local_sgd", ["sync_every=16", OUTER], "process", []),
    "diloco-streaming": ("local_sgd", ["sync_every=16", OUTER, "fragments=4", "overlap=2", "mixing=0.5"], "process", []),
    "model-averaging": ("model_averaging", [], "process", []),
    "ps-bsp": ("parameter_server", ["consistency=bsp", "servers=auto"], "process", DETERMINISTIC),
    "ps-bsp-1": ("parameter_server", ["consistency=bsp", "servers=1"], "process", DETERMINISTIC),
    "ps-ssp3": ("parameter_server", ["consistency=ssp", "staleness=3", "servers=auto"], "async", []),
    "ps-adaptive": ("parameter_server", ["consistency=adaptive", "servers=auto"], "async", []),
    "ps-waiting": ("parameter_server", ["consistency=waiting", "servers=auto"], "async", []),
    "ps-backup1": ("parameter_server", ["consistency=backup", "backup=1", "servers=auto"], "async", []),
    "ps-asp": ("parameter_server", ["consistency=asp", "servers=auto"], "async", []),
    "pipeline-sequential": ("pipeline", ['schedule="sequential"'], "process", DETERMINISTIC),
    "pipeline-gpipe": ("pipeline", ['schedule="gpipe"'], "process", []),
    "pipeline-1f1b": ("pipeline", ['schedule="1f1b"'], "process", DETERMINISTIC),
    "pipeline-interleaved": ("pipeline", ['schedule="interleaved"'], "process", []),
    "pipeline-asynchronous": ("pipeline", ['schedule="asynchronous"', "micro_batches=0"], "process", []),
    "pipeline-auto": ("pipeline", ["stages=auto", "replicas=1"], "process", []),
    "pipeline-servers": ("pipeline_servers", [], "process", DETERMINISTIC),
    "scheduled-priority": ("scheduled", ["schedule=priority"], "process", []),
    "scheduled-random": ("scheduled", ["schedule=random"], "process", []),
    "scheduled-cyclic": ("scheduled", ["schedule=cyclic"], "process", []),
    "tensor": ("tensor", ["shards=0"], "process", []),
}
# What variants need besides on the virtual cluster of classes.toml. (`hogwild` is refused there, and its refusal compared.)
ONE_RACK = ["cluster.speed_factors=[]", "cluster.racks=1"]
VIRTUAL = {
    "solo": ["cluster.workers=1", *ONE_RACK],
    "direct": ["cluster.nodes_per_host=4", "cluster.racks=1"],
    "early-exit": ["cluster.workers=2", *ONE_RACK],
}

# Settings beyond the variants: parts of strategies that no variant has, losses, refusals. All on the virtual fabric.
CRASH = 'cluster.faults=[{kind="crash", at=0.3, nodes=[%s]}]'
SERVERS = ["strategy.kind=parameter_server", "strategy.servers=3"]
BEYOND = {
    "ps-replicas": SERVERS + ["strategy.replicas=1", CRASH % 5],
    "ps-replicas-asp": SERVERS + ["strategy.replicas=2", "strategy.consistency=asp", CRASH % 4],
    "ps-worker-lost": SERVERS + ["strategy.consistency=ssp", CRASH % 2],
    "ps-worker-back": SERVERS + ['cluster.faults=[{kind="crash", at=0.2, nodes=[2], restart=0.2}]'],
    "ps-server-lost": SERVERS + [CRASH % 5],
    "ps-partition": SERVERS + ['cluster.faults=[{kind="partition", at=0.2, nodes=[1], duration=0.3}]'],
    "ps-layers": SERVERS + ["strategy.shards=layers", "optimizer.kind=lamb", "strategy.pull=layers"],
    "ps-prefetch": SERVERS + ["strategy.consistency=ssp", "strategy.prefetch=true", "strategy.pull_every=2"],
    "ps-shards": SERVERS + ["strategy.shards_per_server=3", "strategy.replicas=1", CRASH % 6],
    "ps-deterministic": SERVERS + DETERMINISTIC,
    "ring-lost": ["strategy.topology=ring", CRASH % 2],
    "gossip-lost": ["strategy.kind=gossip", "strategy.graph=ring", CRASH % 3],
    "federated-clients": ["strategy.kind=federated_averaging", "strategy.clients=20", "strategy.fraction=0.4",
                          "strategy.over_select=1.5", "strategy.server=adam", "strategy.client_batch=5"],
    "local-sgd-post": ["strategy.kind=local_sgd", "strategy.post_local=0.5", "strategy.sync_every=3"],
    "pipeline-replicas": ["strategy.kind=pipeline", "strategy.stages=2", "strategy.replicas=2"],
    "pipeline-copies": ["strategy.kind=pipeline", "strategy.stages=2", "strategy.copies=[3, 1]"],
    "pipeline-copies-auto": ["strategy.kind=pipeline", "strategy.copies=auto"],
    "pipeline-servers-copies": ["strategy.kind=pipeline_servers", "strategy.servers=2", "strategy.stages=2",
                                "strategy.copies=[3, 1]"],
    "pipeline-servers-lost": ["strategy.kind=pipeline_servers", "strategy.servers=2", CRASH % 5],
    "hybrid": ["strategy.kind=hybrid", "strategy.data=2", "strategy.stages=1", "strategy.shards=2"],
    "early-exit-cuts": ["strategy.kind=early_exit", "strategy.cuts=[6, 12]", "strategy.bits=8", "cluster.workers=3",
                        *ONE_RACK],
    "disjoint": ["task.partition=disjoint"],
    "deterministic": DETERMINISTIC,
    "stop-at-target": ["task.stop_at_target=true", "task.target=0.3", "task.eval_every=0.25"],
    "diverged": ["optimizer.lr=1e30", "task.model.dropout=0"],
    "too-little-memory": ['cluster.memory="10 kB"'],
    "bad-key": ["strategy.topolgy=ring"],
    "bad-value": ["strategy.topology=rang"],
}

# Recipes are cut to a few steps. These need settings of their own; all others are cut by CUT.
CUT = ["task.max_steps=3", "task.data.limit=600"]
RECIPES = {
    "crossover-mlp": ["task.max_steps=2", "cluster.cost_only=true"],  # 67 million weights on each of four nodes
    "crossover-resnet": ["task.max_steps=1", "task.data.limit=200"],
    "tasks/image-cifar10": ["task.max_steps=1", "task.data.limit=100"],
    "deterministic": ["task.max_steps=5"],
    "early-exit": ["task.max_steps=3", "task.data.limit=400"],
    "early-exit-views": ["task.max_steps=3", "task.data.limit=400"],
    "federated-10000": ["task.max_steps=2"],
    "federated-rounds": ["task.max_steps=1"],
    "niid-bench": ["task.max_steps=1", "task.data.limit=2000", "strategy.local_epochs=1"],
    "hybrid-auto": ["task.max_steps=3"],
    "parameter-server-256": ["task.max_steps=1"],
    "thousand-nodes": ["task.max_steps=1"],
    "lasso-scheduled": ["task.epochs=5"],
    "sparse-ratings": ["task.epochs=1"],
    "ratings-movielens": ["task.max_steps=20"],
}
# Of those on the process fabric, which are no plain `process`.
PROCESS_RECIPES = {"sparse-ratings": "async", "ratings-movielens": "async", "federated-10000": "dealt",
                   "niid-bench": "dealt"}


def sets(settings):
    return [word for setting in settings for word in ("--set", setting)]


def checked_and_trained(name, kind, file, settings, more=()):
    words = [file, *more, *sets(settings)]
    return Job(name, kind, [["check", *words, "--json"], ["check", *words],
                            ["train", *words, "--out", "run", "--quiet", "--json"]])


def variant_jobs():
    for name, (strategy, settings, kind, more) in VARIANTS.items():
        file = os.path.join(HERE, "linear.toml" if strategy == "scheduled" else "classes.toml")
        all_settings = [f"strategy.kind={strategy}", *("strategy." + setting for setting in settings)]
        yield checked_and_trained(f"virtual/{name}", "virtual", file, all_settings + VIRTUAL.get(name, []))
        yield checked_and_trained(f"process/{name}", kind, file, all_settings + more, ON_PROCESSES)


def data_missing(path):
    """The file that a recipe needs and that is not on this machine, or nothing."""
    with open(path, "rb") as file:
        data = tomllib.load(file)["task"]["data"]
    data = {"kind": data} if isinstance(data, str) else data
    usual = {"fashion-mnist": "/usr/share/datasets/fashion-mnist", "cifar10": "~/.cache/tutti/cifar10"}
    for name in (data.get("path", usual.get(data["kind"], "")), data.get("test_path", "")):
        needed = os.path.join(os.path.dirname(path), os.path.expanduser(name))
        if not os.path.exists(needed):
            return needed
    return ""


def recipe_jobs(root, left_out):
    for path in sorted(glob.glob(os.path.join(root, "recipes/*.toml")) + glob.glob(os.path.join(root, "recipes/tasks/*"))):
        name = os.path.relpath(path, os.path.join(root, "recipes")).removesuffix(".toml")
        missing = data_missing(path)
        if missing:
            left_out.append(f"recipes/{name}: {missing} is not on this machine")
            continue
        with open(path, "rb") as file:
            here = tomllib.load(file)["cluster"]["fabric"] == "process"
        kind = PROCESS_RECIPES.get(name, "process") if here else "virtual"
        # As it stands, it is checked alone.
        yield Job(f"recipe/{name}", kind,
                  [["check", path, "--json"], ["check", path],
                   ["train", path, "--out", "run", "--quiet", "--json", *sets(RECIPES.get(name, CUT))]])


def comparison_jobs(root):
    classes = os.path.join(HERE, "classes.toml")
    costs = os.path.join(root, "tests/golden/costs")
    for cluster in ("host", "racks", "uneven"):
        yield Job(f"costs/{cluster}", "virtual",
                  [["compare", f"{costs}/classes.toml", "--cluster", f"{costs}/{cluster}.toml", "--out", "all", "--quiet"]])
    yield Job("compare/classes", "virtual",
              [["compare", classes, "--strategies", "solo,ring,tree,ps-bsp,ps-ssp3,gossip-ring,listed", "--seeds", "2",
                "--out", "c", "--quiet"],
               ["report", "c", "--out", "again.html", "--csv", "table.csv", "--trace", "trace.json",
                "--tensorboard", "board", "--quiet"],
               ["compare", classes, "--strategies", "solo,ring,butterfly", "--no-sharing", "--out", "d", "--json", "--quiet"],
               ["show", "c/runs/ring-seed1", "c/runs/ps-ssp3-seed2"],
               ["report", "c/runs/ring-seed1", "d/runs/solo-seed11", "--out", "two.html", "--quiet"]])
    yield Job("compare/advise", "virtual",
              [["advise", classes, "--strategies", "solo,ring,ps-bsp,local-sgd-16,pipeline-1f1b", "--seeds", "1",
                "--declared-speed", "--out", "best.toml", "--json", "--quiet"]])
    yield Job("compare/survey", "virtual",
              [["survey", "--tasks", "clicks-heart", "--strategies", "solo,ring,ps-asp", "--seeds", "1", "--out", "s", "--quiet"]])


def file_jobs(root):
    kept = os.path.join(root, "tests/golden/kept")
    job = os.path.join(kept, "job.toml")
    yield Job("predict/kept", "virtual",
              [["predict", f"{kept}/run"], ["predict", f"{kept}/run", "--data", f"{kept}/new.csv", "--json", "-o", "new.csv"],
               ["show", f"{kept}/run", "--json"],
               ["report", f"{kept}/comparison/compare.json", "--out", "page.html", "--csv", "table.csv", "--quiet"]])
    yield Job("predict/trained", "virtual",
              [["train", job, "--out", "run", "--quiet"], ["predict", "run"], ["predict", "run", "--data", f"{kept}/new.csv"]])
    rest = ["--out", "rest", "--quiet", "--json"]
    for fabric in ("virtual", "process"):
        on = ON_PROCESSES if fabric == "process" else []
        words = [os.path.join(HERE, "classes.toml"), *on, *sets(SERVERS + DETERMINISTIC + ["strategy.snapshot_every=4"])]
        yield Job(f"resume/{fabric}", fabric,
                  [["train", *words, "--out", "first", "--quiet", "--json", "--set", "task.max_steps=10"],
                   ["train", *words, "--set", "strategy.resume=first", *rest]])
    yield Job("resume/kept", "virtual", [["train", job, "--set", f"strategy.resume={kept}/run", *rest]])
    rows = os.path.join(HERE, "rows.toml")
    for consistency in ("bsp", "asp"):
        yield checked_and_trained(f"rows/{consistency}", "virtual", rows, [f"strategy.consistency={consistency}"])
    yield checked_and_trained("rows/replicas", "virtual", rows,
                              ["strategy.replicas=1", 'cluster.faults=[{kind="crash", at=0.01, nodes=[4]}]'])
    yield checked_and_trained("rows/process", "async", rows, [], ON_PROCESSES)


def text_jobs():
    kinds = ("strategies", "topologies", "optimizers", "models", "data", "fabrics", "tasks", "settings", "nothing")
    yield Job("text/list", "virtual", [["list", kind, *more] for kind in kinds for more in ([], ["--json"])])
    yield Job("text/help", "virtual", [[command, "--help"] for command in
                                       ("train", "compare", "check", "join", "predict", "show", "report", "list",
                                        "doctor", "advise", "survey", "bench")])


def all_jobs(root):
    """Returns the jobs, the longest first, and what is left out with its reason."""
    left_out = []
    beyond = [checked_and_trained(f"beyond/{name}", "virtual", os.path.join(HERE, "classes.toml"), settings)
              for name, settings in BEYOND.items()]
    every = [*comparison_jobs(root), *recipe_jobs(root, left_out), *variant_jobs(), *beyond, *file_jobs(root), *text_jobs()]
    return every, left_out


def forgotten_variants(work, chosen):
    """Variants that a comparison of all of them knows and that are not in the list above."""
    path = os.path.join(work, "costs/racks/all/compare.json")
    if not any(job.name == "costs/racks" for job in chosen) or not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        compared = json.load(file)
    names = {row["name"] for row in compared["strategies"] + compared["not_possible"]}
    return sorted(names - VARIANTS.keys())
