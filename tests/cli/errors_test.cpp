// What the program refuses: exit code 2, a message that names file, line and key, nothing started.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "fabric/outcome.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;

// `text` with its line `number`, from 1, replaced.
std::string with_line(const std::string& text, size_t number, const std::string& line) {
  std::istringstream lines(text);
  std::string result, current;
  for (size_t i = 1; std::getline(lines, current); ++i)
    result += (i == number ? line : current) + "\n";
  return result;
}

class Refused : public testing::Test {
 protected:
  // The arguments are refused with a message that has all `parts`, and no run folder appears.
  void expect(const Arguments& arguments, const std::vector<std::string>& parts) {
    const Ended ended = run_tutti(arguments, {.folder = folder_.path()});
    EXPECT_EQ(ended.exit_code, kExitBadJob) << ended.out << ended.err;
    for (const std::string& part : parts)
      EXPECT_TRUE(has(ended.err, part)) << "\"" << ended.err << "\" lacks \"" << part << "\"";
    EXPECT_FALSE(std::filesystem::exists(folder_ / "runs"));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));
  }
  // A job is refused by `train` and by `check` alike, each with one line of error.
  void expect_job(const std::string& job, const std::vector<std::string>& parts) {
    write_text(folder_ / "job.toml", job);
    expect({"train", "job.toml", "--out", "out"}, parts);
    expect({"train", "job.toml"}, parts);
    expect({"check", "job.toml"}, parts);
    const Ended ended = run_tutti({"check", "job.toml"}, {.folder = folder_.path()});
    EXPECT_TRUE(ended.err.starts_with("tutti: ")) << ended.err;
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
    EXPECT_EQ(ended.out, "");
  }
  // The same for the small job with one line replaced; `below` is how far below it the fault is.
  void expect_line(size_t line, const std::string& text, const std::vector<std::string>& parts,
                   size_t below = 0) {
    std::vector<std::string> all = parts;
    all.push_back("job.toml:" + std::to_string(line + below) + ":");
    expect_job(with_line(small_job(), line, text), all);
  }
  TemporaryFolder folder_;
};

TEST_F(Refused, ModelsThatDoNotFitANode) {
  expect_line(14, "fabric = \"virtual\"\nmemory = \"100 B\"",
              {"cluster.memory = 100 B", "27 parameters", "tutti advise"}, 1);
}

TEST_F(Refused, ClustersThatAreNotThereOrWrong) {
  write_text(folder_ / "job.toml", small_job());
  expect({"check", "job.toml", "--cluster", "rack-1"}, {"rack-1", "did you mean 'rack-1g'?"});
  expect({"train", "job.toml", "--cluster", "job.toml", "--set", "cluster.worker=2"},
         {"cluster.worker"});
  write_text(folder_ / "empty.toml", "name = \"nothing\"\n");
  expect({"compare", "job.toml", "--cluster", "empty.toml"}, {"empty.toml", "no [cluster]"});
  write_text(folder_ / "wrong.toml", "[cluster]\nfabric = \"virtual\"\nworkers = \"many\"\n");
  expect({"train", "job.toml", "--cluster", "wrong.toml"}, {"wrong.toml:3", "cluster.workers"});
}

// The whole [cluster] is another one, and settings come on top of it.
TEST_F(Refused, NothingOfAJobOnAnotherCluster) {
  write_text(folder_ / "job.toml", small_job());
  const auto workers = [&](Arguments arguments) {
    const Ended ended = run_tutti(arguments, {.folder = folder_.path()});
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    return ended.out;
  };
  EXPECT_TRUE(has(workers({"check", "job.toml", "--cluster", "stragglers"}), "8 workers"));
  EXPECT_TRUE(
      has(workers({"check", "job.toml", "--cluster", "stragglers", "--set", "cluster.workers=16"}),
          "16 workers"));
}

TEST_F(Refused, UnknownKeysWithTheNearestOne) {
  expect_line(5, "global_bach = 20", {"task.global_bach", "did you mean 'global_batch'?"});
  expect_line(15, "worker = 2", {"cluster.worker", "did you mean 'workers'?"});
  expect_line(1, "title = \"x\"", {"title", "is not a setting here"});
  expect_line(1, "workers = 4", {"workers", "did you mean 'cluster.workers'?"});
  expect_line(12, "topologie = \"ring\"", {"strategy.topologie", "did you mean 'topology'?"});
  expect_line(4, "model = { kind = \"logistic\", hiden = [3] }", {"task.model.hiden"});
}

// Names of other systems are understood, and of two settings that say the same one has to go.
TEST_F(Refused, NamesThatOtherSystemsUse) {
  expect_line(9, "rate = 0.1", {"optimizer.rate", "did you mean 'lr'?"});
  expect_line(5, "batch_size = 20", {"task.batch_size", "did you mean 'global_batch'?"});
  write_text(folder_ / "job.toml", small_job());
  expect({"check", "job.toml", "--set",
          "strategy={ kind = \"federated_averaging\", local_epochs = 2, local_steps = 3 }"},
         {"strategy.local_epochs", "strategy.local_steps takes its place"});
}

TEST_F(Refused, TablesWithAnotherSeparator) {
  write_text(folder_ / "table.csv", "a;b;kind\n1.5;2;x\n2.5;3;y\n");
  write_text(folder_ / "job.toml",
             with_line(small_job(), 3, "data = { kind = \"csv\", path = \"table.csv\" }"));
  expect({"check", "job.toml"}, {"table.csv", "separated by commas", "semicolons"});
}

TEST_F(Refused, SettingsWithoutEffect) {
  expect_line(8, "kind = \"sgd\"\nmomentum = 0.9",
              {"optimizer.momentum", "it needs optimizer.kind = \"momentum\""}, 1);
  expect_line(15, "workers = 2\nbandwidth = \"1 Gbit/s\"",
              {"cluster.bandwidth", "it needs cluster.fabric = \"virtual\""}, 1);
}

TEST_F(Refused, WrongTypes) {
  expect_line(5, "global_batch = \"many\"", {"task.global_batch", "a whole number", "text"});
  expect_line(5, "global_batch = 2.5", {"task.global_batch", "a whole number"});
  expect_line(9, "lr = true", {"optimizer.lr", "a number", "true or false"});
  expect_line(1, "name = 3", {"name", "text", "a whole number"});
  expect_line(4, "model = [1]", {"task.model", "a list"});
  expect_line(15, "workers = 2\ntimeout = \"1 parsec\"", {"cluster.timeout", "unit", "parsec"}, 1);
}

TEST_F(Refused, ValuesOutOfRange) {
  expect_line(5, "global_batch = 0", {"task.global_batch", "at least 1"});
  expect_line(9, "lr = -0.1", {"optimizer.lr", "more than 0"});
  expect_line(9, "lr = nan", {"optimizer.lr", "finite"});
  expect_line(15, "workers = 70000", {"cluster.workers", "at most 65535"});
  expect_line(14, "fabric = \"virtual\"\nshared_cores = 4294967297",
              {"cluster.shared_cores", "at most 65535"}, 1);
  expect_line(1, "name = \"a/b\"", {"name", "slash"});
  // A C string ends at the null character, so the folder would get another name.
  expect_line(1, "name = \"a\\u0000b\"", {"name = \"a\\x00b\"", "control characters"});
  expect_line(1, "name = \"a\\u001b[31mb\"", {"name = \"a\\x1b[31mb\"", "control characters"});
}

TEST_F(Refused, UnknownChoices) {
  expect_line(4, "model = \"logistics\"", {"task.model", "did you mean 'logistic'?"});
  expect_line(12, "topology = \"rings\"", {"strategy.topology", "did you mean 'ring'?"});
  expect_line(14, "fabric = \"carrier-pigeon\"", {"cluster.fabric", "process, virtual"});
}

// Nobody wants the defaults of an empty job.
TEST_F(Refused, JobsThatSayNothing) {
  expect_job("", {"job.toml: task.data is missing", "[task]", "data = \"fashion-mnist\""});
  expect_job("[cluster]\nworkers = 2\n", {"task.data is missing"});
  expect_job("[task]\nmodel = \"lenet\"\n", {"task.data is missing"});
  expect_job("[task]\ndata = \"fashion-mnist\"\n", {"task.model is missing"});
}

TEST_F(Refused, BrokenToml) {
  expect_line(5, "global_batch = = 2", {});
  expect_line(5, "global_batch = \"open", {});
  expect({"train", "nowhere.toml"}, {"nowhere.toml", "no such file"});
}

TEST_F(Refused, CombinationsThatContradict) {
  expect_line(15, "workers = 1000", {"cluster.workers = 1000", "training samples"});
  expect_line(5, "global_batch = 1", {"task.global_batch = 1", "cluster.workers = 2"});
  expect_line(5, "global_batch = 5000", {"task.global_batch = 5000", "training samples"});
  expect_line(12, "topology = \"hierarchical\"", {"hierarchical", "cluster.racks"});
  expect_line(5, "global_batch = 20\ndeterministic = true\nlanes = 1", {"task.lanes"}, 2);
  expect_line(4, "model = \"linear\"", {"linear", "classes"});
  expect_line(4, "model = \"lenet\"", {"lenet", "images"});

  const std::string solo = with_line(with_line(small_job(), 11, "kind = \"solo\""), 12, "");
  expect_job(solo, {"job.toml:15:", "solo", "cluster.workers"});
  const std::string direct = with_line(small_job(), 12, "topology = \"direct\"");
  expect_job(with_line(direct, 14, "fabric = \"virtual\""),
             {"job.toml:12:", "direct", "cluster.nodes_per_host"});
  const std::string exact = with_line(small_job(), 6, "deterministic = true");
  expect_job(with_line(exact, 5, "partition = \"disjoint\""),
             {"job.toml:5:", "task.deterministic", "task.partition"});
  expect_job(with_line(exact, 15, "threads = 2"),
             {"job.toml:15:", "task.deterministic", "cluster.threads"});
}

TEST_F(Refused, DataFilesThatAreMissingOrCorrupt) {
  expect_line(3, "data = { kind = \"csv\", path = \"none.csv\" }", {"task.data", "none.csv"});
  expect_line(3, "data = { kind = \"csv\" }", {"task.data.path", "missing"});
  write_text(folder_ / "bad.csv", "a,b,c\n1,2,x\n3,four,y\n");
  expect_line(3, "data = { kind = \"csv\", path = \"bad.csv\" }",
              {"task.data", "bad.csv", "line 3", "'four'"});
  write_text(folder_ / "bad.idx", std::string("\0\0\x08\x03\0\0\0\x05", 8));
  expect_line(3, "data = { kind = \"idx\", path = \"bad.idx\", labels_path = \"bad.idx\" }",
              {"task.data", "bad.idx"});
  expect_line(3, "data = { kind = \"fashion-mnist\", path = \".\" }",
              {"task.data.path must be the folder", "train-images"});
  expect_line(3, "data = { kind = \"csv\", path = \".\" }", {"task.data", "a folder, not a file"});
}

TEST_F(Refused, OverridesWithTheirOwnPlace) {
  write_text(folder_ / "job.toml", small_job());
  const auto expect_set = [&](const std::string& set, const std::vector<std::string>& parts) {
    expect({"train", "job.toml", "--out", "out", "--set", set}, parts);
  };
  expect_set("cluster.wokers=3", {"command line", "cluster.wokers", "did you mean 'workers'?"});
  expect_set("cluster.workers=many", {"command line", "cluster.workers", "whole number"});
  expect_set("cluster.workers=500", {"command line: cluster.workers = 500"});
  expect_set("task.model={kind=\"mlp\", hidden=[0]}", {"command line", "task.model.hidden"});
  expect_set("workers", {"--set workers", "key=value"});
  expect_set("epochs=3", {"command line", "did you mean 'task.epochs'?"});
  expect_set("compare=3", {"command line: compare must be a list"});
  expect_set("name.first=x", {"command line", "name must be text"});
  expect_set("task.epochs.first=x", {"--set task.epochs.first=x", "'epochs' is not a table"});
}

TEST_F(Refused, FoldersThatCannotBeUsed) {
  write_text(folder_ / "job.toml", small_job());
  write_text(folder_ / "file", "");
  for (const std::string& out : {folder_ / "file", folder_ / "file/below",
                                 std::string("/proc/nowhere"), std::string(5000, 'x')})
    expect({"train", "job.toml", "--out", out}, {out, "cannot be written", "name one with --out"});
  expect({"compare", "job.toml", "--out", "/proc/nowhere"},
         {"/proc/nowhere: the folder of the comparison cannot be used: ", "name one with --out"});
  expect({"survey", "--out", "/proc/nowhere"},
         {"/proc/nowhere: the folder of the survey cannot be written: ", "name one with --out"});
  // Whoever holds a run keeps it.
  std::filesystem::create_directory(folder_ / "full");
  write_text(folder_ / "full/run.json", "precious");
  expect({"train", "job.toml", "--out", "full"}, {"full", "already holds a run"});
  EXPECT_EQ(content_of(folder_ / "full/run.json"), "precious");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "full/job.toml"));
  expect({"predict", "full"}, {"full", "not the folder of a run"});
  expect({"predict", "nowhere"}, {"nowhere", "not the folder of a run"});
  expect({"predict", std::string(5000, 'x')}, {"not the folder of a run"});
  expect({"show", "nowhere"}, {"nowhere", "is not the folder of a run", "has no run.json"});
}

// Before the work begins, which takes minutes.
TEST_F(Refused, FilesThatCannotBeWritten) {
  write_text(folder_ / "job.toml", small_job());
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  for (const char* file : {"", ".", "nowhere/file", "pipe"}) {
    expect({"advise", "job.toml", "--cluster", "rack-1g", "--write", file}, {"--write"});
    expect({"doctor", "--write-cluster", file}, {"--write-cluster"});
  }
}

TEST_F(Refused, CommandLines) {
  write_text(folder_ / "job.toml", small_job());
  expect({}, {"subcommand"});
  expect({"trian", "job.toml"}, {"'trian'", "did you mean 'train'?"});
  expect({"train"}, {"JOB"});
  for (const char* command : {"train", "check", "compare"}) expect({command, ""}, {"JOB is empty"});
  expect({"advise", "", "--cluster", "rack-1g"}, {"JOB is empty"});
  expect({"train", "."}, {".: is a directory"});
  expect({"train", "job.toml", "--no-such-option"}, {"--no-such-option"});
  expect({"train", "job.toml", "other.toml"}, {"other.toml"});
  expect({"list", "strategy"}, {"'strategy'", "did you mean 'strategies'?"});
  expect({"bench", "juggling"}, {"juggling"});
}

// With --json the refusal is an object, also when a path is not UTF-8.
TEST_F(Refused, AsJson) {
  write_text(folder_ / "job.toml", small_job());
  for (const Arguments& arguments :
       {Arguments{"check", "job.toml", "--json", "--set", "cluster.workers=500"},
        Arguments{"check", "job.toml", "--json", "--set", "cluster.\xff=500"},
        Arguments{"train", "\xff.toml", "--json"}}) {
    const Ended ended = run_tutti(arguments, {.folder = folder_.path()});
    EXPECT_EQ(ended.exit_code, kExitBadJob);
    const auto object = nlohmann::json::parse(ended.out, nullptr, false);
    ASSERT_TRUE(object.is_object()) << ended.out << ended.err;
    EXPECT_EQ(object.value("exit_code", 0), kExitBadJob);
    EXPECT_TRUE(object.value("error", nlohmann::json()).is_string());
    EXPECT_TRUE(object.value("key", nlohmann::json()).is_string());
  }
}

}  // namespace
}  // namespace tutti
