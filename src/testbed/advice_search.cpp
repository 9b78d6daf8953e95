#include "testbed/advice_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/recorded_word.h"
#include "testbed/advice_works.h"
#include "testbed/what_if.h"

namespace tutti {
namespace {

constexpr double kFirstAnswer_s = 45;  // an answer by then, whatever is still to come
constexpr double kLate = 2.0 / 3;      // of the budget: other nodes do not wait for lessons
constexpr size_t kFewBest = 3;         // that are tried on other nodes
// Fewer nodes have to save as much as simulated networks are known to be off.
constexpr double kWorthMoving = 0.03;
constexpr const char* kQuestions[] = {"bandwidth", "workers", "compression", "batch"};
enum class AskedAfter { kBandwidth, kWorkers, kCompression, kBatch };
constexpr auto words(AskedAfter) {
  return WordList<4>{kQuestions[0], kQuestions[1], kQuestions[2], kQuestions[3]};
}

double effort_of(const Candidate& candidate) {
  double effort = 0;
  for (const NodePlan& node : candidate.plan.nodes) effort += 1 + node.messages;
  return effort;
}

bool was_looked_at(const Candidate& candidate) {
  return candidate.simulated || !candidate.failure.empty();
}

}  // namespace

AdviceSearch::AdviceSearch(Candidates candidates, const Resolved& task,
                           const ClusterConfig& cluster, const AdviseOptions& options,
                           LearningCache& cache, const Announce& announce)
    : candidates_(std::move(candidates)),
      task_(task),
      options_(options),
      cache_(cache),
      announce_(announce),
      cluster_(cluster),
      sets_(options.complete ? std::vector<NodeSet>{} : node_sets(cluster)) {}

double AdviceSearch::passed_s() const {
  return std::chrono::duration<double>(Clock::now() - options_.asked).count();
}

bool AdviceSearch::is_late() const {
  return options_.budget_s > 0 && passed_s() > kLate * options_.budget_s;
}

// Those that need little come first, so that an answer does not wait for the largest.
AdviceSearch::Step AdviceSearch::simulation() {
  std::vector<Candidate>& all = candidates_.all();
  const bool late = options_.budget_s > 0 && passed_s() > options_.budget_s / 2;
  size_t i = all.size();
  for (size_t k = 0; k < all.size(); ++k) {
    if (all[k].begun || (late && all[k].choice.of_nodes == 0)) continue;
    if (i == all.size() || effort_of(all[k]) < effort_of(all[i])) i = k;
  }
  if (i == all.size()) return std::nullopt;
  const Candidate& candidate = all[i];
  all[i].begun = true;
  const int64_t workers = candidate.choice.job.cluster.workers;
  announce_(fmt::format("simulating {} on {} worker{}", candidate.choice.name, workers,
                        workers == 1 ? "" : "s"));
  return Begun{[&candidate, this](const std::atomic<bool>& raised) {
                 return look_at(candidate, task_.data, raised);
               },
               [i, this](const std::string& reply) {
                 Candidate& simulated = candidates_.all()[i];
                 const FirstLook look = first_look_in(reply);
                 simulated.failure = look.failure;
                 simulated.simulated = look.failure.empty();
                 simulated.choice.step = look.step;
                 simulated.needs_gradients = look.needs_gradients;
                 simulated.whole_s = look.whole_s;
               }};
}

AdviceSearch::Begun AdviceSearch::lesson_of(size_t curve) {
  Curve& asked = candidates_.curves()[curve];
  int seed = 0;
  while (asked.begun.contains(seed)) ++seed;
  asked.begun.insert(seed);
  Job learner = learner_of(asked.asked).job;
  const Job& job = asked.asked.job;
  learner.task.seed = job.task.seed + static_cast<uint64_t>(seed);
  announce_(fmt::format("learning: {}, batch {}, seed {} of {}", job.name, job.task.global_batch,
                        seed + 1, asked.asked.seeds));
  return {[learner, this](const std::atomic<bool>& raised) {
            return packed(learn(learner, task_.data, raised));
          },
          [learner, curve, seed, this](const std::string& result) {
            const Lesson lesson = unpacked(result);
            candidates_.curves()[curve].lessons[seed] = lesson;
            cache_.keep(learner, lesson);
          }};
}

// The curve that most share is learned from the beginning, beside the simulations: what others may
// be measured by is known first.
AdviceSearch::Step AdviceSearch::shared_lesson() {
  const size_t shared = candidates_.largest_curve();
  if (options_.complete || !candidates_.curves()[shared].begun.empty()) return std::nullopt;
  return lesson_of(shared);
}

AdviceSearch::Step AdviceSearch::lesson() {
  const auto& all = candidates_.all();
  const bool looked_at_all = std::all_of(all.begin(), all.end(), [&](const Candidate& c) {
    return was_looked_at(c) || (!c.begun && options_.budget_s > 0);
  });
  const Curve& shared = candidates_.curves()[candidates_.largest_curve()];
  if (!looked_at_all || (!options_.complete && shared.lessons.empty())) return std::nullopt;
  // Rough times may ask for lessons that exact ones do not, and what is learned when nodes are
  // chosen would choose others: the same question would get another answer the next time.
  if (timings_ > 0 || (!moves_.who.empty() && !is_late())) return std::nullopt;
  if (const auto curves = candidates_.curves_to_learn(); !curves.empty())
    return lesson_of(curves.front());
  if (running_ > 0) return std::nullopt;  // it may decide who is worth another one
  const size_t few = sets_.empty() ? 0 : kFewBest;
  if (const auto curves = candidates_.curves_to_repeat(few); !curves.empty())
    return lesson_of(curves.front());
  return std::nullopt;
}

AdviceSearch::Step AdviceSearch::full_time() {
  const std::vector<size_t> asked = candidates_.to_be_timed();
  if (asked.empty()) return std::nullopt;
  const size_t i = asked.front();
  const Choice choice = candidates_.choice_now(i);
  Candidate& timed = candidates_.all()[i];
  timed.timing_at = choice.learning.reached_at;
  ++timings_;
  announce_(fmt::format("simulating {} to its target", choice.name));
  const bool with_little = timed.needs_gradients && !options_.complete;
  return Begun{[choice, with_little, &plan = timed.plan, this](const std::atomic<bool>& raised) {
                 return simulate_times(choice, plan, with_little, task_.data, raised);
               },
               [i, at = timed.timing_at, nodes = choice.of_nodes, this](const std::string& reply) {
                 Candidate& done = candidates_.all()[i];
                 --timings_;
                 const TimesToTarget found = times_in(reply);
                 // It may have other lessons since, or other nodes. Where the simulation failed its
                 // rough time has to do.
                 if (done.timing_at != at || done.choice.of_nodes != nodes || found.times_s.empty())
                   return;
                 done.times_s = found.times_s;
                 done.times_error = found.error;
                 done.timed_at = at;
               }};
}

// One that makes do with a single node gains by another one alone, if the first is not as fast; all
// others would be like it on a single one.
std::vector<size_t> AdviceSearch::sets_for(const Candidate& candidate) const {
  std::vector<size_t> sets;
  const bool alone = candidate.choice.job.cluster.workers == 1;
  for (size_t i = 0; i < sets_.size(); ++i)
    if (alone ? i == 0 && sets_[i].fastest && sets_[i].nodes[0] != 0 : sets_[i].nodes.size() > 1)
      sets.push_back(i);
  return sets;
}

AdviceSearch::Begun AdviceSearch::nodes_of(size_t i, size_t set) {
  Candidate& candidate = candidates_.all()[i];
  candidate.nodes_begun.insert(set);
  const Choice choice = candidates_.choice_now(i);
  announce_(fmt::format("trying {} {}", choice.name, in_words(sets_[set])));
  ClusterConfig cluster = with_nodes(cluster_, sets_[set]);
  cluster.colocated = choice.open.cluster.colocated;
  // Rough times are compared with a rough one.
  const bool gradients = candidate.needs_gradients;
  const double before_s =
      gradients ? candidate.whole_s * choice.learning.evaluations / candidate.evaluations
                : choice.time_s();
  return {[choice, cluster, gradients, this](const std::atomic<bool>& raised) {
            return simulate_on(choice, cluster, gradients, task_.data, raised);
          },
          [i, set, before_s, this](const std::string& reply) {
            Candidate& tried = candidates_.all()[i];
            const std::vector<double> times = times_in(reply).times_s;
            tried.nodes_s[set] = times.empty() ? INFINITY : times.front() / before_s;
            if (!times.empty())
              moves_.tried[{i, set}] = {tried.choice.name, in_words(sets_[set]),
                                        tried.nodes_s[set] - 1, false};
            if (tried.nodes_s.size() == sets_for(tried).size()) take_nodes(i);
          }};
}

// Where fewer nodes are faster, the candidate becomes one that uses these.
void AdviceSearch::take_nodes(size_t i) {
  Candidate& candidate = candidates_.all()[i];
  const auto best =
      std::min_element(candidate.nodes_s.begin(), candidate.nodes_s.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (best->second > 1 - kWorthMoving) return;
  Choice choice = candidate.choice;
  choice.whole = choice.open.cluster;
  choice.open.cluster = with_nodes(cluster_, sets_[best->first]);
  choice.open.cluster.colocated = candidate.choice.open.cluster.colocated;
  choice.open.strategy->fit(choice.open.cluster);
  Resolved planned = resolve(choice.open, task_.data);
  planned.job.name = choice.name;
  const int64_t before = choice.job.cluster.workers, now = planned.job.cluster.workers;
  choice.job = std::move(planned.job);
  choice.plan = planned.plan.in_words;
  choice.memory_bytes = planned.plan.most_memory_bytes();
  choice.of_nodes = cluster_.workers;
  choice.fastest = sets_[best->first].fastest;
  moves_.tried.at({i, best->first}).taken = true;
  Candidate moved =
      candidate_of(std::move(choice), std::move(planned.plan), std::ssize(task_.data.splits.train));
  moved.curve = candidate.curve;
  moved.nodes_begun = candidate.nodes_begun;
  moved.nodes_s = candidate.nodes_s;
  const bool alike = !moved.choice.equivalence.empty();
  if (!alike && now != before)
    moved.takes_over = fmt::format("; that {} learn like {} is assumed", now, before);
  candidate = std::move(moved);
}

std::vector<size_t> AdviceSearch::best_few() const {
  const std::vector<Choice> choices = candidates_.ranked();
  const auto& all = candidates_.all();
  std::vector<size_t> few;
  for (const Choice& choice : choices) {
    if (few.size() == kFewBest || !choice.is_judged()) break;
    const auto candidate = std::find_if(
        all.begin(), all.end(), [&](const Candidate& c) { return c.choice.name == choice.name; });
    few.push_back(static_cast<size_t>(candidate - all.begin()));
  }
  return few;
}

// Who is tried is decided once, when all is learned: before that it would depend on what ended
// first.
AdviceSearch::Step AdviceSearch::other_nodes() {
  if (sets_.empty()) return std::nullopt;
  if (moves_.who.empty() && (running_ == 0 || is_late())) moves_.who = best_few();
  for (const size_t i : moves_.who)
    for (const size_t set : sets_for(candidates_.all()[i]))
      if (!candidates_.all()[i].nodes_begun.contains(set)) return nodes_of(i, set);
  return std::nullopt;
}

// Questions about the answer come when it stands.
AdviceSearch::Step AdviceSearch::question() {
  const std::vector<Choice> choices = candidates_.ranked();
  if (options_.quick || choices.empty() || !choices.front().is_judged()) return std::nullopt;
  for (const char* name : kQuestions) {
    if (answers_.contains(name)) continue;
    if (answers_.empty() && running_ > 0) return std::nullopt;
    answers_[name];
    return Begun{[name = std::string(name), choices, this](const std::atomic<bool>& raised) {
                   const WhatIf what_if{task_, cache_, announce_, raised};
                   const Choice& best = choices.front();
                   return (says(name, AskedAfter::kBandwidth)     ? what_if.bandwidth(choices)
                           : says(name, AskedAfter::kWorkers)     ? what_if.workers(choices)
                           : says(name, AskedAfter::kCompression) ? what_if.compression(best)
                                                                  : what_if.batch(best))
                       .dump();
                 },
                 [name = std::string(name), this](const std::string& result) {
                   answers_[name] = nlohmann::json::parse(result);
                 }};
  }
  return std::nullopt;
}

std::optional<IsolatedWork> AdviceSearch::next() {
  if (nothing_to_begin_) return std::nullopt;
  Step begun;
  if (answers_.empty()) {
    begun = shared_lesson();
    if (!begun) begun = simulation();
    if (!begun) begun = full_time();
    if (!begun && is_late()) begun = other_nodes();
    if (!begun) begun = lesson();
    if (!begun) begun = other_nodes();
  }
  if (!begun) begun = question();
  nothing_to_begin_ = !begun;
  if (!begun) return std::nullopt;
  ended_.push_back(std::move(begun->ended));
  ++running_;
  return std::move(begun->work);
}

// Says the answer when there is a new one.
void AdviceSearch::tell() {
  const auto& all = candidates_.all();
  const auto& shared = candidates_.curves()[candidates_.largest_curve()];
  const bool looked_at_all = std::all_of(all.begin(), all.end(), was_looked_at);
  const bool ready = looked_at_all && !shared.lessons.empty();
  if (!ready && told_.empty() && passed_s() < kFirstAnswer_s) return;
  Advice advice;
  describe(advice);
  if (advice.choices.empty()) return;
  const AdvisedChoice& best = advice.choices.front();
  const std::string who = best.name + best.where + best.assumed;
  if (who == told_) return;
  told_ = who;
  options_.answered(sentence_of(advice));
}

bool AdviceSearch::goes_on(const std::atomic<bool>& stop) {
  options_.waiting();
  if (told_.empty() && passed_s() > kFirstAnswer_s) tell();
  over_ = options_.budget_s > 0 && passed_s() > options_.budget_s;
  return !stop && !over_;
}

AdviceStatus AdviceSearch::run(const std::atomic<bool>& stop) {
  if (!options_.cache.empty()) candidates_.take_from(cache_);
  try {
    run_queue("run",
              {.next = [this] { return next(); },
               .ended =
                   [this](size_t i, const std::string& result) {
                     ended_[i](result);
                     --running_;
                     nothing_to_begin_ = false;
                     tell();
                   },
               .goes_on = [&] { return goes_on(stop); }},
              stop);
  } catch (const InterruptedError&) {
    if (!stop) throw;
  }
  return stop    ? AdviceStatus::kInterrupted
         : over_ ? AdviceStatus::kBudget
                 : AdviceStatus::kComplete;
}

void AdviceSearch::describe(Advice& advice) const {
  advice.choices = described(candidates_.ranked());
  advice.task.metric = task_.architecture.classification ? "accuracy" : "mse";
  advice.task.target = task_.job.task.target;
  for (const auto& [key, tried] : moves_.tried) advice.tried_nodes.push_back(tried);
  if (candidates_.took_any()) advice.learned_before = options_.cache;
  for (const Candidate& candidate : candidates_.all()) {
    const std::string& name = candidate.choice.name;
    if (!candidate.failure.empty())
      advice.refused.push_back({name, candidate.choice.job.strategy_kind,
                                "its time could not be simulated: " + candidate.failure});
    else if (!candidate.simulated)
      advice.not_simulated.push_back(name);
  }
  const auto answer = [&](const char* name) -> std::optional<nlohmann::json> {
    const auto found = answers_.find(name);
    if (found == answers_.end() || !found->second) return std::nullopt;
    return found->second;
  };
  advice.bandwidth = answer("bandwidth");
  advice.workers = answer("workers");
  advice.compression = answer("compression");
  advice.batch = answer("batch");
  if (options_.quick || advice.choices.empty() || !advice.choices.front().is_judged()) return;
  for (const char* name : kQuestions)
    if (!answer(name)) advice.not_asked.push_back(name);
}

}  // namespace tutti
