// What settings become: exact values, defaults that follow from others, and refusals that say
// where a setting was given, which it is and what was probably meant.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "data/csv.h"
#include "jobs/run_folder.h"
#include "tests/support/jobs.h"

namespace tutti {
namespace {

using namespace testing_support;

// Why the job is refused when it is read or, with its data, checked.
std::string problem_of(const std::string& path, const Settings& settings) {
  try {
    resolve(load_job(path, settings));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

class SettingsOfAFile : public testing::Test {
 protected:
  std::string problem(const std::string& text, const Settings& settings = {}) {
    write_file(file_, text);
    return problem_of(file_, settings);
  }
  const TemporaryFolder folder_;
  const std::string file_ = folder_ / "job.toml";
};

// Each is a whole number that no double equals.
TEST(Settings, WholeNumbersBecomeTheNearestDouble) {
  for (const int64_t number : {9007199254740993, -9007199254740993, 9223372036854775807}) {
    const auto wanted = static_cast<double>(number);
    const std::string text = std::to_string(number);
    if (number > 0) {
      const Job job =
          load_job("", {"cluster.fabric=virtual", "cluster.memory_bandwidth=" + text,
                        "cluster.speed_factors=[1, " + text + "]", "optimizer.lr=" + text});
      EXPECT_EQ(job.cluster.memory_bandwidth, wanted);
      EXPECT_EQ(job.cluster.speed_factors, (std::vector<double>{1, wanted}));
      EXPECT_EQ(job.optimizer.lr, wanted);
    } else {
      EXPECT_NE(problem_of("", {"optimizer.lr=" + text}).find("must be more than 0"),
                std::string::npos);
    }
  }
}

TEST(Settings, OneWorkerAloneUnlessTheJobSaysOtherwise) {
  const auto workers = [](const Settings& settings) {
    return load_job("", settings).cluster.workers;
  };
  EXPECT_EQ(workers({}), 2);
  EXPECT_EQ(workers({"strategy.kind=solo"}), 1);
  EXPECT_EQ(workers({"strategy.kind=solo", "cluster.workers=3"}), 3) << "then it is refused";
  EXPECT_EQ(workers({"strategy.kind=solo", "cluster.fabric=virtual"}), 1);
  const Job solo = load_job("", {"strategy.kind=solo"});
  EXPECT_EQ(with_settings(solo, {"strategy.kind=allreduce"}).cluster.workers, 2);
  EXPECT_EQ(with_settings(solo, {"task.seed=3"}).cluster.workers, 1);
  Job pair = load_job("", {"cluster.fabric=virtual", "cluster.speed_factors=[1, 0.5]"});
  EXPECT_EQ(with_settings(pair, {"strategy.kind=solo"}).cluster.speed_factors.size(), 1u);
  pair.cluster.workers = 4;  // by a program, not by a file
  EXPECT_EQ(with_settings(pair, {"task.seed=3"}).cluster.workers, 4);
}

TEST(Settings, ThreadsMayDifferFromWorkerToWorker) {
  const Settings two = {"cluster.thread_counts=[1, 2]"};
  const Job job = load_job("", two);
  EXPECT_EQ(threads_of(job.cluster, 0), 1);
  EXPECT_EQ(threads_of(job.cluster, 1), 2);
  EXPECT_EQ(threads_of(job.cluster, 2), 1) << "a server: as `threads` says";
  EXPECT_EQ(most_threads(job.cluster), 2);
  EXPECT_EQ(with_settings(job, {"strategy.kind=solo"}).cluster.thread_counts.size(), 1u);
  const auto refused = [&](const Settings& more, const char* why) {
    const std::string text = refusal(two + more);
    EXPECT_NE(text.find(why), std::string::npos) << text;
  };
  refused({"cluster.workers=3"}, "cluster.thread_counts has 2 entries but there are 3 workers");
  refused({"task.deterministic=true"}, "cluster.thread_counts: task.deterministic = true needs");
  EXPECT_THROW(load_job("", {"cluster.thread_counts=[1, 0]"}), ConfigError);
}

TEST_F(SettingsOfAFile, AnEntryAloneHasOneWorker) {
  write_file(file_,
             "[[compare]]\nname = \"a\"\nstrategy.kind = \"solo\"\n"
             "[[compare]]\nname = \"b\"\nstrategy.topology = \"tree\"\n");
  const Job job = load_job(file_, {});
  ASSERT_EQ(job.compare.size(), 2u);
  EXPECT_EQ(job.compare[0].cluster.workers, 1);
  EXPECT_EQ(job.compare[1].cluster.workers, 2);
}

// Nobody quotes on a command line. A file says what it means.
TEST_F(SettingsOfAFile, BareWordsOfTheCommandLineAreTexts) {
  for (const std::string name : {"2024", "1.50", "true", "1e3", "2024-05-01", "x"})
    EXPECT_EQ(load_job("", {"name=" + name}).name, name);
  EXPECT_EQ(load_job("", {"name='3'"}).name, "3");
  EXPECT_EQ(with_settings(load_job("", {}), {"name=007"}).name, "007");
  const auto label = [](const Job& job) { return job.task.data.source.get<CsvData>().label; };
  const std::string csv = "task.data.kind=csv";
  EXPECT_EQ(label(load_job("", {csv, "task.data.label=3"})), "3");
  EXPECT_EQ(label(load_job("", {csv, "task.data.label=3", "task.data.label=4"})), "4");
  EXPECT_EQ(problem("name = 2024\n"), file_ + ":1: name must be text, not a whole number");
  EXPECT_EQ(problem_of("", {"name=[1]"}), "command line: name must be text, not a list");
  EXPECT_EQ(problem_of("", {"task.data.label=3", "task.data={kind=\"csv\", label=3}"}),
            "command line: task.data.label must be text, not a whole number");
  EXPECT_EQ(problem_of("", {"cluster.workers=many"}),
            "command line: cluster.workers must be a whole number, not text");
}

TEST_F(SettingsOfAFile, AnElementOfAListIsTheOneAtFault) {
  const std::string task =
      "[task]\ndata = { kind = \"synthetic-classes\", samples = 400 }\nmodel = \"logistic\"\n"
      "[cluster]\nfabric = \"virtual\"\n";
  EXPECT_EQ(problem(task + "[[cluster.stragglers]]\nnode = 7\n[[cluster.stragglers]]\nnode = 1\n"),
            file_ +
                ":7: cluster.stragglers[0].node names node 7, but nodes are 0 to 1; name one of "
                "them, or raise cluster.workers");
  EXPECT_TRUE(problem(task + "[[cluster.faults]]\nnodes = [0]\n[[cluster.faults]]\nnodes = [2]\n")
                  .starts_with(file_ + ":9: cluster.faults[1].nodes names node 2"));
  EXPECT_TRUE(problem(task + "[[cluster.faults]]\nnodes = []\n[[cluster.faults]]\nnodes = [0]\n")
                  .starts_with(file_ + ":7: cluster.faults[0].nodes is empty"));
  const std::string kind = "[[cluster.host_kinds]]\nhosts = ";
  for (const auto& [text, complaint] :
       {std::pair{kind + "[2]\n", ".hosts names host 2, but hosts are 0 to 1; name one of them"},
        {kind + "[]\n", ".hosts is empty: a kind needs hosts"},
        {kind + "[1, 1]\n", ".hosts names host 1, which was named before"},
        {kind + "[0]\nidle_power = 200\n", "would draw 200 W when idle and 100 W when busy"}})
    EXPECT_NE(problem(task + text).find(complaint), std::string::npos) << problem(task + text);
}

// Components check what bounds cannot say, and know nothing of files.
TEST_F(SettingsOfAFile, WhatComponentsRefuseHasAPlaceAndAName) {
  EXPECT_TRUE(problem("[task]\nmodel = { kind = \"mlp\", hidden = [] }\n")
                  .starts_with(file_ + ":2: task.model.hidden is empty"));
  EXPECT_TRUE(problem("[task]\nmodel = { kind = \"lenet\", channels = [] }\n")
                  .starts_with(file_ + ":2: task.model.channels is empty"));
  EXPECT_TRUE(problem("[[compare]]\nname = \"a\"\n"
                      "task.model = { kind = \"mlp\", hidden = [] }\n")
                  .starts_with(file_ + ":3: task.model.hidden is empty"));
  write_file(folder_ / "one.csv", "a,b,c\n1,2,x\n3,4,x\n5,6,x\n7,8,x\n");
  const std::string csv =
      "[task]\ndata = { kind = \"csv\", path = \"one.csv\" }\nglobal_batch = 2\n";
  EXPECT_TRUE(problem(csv, {"task.data.label=z"})
                  .starts_with("command line: task.data.label: " + (folder_ / "one.csv") +
                               ": there is no column 'z'"));
  EXPECT_TRUE(problem(csv).starts_with(file_ + ":2: task.data: the data has 1 classes"));
}

TEST_F(SettingsOfAFile, RefusalsOfWhatHasNoLine) {
  EXPECT_EQ(problem("", {"compare=3"}),
            "command line: compare must be a list of tables: write [[compare]]");
  EXPECT_EQ(problem("", {"compare=[{}]"}),
            "command line: compare needs a name: add name = \"...\"");
  EXPECT_EQ(problem_of(folder_.path(), {}), folder_.path() + ": is a directory; name a file in it");
  EXPECT_EQ(problem_of(folder_ / "none", {}), folder_ / "none" + ": there is no such file");
}

TEST(Settings, QuantitiesThatNoNumberHolds) {
  const auto problem = [](const std::string& text) {
    return problem_of("", {"cluster.fabric=virtual", "cluster.bandwidth=\"" + text + "\""});
  };
  EXPECT_NE(problem("1e300 GB/s").find("cluster.bandwidth is too large"), std::string::npos);
  EXPECT_NE(problem("1e999 B/s").find("than a number can be"), std::string::npos);
  EXPECT_NE(problem("-1 B/s").find("cluster.bandwidth must not be negative"), std::string::npos);
}

TEST(Settings, UnknownOnesAreLookedForInAllTables) {
  const auto hint = [](const std::string& setting) {
    const std::string text = problem_of("", {setting});
    const std::string middle = " is not a setting here; ";
    const size_t found = text.find(middle);
    return found == std::string::npos ? text : text.substr(found + middle.size());
  };
  EXPECT_EQ(hint("lr=3"), "did you mean 'optimizer.lr'? It belongs to [optimizer]");
  EXPECT_EQ(hint("epochs=3"), "did you mean 'task.epochs'? It belongs to [task]");
  EXPECT_EQ(hint("workers=4"), "did you mean 'cluster.workers'? It belongs to [cluster]");
  EXPECT_EQ(hint("worker=4"), "did you mean 'cluster.workers'? It belongs to [cluster]");
  EXPECT_EQ(hint("task.lr=3"), "did you mean 'optimizer.lr'? It belongs to [optimizer]");
  EXPECT_EQ(hint("task.epoch=3"), "did you mean 'epochs'?") << "the own table first";
  EXPECT_EQ(hint("task.topology=ring"),
            "did you mean 'strategy.topology'? It belongs to [strategy], and needs strategy.kind = "
            "\"allreduce\" or \"hybrid\" or \"pipeline\" or \"scheduled\" or \"tensor\"");
  // A word that merely resembles a setting of another table gets no suggestion.
  EXPECT_EQ(hint("footprint.epoch=3").find("did you mean"), std::string::npos);
  EXPECT_EQ(hint("kind=3"), "did you mean 'optimizer.kind' or 'strategy.kind'?");
  for (const char* odd : {"[=3", "]=3", "a[=3", "[]=3", "cluster.[=3"})  // no index of a list
    EXPECT_NE(hint(odd), "") << odd;
  EXPECT_EQ(hint("qqqqqq=3"),
            "known are cluster, compare, footprint, name, optimizer, strategy, task");
}

TEST(Settings, ThoseOfAnotherChoiceSayWhichOne) {
  const auto hint = [](const Settings& settings) {
    const std::string text = problem_of("", settings);
    return text.substr(std::min(text.size(), text.find("; ") + 2));
  };
  EXPECT_EQ(hint({"cluster.bandwidth=3"}), "it needs cluster.fabric = \"virtual\"");
  EXPECT_EQ(hint({"cluster.fabric=virtual", "cluster.listen=x"}),
            "it needs cluster.fabric = \"process\"");
  EXPECT_EQ(hint({"optimizer.momentum=0.5"}),
            "it needs optimizer.kind = \"momentum\" or \"nesterov\"");
  EXPECT_EQ(hint({"strategy.staleness=3"}), "it needs strategy.kind = \"parameter_server\"");
  EXPECT_EQ(hint({"task.model.hiden=[3]", "task.model.kind=logistic"}),
            "did you mean 'task.model.hidden'? It needs task.model.kind = \"lenet\" or \"mlp\"");
  EXPECT_EQ(hint({"cluster.fabric=virtual", "cluster.stragglers=[{probability=0.5}]"}),
            "it needs cluster.fabric = \"virtual\" and cluster.stragglers.kind = \"random\"");
  EXPECT_EQ(hint({"compare=[{name=\"a\", cluster={bandwidth=3}}]"}),
            "it needs cluster.fabric = \"virtual\"");
}

// A key that is left over because the command line changed the kind is not a mistake in the file.
TEST_F(SettingsOfAFile, AKindOfTheCommandLineDropsWhatOnlyTheOldOneHas) {
  write_file(file_,
             "[task]\ndata = \"fashion-mnist\"\n"
             "model = { kind = \"mlp\", hidden = [30, 20] }\n"
             "[optimizer]\nkind = \"momentum\"\nmomentum = 0.9\nlr = 0.25\n"
             "[strategy]\nkind = \"allreduce\"\ntopology = \"tree\"\n"
             "[cluster]\nfabric = \"virtual\"\nworkers = 4\nbandwidth = \"1 Gbit/s\"\n"
             "[[cluster.stragglers]]\nnode = 1\n");
  EXPECT_TRUE(load_job(file_, {}).dropped.empty());
  const Job adam = load_job(file_, {"optimizer.kind=adam"});
  EXPECT_EQ(adam.dropped,
            Settings{file_ + ":6: optimizer.momentum = 0.9 is not a setting of adam and was "
                             "dropped"});
  EXPECT_EQ(adam.optimizer.lr, 0.25) << "what both have is kept";
  EXPECT_EQ(load_job(file_, {"strategy.kind=gossip"}).dropped.size(), 1u);
  // A kind has settings of its own; a choice that goes with it has none.
  EXPECT_EQ(load_job(file_, {"strategy.kind=parameter_server", "strategy.consistency=asp"}).dropped,
            Settings{file_ + ":10: strategy.topology = \"tree\" is not a setting of "
                             "parameter_server and was dropped"});
  const Job real = load_job(file_, {"cluster.fabric=process"});
  EXPECT_EQ(real.dropped.size(), 2u);
  EXPECT_EQ(real.cluster.workers, 4);
  EXPECT_EQ(load_job(file_, {"task.model.kind=logistic"}).dropped.size(), 1u);
  EXPECT_EQ(load_job(file_, {"task.model=logistic"}).dropped,
            Settings{file_ + ":3: task.model.hidden = [30, 20] was dropped: --set "
                             "task.model=logistic replaces all of task.model"});
  // Entries of a comparison without a kind of their own drop such keys too.
  write_file(file_,
             "[strategy]\nkind = \"allreduce\"\n[[compare]]\nname = \"a\"\n"
             "strategy.topology = \"tree\"\n[[compare]]\nname = \"b\"\n"
             "strategy = { kind = \"allreduce\", topology = \"tree\" }\n");
  EXPECT_EQ(load_job(file_, {"strategy.kind=gossip"}).dropped,
            Settings{file_ + ":5: compare.strategy.topology = \"tree\" is not a setting of gossip "
                             "and was dropped"});
  // A value that the new kind does not know is dropped too.
  write_file(file_, "[strategy]\nkind = \"allreduce\"\ntopology = \"hierarchical\"\n");
  EXPECT_EQ(load_job(file_, {"strategy.kind=elastic_averaging"}).dropped.size(), 1u);
  // Both kinds have this choice, but not this value of it.
  write_file(file_, "[strategy]\nkind = \"pipeline\"\nschedule = \"gpipe\"\n");
  EXPECT_EQ(load_job(file_, {"strategy.kind=scheduled"}).dropped,
            Settings{file_ + ":3: strategy.schedule = \"gpipe\" is not a setting of scheduled and "
                             "was dropped"});
}

TEST(Settings, ARateThatWasNeverSetSuitsTheKind) {
  EXPECT_EQ(load_job("", {}).optimizer.lr, 0.1);
  const Job adam = load_job("", {"optimizer.kind=adam"});
  EXPECT_EQ(adam.optimizer.lr, 0.001);
  EXPECT_EQ(with_settings(adam, {"optimizer.kind=sgd"}).optimizer.lr, 0.1);
  EXPECT_EQ(load_job("", {"optimizer.kind=adam", "optimizer.lr=0.1"}).optimizer.lr, 0.1);
  const Job set = load_job("", {"optimizer.lr=0.02"});
  EXPECT_EQ(with_settings(set, {"optimizer.kind=adam"}).optimizer.lr, 0.02) << "it was meant";
  const auto server = [](const std::string& text) {
    const std::string settings = strategy_settings(
        load_job("", {"strategy.kind=federated_averaging", "strategy.server=" + text}));
    return nlohmann::json::parse(settings)["server"];
  };
  EXPECT_EQ(server("sgd")["lr"], 1);
  EXPECT_EQ(server("adam")["lr"], 0.03);
  EXPECT_EQ(server("adam")["beta1"], 0.9);
  EXPECT_EQ(server("adagrad")["beta1"], 0) << "as published";
  EXPECT_EQ(server("{kind=\"adam\", lr=1.0}")["lr"], 1) << "also where it is another one's default";
}

TEST_F(SettingsOfAFile, WhatIsNotLeftOverByAKindIsStillRefused) {
  const std::string adam = "[optimizer]\nkind = \"adam\"\nmomentum = 0.9\n";
  const std::string left_over = file_ + ":3: optimizer.momentum is not a setting here";
  EXPECT_TRUE(problem(adam).starts_with(left_over)) << "of the file alone";
  EXPECT_TRUE(problem(adam, {"optimizer.lr=0.1"}).starts_with(left_over));
  EXPECT_TRUE(problem(adam, {"optimizer.kind=adam"}).starts_with(left_over)) << "nothing changed";
  const std::string momentum = "[optimizer]\nkind = \"momentum\"\nmomentun = 0.9\n";
  EXPECT_TRUE(problem(momentum, {"optimizer.kind=adam"}).starts_with(file_ + ":3: ")) << "a typo";
  EXPECT_TRUE(problem_of("", {"optimizer.kind=adam", "optimizer.momentum=0.9"})
                  .starts_with("command line: optimizer.momentum is not a setting here"));
  const Job job = with_settings(load_job("", {"strategy.topology=tree"}), {"strategy.kind=gossip"});
  EXPECT_TRUE(job.dropped.empty()) << "variants of a comparison are silent";
}

TEST(Settings, WhatOthersCallAChoice) {
  const auto hint = [](const std::string& setting) {
    const std::string text = problem_of("", {setting});
    const size_t begin = text.find("did you mean ");
    return begin == std::string::npos ? text : text.substr(begin, text.find('?') + 1 - begin);
  };
  const std::map<std::string, std::string> kinds = {
      {"ps", "parameter_server"},    {"DDP", "allreduce"}, {"fedavg", "federated_averaging"},
      {"horovod", "allreduce"},      {"pp", "pipeline"},   {"tp", "tensor"},
      {"easgd", "elastic_averaging"}};
  for (const auto& [word, kind] : kinds)
    EXPECT_EQ(hint("strategy.kind=" + word), "did you mean '" + kind + "'?");
  EXPECT_TRUE(hint("strategy.kind=tree")
                  .starts_with("did you mean 'allreduce' with strategy.topology=tree"));
  EXPECT_TRUE(hint("strategy.kind=diloco").starts_with("did you mean 'local_sgd' with strategy."));
  EXPECT_EQ(hint("optimizer.kind=nag"), "did you mean 'nesterov'?");
  EXPECT_EQ(problem_of("", {"cluster.workers=2.5"}),
            "command line: cluster.workers = 2.5 must be a whole number, e.g. 2 or 3");
  EXPECT_EQ(problem_of("", {"task.global_batch=1e3"}),
            "command line: task.global_batch = 1000 must be a whole number, written as 1000, "
            "without a point or an exponent");
  EXPECT_EQ(hint("task.data=mnist"), "did you mean 'fashion-mnist'?");
}

TEST(Settings, AnUnknownWordIsRefusedWithThoseThatAreKnown) {
  const auto ends = [](const std::string& setting, const std::string& end) {
    const std::string problem = problem_of("", {setting});
    EXPECT_TRUE(problem.find(" is unknown; ") != std::string::npos && problem.ends_with(end))
        << setting << ": " << problem;
  };
  ends("task.partition=shared", "use one of global, disjoint, reshuffle");
  ends("optimizer.schedule=linear", "use one of constant, step, cosine, grow_batch");
}

TEST(Settings, AnAccuracyIsAShare) {
  const Settings classes = {"task.data.kind=synthetic-classes", "task.model.kind=logistic"};
  EXPECT_EQ(problem_of("", classes + Settings{"task.target=88"}),
            "command line: task.target = 88 is more than 1, but accuracy is a share from 0 to 1; "
            "did you mean 0.88?");
  EXPECT_EQ(problem_of("", classes + Settings{"task.target=1"}), "");
  EXPECT_EQ(problem_of("", {"task.data.kind=synthetic-linear", "task.model.kind=linear",
                            "task.target=88"}),
            "")
      << "a squared error has no such bound";
}

}  // namespace
}  // namespace tutti
