#include "models/slice.h"

#include <algorithm>

#include "core/error.h"

namespace tutti {
namespace {

// Convolutions lie as OHWI, but are described as OIHW.
std::vector<int64_t> memory_shape(const Parameter& parameter) {
  const std::vector<int64_t>& s = parameter.slice.whole;
  return parameter.channels_last ? std::vector<int64_t>{s.at(0), s.at(2), s.at(3), s.at(1)} : s;
}

size_t memory_dimension(const Parameter& parameter) {
  return parameter.channels_last && parameter.slice.dimension == 1 ? 3 : parameter.slice.dimension;
}

// Calls visit(begin in the whole, begin in the slice, size) for each run of neighbouring values.
template <class Visit>
void for_each_run(const Parameter& parameter, Visit visit) {
  const std::vector<int64_t> shape = memory_shape(parameter);
  const size_t dimension = memory_dimension(parameter);
  size_t outer = 1, inner = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i < dimension) outer *= static_cast<size_t>(shape[i]);
    if (i > dimension) inner *= static_cast<size_t>(shape[i]);
  }
  const auto extent = static_cast<size_t>(shape[dimension]);
  size_t own = 0;
  for (size_t row = 0; row < outer; ++row)
    for (const Range part : parameter.slice.parts) {
      visit((row * extent + part.begin) * inner, own, part.size() * inner);
      own += part.size() * inner;
    }
  TUTTI_CHECK(own == parameter.range.size());
}

}  // namespace

void cut_slice(const Parameter& slice, std::span<const float> whole, std::span<float> own) {
  for_each_run(slice, [&](size_t from, size_t to, size_t size) {
    std::copy_n(whole.subspan(from, size).begin(), size, own.subspan(to, size).begin());
  });
}

void paste_slice(const Parameter& slice, std::span<const float> own, std::span<float> whole) {
  for_each_run(slice, [&](size_t to, size_t from, size_t size) {
    std::copy_n(own.subspan(from, size).begin(), size, whole.subspan(to, size).begin());
  });
}

void paste_shard(const Architecture& shard, std::span<const float> own, const Architecture& whole,
                 std::span<float> parameters) {
  TUTTI_CHECK(shard.parameters.size() == whole.parameters.size());
  for (size_t i = 0; i < shard.parameters.size(); ++i) {
    const Parameter& parameter = shard.parameters[i];
    const Range range = whole.parameters[i].range;
    const auto from = own.subspan(parameter.range.begin, parameter.range.size());
    const auto to = parameters.subspan(range.begin, range.size());
    if (parameter.slice.parts.empty())
      std::copy(from.begin(), from.end(), to.begin());
    else
      paste_slice(parameter, from, to);
  }
}

}  // namespace tutti
