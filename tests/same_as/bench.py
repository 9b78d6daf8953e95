"""`scripts/same-as COMMIT --bench`: how fast this tree is, relative to the commit.

Both programs run `tutti bench` in turn, a round each, and who begins changes from round to round. Ratios are taken within a round,
because machines change their speed from minute to minute: 1.05 is 5 % faster than before, whatever the figure is.
"""
import json
import re
import statistics
import subprocess

CASES = {
    "startup": [],
    "allreduce": ["--only", "direct,ring,butterfly", "--processes", "2"],
    "ps": ["--only", "dense,lenet"],
    "train": ["--only", "direct"],
    "model_parallel": [],
    "virtual": [],
}
LESS_IS_BETTER = ("median_us", "median_s")
MORE_IS_BETTER = ("gb_per_s", "samples_per_s", "servers_samples_per_s", "steps_per_real_s")
NAMES = ("what", "case", "impl", "processes", "servers", "bytes")  # of a row


def figures_of(program, case):
    """The speeds that a benchmark found, by name; more is better."""
    done = subprocess.run([program.path, "bench", case, *CASES[case], "--rounds", "1", "--json", "--quiet"],
                          stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"same-as: `{program.path} bench {case}` ended with exit code {done.returncode}")
    figures = {}
    for row in json.loads(done.stdout):
        name = " ".join([case] + [f"{row[key]} {key}" if isinstance(row[key], int) else row[key]
                                  for key in NAMES if key in row])
        for key, value in row.items():
            if key in LESS_IS_BETTER and value:
                figures[name] = 1 / value
            elif key in MORE_IS_BETTER:
                figures[name] = value
    return figures


def summary_of(ratios):
    return {"median": statistics.median(ratios), "min": min(ratios), "max": max(ratios), "ratios": ratios}


def run(programs, rounds, only, as_json, tell):
    chosen = [case for case in CASES if re.search(only, case)]
    if not chosen:
        raise SystemExit(f"same-as: there is no benchmark like that; there are {', '.join(CASES)}")
    ratios = {}
    for number in range(rounds):
        for case in chosen:
            tell(f"round {number + 1} of {rounds}: {case}")
            order = (0, 1) if number % 2 == 0 else (1, 0)
            speeds = {side: figures_of(programs[side], case) for side in order}
            for name in speeds[0].keys() & speeds[1].keys():
                ratios.setdefault(name, []).append(speeds[1][name] / speeds[0][name])
    result = {name: summary_of(ratios[name]) for name in sorted(ratios)}
    if as_json:
        print(json.dumps(result, indent=1))
        return 0
    print(f"{'speed relative to the commit':<52} median  smallest  largest   of {rounds} rounds")
    for name, ratio in result.items():
        # A figure stands out when every round says so.
        remark = "  slower in every round" if ratio["max"] < 1 else "  faster in every round" if ratio["min"] > 1 else ""
        print(f"{name:<52} {ratio['median']:6.3f} {ratio['min']:9.3f} {ratio['max']:8.3f}{remark if rounds > 1 else ''}")
    return 0
