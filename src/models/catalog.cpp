// Every model: its name, its settings and the layers it consists of.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.h"
#include "data/dataset.h"
#include "models/architecture.h"
#include "models/builder.h"
#include "models/kinds.h"

namespace tutti {

std::vector<int64_t> channels_of(const ModelConfig& config) {
  if (!config.channels.empty()) return config.channels;
  if (config.kind == "resnet20") return {16, 32, 64};
  return {20, 50};
}

bool normalises_batches(const ModelConfig& config) {
  return config.kind == "resnet20" && config.norm == "batch";
}

double dropout_of(const ModelConfig& config) {
  if (config.dropout >= 0) return config.dropout;
  return config.kind == "lenet" ? 0.5 : 0;
}

namespace {

using Shape = std::vector<int64_t>;

constexpr Bounds kWidth{1, 1 << 24};
constexpr double kMostDropout = 0.999;
constexpr int64_t kMostBlocks = 1000;

std::vector<int64_t> hidden_of(const ModelConfig& config) {
  if (!config.hidden.empty()) return config.hidden;
  return {config.kind == "mlp" ? 128 : 500};
}

Architecture linear(const ModelConfig& config, const Shape& shape, int64_t classes) {
  if (classes != 0)
    throw ConfigError("task.model", fmt::format("model linear predicts a number, but the data has "
                                                "{} classes; use logistic, mlp or lenet",
                                                classes));
  Architecture result = Builder("linear", shape).flatten().finish(0);
  result.l2 = config.l2;
  result.l1 = config.l1;
  return result;
}

Architecture logistic(const ModelConfig& config, const Shape& shape, int64_t classes) {
  if (classes == 0)
    throw ConfigError("task.model",
                      "model logistic predicts a class, but the data has numbers to "
                      "predict; use linear or mlp");
  Architecture result = Builder("logistic", shape).flatten().finish(classes);
  result.l2 = config.l2;
  return result;
}

Architecture mlp(const ModelConfig& config, const Shape& shape, int64_t classes) {
  Builder builder("mlp", shape);
  builder.flatten();
  for (int64_t width : hidden_of(config)) builder.affine(width).relu().dropout(dropout_of(config));
  return builder.finish(classes);
}

// LeCun et al., "Gradient-based learning applied to document recognition", 1998, in today's form:
// relu, maximum pooling and dropout.
Architecture lenet(const ModelConfig& config, const Shape& shape, int64_t classes) {
  if (shape.size() != 3)
    throw ConfigError("task.model", fmt::format("model lenet takes images of shape [channels, "
                                                "height, width], but a sample is [{}]; use mlp",
                                                fmt::join(shape, ", ")));
  const std::vector<int64_t> widths = channels_of(config);
  if (widths.size() != 2)
    throw ConfigError("task.model.channels",
                      fmt::format("task.model.channels has {} entries, but lenet has two "
                                  "convolutions; give it two, such as [20, 50]",
                                  widths.size()));
  Builder builder("lenet", shape);
  for (int64_t channels : widths) builder.convolution(channels, 5).relu().max_pool(2);
  builder.flatten();
  for (int64_t width : hidden_of(config)) builder.affine(width).relu().dropout(dropout_of(config));
  return builder.finish(classes);
}

struct Entry {
  ModelEntry entry;
  Architecture (*make)(const ModelConfig&, const Shape&, int64_t classes);
};
constexpr Entry kEntries[] = {
    {{"linear", "affine to one number, half the squared error; has a closed form"}, linear},
    {{"logistic", "affine and softmax, cross-entropy; convex"}, logistic},
    {{"mlp", "affine-relu for each hidden layer, then affine"}, mlp},
    {{"lenet", "conv-relu-pool twice, affine-relu-dropout, affine-softmax; for images"}, lenet},
    {{"resnet20", "residual blocks of convolutions with group or batch norm; for images"},
     make_resnet20},
    {{"transformer", "causal attention; predicts the next code at each position; for tokens"},
     make_transformer},
    {{"sparse_logistic", "logistic on rows that stay sparse; a batch touches its features only"},
     make_sparse_logistic},
    {{"factorization", "biases and products of factors; of ratings, matrix factorisation"},
     make_factorization},
};

void require_within(const char* key, double value, Bounds bounds) {
  if (!(value >= bounds.least && value <= bounds.most))
    throw ConfigError(key, fmt::format("{} = {} must lie between {} and {}", key, value,
                                       bounds.least, bounds.most));
}

}  // namespace

// `channels`, `hidden` and `dropout` have defaults by kind, shown to the visitor and kept out of
// the config, so that visiting one kind does not decide for another.
void visit(Visitor& v, ModelConfig& config) {
  const bool is_lenet = config.kind == "lenet", is_mlp = config.kind == "mlp";
  const bool is_resnet = config.kind == "resnet20", is_transformer = config.kind == "transformer";
  if (is_lenet || is_resnet) {
    std::vector<int64_t> channels = channels_of(config);
    v.field("channels", channels, kWidth, is_lenet ? "of the two convolutions" : "of each stage");
    if (channels.empty())
      throw ConfigError("task.model.channels",
                        "task.model.channels is empty; leave it out for "
                        "the default");
    if (channels != channels_of(config)) config.channels = channels;
  }
  if (is_resnet) {
    v.field("blocks", config.blocks, {1, kMostBlocks}, "in each stage; 3 make 20 layers");
    v.choice("norm", config.norm, {"group", "batch"},
             "what is normalised together: groups of channels of a sample, or channels of a batch");
    if (config.norm == "group")
      v.field("groups", config.groups, kWidth, "of channels that are normalised together");
    else
      v.field("ghost_batch", config.ghost_batch, {2, 1e6},
              "samples that are normalised together; where it divides the share of a worker, the "
              "result does not depend on the number of workers");
  }
  if (is_transformer) {
    v.field("width", config.width, kWidth, "of what stands for a character");
    v.field("depth", config.depth, {1, kMostBlocks}, "blocks of attention and affine layers");
    v.field("heads", config.heads, kWidth, "of each attention; must divide the width");
  }
  if (is_lenet || is_mlp) {
    std::vector<int64_t> hidden = hidden_of(config);
    v.field("hidden", hidden, kWidth, "widths of the hidden affine layers");
    if (hidden.empty())
      throw ConfigError("task.model.hidden", fmt::format("task.model.hidden is empty, but {} has "
                                                         "at least one hidden layer; use logistic "
                                                         "or linear for none",
                                                         config.kind));
    if (hidden != hidden_of(config)) config.hidden = hidden;
  }
  if (is_lenet || is_mlp || is_transformer) {
    double dropout = dropout_of(config);
    v.field("dropout", dropout, {0, kMostDropout},
            is_transformer ? "share of the outputs of each part that a step leaves out"
                           : "share of the outputs of each hidden layer that a step leaves out");
    if (dropout != dropout_of(config)) config.dropout = dropout;
  }
  if (config.kind == "linear" || config.kind == "logistic")
    v.field("l2", config.l2, kNotNegative, "adds l2/2 * |weights|^2 to the loss of each sample");
  if (config.kind == "linear")
    v.field("l1", config.l1, kNotNegative, "adds l1 * |weights|_1 to the loss of each sample");
  if (config.kind == "factorization")
    v.field("rank", config.rank, {1, 1023}, "factors of each row, besides its bias");
  if (is_sparse(config))
    v.field("l2", config.l2, kNotNegative,
            "adds l2/2 * |weights|^2 to the loss of each sample, of the rows that it touches");
}

const std::vector<ModelEntry>& model_catalog() {
  static const std::vector<ModelEntry> catalog = [] {
    std::vector<ModelEntry> entries;
    for (const Entry& entry : kEntries) entries.push_back(entry.entry);
    return entries;
  }();
  return catalog;
}

Architecture make_architecture(const ModelConfig& config, const std::vector<int64_t>& sample_shape,
                               int64_t classes) {
  if (classes < 0 || classes == 1)
    throw ConfigError("task.data", fmt::format("the data has {} classes; a classification needs at "
                                               "least 2 (0 stands for a number to predict)",
                                               classes));
  for (int64_t width : config.hidden)
    require_within("task.model.hidden", static_cast<double>(width), kWidth);
  for (int64_t width : config.channels)
    require_within("task.model.channels", static_cast<double>(width), kWidth);
  require_within("task.model.dropout", dropout_of(config), {0, kMostDropout});
  require_within("task.model.l2", config.l2, kNotNegative);
  require_within("task.model.l1", config.l1, kNotNegative);
  require_within("task.model.blocks", static_cast<double>(config.blocks), {1, kMostBlocks});
  require_within("task.model.depth", static_cast<double>(config.depth), {1, kMostBlocks});
  require_within("task.model.groups", static_cast<double>(config.groups), kWidth);
  require_within("task.model.ghost_batch", static_cast<double>(config.ghost_batch), {2, 1e6});
  require_within("task.model.width", static_cast<double>(config.width), kWidth);
  require_within("task.model.rank", static_cast<double>(config.rank), {1, 1023});
  require_within("task.model.heads", static_cast<double>(config.heads), kWidth);
  std::vector<std::string_view> names;
  for (const Entry& entry : kEntries) {
    if (entry.entry.name == config.kind) return entry.make(config, sample_shape, classes);
    names.push_back(entry.entry.name);
  }
  const std::string guess = nearest(config.kind, names);
  throw ConfigError("task.model",
                    fmt::format("there is no model \"{}\"{}; known are {}", config.kind,
                                guess.empty() ? "" : fmt::format(", did you mean \"{}\"?", guess),
                                fmt::join(names, ", ")));
}

Architecture make_architecture(const ModelConfig& config, const Dataset& dataset) {
  Architecture result = make_architecture(config, dataset.sample_shape(), dataset.classes());
  if (result.positions != dataset.answers_per_sample())
    throw ConfigError("task.model",
                      fmt::format("model {} makes {} predictions for a sample, but the data has {} "
                                  "answers; transformer goes with data of kind tokens, and only "
                                  "with it",
                                  config.kind, result.positions, dataset.answers_per_sample()));
  if (result.row_width > 0 &&
      dataset.values_per_sample() > 0) {  // until here, as if all were there
    result.values_per_sample = dataset.values_per_sample();
    for (Layer& layer : result.layers)
      layer.flops *= result.values_per_sample / static_cast<double>(layer.input[0]);
  }
  return result;
}

}  // namespace tutti
