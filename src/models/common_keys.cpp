#include "models/common_keys.h"

#include <fmt/format.h>

#include "core/error.h"

namespace tutti {

void require_within(const char* key, double value, Bounds bounds) {
  if (!(value >= bounds.least && value <= bounds.most))
    throw ConfigError(key, fmt::format("{} = {} must lie between {} and {}", key, value,
                                       bounds.least, bounds.most));
}

void require_within(const char* key, int64_t value, Bounds bounds) {
  require_within(key, static_cast<double>(value), bounds);
}

void require_within(const char* key, const std::vector<int64_t>& values, Bounds bounds) {
  for (const int64_t value : values) require_within(key, value, bounds);
}

void visit_channels(Visitor& v, std::vector<int64_t>& channels, const char* help) {
  v.field("channels", channels, kWidth, help);
  if (channels.empty())
    throw ConfigError("task.model.channels",
                      "task.model.channels is empty; leave it out for "
                      "the default");
}

void visit_hidden(Visitor& v, std::vector<int64_t>& hidden, std::string_view kind) {
  v.field("hidden", hidden, kWidth, "widths of the hidden affine layers");
  if (hidden.empty())
    throw ConfigError("task.model.hidden", fmt::format("task.model.hidden is empty, but {} has "
                                                       "at least one hidden layer; use logistic "
                                                       "or linear for none",
                                                       kind));
}

void visit_dropout(Visitor& v, double& dropout) {
  v.field("dropout", dropout, kDropoutShare,
          "share of the outputs of each hidden layer that a step leaves out");
}

void visit_l2(Visitor& v, double& l2) {
  v.field("l2", l2, kNotNegative, "adds l2/2 * |weights|^2 to the loss of each sample");
}

}  // namespace tutti
