// The candidates of an advice while it is being found: what is known of each so far, and what
// follows from that for all of them.
//
// A candidate is simulated first: what a step costs, and how long all epochs of the job take. Its
// learning curve comes from gradients, its own or those of its equivalence class. As long as it has
// none, it is taken to learn like another one, and its time says so.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "testbed/choice.h"
#include "testbed/learning_cache.h"

namespace tutti {

// One learning curve, of one strategy or of a class of them.
struct Curve {
  LearningQuestion asked;  // seeds: how many are wanted
  Learning unlearned;      // before any lesson
  double epochs_each = 1;  // between two evaluations
  std::map<int, Lesson> lessons = {};
  std::set<int> begun = {};

  bool reached() const;
  double epochs() const;  // to the target, mean over the seeds that reached it
};

struct Candidate {
  Choice choice;
  Plan plan;
  size_t curve = 0;
  bool begun = false, simulated = false;
  std::string failure;           // how its simulation ended that did not end well
  bool needs_gradients = false;  // what it sends and when depends on values
  double whole_s = 0;            // all epochs of the job, roughly
  // Between two evaluations, and until the end of the job.
  double steps_each = 1, epochs_each = 1, evaluations = 1;
  // For which evaluations its times were simulated in full, or are about to be.
  std::vector<std::pair<int, int64_t>> timed_at, timing_at;
  std::vector<double> times_s;
  double times_error = 0;
  std::set<size_t> nodes_begun;      // node sets
  std::map<size_t, double> nodes_s;  // their times, relative to that on all
  std::string takes_over;            // of its curve, from other nodes
};
Candidate candidate_of(Choice choice, Plan plan, int64_t training_samples);

// How much is learned. Everything, or what can change the answer.
enum class Thoroughness { kComplete, kWhatMatters };

class Candidates {
 public:
  // `seeds` 0: as many as each needs.
  Candidates(std::vector<Candidate> all, int seeds, int64_t most_workers, Thoroughness how);

  std::vector<Candidate>& all() { return all_; }
  const std::vector<Candidate>& all() const { return all_; }
  std::vector<Curve>& curves() { return curves_; }
  // Takes lessons that were learned before.
  void take_from(const LearningCache& cache);
  bool took_any() const { return took_any_; }

  // What is known now, as choices in the order of rank(); of those that were simulated.
  std::vector<Choice> ranked() const;
  // Curves that are worth a (further) lesson, the most promising first.
  std::vector<size_t> curves_to_learn() const;
  // Those of the first choices, and of whoever is among the best `few`.
  std::vector<size_t> curves_to_repeat(size_t few) const;
  // Candidates whose time is to be simulated in full, for what their choice has learned.
  std::vector<size_t> to_be_timed() const;
  // The curve that most of them share.
  size_t largest_curve() const;

  // Its lessons were full runs on its own cluster, whose times are known with them.
  bool times_are_learned(const Candidate& candidate) const;
  // As `all()[i]` is now.
  Choice choice_now(size_t i) const;

 private:
  struct Knowledge {
    const Curve* source = nullptr;   // that others are given
    const Curve* fastest = nullptr;  // that reached its target in the fewest epochs
    double fastest_error = 0;        // of these epochs: how many fewer another seed may take
    double best_s = 0;               // of the first choice; 0: there is none
    double best_compute = 0;
  };
  Knowledge knowledge() const;
  Choice choice_now(size_t i, const Knowledge& known) const;
  bool can_win(const Candidate& candidate, const Knowledge& known) const;
  double optimistic_s(const Candidate& candidate, const Knowledge& known) const;
  std::string name_of(const Curve& curve) const;

  std::vector<Candidate> all_;
  std::vector<Curve> curves_;
  Thoroughness how_;
  bool took_any_ = false;
};

}  // namespace tutti
