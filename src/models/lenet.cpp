// LeCun et al., "Gradient-based learning applied to document recognition", 1998, in today's form:
// relu, maximum pooling and dropout.
#include "models/lenet.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.h"
#include "models/builder.h"
#include "models/common_keys.h"

namespace tutti {

void LenetModel::visit(Visitor& v) {
  visit_channels(v, channels, "of the two convolutions");
  visit_hidden(v, hidden, "lenet");
  visit_dropout(v, dropout);
}

Architecture LenetModel::make(const std::vector<int64_t>& shape, int64_t classes) const {
  require_within("task.model.hidden", hidden, kWidth);
  require_within("task.model.channels", channels, kWidth);
  require_within("task.model.dropout", dropout, kDropoutShare);
  if (shape.size() != 3)
    throw ConfigError("task.model", fmt::format("model lenet takes images of shape [channels, "
                                                "height, width], but a sample is [{}]; use mlp",
                                                fmt::join(shape, ", ")));
  if (channels.size() != 2)
    throw ConfigError("task.model.channels",
                      fmt::format("task.model.channels has {} entries, but lenet has two "
                                  "convolutions; give it two, such as [20, 50]",
                                  channels.size()));
  Builder builder("lenet", shape);
  for (int64_t width : channels) builder.convolution(width, 5).relu().max_pool(2);
  builder.flatten();
  for (int64_t width : hidden) builder.affine(width).relu().dropout(dropout);
  return builder.finish(classes);
}

}  // namespace tutti
