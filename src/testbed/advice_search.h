// The order of work behind an advice: what is simulated, learned and asked next, side by side on
// the cores here, until all is done or the time is over. There is an answer early on, and what
// comes later only makes it better.
#pragma once

#include <chrono>
#include <deque>
#include <optional>

#include "core/isolated_run.h"
#include "testbed/advise.h"
#include "testbed/candidates.h"
#include "testbed/node_sets.h"

namespace tutti {

class AdviceSearch {
 public:
  AdviceSearch(Candidates candidates, const Resolved& task, const ClusterConfig& cluster,
               const AdviseOptions& options, LearningCache& cache, const Announce& announce);

  // Returns how it ended.
  AdviceStatus run(const std::atomic<bool>& stop);
  // Adds what came of it.
  void describe(Advice& advice) const;
  std::vector<Choice> ranked() const { return candidates_.ranked(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Begun {
    IsolatedWork work;
    std::function<void(const std::string&)> ended;
  };
  using Step = std::optional<Begun>;
  struct Moves {
    std::vector<size_t> who = {};  // candidates that are tried on other nodes
    std::map<std::pair<size_t, size_t>, TriedNodes> tried = {};  // by candidate and set
  };

  std::optional<IsolatedWork> next();
  // Each returns a work of its kind, if it is time for one.
  Step simulation();
  Step shared_lesson();
  Step lesson();
  Step full_time();
  Step other_nodes();
  bool is_late() const;
  std::vector<size_t> best_few() const;
  Step question();
  Begun lesson_of(size_t curve);
  std::vector<size_t> sets_for(const Candidate& candidate) const;
  Begun nodes_of(size_t candidate, size_t set);
  void take_nodes(size_t candidate);
  bool goes_on(const std::atomic<bool>& stop);
  double passed_s() const;
  void tell();

  Candidates candidates_;
  const Resolved& task_;
  const AdviseOptions& options_;
  LearningCache& cache_;
  const Announce& announce_;
  const ClusterConfig cluster_;
  const std::vector<NodeSet> sets_;

  std::deque<std::function<void(const std::string&)>> ended_;  // of each work that was begun
  size_t running_ = 0, timings_ = 0;  // begun and not ended; timings are full_time()
  bool nothing_to_begin_ = false, over_ = false;
  std::string told_;                                              // the last answer
  std::map<std::string, std::optional<nlohmann::json>> answers_;  // to what was asked so far
  Moves moves_;
};

}  // namespace tutti
