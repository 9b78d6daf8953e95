#include "strategies/pipeline/stream.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "fabric/exchange.h"

namespace tutti {

Inbox::Inbox(Node& node, Stopwatch& watch, std::vector<Rank> from, Purpose purpose, uint64_t part,
             size_t depth, std::string what)
    : node_(node),
      watch_(watch),
      from_(std::move(from)),
      purpose_(purpose),
      part_(part),
      depth_(std::max<size_t>(1, depth)),
      what_(std::move(what)),
      handles_(depth_) {}

void Inbox::begin(uint64_t step, std::vector<size_t> sizes) {
  TUTTI_CHECK(released_ == sizes_.size());
  step_ = step;
  sizes_ = std::move(sizes);
  posted_ = released_ = 0;
  const size_t most = sizes_.empty() ? 0 : *std::max_element(sizes_.begin(), sizes_.end());
  if (most > capacity_) {
    capacity_ = most;
    memory_ = Buffer<float>(capacity_ * depth_);
  }
  post();
}

std::span<float> Inbox::buffer(size_t micro_batch) {
  return memory_.span().subspan(micro_batch % depth_ * capacity_, sizes_[micro_batch]);
}

void Inbox::post() {
  const Tag tag(purpose_, Tag::wrapped(step_), part_);
  for (; posted_ < sizes_.size() && posted_ < released_ + depth_; ++posted_)
    if (sizes_[posted_] > 0)
      handles_[posted_ % depth_] = node_.endpoint().receive(from(posted_), tag,
                                                            writable_bytes_of(buffer(posted_)));
}

std::span<float> Inbox::take(size_t micro_batch) {
  TUTTI_CHECK(micro_batch >= released_ && micro_batch < posted_);
  const std::span<float> result = buffer(micro_batch);
  if (result.empty()) return result;
  // Whether the first byte is there already is not known: all of it counts as waiting.
  PhaseScope scope(watch_, Phase::kWait);
  try {
    const size_t bytes = finish(node_, handles_[micro_batch % depth_]);
    if (bytes != result.size_bytes())
      throw FabricError(FabricError::Kind::kProtocol, from(micro_batch),
                        fmt::format("rank {} sent {} bytes instead of {}", from(micro_batch), bytes,
                                    result.size_bytes()));
  } catch (const FabricError& error) {
    throw FabricError(error.kind(), error.peer(),
                      fmt::format("{} of micro-batch {} from rank {}: {}", what_, micro_batch,
                                  from(micro_batch), error.what()));
  }
  return result;
}

void Inbox::release(size_t micro_batch) {
  TUTTI_CHECK(micro_batch == released_);
  ++released_;
  post();
}

}  // namespace tutti
