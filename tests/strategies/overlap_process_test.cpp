// Between real processes a bucket leaves from within the backward pass: the peer has it while this
// node is still computing, and makes no Node calls.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include "core/bytes.h"
#include "core/error.h"
#include "fabric/process/process_fabric.h"
#include "models/stage.h"
#include "tests/support/jobs.h"

namespace tutti {
namespace {

using namespace testing_support;

constexpr Rank kBackward = 0;  // stays in its backward pass until the peer has its first bucket
constexpr float kOwn[] = {1, 2};
constexpr float kSum = 3;
constexpr double kDeadline_s = 20;

// Survives fork(), unlike the memory of a test.
class SharedFlag {
 public:
  SharedFlag()
      : flag_(new (mmap(nullptr, sizeof(Flag), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                        -1, 0)) Flag(false)) {}
  ~SharedFlag() { munmap(flag_, sizeof(Flag)); }
  SharedFlag(const SharedFlag&) = delete;
  SharedFlag& operator=(const SharedFlag&) = delete;
  void raise() { flag_->store(true); }
  bool raised() const { return flag_->load(); }

 private:
  using Flag = std::atomic<bool>;
  Flag* flag_;
};

// A model whose gradients are one number, and whose backward pass is a script.
class ScriptedModel : public Model {
 public:
  ScriptedModel(const Architecture& architecture, const ModelMemory& memory, Rank rank,
                SharedFlag& arrived)
      : architecture_(architecture), memory_(memory), rank_(rank), arrived_(arrived) {}

  const Architecture& architecture() const override { return architecture_; }
  std::span<float> parameters() override { return memory_.parameters; }
  std::span<float> gradients() override { return memory_.gradients; }

  double gradient(const Batch&, float, const Ready& ready) override {
    std::fill(memory_.gradients.begin(), memory_.gradients.end(), kOwn[rank_]);
    const auto& parameters = architecture_.parameters;
    const Range last = parameters.back().range;
    ready(last);
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::duration<double>(kDeadline_s);
    while (!arrived_.raised()) {
      if (std::chrono::steady_clock::now() > deadline) throw Error("nothing left in time");
      if (rank_ == kBackward) continue;
      ready({last.end, last.end});  // looks for what has come meanwhile
      const auto values = memory_.gradients.subspan(last.begin, last.size());
      if (std::find(values.begin(), values.end(), kSum) != values.end()) arrived_.raise();
    }
    for (auto it = parameters.rbegin() + 1; it != parameters.rend(); ++it) ready(it->range);
    return 0;
  }
  Evaluation evaluate(const Batch& batch) override { return {0, 0, batch.size()}; }
  void predict(const Batch&, std::span<float>) override {}
  std::unique_ptr<StageModel> stage(Range) override { return nullptr; }

 private:
  const Architecture& architecture_;
  ModelMemory memory_;
  Rank rank_;
  SharedFlag& arrived_;
};

std::string train(Node& node, const Job& job, const Data& data, const Architecture& architecture,
                  SharedFlag& arrived) {
  Buffer<float> parameters(architecture.parameter_count), gradients(architecture.parameter_count);
  std::fill_n(parameters.data(), parameters.size(), 0.0f);
  ScriptedModel model(architecture, {parameters.span(), gradients.span()}, node.endpoint().rank(),
                      arrived);
  Stopwatch watch(node.clock());
  Recorder recorder;
  Log log;
  const Plan plan =
      job.strategy->plan({job.task, job.cluster, job.optimizer, architecture, sizes_of(data)});
  NodeModel own(model);
  Context context{node, plan,    job.task, job.cluster, job.optimizer, data,
                  own,  nullptr, watch,    recorder,    log,           {0, 1}};
  job.strategy->run(context);
  const bool all = std::all_of(gradients.span().begin(), gradients.span().end(),
                               [](float value) { return value == kSum; });
  return all ? "ok" : "a sum is wrong";
}

class OverlapOfProcesses : public testing::TestWithParam<std::string> {};

TEST_P(OverlapOfProcesses, ABucketLeavesFromWithinTheBackwardPass) {
  const Job job =
      load_job("", Settings{"task.data.kind=synthetic-classes", "task.data.samples=400",
                            "task.data.features=16", "task.data.classes=4", "task.model.kind=mlp",
                            "task.model.hidden=[32]", "task.global_batch=32", "task.max_steps=1",
                            "optimizer.kind=sgd", "optimizer.lr=1", "strategy.kind=allreduce",
                            "strategy.topology=" + GetParam(),
                            "strategy.bucket=4 B",  // each range by itself
                            "cluster.workers=2", "cluster.timeout=60"});
  const Data data = load_data(job.task.data, job.task.seed, "");
  const Architecture architecture = make_architecture(job.task.model, *data.dataset);
  SharedFlag arrived;
  const std::atomic<bool> stop{false};
  const auto outcomes =
      make_process_fabric({"worker", "worker"})
          ->run([&](Node& node) { return train(node, job, data, architecture, arrived); }, stop);
  for (const NodeOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.kind, NodeOutcome::Kind::kDone) << outcome.error;
    EXPECT_EQ(outcome.result, "ok");
  }
}

// In a tree the node that has to wait would be the one that computes.
INSTANTIATE_TEST_SUITE_P(Messages, OverlapOfProcesses,
                         testing::Values("ring", "butterfly", "all_to_all"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tutti
