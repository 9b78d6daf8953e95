#include "models/architecture.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "core/error.h"
#include "tests/models/model_of.h"

namespace tutti {
namespace {

ModelConfig kind(std::string_view name) { return model_of(name); }

// A model of this kind, for data that it can take.
Architecture example_of(const ModelEntry& entry) {
  const ModelConfig config = kind(entry.name);
  const bool flat = entry.name == "transformer" || entry.sparse;
  const bool number = entry.name == "linear" || entry.name == "factorization";
  return make_architecture(
      config, flat ? std::vector<int64_t>{16} : std::vector<int64_t>{1, 28, 28}, number ? 0 : 4);
}

double layer_flops(const Architecture& a, const std::string& name) {
  for (const Layer& layer : a.layers)
    if (layer.name == name) return layer.flops;
  ADD_FAILURE() << "no layer " << name;
  return 0;
}

TEST(Architecture, LenetHasTheKnownSize) {
  const Architecture a = make_architecture(kind("lenet"), {1, 28, 28}, 10);
  EXPECT_EQ(a.parameter_count, 431080U);
  EXPECT_EQ(a.outputs, 10);
  EXPECT_TRUE(a.classification);
  const std::vector<std::string> names = {"conv1.weight", "conv1.bias", "conv2.weight",
                                          "conv2.bias",   "fc1.weight", "fc1.bias",
                                          "fc2.weight",   "fc2.bias"};
  ASSERT_EQ(a.parameters.size(), names.size());
  for (size_t i = 0; i < names.size(); ++i) EXPECT_EQ(a.parameters[i].name, names[i]);
  EXPECT_EQ(a.parameters[2].shape, (std::vector<int64_t>{50, 20, 5, 5}));
  EXPECT_EQ(a.parameters[4].shape, (std::vector<int64_t>{500, 800}));
  EXPECT_DOUBLE_EQ(a.parameters[2].init_bound, 1 / std::sqrt(500.0));
}

TEST(Architecture, LenetFlopsFollowTheFormula) {
  const Architecture a = make_architecture(kind("lenet"), {1, 28, 28}, 10);
  const double conv1 = (2 * 25 + 1) * 20 * 24 * 24, conv2 = (2 * 20 * 25 + 1) * 50 * 8 * 8;
  const double fc1 = (2 * 800 + 1) * 500, fc2 = (2 * 500 + 1) * 10;
  EXPECT_DOUBLE_EQ(layer_flops(a, "conv1"), conv1);
  EXPECT_DOUBLE_EQ(layer_flops(a, "conv2"), conv2);
  EXPECT_DOUBLE_EQ(layer_flops(a, "fc1"), fc1);
  EXPECT_DOUBLE_EQ(layer_flops(a, "fc2"), fc2);
  const double relus = 20 * 24 * 24 + 50 * 8 * 8 + 500, pools = 4 * (20 * 12 * 12 + 50 * 4 * 4);
  EXPECT_DOUBLE_EQ(a.forward_flops(), conv1 + conv2 + fc1 + fc2 + relus + pools + 500);
  EXPECT_DOUBLE_EQ(a.training_flops(), 3 * a.forward_flops());
  // Input, both convolutions, both poolings with positions, three layers of 500 or 10.
  EXPECT_DOUBLE_EQ(a.activation_bytes(),
                   4.0 * (784 + 11520 + 3200 + 2 * (2880 + 800) + 500 + 500 + 10));
}

TEST(Architecture, ParametersTileTheFlatBuffer) {
  for (const ModelEntry& entry : model_catalog()) {
    const Architecture a = example_of(entry);
    size_t end = 0;
    for (const Parameter& parameter : a.parameters) {
      EXPECT_EQ(parameter.range.begin, end);
      size_t size = 1;
      for (int64_t extent : parameter.shape) size *= static_cast<size_t>(extent);
      EXPECT_EQ(parameter.range.size(), size);
      end = parameter.range.end;
    }
    EXPECT_EQ(end, a.parameter_count);
    EXPECT_EQ(a.layers.front().input, a.input) << entry.name;
    for (size_t i = 1; i < a.layers.size(); ++i)
      EXPECT_EQ(a.layers[i].input, a.layers[i - 1].output) << a.layers[i].name;
  }
}

TEST(Architecture, ReadyRangesPartitionTheBackwardPass) {
  for (const ModelEntry& entry : model_catalog()) {
    const Architecture a = example_of(entry);
    size_t begin = a.parameter_count;
    double flops = 0;
    for (Range range : ready_ranges(a)) {
      EXPECT_EQ(range.end, begin);  // last layers first, without gaps
      begin = range.begin;
      flops += a.backward_flops(range);
    }
    EXPECT_EQ(begin, 0U);
    EXPECT_NEAR(flops, 2 * a.forward_flops(), 1e-9 * flops);
    // Also when buckets cut across layers.
    double pieces = 0;
    for (size_t i = 0; i < 7; ++i) pieces += a.backward_flops(part_of(a.parameter_count, 7, i));
    EXPECT_NEAR(pieces, flops, 1e-9 * flops);
    EXPECT_EQ(a.backward_flops({0, 0}), 0);
  }
}

TEST(Architecture, IsCutBeforeEachFurtherLayerWithParameters) {
  const Architecture a = make_architecture(kind("lenet"), {1, 28, 28}, 10);
  std::vector<std::string> names;
  for (size_t cut : a.cuts()) names.push_back(a.layers[cut].name);
  EXPECT_EQ(names, (std::vector<std::string>{"conv2", "fc1", "fc2"}));
  EXPECT_TRUE(make_architecture(kind("logistic"), {4}, 2).cuts().empty());
}

TEST(Architecture, FlatModelsTakeAnyShape) {
  for (const char* name : {"logistic", "mlp"}) {
    const Architecture flat = make_architecture(kind(name), {784}, 10);
    const Architecture image = make_architecture(kind(name), {1, 28, 28}, 10);
    EXPECT_EQ(flat.parameter_count, image.parameter_count);
    EXPECT_EQ(flat.layers.size() + 1, image.layers.size());
  }
  EXPECT_EQ(make_architecture(kind("mlp"), {784}, 10).parameter_count,
            784U * 128 + 128 + 128 * 10 + 10);
  EXPECT_FALSE(make_architecture(kind("mlp"), {8}, 0).classification);
}

std::string key_of_error(const ModelConfig& config, const std::vector<int64_t>& shape,
                         int64_t classes) {
  try {
    make_architecture(config, shape, classes);
  } catch (const ConfigError& error) {
    EXPECT_STRNE(error.what(), "");
    return error.key();
  }
  return "";
}

TEST(Architecture, RefusesWhatItCannotTake) {
  EXPECT_EQ(key_of_error(kind("lenet"), {784}, 10), "task.model");
  EXPECT_EQ(key_of_error(kind("lenet"), {1, 4, 28}, 10), "task.model");
  EXPECT_EQ(key_of_error(kind("lenet"), {1, 5, 5}, 10), "task.model");
  EXPECT_EQ(key_of_error(kind("lenet"), {1, 13, 13}, 10), "task.model");
  EXPECT_EQ(key_of_error(kind("lenet"), {1, 16, 16}, 10), "");
  EXPECT_EQ(key_of_error(kind("linear"), {8}, 3), "task.model");
  EXPECT_EQ(key_of_error(kind("logistic"), {8}, 0), "task.model");
  EXPECT_EQ(key_of_error(kind("logistic"), {8}, 1), "task.data");
  EXPECT_EQ(key_of_error(kind("logistic"), {0}, 2), "task.data");
  EXPECT_EQ(key_of_error(model_of("lenet", {{"channels", {6}}}), {1, 28, 28}, 10),
            "task.model.channels");
  EXPECT_EQ(key_of_error(kind("resnet20"), {784}, 10), "task.model");
  EXPECT_EQ(key_of_error(model_of("resnet20", {{"groups", 5}}), {3, 8, 8}, 10),
            "task.model.groups");
  EXPECT_EQ(key_of_error(model_of("resnet20", {{"channels", {16, 8}}}), {3, 8, 8}, 10),
            "task.model.channels");
  EXPECT_EQ(key_of_error(kind("transformer"), {1, 28, 28}, 10), "task.model");
  EXPECT_EQ(key_of_error(kind("transformer"), {16}, 0), "task.model");
  EXPECT_EQ(key_of_error(model_of("transformer", {{"heads", 5}}), {16}, 10), "task.model.heads");
  EXPECT_EQ(key_of_error(model_of("transformer", {{"depth", 0}}), {16}, 10), "task.model.depth");
  EXPECT_EQ(key_of_error(model_of("mlp", {{"hidden", {0}}}), {8}, 2), "task.model.hidden");
  EXPECT_EQ(key_of_error(model_of("mlp", {{"dropout", 1}}), {8}, 2), "task.model.dropout");
  EXPECT_EQ(key_of_error(model_of("logistic", {{"l2", -1}}), {8}, 2), "task.model.l2");
  EXPECT_EQ(key_of_error(model_of("linear", {{"l1", -1}}), {8}, 0), "task.model.l1");
}

TEST(Architecture, ProposesTheNearestModel) {
  try {
    kind("logstic");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.key(), "task.model");
    EXPECT_NE(std::string(error.what()).find("did you mean \"logistic\""), std::string::npos);
  }
}

// Collects what it is shown.
class Recorder : public Visitor {
 public:
  std::vector<std::string> keys;
  std::vector<int64_t> lists;
  double number = 0;
  bool clear_lists = false;
  void field(const char* key, bool&, const char*) override { keys.push_back(key); }
  void field(const char* key, int64_t&, Bounds, const char*) override { keys.push_back(key); }
  void field(const char* key, double& value, Bounds, const char*) override {
    keys.push_back(key);
    number = value;
  }
  void field(const char* key, std::string&, const char*) override { keys.push_back(key); }
  void field(const char* key, std::vector<int64_t>& value, Bounds, const char*) override {
    keys.push_back(key);
    lists.insert(lists.end(), value.begin(), value.end());
    if (clear_lists) value.clear();
  }
  void field(const char* key, std::vector<double>&, Bounds, const char*) override {
    keys.push_back(key);
  }
  void quantity(const char* key, double&, Unit, const char*) override { keys.push_back(key); }
  void division(const char* key, Division&, const char*) override { keys.push_back(key); }
  void choice(const char* key, std::string&, const std::vector<std::string_view>&,
              const char*) override {
    keys.push_back(key);
  }
  void table(const char* key, const std::function<void(Visitor&)>&, const char*) override {
    keys.push_back(key);
  }
  void component(const char* key, std::string&, const std::vector<std::string_view>&,
                 const std::function<void(Visitor&)>&, const char*) override {
    keys.push_back(key);
  }
  void tables(const char* key, size_t, const std::function<void(Visitor&, size_t)>&,
              const char*) override {
    keys.push_back(key);
  }
};

TEST(ModelConfig, ShowsOnlyTheKeysOfItsKindWithTheirDefaults) {
  ModelConfig config;  // one config for all: visiting one kind must not decide for another
  Recorder lenet, mlp, logistic, resnet, transformer;
  visit(lenet, config);
  config.design.become(model_entry("mlp"));
  visit(mlp, config);
  config.design.become(model_entry("logistic"));
  visit(logistic, config);
  EXPECT_EQ(lenet.keys, (std::vector<std::string>{"channels", "hidden", "dropout"}));
  EXPECT_EQ(lenet.lists, (std::vector<int64_t>{20, 50, 500}));
  EXPECT_EQ(lenet.number, 0.5);
  EXPECT_EQ(mlp.keys, (std::vector<std::string>{"hidden", "dropout"}));
  EXPECT_EQ(mlp.lists, (std::vector<int64_t>{128}));
  EXPECT_EQ(mlp.number, 0);
  EXPECT_EQ(logistic.keys, (std::vector<std::string>{"l2"}));
  config.design.become(model_entry("resnet20"));
  visit(resnet, config);
  config.design.become(model_entry("transformer"));
  visit(transformer, config);
  EXPECT_EQ(resnet.keys, (std::vector<std::string>{"channels", "blocks", "norm", "groups"}));
  EXPECT_EQ(resnet.lists, (std::vector<int64_t>{16, 32, 64}));
  EXPECT_EQ(transformer.keys, (std::vector<std::string>{"width", "depth", "heads", "dropout"}));
  EXPECT_EQ(transformer.number, 0);
}

TEST(ModelConfig, RefusesNoHiddenLayerInsteadOfIgnoringIt) {
  ModelConfig config = kind("mlp");
  Recorder recorder;
  recorder.clear_lists = true;
  EXPECT_THROW(visit(recorder, config), ConfigError);
}

}  // namespace
}  // namespace tutti
