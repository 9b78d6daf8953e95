"""What two folders with the output of one job differ in.

A file becomes facts: keys with values. Keys are those of JSON and TOML, columns of CSV, tensors, lines of text. A fact that is
measured (measured.txt) has no value here, only its key without the places in lists: there may be more of them the next time.
"""
import collections
import csv
import fnmatch
import hashlib
import io
import json
import os
import re
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
Difference = collections.namedtuple("Difference", "job place before now")
Difference.__str__ = lambda self: f"{self.place}: {self.before} -> {self.now}"
Rule = collections.namedtuple("Rule", "kinds pattern how")
NOT_THERE = "(not there)"


def lines_of(path):
    """Words of the lines of a list, without comments."""
    with open(path, encoding="utf-8") as file:
        return [line.split(None, 2) for line in file if line.strip() and not line.startswith("#")]


def expression(pattern):
    """Of a pattern in which * stands for anything, and all else for itself."""
    return re.compile(".*".join(re.escape(part) for part in pattern.split("*")) + r"\Z", re.DOTALL)


RULES = [Rule(kinds.split(","), expression(pattern.lstrip("=~")), pattern[0])
         for kinds, pattern, _ in lines_of(os.path.join(HERE, "measured.txt"))]


def flatten(value, key, facts):
    if isinstance(value, dict):
        facts[key + "{}"] = "a table"
        for name, member in value.items():
            flatten(member, f"{key}.{name}" if key else name, facts)
    elif isinstance(value, list):
        facts[key + "[]"] = f"{len(value)} values"
        for place, member in enumerate(value):
            flatten(member, f"{key}[{place}]", facts)
    else:
        facts[key] = json.dumps(value) if not isinstance(value, (int, float)) else repr(value)


def digest(content):
    return "sha256 " + hashlib.sha256(content).hexdigest()[:16]


def facts_of_csv(text, facts):
    rows = list(csv.reader(io.StringIO(text)))
    facts["columns"] = ",".join(rows[0]) if rows else ""
    for number, row in enumerate(rows[1:]):
        for place, value in enumerate(row):
            name = rows[0][place] if place < len(rows[0]) else place
            facts[f"{name}[{number}]"] = value


def facts_of_tensors(content, facts):
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8:8 + length])
    for name, tensor in header.items():
        flatten({key: value for key, value in tensor.items() if key != "data_offsets"}, name, facts)
        if "data_offsets" in tensor:
            first, last = (8 + length + offset for offset in tensor["data_offsets"])
            facts[name] = digest(content[first:last])


def facts_of_page(text, facts):
    """Of a report: the comparison in it, and the page around it."""
    before, mark, rest = text.partition('id="comparison">')
    data, _, after = rest.partition("</script>")
    facts["page"] = digest((before + mark + after).encode())
    flatten(json.loads(data), "comparison", facts)


def facts_of(path, root):
    """The facts of a file; folders of this machine are not among them."""
    with open(path, "rb") as file:
        content = file.read()
    facts = {}
    try:
        text = content.decode().replace(root, "WORK")
        text = re.sub(r'/[^\s"]*/recipes/', "TREE/recipes/", text)
        if path.endswith(".csv"):
            facts_of_csv(text, facts)
        elif path.endswith(".toml"):
            flatten(tomllib.loads(text), "", facts)
        elif path.endswith(".html"):
            facts_of_page(text, facts)
        elif text.lstrip()[:1] in ("{", "["):
            flatten(json.loads(text), "", facts)
        else:
            # What a comparison consumed is measured, whatever else is printed with it.
            facts.update(("consumed" if line.startswith("consumed ") else f"line {number}", line)
                         for number, line in enumerate(text.splitlines(), 1))
    except ValueError:  # also of texts that are none
        if path.endswith(".safetensors"):
            facts_of_tensors(content, facts)
        else:
            facts = {"content": digest(content)}
    return facts


def how_to_compare(job, place):
    """By = or ~ or, in any other case, not at all."""
    return next((rule.how for rule in RULES if job.kind in rule.kinds and rule.pattern.match(place)), "=")


def facts_below(job, folder):
    facts = {}
    for path, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            full = os.path.join(path, name)
            # Names of event files have the time and the host in them.
            file = re.sub(r"tfevents\.[0-9]+\..*", "tfevents", os.path.relpath(full, folder))
            facts[file] = "a file"
            for key, value in facts_of(full, folder).items():
                place = f"{file}:{key}"
                how = how_to_compare(job, place)
                if how == "=":
                    facts[place] = value
                elif how == "~":
                    facts[place] = re.sub(r"[0-9][0-9.e+-]*", "#", value)
                else:
                    facts[re.sub(r"\[[0-9]+\]|(?<=:line) [0-9]+", "[]", place)] = "measured"
    return facts


def between(job, before, now):
    one, other = facts_below(job, before), facts_below(job, now)
    found = []
    for place in sorted(one.keys() | other.keys()):
        values = [facts.get(place, NOT_THERE) for facts in (one, other)]
        # Of a file that is on one side alone, its name says enough.
        in_a_file = ":" in place and place.split(":")[0] in one and place.split(":")[0] in other
        if values[0] != values[1] and (in_a_file or ":" not in place):
            found.append(Difference(job.name, place, *values))
    return found


def sort_out(found, path):
    """Returns what is allowed, with its reason, what is not, and lines of the list that match nothing."""
    rules = [(jobs, place, reason.strip()) for jobs, place, reason in lines_of(path)]
    used, allowed, others = set(), [], []
    for difference in found:
        for jobs, place, reason in rules:
            if fnmatch.fnmatchcase(difference.job, jobs) and expression(place).match(difference.place):
                used.add((jobs, place, reason))
                allowed.append((difference, reason))
                break
        else:
            others.append(difference)
    return allowed, others, [" ".join(rule) for rule in rules if rule not in used]


def report(result):
    """For people: equal differences of several jobs once."""
    lines = []
    groups = collections.defaultdict(list)
    for difference in result["differences"]:
        # A record is also printed; parameters are one thing; rows and nodes are alike.
        like = re.sub(r"^.*(-train\.stdout|run\.json):", "record:", difference["place"])
        like = re.sub(r"(safetensors):.*", r"\1", like)
        groups[re.sub(r"\[[0-9]+\]|node-[0-9]+|line [0-9]+", "#", like)].append(difference)
    for group in groups.values():
        first, names = group[0], sorted({difference["job"] for difference in group})
        lines.append(f"{first['job']}  {first['place']}\n    before: {first['before'][:300]}\n"
                     f"    now:    {first['now'][:300]}")
        if len(group) > 1:
            lines.append(f"    and {len(group) - 1} more like it in {len(names)} jobs: {' '.join(names[:8])}"
                         + (" ..." if len(names) > 8 else ""))
    if result["allowed"]:
        lines.append(f"{len(result['allowed'])} differences are allowed: tests/same_as/allowed.txt")
    lines += [f"allowed.txt: this line matches nothing: {line}" for line in result["unused_lines"]]
    lines += [f"variant {name} is not in tests/same_as/jobs.py: add it" for name in
              result["forgotten_variants"]]
    lines += [f"left out: {what}" for what in result["left_out"]]
    count = len(result["differences"])
    lines.append(f"{result['jobs']} jobs in {result['seconds']:.0f} s: "
                 + (f"{count} differences" if count else "the same" if result["same"] else "see above"))
    return "\n".join(lines)
