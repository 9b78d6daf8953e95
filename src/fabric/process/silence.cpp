#include "fabric/process/silence.h"

#include <fmt/format.h>

#include <algorithm>

namespace tutti::process {
namespace {

constexpr int64_t kLookAgainNs = 250'000'000;
constexpr int64_t kMissedNs = 1'000'000'000;
// This share of cluster.timeout is less than 1 because a stopped process must be given up well
// before its peers give up. Otherwise nodes that wait for one of these peers would give up too,
// although the strategy could go on without the stopped process.
constexpr double kStoppedShare = 0.5;

}  // namespace

// A forked node that computes is seen to run, however long it takes. A guest that computes is as
// silent as one that was stopped, so it is given up only when a peer has waited in vain, or when
// nobody else is left.
std::vector<SilenceCheck::Silent> SilenceCheck::look(Children& children, int64_t now_ns) {
  std::vector<Silent> found;
  const int64_t elapsed_ns = now_ns - looked_ns_;
  if (elapsed_ns < kLookAgainNs) return found;
  looked_ns_ = now_ns;
  // A launcher that was itself stopped, for example by Ctrl-Z, has not seen whether nodes ran.
  const bool missed = elapsed_ns > kMissedNs;
  const auto under_way = std::count_if(children.begin(), children.end(),
                                       [](const Child& other) { return !other.ended; });
  for (Rank rank = 0; rank < children.size(); ++rank) {
    Child& node = children[rank];
    if (node.ended || !node.running()) continue;
    const bool speaks = !node.joins && !node.process.stopped();
    if (speaks || missed || node.heard_ns == 0) node.heard_ns = now_ns;
    const double patience_s = (node.joins ? 1 : kStoppedShare) * timeout_s_;
    if (static_cast<double>(now_ns - node.heard_ns) * 1e-9 < patience_s) continue;
    if (node.joins && !gave_up_ && under_way > 1) continue;
    node.heard_ns = now_ns;  // found only once
    found.push_back({rank, fmt::format("{} for {} s{}", node.joins ? "said nothing" : "was stopped",
                                       patience_s, last_step(node, rank))});
  }
  return found;
}

// Returns what is known of the last step of the node, for error messages.
std::string SilenceCheck::last_step(const Child& child, Rank rank) const {
  const uint64_t step = child.joins ? child.steps : board_.steps(rank).load();
  if (step == 0) return ", before its first step";
  return fmt::format(", in step {} by its own count", step);
}

}  // namespace tutti::process
