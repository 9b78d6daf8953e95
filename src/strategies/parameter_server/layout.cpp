#include "strategies/parameter_server/layout.h"

#include <algorithm>

#include "core/error.h"
#include "fabric/node.h"

namespace tutti::parameter_server {
namespace {

// Shards of whole parameters, none larger than `most` unless a single parameter is.
std::vector<Range> fill(const Architecture& architecture, size_t most) {
  std::vector<Range> shards;
  for (const Parameter& parameter : architecture.parameters) {
    if (shards.empty() || parameter.range.end - shards.back().begin > most)
      shards.push_back(parameter.range);
    else
      shards.back().end = parameter.range.end;
  }
  return shards;
}

}  // namespace

std::vector<Range> make_shards(const Architecture& architecture, size_t number,
                               ShardKind by) {
  TUTTI_CHECK(number >= 1);
  const size_t count = architecture.parameter_count;
  std::vector<Range> shards;
  if (by == ShardKind::kLayers) {
    size_t most = 0;
    for (const Parameter& parameter : architecture.parameters)
      most = std::max(most, parameter.range.size());
    // The least size for which they suffice, by bisection between the largest and all.
    size_t least = most;
    most = std::max(most, count);
    while (least < most) {
      const size_t middle = least + (most - least) / 2;
      if (fill(architecture, middle).size() <= number)
        most = middle;
      else
        least = middle + 1;
    }
    shards = fill(architecture, most);
    shards.resize(number, {count, count});
  } else {
    for (size_t i = 0; i < number; ++i) shards.push_back(part_of(count, number, i));
  }
  return shards;
}

std::vector<Range> make_shards(const Architecture& architecture, const Config& config,
                               const OptimizerConfig& optimizer) {
  const bool whole = config.shards == ShardKind::kAuto && needs_tensors(optimizer);
  return make_shards(architecture, static_cast<size_t>(shards_of(config)),
                     whole ? ShardKind::kLayers : config.shards);
}

std::vector<Range> forward_pieces_of(const Architecture& architecture, Range shard) {
  constexpr size_t kLeast = 2 * kEagerBytes / sizeof(float);
  std::vector<Range> backward = pieces_of(architecture, shard), pieces;
  for (auto piece = backward.rbegin(); piece != backward.rend(); ++piece) {
    const size_t left = shard.end - piece->begin;
    if (!pieces.empty() && (pieces.back().size() < kLeast || left < kLeast))
      pieces.back().end = piece->end;
    else
      pieces.push_back(*piece);
  }
  return pieces;
}

std::vector<Range> pieces_of(const Architecture& architecture, Range shard) {
  std::vector<Range> pieces;
  for (const Range ready : ready_ranges(architecture)) {
    const size_t begin = std::max(ready.begin, shard.begin), end = std::min(ready.end, shard.end);
    if (begin < end) pieces.push_back({begin, end});
  }
  return pieces;
}

}  // namespace tutti::parameter_server
