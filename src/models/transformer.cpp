// A decoder-only language model (Vaswani et al., "Attention is all you need", 2017) with the norm
// before each part (Radford et al., GPT-2, 2019) and learned positions. At every position it
// predicts the next code from the codes so far.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.h"
#include "models/builder.h"
#include "models/kinds.h"

namespace tutti {

Architecture make_transformer(const ModelConfig& config, const std::vector<int64_t>& shape,
                              int64_t classes) {
  if (shape.size() != 1 || classes == 0)
    throw ConfigError("task.model",
                      fmt::format("model transformer takes sequences of codes, but a sample is "
                                  "[{}] with {}; use data of kind tokens",
                                  fmt::join(shape, ", "),
                                  classes == 0 ? "a number to predict" : "a class to predict"));
  if (config.width % config.heads != 0)
    throw ConfigError("task.model.heads",
                      fmt::format("task.model.heads = {} does not divide task.model.width = {}; "
                                  "choose both so that it does",
                                  config.heads, config.width));
  const double dropout = dropout_of(config);
  Builder builder("transformer", shape);
  builder.embedding("embed", classes, config.width).positions("position").dropout(dropout);
  for (int64_t block = 1; block <= config.depth; ++block) {
    const std::string name = fmt::format("block{}", block);
    builder.skip(name + ".skip1")
        .layer_norm(name + ".norm1")
        .causal_attention(name + ".attn", config.heads)
        .dropout(dropout)
        .add(name + ".add1")
        .skip(name + ".skip2")
        .layer_norm(name + ".norm2")
        .affine(name + ".fc1", 4 * config.width)
        .gelu()
        .affine(name + ".fc2", config.width)
        .dropout(dropout)
        .add(name + ".add2");
  }
  return builder.layer_norm("norm").finish(classes, "head");
}

}  // namespace tutti
