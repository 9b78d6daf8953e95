// Jobs as TOML: what is written out reads back as the same job, for every combination of parts.
#include <gtest/gtest.h>

#include <filesystem>

#include "collectives/topology.h"
#include "core/error.h"
#include "jobs/run_folder.h"
#include "tests/support/jobs.h"

namespace tutti {
namespace {

using namespace testing_support;

class Toml : public testing::Test {
 protected:
  Job load(const std::string& text) {
    std::filesystem::remove(folder_ / "job.toml");  // to replace a file may wait for the disk
    write_file(folder_ / "job.toml", text);
    return load_job(folder_ / "job.toml", {});
  }
  // The error that `text` is refused with.
  std::string refusal(const std::string& text) {
    try {
      load(text);
    } catch (const ConfigError& error) {
      return error.what();
    }
    ADD_FAILURE() << "accepted: " << text;
    return "";
  }
  void expect_round_trip(Job job) {
    const std::string text = resolved_toml(job);
    Job again = load(text);
    EXPECT_EQ(resolved_toml(again), text);
  }
  TemporaryFolder folder_;
};

TEST_F(Toml, TheDefaultJobReadsBack) {
  expect_round_trip(load_job("", {}));
  expect_round_trip(load(""));
  EXPECT_EQ(load("").name, "job");  // after its file
}

// Every strategy x optimizer x data x model x fabric, with settings away from their defaults.
TEST_F(Toml, EveryCombinationReadsBack) {
  std::vector<std::string> strategies = {"kind = \"solo\"\n"};
  for (const TopologyEntry& entry : topology_catalog())
    strategies.push_back("kind = \"allreduce\"\ntopology = \"" + std::string(entry.name) +
                         "\"\nbucket = \"17 KiB\"\n");
  const std::vector<std::string> fabrics = {
      "fabric = \"process\"\nworkers = 3\nracks = 3\nthreads = 2\n",
      "fabric = \"virtual\"\nworkers = 4\nlatency = \"7 us\"\nbandwidth = \"3.3 Gbit/s\"\n"
      "speed_factors = [1.0, 0.1, 0.7, 1e-3]\nidle_power = 0.1\n"
      "[[cluster.stragglers]]\nkind = \"random\"\nnode = 2\nfactor = 1.7\nprobability = 0.3\n"
      "distribution = \"lognormal\"\n"
      "[[cluster.stragglers]]\nkind = \"pause\"\nat = \"3 ms\"\nduration = 0.1\n"
      "[[cluster.faults]]\nkind = \"crash\"\nat = 0.3\nnodes = [1, 3]\nrestart = \"1 min\"\n"
      "[[cluster.faults]]\nkind = \"partition\"\nat = 0.7\nnodes = [0]\nduration = 2\n"};
  size_t count = 0;
  for (const std::string& strategy : strategies)
    for (const OptimizerEntry& optimizer : optimizer_catalog())
      for (const DataEntry& data : data_catalog())
        for (const ModelEntry& model : model_catalog())
          for (const std::string& fabric : fabrics) {
            const std::string text = "name = \"n\"\n[task]\ndata = \"" + std::string(data.name) +
                                     "\"\nmodel = \"" + std::string(model.name) +
                                     "\"\ntarget = 0.1\neval_every = 0.3\nseed = 12345\n" +
                                     "[optimizer]\nkind = \"" + std::string(optimizer.name) +
                                     "\"\nlr = 0.1\nweight_decay = 1e-5\n[strategy]\n" + strategy +
                                     "[cluster]\n" + fabric;
            Job job = load(text);
            EXPECT_EQ(job.optimizer.kind(), optimizer.name);
            EXPECT_EQ(job.task.model.kind(), model.name);
            const std::string resolved = resolved_toml(job);
            Job again = load(resolved);
            ASSERT_EQ(resolved_toml(again), resolved) << text;
            ASSERT_EQ(again.task.eval_every, 0.3);
            ASSERT_EQ(again.cluster.latency_s, job.cluster.latency_s);
            ASSERT_EQ(again.cluster.faults.size(), job.cluster.faults.size());
            ++count;
          }
  EXPECT_EQ(count,
            7u * optimizer_catalog().size() * data_catalog().size() * model_catalog().size() * 2);
}

TEST_F(Toml, EveryScheduleReadsBack) {
  for (const char* schedule : {"constant", "step", "cosine", "grow_batch"})
    expect_round_trip(load_job("", {"optimizer.schedule=" + std::string(schedule),
                                    "optimizer.warmup_epochs=0.7", "optimizer.base_batch=32"}));
}

TEST_F(Toml, AnyTextReadsBack) {
  std::string every;
  for (char c = 1; c < 127; ++c) every.push_back(c);
  for (const std::string& name :
       {every + "\x7f", std::string("quote\" backslash\\ tab\t return\r line\n"),
        std::string("\xc3\xa4\xe2\x82\xac\xf0\x9f\x8e\xb5"), std::string("")}) {
    Job job = load_job("", {});
    job.name = name;
    EXPECT_EQ(load(resolved_toml(job)).name, name);
  }
}

TEST_F(Toml, ExtremeNumbersReadBack) {
  for (const char* lr :
       {"1e-300", "1.7976931348623157e308", "0.1", "123456789.123456789", "3", "1e22"}) {
    expect_round_trip(load_job("", {"optimizer.lr=" + std::string(lr)}));
    EXPECT_EQ(load("[optimizer]\nlr = " + std::string(lr)).optimizer.lr, std::stod(lr));
  }
  EXPECT_EQ(load("[task]\nseed = 9223372036854775807").task.seed, 9223372036854775807u);
  refusal("[task]\nseed = 9223372036854775808");
  refusal("[optimizer]\nlr = inf");
}

TEST_F(Toml, PathsStartAtTheJobFile) {
  Job job = load("[task]\ndata = { kind = \"csv\", path = \"sub/../a.csv\" }\n");
  EXPECT_EQ(path_of(job.task.data), folder_ / "a.csv");
  job = load("[task]\ndata = { kind = \"csv\", path = \"/b.csv\" }\n");
  EXPECT_EQ(path_of(job.task.data), "/b.csv");
}

TEST_F(Toml, RefusalsNameFileLineAndKey) {
  const std::string file = folder_ / "job.toml";
  EXPECT_EQ(refusal("\n[task]\nepoch = 3\n"),
            file + ":3: task.epoch is not a setting here; did you mean 'epochs'?");
  EXPECT_EQ(refusal("[task]\nepochs = \"3\"\n"),
            file + ":2: task.epochs must be a whole number, not text");
  EXPECT_EQ(refusal("[task]\nepochs = 0\n"), file + ":2: task.epochs = 0 must be at least 1");
  EXPECT_EQ(refusal("[cluster]\nfabric = \"virtual\"\n[[cluster.faults]]\nnode = [1]\n"),
            file + ":4: cluster.faults[0].node is not a setting here; did you mean 'nodes'?");
  EXPECT_TRUE(refusal("a = 1\na = 2\n").starts_with(file + ":2: "));
}

// An entry is the job with its own settings on top, and does not touch the job.
// Every part of a key is a table within a table, and so many would be more than the stack holds.
TEST_F(Toml, LongKeysAreRefused) {
  std::string key = "a", quoted = "'a'";
  for (int i = 0; i < 100'000; ++i) {
    key += ".a";
    quoted += " . \"a\"";
  }
  for (const std::string& text :
       {key + " = 1", "[" + key + "]", "x = {" + key + " = 1}", quoted + " = 1"}) {
    const std::string error = refusal("name = \"a.b\" # " + key + "\n" + text + "\n");
    EXPECT_NE(error.find("job.toml:2: a key has more than 16 parts"), std::string::npos)
        << error.substr(0, 200);
  }
  for (const std::string& setting : {key + "=1", "task={" + key + "=1}"}) {
    try {
      load_job("", {setting});
      ADD_FAILURE() << "accepted";
    } catch (const ConfigError& error) {
      EXPECT_LT(std::string(error.what()).size(), 200u);
      EXPECT_NE(std::string(error.what()).find("a key has "), std::string::npos) << error.what();
    }
  }
  // Dots in strings, in paths and in numbers are no part of a key.
  const std::string dots(40, '.');
  EXPECT_EQ(load("name = \"" + dots + "\"").name, dots);
  EXPECT_EQ(load("name = '''\n" + dots + "'''").name, dots);
  std::string up;
  for (int i = 0; i < 20; ++i) up += "../";
  const Job far = load_job("", {"task.data.kind=csv", "task.data.path=" + up + "x.csv"});
  EXPECT_TRUE(path_of(far.task.data).ends_with("x.csv"));
  EXPECT_EQ(load("cluster.speed_factors = [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, "
                 "0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]\ncluster.workers = 20\n"
                 "cluster.fabric = \"virtual\"")
                .cluster.speed_factors.size(),
            20u);
}

TEST_F(Toml, ComparedEntriesLieOverTheJob) {
  const std::string text =
      "[task]\nglobal_batch = 64\ndata = { kind = \"csv\", path = \"a.csv\" }\n"
      "[strategy]\nkind = \"allreduce\"\ntopology = \"tree\"\nbucket = 4096\n"
      "[cluster]\nfabric = \"virtual\"\nworkers = 8\nbandwidth = \"1 Gbit/s\"\n"
      "[[cluster.stragglers]]\nnode = 1\n[[cluster.stragglers]]\nnode = 2\n"
      "[[compare]]\nname = \"ring\"\nstrategy.topology = \"ring\"\noptimizer.lr = 0.5\n"
      "[[compare]]\nname = \"alone\"\nstrategy = { kind = \"solo\" }\ncluster.workers = 1\n"
      "cluster.stragglers = []\ntask.data.path = \"b.csv\"\n"
      "[[compare]]\nname = \"real\"\n[compare.cluster]\nfabric = \"process\"\nworkers = 2\n";
  Job job = load(text);
  ASSERT_EQ(job.compare.size(), 3u);
  const Job &ring = job.compare[0], &alone = job.compare[1], &real = job.compare[2];
  EXPECT_EQ(ring.name, "ring");
  EXPECT_EQ(ring.strategy->taxonomy().pattern, "ring");
  EXPECT_EQ(job.strategy->taxonomy().pattern, "tree");
  EXPECT_EQ(ring.optimizer.lr, 0.5);
  EXPECT_EQ(ring.task.global_batch, 64);
  EXPECT_EQ(ring.cluster.stragglers.size(), 2u);
  EXPECT_EQ(alone.strategy_kind, "solo");
  EXPECT_TRUE(alone.cluster.stragglers.empty()) << "a list replaces the one before";
  EXPECT_EQ(path_of(alone.task.data), folder_ / "b.csv");
  EXPECT_EQ(path_of(job.task.data), folder_ / "a.csv");
  EXPECT_EQ(real.cluster.fabric, FabricKind::kProcess);
  EXPECT_EQ(job.cluster.stragglers.size(), 2u);
  expect_round_trip(job);
}

TEST_F(Toml, ComparedEntriesAreCheckedLikeTheJob) {
  const std::string file = folder_ / "job.toml";
  EXPECT_EQ(
      refusal("[[compare]]\nname = \"a\"\nstrategy.topologie = \"ring\"\n"),
      file + ":3: compare.strategy.topologie is not a setting here; did you mean 'topology'?");
  EXPECT_EQ(refusal("[[compare]]\nname = \"a\"\nstrateg = 1\n"),
            file + ":3: compare.strateg is not a setting here; did you mean 'strategy'?");
  EXPECT_EQ(refusal("[[compare]]\nstrategy.topology = \"ring\"\n"),
            file + ":1: compare needs a name: add name = \"...\"");
  EXPECT_EQ(refusal("[[compare]]\nname = \"a\"\n[[compare]]\nname = \"a\"\n"),
            file + ":3: compare has two entries named \"a\"");
  EXPECT_EQ(refusal("compare = 3\n"),
            file + ":1: compare must be a list of tables: write [[compare]]");
  EXPECT_EQ(refusal("[[compares]]\nname = \"a\"\n"),
            file + ":1: compares is not a setting here; did you mean 'compare'?");
}

TEST_F(Toml, SettingsOnTopShareNothing) {
  const Job job = load_job("", {"strategy.topology=tree", "strategy.bucket=4096"});
  const Job other = with_settings(job, {"strategy.topology=ring", "task.seed=7"});
  EXPECT_EQ(job.strategy->taxonomy().pattern, "tree");
  EXPECT_EQ(other.strategy->taxonomy().pattern, "ring");
  EXPECT_EQ(other.task.seed, 7u);
  Job same = with_settings(job, {}), original = job;
  EXPECT_NE(same.strategy, original.strategy);
  EXPECT_EQ(resolved_toml(same), resolved_toml(original));
  EXPECT_THROW(with_settings(job, {"strategy.topologie=ring"}), ConfigError);
}

TEST_F(Toml, EveryRecipeLoadsAndReadsBack) {
  size_t recipes = 0;
  const std::filesystem::path folder = TUTTI_SOURCE "/recipes";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".toml") continue;
    Job job = load_job(entry.path().string(), {});
    EXPECT_EQ(job.name, entry.path().stem()) << "a recipe is named after its file";
    expect_round_trip(job);
    ++recipes;
  }
  EXPECT_GE(recipes, 40u);
}

}  // namespace
}  // namespace tutti
