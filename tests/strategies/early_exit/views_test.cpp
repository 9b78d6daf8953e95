// Tests devices that see parts of every sample: what they train together, what they send, and what
// a run keeps of its exits to answer with.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "jobs/kept_answers.h"
#include "jobs/parameters_file.h"
#include "jobs/plugins.h"
#include "models/losses.h"
#include "strategies/early_exit/exit_network.h"
#include "strategies/evaluation.h"
#include "tests/support/jobs.h"

namespace tutti {
namespace {

using namespace testing_support;

// Layers 0, 2 and 4 are affine; a relu follows each but the last.
Settings seen_task() {
  return {"task.data.kind=synthetic-classes",
          "task.data.samples=480",
          "task.data.features=16",
          "task.data.classes=4",
          "task.data.noise=1.5",
          "task.model.kind=mlp",
          "task.model.hidden=[12, 10]",
          "task.global_batch=37",
          "task.epochs=3",
          "optimizer.kind=nesterov",
          "optimizer.lr=0.05",
          "strategy.kind=early_exit",
          "cluster.timeout=60"};
}

Settings parts(int devices, int tiers, const std::string& fabric = "virtual") {
  return {"strategy.views=parts", "strategy.devices=" + std::to_string(devices),
          tiers == 2 ? "strategy.cuts=[2]" : "strategy.cuts=[2, 4]",
          "cluster.workers=" + std::to_string(devices + tiers), "cluster.fabric=" + fabric};
}

double measured(const RunRecord& record, const std::string& name) {
  const auto& figures = record.nodes.at(0).extra.figures;
  const auto found = figures.find(name);
  EXPECT_NE(found, figures.end()) << name;
  return found == figures.end() ? NAN : found->second;
}

// The job, data and model of a run in this folder, loaded into one process.
struct KeptRun {
  Job job;
  Resolved resolved;
  std::vector<float> parameters, gradients;
  std::unique_ptr<Model> model;
  PlanInput input() const { return {job.task, job.cluster, job.optimizer, resolved.architecture}; }
};

std::unique_ptr<KeptRun> kept(const Settings& settings) {
  auto result = std::make_unique<KeptRun>();
  result->job = load_job("", settings);
  result->resolved = resolve(result->job);
  const Architecture& architecture = result->resolved.architecture;
  result->parameters.resize(architecture.parameter_count);
  result->gradients.resize(architecture.parameter_count);
  initialise(architecture, result->job.task.seed, result->parameters);
  result->model = load_models(architecture, 1)
                      .whole(architecture, {result->parameters, result->gradients},
                             {.seed = result->job.task.seed, .threads = 1});
  return result;
}

// A single device sees all of every sample, and the aggregator has nothing to add.
TEST(EarlyExitViews, OfOneDeviceAreWholeSamples) {
  const Settings whole = {"strategy.cuts=[2, 4]", "cluster.workers=3", "cluster.fabric=virtual"};
  for (const char* how : {"max", "mean"}) {
    const RunRecord one = run(seen_task() + whole);
    const RunRecord part =
        run(seen_task() + parts(1, 3) + Settings{std::string("strategy.fuse_scores=") + how});
    ASSERT_EQ(part.status, RunStatus::kDone) << part.error;
    EXPECT_EQ(part.nodes[0].parameters_sha256, one.nodes[0].parameters_sha256) << how;
    EXPECT_EQ(part.nodes[0].test_quality, one.nodes[0].test_quality) << how;
    EXPECT_EQ(measured(part, "device_exit_share"), measured(one, "device_exit_share")) << how;
  }
}

// Returns the weighted sum of the mean losses of all exits on the batch.
double joint_loss(KeptRun& run, const Tiers& tiers, const Attachment& exits, const Batch& batch) {
  ExitNetwork network(*run.model, tiers, exits, std::vector<double>(tiers.size() - 1, 0.5));
  const auto scores = network.scores(batch);
  double loss = 0;
  for (size_t exit = 0; exit < scores.size(); ++exit)
    loss += tiers.weights[exit] * cross_entropy(scores[exit], batch.labels, 1, {});
  return loss / static_cast<double>(batch.size());
}

// One step of plain descent with rate 1 over all samples moves every parameter, of layers and
// exits, by the gradient of the joint loss. So gradients reach all devices through the fusion of
// scores and that of features.
TEST(EarlyExitViews, AStepDescendsTheJointLoss) {
  struct Case {
    const char *scores, *features;
  };
  for (const Case& how : {Case{"max", "concat"}, Case{"mean", "max"}, Case{"concat", "mean"}}) {
    const Settings settings = seen_task() + parts(2, 3) +
                              Settings{"task.model.hidden=[5, 4]",
                                       "task.data.samples=80",
                                       "task.max_steps=1",
                                       "optimizer.kind=sgd",
                                       "optimizer.lr=1.0",
                                       "strategy.bits=32",
                                       "strategy.exit_weights=[1.0, 0.5, 2.0]",
                                       std::string("strategy.fuse_scores=") + how.scores,
                                       std::string("strategy.fuse_features=") + how.features};
    auto start = kept(settings);
    const auto& samples = start->resolved.data.splits.train;
    const std::string all = "task.global_batch=" + std::to_string(samples.size());
    const TemporaryFolder folder;
    const RunRecord record = run(settings + Settings{all}, folder / "run");
    ASSERT_EQ(record.status, RunStatus::kDone) << record.error;

    const Architecture& architecture = start->resolved.architecture;
    std::vector<float> moved(architecture.parameter_count);
    load_parameters(folder / "run/parameters.safetensors", architecture, moved);
    const Attachment exits_moved = load_attachment(folder / "run/exits.safetensors");
    EarlyExitConfig config;
    config.cuts = {2, 4};
    config.devices = 2;
    config.views = DeviceViews::kParts;
    config.fuse_scores = value_of(how.scores, config.fuse_scores);
    config.fuse_features = value_of(how.features, config.fuse_features);
    config.bits = 32;
    config.exit_weights = {1.0, 0.5, 2.0};
    const Tiers tiers = place_tiers(config, start->input());
    std::vector<float> heads;
    for (const HeadPlace& head : tiers.heads()) {
      ExitHead own(head.values, tiers.classes, start->job.task.seed,
                   static_cast<uint32_t>(architecture.parameters.size() + 2 * head.number),
                   Arithmetic());
      heads.insert(heads.end(), own.parameters().begin(), own.parameters().end());
    }
    Attachment exits = attach_exits(tiers, heads, {0.5, 0.5});
    Batch batch;
    start->resolved.data.dataset->gather(samples, batch);
    // Returns the distance of `step` from the nearer one-sided slope. Few values lie so close to a
    // bend of a relu or a maximum, and hardly any have bends on both sides.
    const auto error_of = [&](double step, float& value) {
      constexpr float kStep = 1.0F / 2048;
      const float before = value;
      const double here = joint_loss(*start, tiers, exits, batch);
      double least = INFINITY;
      for (const float side : {kStep, -kStep}) {
        value = before + side;
        const double rise = joint_loss(*start, tiers, exits, batch) - here;
        least = std::min(least, std::abs(step - rise / double{value - before}));
      }
      value = before;
      return least;
    };
    double largest = 0;
    for (size_t i = 0; i < moved.size(); ++i) {
      const double step = double{start->parameters[i]} - double{moved[i]};
      EXPECT_LT(error_of(step, start->parameters[i]), 2e-3) << how.scores << ", value " << i;
      largest = std::max(largest, std::abs(step));
    }
    EXPECT_GT(largest, 0.1) << "or nothing is compared";
    std::map<std::string, Range> places;
    for (const Parameter& tensor : exits_moved.tensors.parameters)
      places[tensor.name] = tensor.range;
    ASSERT_EQ(places.size(), exits.tensors.parameters.size());
    for (const Parameter& tensor : exits.tensors.parameters)
      for (size_t i = 0; i < tensor.range.size(); ++i) {
        float& value = exits.values[tensor.range.begin + i];
        const double step =
            double{value} - double{exits_moved.values[places.at(tensor.name).begin + i]};
        EXPECT_LT(error_of(step, value), 2e-3) << how.scores << ", " << tensor.name;
      }
  }
}

// Each device sends the paper's 4 |C| + (1 - l) f o / 8 bytes, with 4 classes and 12 values of 2
// bits. Answers add a byte of each exit for every sample that it sees, and one to each device.
TEST(EarlyExitViews, SendWhatTheFormulaOfThePaperSays) {
  const RunRecord record = run(
      seen_task() + parts(3, 3) +
      Settings{"strategy.bits=2", "strategy.thresholds=[0.5, 0.4]", "strategy.fuse_scores=mean"});
  ASSERT_EQ(record.status, RunStatus::kDone) << record.error;
  const double local = measured(record, "device_exit_share");
  const double edge = measured(record, "edge_exit_share");
  EXPECT_GT(local, 0.1);
  EXPECT_LT(local, 0.95);
  const double device = 4 * 4 + (1 - local) * 12 * 2 / 8;
  EXPECT_NEAR(measured(record, "each_device_bytes_per_sample"), device, 1e-9);
  EXPECT_NEAR(measured(record, "exit_bytes_per_sample"),
              3 * device + 4 + (1 - local) * 1 + (1 - local - edge) * std::ceil(10 * 2 / 8.0),
              1e-9);
  EXPECT_EQ(record.nodes[3].role, "aggregator");
  EXPECT_EQ(record.nodes[4].role, "edge");
}

TEST(EarlyExitViews, BothFabricsGiveTheSameBitsAndFigures) {
  const Settings task = seen_task() + parts(2, 2, "process") + Settings{"strategy.bits=4"};
  const RunRecord real = run(task), simulated = run(task + Settings{"cluster.fabric=virtual"});
  ASSERT_EQ(real.status, RunStatus::kDone) << real.error;
  ASSERT_EQ(simulated.status, RunStatus::kDone) << simulated.error;
  EXPECT_EQ(real.nodes[0].parameters_sha256, simulated.nodes[0].parameters_sha256);
  EXPECT_EQ(real.nodes[0].extra.figures, simulated.nodes[0].extra.figures);
  for (size_t rank = 0; rank < real.nodes.size(); ++rank)
    EXPECT_EQ(real.nodes[rank].bytes_sent, simulated.nodes[rank].bytes_sent) << rank;
}

TEST(EarlyExitViews, CostTheSameWithoutTheArithmeticAndAsPlanned) {
  for (const char* how : {"max", "concat"}) {
    const Settings task = seen_task() + parts(3, 3) +
                          Settings{std::string("strategy.fuse_scores=") + how, "task.max_steps=4"};
    const Settings cost = {"cluster.cost_only=true"};
    const RunRecord full = run(task), costs = run(task + cost);
    const RunRecord shorter = run(task + cost + Settings{"task.max_steps=3"});
    ASSERT_EQ(costs.status, RunStatus::kDone) << costs.error;
    uint64_t most = 0;
    for (size_t rank = 0; rank < full.nodes.size(); ++rank) {
      EXPECT_EQ(full.nodes[rank].total_s, costs.nodes[rank].total_s) << rank;
      EXPECT_EQ(full.nodes[rank].bytes_sent, costs.nodes[rank].bytes_sent) << rank;
      most = std::max(most, costs.nodes[rank].bytes_sent - shorter.nodes[rank].bytes_sent);
    }
    Job job = load_job("", task);
    EXPECT_EQ(static_cast<double>(most), resolve(job).plan.busiest().bytes_sent) << how;
  }
}

// Kept exits answer as the nodes of the run did: the same samples leave at the same exits.
TEST(EarlyExitViews, KeptExitsAnswerAsTheRunDid) {
  const Settings images = {"task.data=fashion-mnist", "task.data.limit=400",
                           "task.model.kind=lenet",   "task.model.channels=[3, 8]",
                           "task.model.hidden=[20]",  "task.global_batch=50",
                           "task.epochs=2",           "optimizer.kind=adam",
                           "optimizer.lr=0.005",      "strategy.kind=early_exit",
                           "cluster.fabric=virtual",  "cluster.timeout=60",
                           "strategy.views=parts",    "strategy.devices=4",
                           "strategy.cuts=[3, 7]",    "cluster.workers=7",
                           "strategy.bits=2",         "strategy.thresholds=[0.4, 0.4]"};
  const Settings whole =
      seen_task() + Settings{"cluster.workers=4", "strategy.devices=2", "cluster.fabric=virtual"};
  for (const Settings& settings :
       {images, seen_task() + parts(3, 2) + Settings{"strategy.fuse_scores=concat"}, whole}) {
    const TemporaryFolder folder;
    const RunRecord record = run(settings, folder / "run");
    ASSERT_EQ(record.status, RunStatus::kDone) << record.error;
    auto again = kept(settings);
    load_parameters(folder / "run/parameters.safetensors", again->resolved.architecture,
                    again->parameters);
    const auto answerer = load_answerer(folder / "run", again->job, *again->model);
    ASSERT_TRUE(answerer);
    std::map<std::string, double> left;
    double correct = 0;
    const std::span<const uint32_t> samples = again->resolved.data.splits.test;
    for (size_t chunk = 0; chunk < evaluation_chunks(samples.size()); ++chunk) {
      Batch batch;
      again->resolved.data.dataset->gather(samples_of_chunks(samples, chunk, chunk + 1), batch);
      const Answerer::Answers answers = answerer->answer(batch);
      correct += static_cast<double>(count_correct(answers.scores, batch.labels));
      for (const std::string& by : answers.by) left[by] += 1;
    }
    const auto count = static_cast<double>(samples.size());
    EXPECT_EQ(correct / count, record.nodes[0].test_quality);
    for (const auto& [exit, samples_left] : left)
      EXPECT_EQ(samples_left / count, measured(record, exit + "_exit_share")) << exit;
  }
}

TEST(EarlyExitViews, KeptExitsOfAnotherFormAreRefused) {
  const auto refused = [](const std::string& about) {
    try {
      read_exits({.about = about, .tensors = {}, .values = {}});
    } catch (const DataError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refused(R"({"version":1,"cuts":[3],"thresholds":[0.5]})"), "");
  EXPECT_NE(refused(R"({"version":2,"cuts":[3],"thresholds":[0.5]})").find("version 2"),
            std::string::npos);
  EXPECT_NE(refused(R"({"version":1,"cuts":"x"})").find("lacks cuts"), std::string::npos);
  EXPECT_NE(refused("").find("does not say what it is"), std::string::npos);
  const auto run_of_parts = kept(seen_task() + parts(2, 2));
  for (const char* cuts : {"[4]", "[2, 4]", "[]"}) {
    const std::string about = fmt::format(R"({{"version":1,"cuts":{},"thresholds":[0.5]}})", cuts);
    const Attachment other{.about = about, .tensors = {}, .values = {}};
    const auto load = [&](const std::string&) { return other; };
    EXPECT_THROW(
        run_of_parts->job.strategy->answerer(run_of_parts->input(), *run_of_parts->model, load),
        DataError)
        << cuts;
  }
}

// Trained on a seventh of the samples, every tier answers some, and each is better than the one
// below.
TEST(EarlyExitViews, TheRecipeLeavesWorkForEdgeAndCloud) {
  Job job = load_job(TUTTI_SOURCE "/recipes/early-exit-views.toml",
                     {"task.data.limit=8000", "task.epochs=4", "cluster.fabric=virtual"});
  const std::atomic<bool> never{false};
  const RunRecord record =
      launch(job, {.out = "", .keep_files = false, .progress = ProgressStyle::kNone}, never);
  ASSERT_EQ(record.status, RunStatus::kDone) << record.error;
  EXPECT_GT(measured(record, "device_exit_share"), 0.3);
  EXPECT_LT(measured(record, "device_exit_share"), 0.9);
  EXPECT_GT(measured(record, "edge_exit_share"), 0.02);
  EXPECT_GT(measured(record, "cloud_exit_share"), 0.02);
  const double devices = measured(record, "device_exit_accuracy_of_all");
  EXPECT_GT(measured(record, "exit_accuracy"), devices + 0.02);
  EXPECT_GT(measured(record, "edge_exit_accuracy_of_all"), devices + 0.01);
  EXPECT_GT(measured(record, "cloud_exit_accuracy_of_all"),
            measured(record, "edge_exit_accuracy_of_all") + 0.01);
}

TEST(EarlyExitViews, SettingsThatContradictEachOtherAreNamed) {
  const auto refused = [](const Settings& more, const char* named) {
    const std::string said = refusal(seen_task() + parts(2, 2) + more);
    EXPECT_NE(said.find(named), std::string::npos) << named << " is not in: " << said;
  };
  EXPECT_EQ(refusal(seen_task() + parts(2, 2)), "");
  refused({"cluster.workers=3"}, "set cluster.workers = 4 or 5");
  refused({"strategy.cuts=[]"}, "strategy.cuts is empty");
  refused({"strategy.cuts=[1]"}, "1 is no place to cut");
  refused({"strategy.fuse_scores=sum"}, "fuse_scores");
  // A quarter of 28 x 28 pixels is 5 x 5 after the first convolution: too small for the second.
  const Settings lenet = {"task.data=fashion-mnist", "task.data.limit=64", "task.model=lenet"};
  EXPECT_NE(refusal(seen_task() + parts(4, 2) + lenet +
                    Settings{"strategy.cuts=[3]", "strategy.fuse_features=max"})
                .find("a device sees [1, 14, 14] of a sample of [1, 28, 28]"),
            std::string::npos);
}

}  // namespace
}  // namespace tutti
