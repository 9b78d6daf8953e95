// A decoder-only language model (Vaswani et al., "Attention is all you need", 2017) with the norm
// before each part (Radford et al., GPT-2, 2019) and learned positions. At every position it
// predicts the next code from the codes so far.
#include "models/transformer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.h"
#include "models/builder.h"
#include "models/common_keys.h"

namespace tutti {

void TransformerModel::visit(Visitor& v) {
  v.field("width", width, kWidth, "of what stands for a character");
  v.field("depth", depth, kBlockCount, "blocks of attention and affine layers");
  v.field("heads", heads, kWidth, "of each attention; must divide the width");
  v.field("dropout", dropout, kDropoutShare,
          "share of the outputs of each part that a step leaves out");
}

Architecture TransformerModel::make(const std::vector<int64_t>& shape, int64_t classes) const {
  require_within("task.model.dropout", dropout, kDropoutShare);
  require_within("task.model.depth", depth, kBlockCount);
  require_within("task.model.width", width, kWidth);
  require_within("task.model.heads", heads, kWidth);
  if (shape.size() != 1 || classes == 0)
    throw ConfigError("task.model",
                      fmt::format("model transformer takes sequences of codes, but a sample is "
                                  "[{}] with {}; use data of kind tokens",
                                  fmt::join(shape, ", "),
                                  classes == 0 ? "a number to predict" : "a class to predict"));
  if (width % heads != 0)
    throw ConfigError("task.model.heads",
                      fmt::format("task.model.heads = {} does not divide task.model.width = {}; "
                                  "choose both so that it does",
                                  heads, width));
  Builder builder("transformer", shape);
  builder.embedding("embed", classes, width).positions("position").dropout(dropout);
  for (int64_t block = 1; block <= depth; ++block) {
    const std::string name = fmt::format("block{}", block);
    builder.skip(name + ".skip1")
        .layer_norm(name + ".norm1")
        .causal_attention(name + ".attn", heads)
        .dropout(dropout)
        .add(name + ".add1")
        .skip(name + ".skip2")
        .layer_norm(name + ".norm2")
        .affine(name + ".fc1", 4 * width)
        .gelu()
        .affine(name + ".fc2", width)
        .dropout(dropout)
        .add(name + ".add2");
  }
  return builder.layer_norm("norm").finish(classes, "head");
}

}  // namespace tutti
