// A key space that no memory holds: servers have the rows that were touched, workers those of their
// batch, and the result is that of the same keys without gaps.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "core/error.h"
#include "core/random.h"
#include "jobs/parameters_file.h"
#include "tests/strategies/parameter_server/rows.h"

namespace tutti {
namespace {

using namespace testing_support;

constexpr uint64_t kKeys = uint64_t{1} << 40;

// 600 samples of 6 of 500 features: twice, with keys from all of the space, and with the numbers of
// these keys in their order.
struct WideFiles {
  TemporaryFolder folder;
  std::vector<uint64_t> keys;  // ascending

  explicit WideFiles(bool regression = false) {
    Random random(7, Stream::kTest);
    std::map<uint64_t, uint64_t> numbers;
    while (numbers.size() < 500) numbers[1 + random.below(kKeys)] = 0;
    for (auto& [key, number] : numbers) {
      keys.push_back(key);
      number = keys.size();
    }
    std::ofstream wide(folder / "wide"), narrow(folder / "narrow");
    for (int i = 0; i < 600; ++i) {
      std::vector<uint64_t> drawn;
      while (drawn.size() < 6) {
        const uint64_t key = keys[random.below(keys.size())];
        if (std::find(drawn.begin(), drawn.end(), key) == drawn.end()) drawn.push_back(key);
      }
      std::sort(drawn.begin(), drawn.end());
      const std::string label = regression     ? std::to_string(random.uniform())
                                : drawn[0] % 2 ? "1"
                                               : "-1";
      wide << label;
      narrow << label;
      for (const uint64_t key : drawn) {
        wide << " " << key << ":1";
        narrow << " " << numbers[key] << ":1";
      }
      wide << "\n";
      narrow << "\n";
    }
  }

  Settings task(const std::string& name) const {
    Settings settings = {"task.data={kind=\"libsvm\", path=\"" + (folder / name) + "\"}",
                         "task.model=sparse_logistic",
                         "task.global_batch=40",
                         "task.epochs=2",
                         "task.deterministic=true",
                         "optimizer.kind=adagrad",
                         "optimizer.lr=0.1",
                         "cluster.timeout=60"};
    if (name == "wide") settings.push_back("task.data.keys=" + std::to_string(kKeys));
    return settings;
  }
};

Architecture architecture_of(const Settings& settings) {
  return resolve(load_job("", settings)).architecture;
}

// 2^40 rows of two floats would be 8 TiB for each of a worker's buffers.
TEST(WideKeys, NeedMemoryForTouchedRowsOnly) {
  const WideFiles files;
  for (const std::string fabric : {"process", "virtual"}) {
    const Settings on = servers(2, "bsp") + cluster(fabric, 2);
    const RunRecord wide = run(files.task("wide") + on, files.folder / ("wide-" + fabric));
    ASSERT_EQ(wide.status, RunStatus::kDone) << wide.error;
    EXPECT_LE(counter(wide, "rows_made"), 501);
    for (const NodeReport& node : wide.nodes)
      EXPECT_LT(node.peak_memory_bytes, double{1 << 30}) << "rank " << node.rank;
    const RunRecord narrow = run(files.task("narrow") + on, files.folder / ("narrow-" + fabric));
    ASSERT_EQ(narrow.status, RunStatus::kDone) << narrow.error;
    EXPECT_EQ(counter(wide, "rows_made"), counter(narrow, "rows_made"));
    EXPECT_EQ(wide.nodes.front().test_quality, narrow.nodes.front().test_quality);

    // Row by row the same; of the wide one those that the data touches, and the bias.
    const std::string file = "/parameters.safetensors";
    EXPECT_TRUE(holds_some_rows(files.folder / ("wide-" + fabric + file)));
    EXPECT_FALSE(holds_some_rows(files.folder / ("narrow-" + fabric + file)));
    const Rows rows = load_rows(files.folder / ("wide-" + fabric + file),
                                architecture_of(files.task("wide") + on));
    const Architecture small = architecture_of(files.task("narrow") + on);
    std::vector<float> all(small.parameter_count);
    load_parameters(files.folder / ("narrow-" + fabric + file), small, all);
    ASSERT_EQ(rows.keys.size(), files.keys.size() + 1);
    for (size_t i = 0; i < files.keys.size(); ++i) EXPECT_EQ(rows.keys[i], files.keys[i] - 1);
    EXPECT_EQ(rows.keys.back(), kKeys);
    EXPECT_EQ(rows.values, all);
  }
}

TEST(WideKeys, WorkInEveryModelAndWithReplicas) {
  const WideFiles files;
  for (const std::string consistency : {"asp", "ssp", "adaptive", "backup"}) {
    Settings task = files.task("wide");
    task.push_back("task.deterministic=false");
    const RunRecord record = run(
        task + servers(2, consistency) + cluster("virtual", 3) +
        Settings{"strategy.replicas=1", "cluster.faults=[{kind=\"crash\", at=0.01, nodes=[4]}]"});
    ASSERT_EQ(record.status, RunStatus::kDone) << consistency << ": " << record.error;
    EXPECT_LE(counter(record, "rows_made"), 501);
  }
}

TEST(WideKeys, AreRefusedWhereAllRowsWouldBeInMemory) {
  const WideFiles files;
  const auto refused = [&](const Settings& more) {
    try {
      resolve(load_job("", files.task("wide") + more));
      return std::string("accepted");
    } catch (const ConfigError& error) {
      return std::string(error.key());
    }
  };
  EXPECT_EQ(refused({"strategy.kind=allreduce"}), "strategy.kind");
  EXPECT_EQ(refused({"strategy.kind=hogwild", "task.deterministic=false"}), "strategy.kind");
  EXPECT_EQ(refused(Settings{"task.model=logistic"} + solo()), "task.data.keys");
}

}  // namespace
}  // namespace tutti
