"""Differences that are planted in what a job left are found and named; what is measured is none."""
import json
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import differences  # noqa: E402
import jobs  # noqa: E402

RECORD = {"status": "done", "plan": "2 servers", "time": {"total_s": 1.5, "wall_s": 0.2}, "steps": 3,
          "nodes": [{"role": "worker", "bytes_sent": 10}, {"role": "server", "bytes_sent": 20}],
          "parameters_sha256": "ab"}


def tensors(values):
    header = json.dumps({"w": {"dtype": "F32", "shape": [len(values)], "data_offsets": [0, len(values)]}}).encode()
    return len(header).to_bytes(8, "little") + header + bytes(values)


class Differences(unittest.TestCase):
    def found(self, kind, change):
        """Places that differ after `change` of one side's folder."""
        with tempfile.TemporaryDirectory() as folder:
            sides = [os.path.join(folder, side) for side in ("before", "now")]
            for side in sides:
                os.makedirs(side + "/run")
                self.put(side, "1-train.exit", b"0\n")
                self.put(side, "run/run.json", json.dumps(RECORD).encode())
                self.put(side, "run/series.csv", b"step,time_s,loss\n1,0.5,2.25\n2,0.75,2.125\n")
                self.put(side, "run/job.toml", b'name = "a"\n[task]\nseed = 1\n')
                self.put(side, "run/parameters.safetensors", tensors([1, 2, 255]))
                self.put(side, "run/node-0.log", b"  0.001 info done in " + side.encode() + b"\n")
            change(sides[1])
            return [difference.place for difference in differences.between(jobs.Job("j", kind, []), *sides)]

    @staticmethod
    def put(side, name, content):
        with open(os.path.join(side, name), "wb") as file:
            file.write(content)

    def record_with(self, **changes):
        return lambda side: self.put(side, "run/run.json", json.dumps({**RECORD, **changes}).encode())

    def test_nothing(self):
        for kind in ("virtual", "process", "dealt", "async"):
            self.assertEqual(self.found(kind, lambda side: None), [])

    def test_measured(self):
        wall = self.record_with(time={"total_s": 1.5, "wall_s": 0.3})
        self.assertEqual(self.found("virtual", wall), [])
        total = self.record_with(time={"total_s": 1.6, "wall_s": 0.2})
        self.assertEqual(self.found("virtual", total), ["run/run.json:time.total_s"])
        self.assertEqual(self.found("process", total), [])

    def test_keys(self):
        for kind in ("virtual", "process", "async"):
            self.assertEqual(self.found(kind, self.record_with(more=1)), ["run/run.json:more"])
            self.assertEqual(self.found(kind, self.record_with(time={"total_s": 1.5})), ["run/run.json:time.wall_s"])

    def test_values(self):
        steps = self.record_with(steps=4)
        self.assertEqual(self.found("process", steps), ["run/run.json:steps"])
        self.assertEqual(self.found("async", steps), [])
        self.assertEqual(self.found("async", self.record_with(plan="3 servers")), ["run/run.json:plan"])
        nodes = self.record_with(nodes=[{"role": "worker", "bytes_sent": 11}, {"role": "server", "bytes_sent": 20}])
        self.assertEqual(self.found("process", nodes), ["run/run.json:nodes[0].bytes_sent"])
        self.assertEqual(self.found("dealt", nodes), [])

    def test_files(self):
        self.assertEqual(self.found("async", lambda side: self.put(side, "run/new.json", b"{}")), ["run/new.json"])
        self.assertEqual(self.found("async", lambda side: self.put(side, "1-train.exit", b"4\n")), ["1-train.exit:line 1"])
        self.assertEqual(self.found("virtual", lambda side: os.remove(side + "/run/series.csv")), ["run/series.csv"])
        bits = tensors([1, 2, 254])
        self.assertEqual(self.found("process", lambda side: self.put(side, "run/parameters.safetensors", bits)),
                         ["run/parameters.safetensors:w"])
        job = b'name = "a"\n[task]\nseed = 2\n'
        self.assertEqual(self.found("async", lambda side: self.put(side, "run/job.toml", job)), ["run/job.toml:task.seed"])
        series = b"step,time_s,loss\n1,0.5,2.25\n2,0.75,2.5\n"
        self.assertEqual(self.found("process", lambda side: self.put(side, "run/series.csv", series)),
                         ["run/series.csv:loss[1]"])
        log = b"  0.002 info done in time\n"
        self.assertEqual(self.found("process", lambda side: self.put(side, "run/node-0.log", log)), ["run/node-0.log:line 1"])

    def test_allowed(self):
        one = differences.Difference("virtual/ring", "run/run.json:steps", "3", "4")
        other = differences.Difference("virtual/tree", "run/run.json:plan", "a", "b")
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("# a comment\nvirtual/*  run/run.json:steps  it is meant\nvirtual/*  run/no*  never\n")
            file.flush()
            allowed, others, unused = differences.sort_out([one, other], file.name)
        self.assertEqual(allowed, [(one, "it is meant")])
        self.assertEqual(others, [other])
        self.assertEqual(unused, ["virtual/* run/no* never"])


if __name__ == "__main__":
    unittest.main()
