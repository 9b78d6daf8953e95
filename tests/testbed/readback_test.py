"""Exports are read back by readers that share no code with the writer: TensorBoard's records with
crcmod and Google's protocol buffers, the trace with Python's json, the tables with Python's csv.

usage: readback_test.py TUTTI
"""
import csv
import glob
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest

import fixture

try:
    import crcmod.predefined
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
except ImportError as error:
    sys.exit(f"readback_test.py: {error}; run ./scripts/setup --web")

TUTTI = sys.argv[1]
crc32c = crcmod.predefined.mkPredefinedCrcFun("crc-32c")


def event_class():
    """tensorflow.Event, described here as its .proto does, without the fields that scalars lack."""
    file = descriptor_pb2.FileDescriptorProto(name="event.proto", package="t", syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto

    def message(name, *fields):
        described = file.message_type.add(name=name)
        for field, number, kind, type_name, label in fields:
            described.field.add(name=field, number=number, type=kind, type_name=type_name,
                                label=label)
    one, many = kinds.LABEL_OPTIONAL, kinds.LABEL_REPEATED
    message("Value", ("tag", 1, kinds.TYPE_STRING, None, one),
            ("simple_value", 2, kinds.TYPE_FLOAT, None, one))
    message("Summary", ("value", 1, kinds.TYPE_MESSAGE, ".t.Value", many))
    message("Event", ("wall_time", 1, kinds.TYPE_DOUBLE, None, one),
            ("step", 2, kinds.TYPE_INT64, None, one),
            ("file_version", 3, kinds.TYPE_STRING, None, one),
            ("summary", 5, kinds.TYPE_MESSAGE, ".t.Summary", one))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName("t.Event"))


def unmasked(crc):
    rotated = (crc - 0xa282ead8) & 0xffffffff
    return ((rotated >> 17) | (rotated << 15)) & 0xffffffff


def records(path):
    with open(path, "rb") as file:
        while head := file.read(12):
            length, length_crc = struct.unpack("<QI", head)
            assert unmasked(length_crc) == crc32c(head[:8]), "checksum of the length"
            data = file.read(length)
            assert len(data) == length, "a record is cut off"
            assert unmasked(struct.unpack("<I", file.read(4))[0]) == crc32c(data), "checksum"
            yield data


class ReadBack(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def export(self, comparison):
        with open(self.path("compare.json"), "w", encoding="utf-8") as file:
            json.dump(comparison, file)
        subprocess.run([TUTTI, "report", self.folder.name, "--tensorboard", self.path("tb"),
                        "--trace", self.path("trace.json"), "--csv", self.path("table.csv")],
                       check=True, stdout=subprocess.DEVNULL)
        self.assertTrue(os.path.exists(self.path("report.html")))

    def test_tensorboard(self):
        comparison = fixture.comparison()
        self.export(comparison)
        event = event_class()
        for strategy in comparison["strategies"]:
            for curve, series in zip(strategy["curves"], strategy["series"]):
                folder = self.path(f"tb/{strategy['name']}-seed{curve['seed']}")
                files = glob.glob(folder + "/events.out.tfevents.*")
                self.assertEqual(len(files), 1, folder)
                events = [event.FromString(data) for data in records(files[0])]
                self.assertEqual(events[0].file_version, "brain.Event:2")
                read = {}
                for each in events[1:]:
                    value, = each.summary.value
                    read.setdefault(value.tag, []).append(
                        (each.step, each.wall_time, value.simple_value))
                self.assertEqual([row[0] for row in read["train/loss"]], series["step"])
                for row, loss in zip(read["train/loss"], series["loss"]):
                    self.assertAlmostEqual(row[2], loss, delta=1e-6 * abs(loss))
                known = [p for p in curve["points"] if p["quality"] is not None]
                self.assertEqual([row[0] for row in read["evaluation/accuracy"]],
                                 [p["step"] for p in known])
                start = events[0].wall_time
                self.assertEqual(start, 1794798000.0)  # 2026-11-16T03:00:00Z
                for row, point in zip(read["evaluation/accuracy"], known):
                    self.assertAlmostEqual(row[2], point["quality"], delta=1e-6)
                    self.assertAlmostEqual(row[1] - start, point["time_s"], delta=1e-5)
                self.assertEqual(len(read["evaluation/loss"]), len(known))
        self.assertEqual(len(os.listdir(self.path("tb"))), 7 * 3)

    def test_trace(self):
        comparison = fixture.comparison()
        # Communication that overlaps the backward pass only in part cannot nest.
        comparison["strategies"][1]["timeline"][0]["intervals"] += [
            ["communicate", 0.010, 0.030], ["communicate", 0.012, 0.014], ["wait", 0.02, 0.04]]
        self.export(comparison)
        with open(self.path("trace.json"), encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        by_thread, names = {}, {}
        for event in events:
            if event["ph"] == "M":
                names[event["name"], event["pid"], event["tid"]] = event["args"]["name"]
                continue
            self.assertEqual(event["ph"], "X")
            by_thread.setdefault((event["pid"], event["tid"]), []).append(event)
        for thread, of_thread in by_thread.items():
            self.assertIn(("thread_name", *thread), names)
            self.expect_nested(of_thread)
        self.assertEqual(names["process_name", 2, 0], "ring (simulated)")
        total = sum(event["dur"] for event in events if event["ph"] == "X")
        wanted = sum(end - begin for s in comparison["strategies"] for row in s["timeline"]
                     for _, begin, end in row["intervals"])
        self.assertAlmostEqual(total / 1e6, wanted, places=4)

    def expect_nested(self, events):
        nanosecond = 1e-3
        open_ends = []
        for event in sorted(events, key=lambda e: (e["ts"], -e["dur"])):
            while open_ends and open_ends[-1] <= event["ts"] + nanosecond / 2:
                open_ends.pop()
            end = event["ts"] + event["dur"]
            if open_ends:
                self.assertLessEqual(end, open_ends[-1] + nanosecond / 2, event)
            open_ends.append(end)

    def test_csv(self):
        for comparison in (fixture.comparison(), fixture.hostile()):
            self.export(comparison)
            with open(self.path("table.csv"), newline="", encoding="utf-8") as file:
                rows = list(csv.DictReader(file, strict=True))
            self.assertEqual([row["name"] for row in rows],
                             [s["name"] for s in comparison["strategies"]])
            for row, strategy in zip(rows, comparison["strategies"]):
                self.assertEqual(row["error"], strategy["error"])
                for part in fixture.TAXONOMY_KEYS:  # an older comparison lacks some
                    self.assertEqual(row[part], strategy["taxonomy"].get(part, ""))
                for key in ("to_target_s", "total_s", "energy_j", "bytes_total"):
                    known = strategy.get(key)
                    self.assertEqual(row[key], repr(known["mean"]) if known else "", key)
                    self.assertEqual(row[key + "_max"], repr(known["max"]) if known else "")
            with open(self.path("table-curves.csv"), newline="", encoding="utf-8") as file:
                curves = list(csv.DictReader(file, strict=True))
            wanted = [(s["name"], str(c["seed"]), p) for s in comparison["strategies"]
                      for c in s["curves"] for p in c["points"]]
            read = [row for row in curves if row["source"] == "evaluation"]
            self.assertEqual(len(read), len(wanted))
            for row, (name, seed, point) in zip(read, wanted):
                self.assertEqual((row["strategy"], row["seed"]), (name, seed))
                self.assertEqual(float(row["time_s"]), point["time_s"])
                self.assertEqual(row["quality"] == "", point["quality"] is None)
            losses = sum(len(x["loss"]) for s in comparison["strategies"] for x in s["series"])
            self.assertEqual(sum(row["source"] == "training" for row in curves), losses)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
