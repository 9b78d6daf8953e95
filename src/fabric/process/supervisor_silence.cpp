// Nodes that neither die nor say anything: a process that was stopped, a guest that went silent.
// Their peers give up by their own deadline; so does the launcher, which would wait for ever.
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
// Of cluster.timeout. A stopped process is let go well before its peers give up, or those who wait
// for a node that waits for it would do so, where the strategy goes on without it.
constexpr double kStoppedShare = 0.5;

// The state follows the name, which is in parentheses and may hold anything.
bool is_stopped(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(file, text);
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= text.size()) return false;
  return text[name_end + 2] == 'T' || text[name_end + 2] == 't';
}

}  // namespace

// A forked node that computes is seen to run, however long it takes. A guest that computes is
// silent like one that was stopped, so it is let go only when a peer has waited in vain, or when
// nobody else is left.
void Supervisor::check_silence() {
  const int64_t now_ns = monotonic_ns();
  const int64_t elapsed_ns = now_ns - looked_ns_;
  if (elapsed_ns < kLookAgainNs) return;
  looked_ns_ = now_ns;
  // A launcher that was stopped itself, as by Ctrl-Z, has not seen whether they ran meanwhile.
  const bool missed = elapsed_ns > kMissedNs;
  const auto under_way = std::count_if(children_.begin(), children_.end(),
                                       [](const Child& other) { return !other.ended; });
  for (Rank rank = 0; rank < size(); ++rank) {
    Child& node = child(rank);
    // Before the start another deadline holds, after which one can say who was not ready.
    if (node.ended || !running(node) || !started_) continue;
    const bool speaks = !node.joins && !is_stopped(node.pid);
    if (speaks || missed || node.heard_ns == 0) node.heard_ns = now_ns;
    const double patience_s = (node.joins ? 1 : kStoppedShare) * options_.timeout_s;
    if (static_cast<double>(now_ns - node.heard_ns) * 1e-9 < patience_s) continue;
    if (node.joins && !gave_up_ && under_way > 1) continue;
    node.heard_ns = now_ns;  // once
    cut_off(rank, fmt::format("{} for {} s{}", node.joins ? "said nothing" : "was stopped",
                              patience_s, last_step(rank)));
  }
}

// What is known of what it was doing.
std::string Supervisor::last_step(Rank rank) {
  const uint64_t step = child(rank).joins ? child(rank).steps : board_.steps(rank).load();
  if (step == 0) return ", before its first step";
  return fmt::format(", in step {} by its own count", step);
}

}  // namespace tutti::process
