// Finds nodes that neither die nor say anything: a process that was stopped, or a guest that went
// silent. Peers give up at their own deadlines, and without this check the launcher would wait for
// ever.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "fabric/process/process_clock.h"
#include "fabric/process/supervisor.h"

namespace tutti::process {
namespace {

constexpr int64_t kLookAgainNs = 250'000'000;
constexpr int64_t kMissedNs = 1'000'000'000;
// This share of cluster.timeout is less than 1 because a stopped process must be given up well
// before its peers give up. Otherwise nodes that wait for one of these peers would give up too,
// although the strategy could go on without the stopped process.
constexpr double kStoppedShare = 0.5;

// In /proc/PID/stat the state follows the name, which is in parentheses and may hold anything.
bool is_stopped(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(file, text);
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= text.size()) return false;
  return text[name_end + 2] == 'T' || text[name_end + 2] == 't';
}

}  // namespace

// A forked node that computes is seen to run, however long it takes. A guest that computes is as
// silent as one that was stopped, so it is given up only when a peer has waited in vain, or when
// nobody else is left.
void Supervisor::check_silence() {
  const int64_t now_ns = monotonic_ns();
  const int64_t elapsed_ns = now_ns - looked_ns_;
  if (elapsed_ns < kLookAgainNs) return;
  looked_ns_ = now_ns;
  // A launcher that was itself stopped, for example by Ctrl-Z, has not seen whether nodes ran.
  const bool missed = elapsed_ns > kMissedNs;
  const auto under_way = std::count_if(children_.begin(), children_.end(),
                                       [](const Child& other) { return !other.ended; });
  for (Rank rank = 0; rank < size(); ++rank) {
    Child& node = child(rank);
    // Before the start check_startup() has its own deadline and can say who was not ready.
    if (node.ended || !running(node) || !started_) continue;
    const bool speaks = !node.joins && !is_stopped(node.pid);
    if (speaks || missed || node.heard_ns == 0) node.heard_ns = now_ns;
    const double patience_s = (node.joins ? 1 : kStoppedShare) * options_.timeout_s;
    if (static_cast<double>(now_ns - node.heard_ns) * 1e-9 < patience_s) continue;
    if (node.joins && !gave_up_ && under_way > 1) continue;
    node.heard_ns = now_ns;  // cut off only once
    cut_off(rank, fmt::format("{} for {} s{}", node.joins ? "said nothing" : "was stopped",
                              patience_s, last_step(rank)));
  }
}

// Returns what is known of the last step of the node, for error messages.
std::string Supervisor::last_step(Rank rank) {
  const uint64_t step = child(rank).joins ? child(rank).steps : board_.steps(rank).load();
  if (step == 0) return ", before its first step";
  return fmt::format(", in step {} by its own count", step);
}

}  // namespace tutti::process
