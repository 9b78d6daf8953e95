"""Comparisons to test reports with, as `tutti compare` writes them (schema 1).

`comparison()` has one strategy of every sort: some that reach the target, one that does so in some
seeds only, one that misses it, one that diverged and one that failed. `large()` is as big as a
report has to take. Made from a fixed random stream: the same at each call.
"""
import json
import math
import random
import sys

NODES = 8
SEEDS = [1, 2, 3]
TARGET = 0.85
TAXONOMY_KEYS = ["structure", "parallelism", "optimisation", "timing", "pattern", "data", "stragglers",
                 "communication", "computation"]


def stat(values):
    values = [float(v) for v in values if v is not None]  # as the program writes figures
    if not values:
        return None
    return {"mean": sum(values) / len(values), "min": min(values), "max": max(values),
            "values": values}


def scaled(value, rng, spread=0.03):
    return stat([value * (1 + spread * rng.uniform(-1, 1)) for _ in SEEDS])


def curve(rng, seed, points, step_s, bytes_per_step, plateau, speed, diverges=False):
    rows, quality = [], 0.1
    for i in range(points):
        step = 50 * (i + 1)
        quality = plateau * (1 - math.exp(-speed * step / 400)) + rng.gauss(0, 0.004)
        loss = max(0.05, 2.3 * math.exp(-speed * step / 500) + rng.gauss(0, 0.02))
        gone = diverges and i > points // 3
        rows.append({"step": step, "samples": step * 128, "epoch": step * 128 / 60000,
                     "time_s": step * step_s * (1 + 0.01 * seed), "bytes": float(step * bytes_per_step),
                     "loss": None if gone else loss, "quality": None if gone else quality})
        if gone:
            break
    return {"seed": seed, "points": rows}


def training(rng, seed, steps, step_s, speed, diverges=False):
    series = {"seed": seed, "step": [], "time_s": [], "samples": [], "loss": []}
    for step in range(1, steps + 1):
        if diverges and step > steps // 3:
            break
        series["step"].append(step)
        series["time_s"].append(step * step_s)
        series["samples"].append(step * 128)
        series["loss"].append(max(0.02, 2.3 * math.exp(-speed * step / 500) + rng.gauss(0, 0.08)))
    return series


def timeline(rng, nodes, servers, compute_s, communicate_s):
    slowest = max(compute_s * (1 + 0.25 * (rank % 3) / 3) for rank in range(nodes))
    rows = []
    for rank in range(nodes):
        own = compute_s * (1 + 0.25 * (rank % 3) / 3)
        at, intervals = 0.0, []

        def add(kind, length):
            nonlocal at
            if length > 0:
                intervals.append([kind, at, at + length])
                at += length
        add("compute", own)
        add("wait", slowest - own)
        for _ in range(3):
            add("communicate", communicate_s / 3 * rng.uniform(0.9, 1.1))
            add("aggregate", compute_s * 0.03)
        add("other", compute_s * 0.02)
        rows.append({"rank": rank, "role": "worker", "intervals": intervals})
    for k in range(servers):
        rows.append({"rank": nodes + k, "role": "server", "intervals": [
            ["wait", 0, slowest], ["communicate", slowest, slowest + communicate_s * 0.6],
            ["aggregate", slowest + communicate_s * 0.6, slowest + communicate_s * 0.7],
            ["communicate", slowest + communicate_s * 0.7, slowest + communicate_s]]})
    return rows


def links(kind, nodes, servers, bytes_each):
    if kind == "ring":
        return [[i, (i + 1) % nodes, bytes_each] for i in range(nodes)]
    if kind == "butterfly":
        return [[i, i ^ (1 << k), bytes_each / (2 ** k)]
                for i in range(nodes) for k in range(int(math.log2(nodes)))]
    if kind == "server":
        return [pair for i in range(nodes) for s in range(servers)
                for pair in ([i, nodes + s, bytes_each], [nodes + s, i, bytes_each])]
    if kind == "tree":
        return [pair for i in range(1, nodes)
                for pair in ([i, (i - 1) // 2, bytes_each], [(i - 1) // 2, i, bytes_each])]
    if kind == "gossip":
        return [[i, (i + d) % nodes, bytes_each] for i in range(nodes) for d in (1, 3)]
    return []


def node_rows(rng, nodes, servers, total_s, all_links):
    sent = {}
    for source, _, count in all_links:
        sent[source] = sent.get(source, 0) + count
    return [{"rank": rank, "role": "worker" if rank < nodes else "server", "total_s": total_s,
             "compute_s": total_s * 0.6, "communicate_s": total_s * 0.25,
             "aggregate_s": total_s * 0.05, "wait_s": total_s * 0.08, "cpu_s": total_s * 0.7,
             "bytes_sent": sent.get(rank, 0), "messages": 1200,
             "peak_memory_bytes": 9e7 + rank * 1e6, "utilisation": rng.uniform(0.5, 0.9)}
            for rank in range(nodes + servers)]


# name, kind, pattern of links, servers, workers, compute and communication of a step in seconds,
# plateau, speed of learning, staleness histogram, taxonomy
STRATEGIES = [
    ("solo", "solo", "none", 0, 1, 0.160, 0, 0.905, 1.0, [1],
     ["one node", "none", "centralised", "synchronous", "none",
      "shares of each batch", "everybody waits", "nothing", "a share of the batch"]),
    ("ring", "allreduce", "ring", 0, 8, 0.022, 0.013, 0.905, 1.0, [1],
     ["decentralised", "data", "centralised", "synchronous", "ring",
      "shares of each batch", "everybody waits", "sums of gradients", "a share of the batch"]),
    ("butterfly", "allreduce", "butterfly", 0, 8, 0.022, 0.011, 0.905, 1.0, [1],
     ["decentralised", "data", "centralised", "synchronous", "butterfly",
      "shares of each batch", "everybody waits", "sums of gradients", "a share of the batch"]),
    ("parameter-server", "server", "server", 2, 8, 0.022, 0.041, 0.905, 1.0, [1],
     ["centralised", "data", "centralised", "synchronous", "star",
      "shares of each batch", "everybody waits", "gradients", "a share of the batch"]),
    ("async-server", "server", "server", 2, 8, 0.022, 0.016, 0.893, 0.7,
     [40, 120, 310, 420, 380, 260, 150, 70, 30, 12, 4, 2],
     ["centralised", "data", "centralised", "asynchronous", "star",
      "shares of each batch", "nobody waits", "gradients", "a share of the batch"]),
    ("gossip", "gossip", "gossip", 0, 8, 0.022, 0.006, 0.832, 0.8, [300, 900, 400, 90],
     ["decentralised", "data", "decentralised", "asynchronous", "graph",
      "shares of each batch", "nobody waits", "sums of gradients", "a share of the batch"]),
    ("local-sgd", "local", "tree", 0, 8, 0.022, 0.004, 0.7, 1.2, [800],
     ["hierarchical", "data", "decentralised", "synchronous", "tree",
      "shares of each batch", "everybody waits", "sums of gradients", "a share of the batch"]),
]


def strategy(rng, row, points=40, steps=600):
    name, kind, pattern, servers, workers, compute, communicate, plateau, speed, histogram, tax = row
    diverged = name == "local-sgd"
    step_s = compute + communicate + 0.002
    bytes_per_step = 0 if workers == 1 else 2 * 1.7e6 * workers
    curves = [curve(rng, seed, points, step_s, bytes_per_step, plateau, speed, diverged)
              for seed in SEEDS]
    if name == "async-server":  # one seed of three stops short of the target
        for point in curves[2]["points"]:
            point["quality"] = min(point["quality"], 0.843)
    hits = [next((p for p in c["points"] if p["quality"] is not None and p["quality"] >= TARGET), None)
            for c in curves]
    reached = [hit for hit in hits if hit]
    best = [max(p["quality"] for p in c["points"] if p["quality"] is not None) for c in curves]
    total = points * 50 * step_s
    all_links = links(pattern, workers, servers, bytes_per_step * 20 / max(1, workers))
    counts = sum(histogram)
    mean_staleness = sum(i * n for i, n in enumerate(histogram)) / counts

    def split(share):
        return total * share / step_s
    return {
        "name": name, "kind": kind, "settings": {"topology": pattern, "bucket": "4 MiB"},
        "taxonomy": dict(zip(TAXONOMY_KEYS, tax)), "fabric": "virtual", "workers": workers,
        "obtained": "simulated", "status": "diverged" if diverged else "done",
        "error": "seed 2: the loss became NaN at step 667; lower optimizer.lr" if diverged else "",
        "shared_curve_of": "ring" if name == "butterfly" else None, "seeds": SEEDS,
        "runs": [f"runs/{name}-seed{seed}" for seed in SEEDS], "reached": len(reached),
        "quality": {"best": stat(best), "final": stat([b - 0.003 for b in best]),
                    "at_equal_samples": stat([b - 0.01 for b in best]),
                    "at_equal_time": stat([b - 0.02 / step_s * 0.03 for b in best])},
        "to_target_s": stat([h["time_s"] for h in reached]),
        "to_target_normalised_s": stat([h["time_s"] * 20 for h in reached]),
        "steps_to_target": stat([h["step"] for h in reached]),
        "samples_to_target": stat([h["samples"] for h in reached]),
        "converged_s": None if diverged else scaled(total * 0.8, rng),
        "converged_steps": None if diverged else scaled(points * 40, rng),
        "total_s": scaled(total, rng), "total_normalised_s": scaled(total * 20, rng),
        "wall_s": scaled(14, rng), "cpu_s": scaled(total * 0.7 * workers, rng),
        "startup_s": scaled(0.6, rng), "samples_per_s": scaled(128 / step_s, rng),
        "steps": stat([points * 50] * 3),
        "time_split": {"compute_s": split(compute), "communicate_s": split(communicate * 0.7),
                       "aggregate_s": split(0.001), "wait_s": split(communicate * 0.3),
                       "other_s": split(0.001)},
        "bytes_total": stat([points * 50 * bytes_per_step] * 3),
        "bytes_per_node": stat([points * 50 * bytes_per_step / max(1, workers)] * 3),
        "messages_total": stat([points * 50 * 14 * (workers - 1)] * 3),
        "messages_per_node": stat([points * 50 * 14 * (workers > 1)] * 3),
        "staleness": {"mean": mean_staleness, "max": len(histogram) - 1, "histogram": histogram},
        "age_s": {"mean": mean_staleness * step_s, "max": len(histogram) * step_s},
        "update_order": 0.02 * mean_staleness, "peak_memory_bytes": scaled(9.4e7, rng),
        "utilisation": scaled(compute / step_s, rng),
        "energy_j": scaled((40 + 35 * compute / step_s) * total * workers ** 0.95, rng),
        "energy_method": "host states and links of the simulation", "co2e_g": scaled(total * 0.02, rng),
        "co2e_method": "475 g/kWh (world)", "cost": scaled(total * workers * 0.00002, rng),
        "currency": "EUR", "cost_method": "0.08 EUR per node and hour",
        "scaling_efficiency": None if workers == 1 else 0.16 / workers / step_s,
        "curves": curves,
        "series": [training(rng, seed, steps, step_s, speed, diverged) for seed in SEEDS],
        "timeline": timeline(rng, workers, servers, compute, communicate),
        "links": all_links, "nodes": node_rows(rng, workers, servers, total, all_links)}


def failed(name):
    return {"name": name, "kind": "hierarchical", "settings": {}, "taxonomy": {
        "structure": "hierarchical", "parallelism": "data", "optimisation": "centralised",
        "timing": "synchronous", "pattern": "two rings"}, "fabric": "virtual", "workers": 8,
        "obtained": "simulated", "status": "failed",
        "error": "strategy.groups: 3 does not divide 8 workers; use 2 or 4",
        "shared_curve_of": None, "seeds": SEEDS, "runs": [], "reached": 0, "quality": None,
        "to_target_s": None, "total_s": None, "time_split": None, "staleness": None,
        "curves": [], "series": [], "timeline": [], "links": [], "nodes": []}


def envelope(strategies):
    return {
        "schema": 1, "kind": "comparison", "name": "fashion-lenet",
        "created": "2026-11-16T03:00:00Z",
        "title": "LeNet on Fashion-MNIST under eight architectures",
        "task": {"data": "fashion-mnist", "model": "lenet", "global_batch": 128, "epochs": 4,
                 "target": TARGET, "metric": "accuracy", "higher_is_better": True, "seeds": SEEDS},
        "cluster": {"fabric": "virtual", "workers": NODES,
                    "description": "8 nodes of 20 GFLOP/s on 1 Gbit/s", "network": "1 Gbit/s"},
        "definitions": {
            "time_to_target": "Seconds from the first touch of the data until the quality measured "
                              "on the validation samples is at the target for the first time.",
            "convergence": "The smoothed loss has not improved by more than 1 % over 200 steps.",
            "normalised": "Time multiplied by the declared speed over 1 GFLOP/s.",
            "staleness": "Updates applied between reading the parameters and applying a gradient.",
            "age": "Seconds between reading the parameters and applying a gradient of them.",
            "update_order": "Share of pairs of updates applied in another order than the "
                            "synchronous one.",
            "energy": "Joules of all machines, idle time included.",
            "co2e": "Energy times the stated intensity of the grid.",
            "cost": "Node hours times the stated price.",
            "equal_samples": "Quality when every strategy has seen as many samples as the one that "
                             "saw the fewest.",
            "equal_time": "Quality when every strategy has run as long as the shortest."},
        "job": 'name = "fashion-lenet"\n\n[task]\ndata = "fashion-mnist"\nmodel = "lenet"\n'
               'global_batch = 128\nepochs = 4\ntarget = 0.85\n\n[cluster]\nfabric = "virtual"\n'
               'workers = 8\n',
        "versions": {"tutti": "0.1.0", "libtorch": "1.13.1", "simgrid": "3.32", "ucx": "1.13.1"},
        "machine": {"cpu": "Example CPU", "hardware_threads": 2, "memory_bytes": 25769803776},
        "validation": {"text": "An example of the sentence that validation puts here."},
        "strategies": strategies}


def comparison():
    rng = random.Random(1)
    return envelope([strategy(rng, row) for row in STRATEGIES] + [failed("two-level")])


def large(runs=1000, points=1000):
    """`runs` runs, 50 strategies of them, with `points` losses each, a twentieth of it evaluated."""
    rng = random.Random(2)
    seeds = max(1, runs // 50)
    strategies = []
    for i in range(min(50, runs)):
        row = list(STRATEGIES[1 + i % 5])
        made = strategy(rng, row, points=2, steps=1)
        made["name"] = f"{row[0]}-{i}"
        made["seeds"] = list(range(1, seeds + 1))
        made["curves"] = [curve(rng, seed, points // 20, 0.03, 1e6, 0.9, 0.05 + 0.01 * i)
                          for seed in made["seeds"]]
        made["series"] = [training(rng, seed, points, 0.03, 1) for seed in made["seeds"]]
        strategies.append(made)
    return envelope(strategies)


def wide(count=1000):
    """`count` strategies of one run each."""
    rng = random.Random(3)
    strategies = []
    for i in range(count):
        made = strategy(rng, STRATEGIES[1 + i % 5], points=10, steps=100)
        made["name"] = f"{made['name']}-{i}"
        for key in ("curves", "series", "seeds"):
            made[key] = made[key][:1]
        made["reached"] = min(made["reached"], 1)
        strategies.append(made)
    return envelope(strategies)


def one_seed():
    """The same with the first seed alone, as a comparison without --seeds writes it."""
    made = comparison()
    made["task"]["seeds"] = SEEDS[:1]
    for strategy_ in made["strategies"]:
        for key in ("curves", "series", "seeds", "runs"):
            strategy_[key] = strategy_[key][:1]
        strategy_["reached"] = min(strategy_["reached"], 1)
        for figures in (strategy_, strategy_["quality"] or {}):
            for key, value in figures.items():
                if isinstance(value, dict) and "values" in value:
                    figures[key] = stat(value["values"][:1])
        strategy_["error"] = strategy_["error"].replace("seed 2: ", "")
    return made


def mixed():
    """Half of the strategies were measured on this machine, the other half was simulated."""
    made = comparison()
    for strategy_ in made["strategies"][1::2]:
        strategy_["obtained"] = "measured"
        strategy_["fabric"] = "process"
        strategy_["energy_method"] = "estimated from load: 2 threads x 4 W"
    return made


def many(count=50):
    """`count` strategies, and one node alone, which is the worst of them."""
    made = wide(count)
    alone = strategy(random.Random(4), STRATEGIES[0], points=10, steps=100)
    for key in ("curves", "series", "seeds"):
        alone[key] = alone[key][:1]
    alone["reached"] = 0
    alone["to_target_s"] = None
    alone["quality"] = {"best": stat([0.2]), "final": stat([0.2])}
    made["strategies"].insert(3, alone)
    return made


def costs_only():
    """What `cluster.cost_only` leaves: no learning, no target, nobody is late."""
    made = one_seed()
    made["task"]["target"] = None
    made["strategies"] = made["strategies"][:3]
    for strategy_ in made["strategies"]:
        strategy_.update(quality=None, curves=[], series=[], to_target_s=None, reached=0,
                         steps_to_target=None, samples_to_target=None, converged_s=None,
                         to_target_normalised_s=None, converged_steps=None)
    return made


def hostile():
    """Names and texts that try to leave their place in the page."""
    made = comparison()
    texts = ["<img src=x onerror=\"window.pwned=1\">", "</script><script>window.pwned=1</script>",
             "\u2028\u2029<!--<script>", "'\"&amp;{{7*7}}", "../../etc/x", "a,b\n\"c\"", "=1+1"]
    for strategy_, text in zip(made["strategies"], texts):
        strategy_["name"] = text
        strategy_["kind"] = text
        strategy_["energy_method"] = text
        strategy_["taxonomy"]["structure"] = text
    made["strategies"][6]["error"] = texts[0]
    made["title"] = made["name"] = texts[1]
    made["job"] = texts[1] + texts[0]
    made["cluster"]["description"] = texts[0]
    made["cluster"]["network"] = texts[3]
    made["task"]["model"] = texts[0]
    made["definitions"]["energy"] = texts[0]
    made["versions"][texts[0]] = texts[0]
    return made


if __name__ == "__main__":
    kind, out = sys.argv[1:]
    with open(out, "w", encoding="utf-8") as file:
        json.dump({"comparison": comparison, "large": large, "wide": wide, "hostile": hostile}[kind](),
                  file)
