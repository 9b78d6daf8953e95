// Advice for people: a table, the reasons, what to change, and last the answer.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "testbed/advice.h"
#include "testbed/advice_wording.h"
#include "testbed/measured_records.h"
#include "testbed/refusals.h"
#include "testbed/what_if_text.h"

namespace tutti {
namespace {

std::string heading(const Advice& a) {
  const AdvisedTask& task = a.task;
  const AdvisedModelCost& cost = a.model_cost;
  return fmt::format(
      "task      {}: {} on {} to {} {}, global batch {}\n"
      "cluster   {} worker{} of {:.3g} GFLOP/s on {}, {}\n"
      "model     {} parameters, {:.3g} MFLOP a sample; {:.3g} GFLOP/s, {:.2f} of the reference "
      "kernel ({})\n",
      task.name, task.model, task.data, task.metric, task.target, task.global_batch,
      a.cluster.workers, a.cluster.workers == 1 ? "" : "s", a.cluster.speed / 1e9,
      in_bits(a.cluster.bandwidth), in_seconds(a.cluster.latency_s), task.parameters,
      task.flops_per_sample / 1e6, cost.flops / 1e9, cost.efficiency, cost.obtained);
}

std::string passes(const AdvisedModelCost& cost) {
  std::string text =
      fmt::format("a pass    {} + {} for each of {} layer{}, forward and backward, + {} a sample",
                  in_seconds(cost.step_s), in_seconds(cost.layer_s), cost.layers,
                  cost.layers == 1 ? "" : "s", in_seconds(cost.sample_s));
  if (cost.least_sample)
    text +=
        ", which is too little to measure: the arithmetic at 4 times the speed of the reference "
        "kernel";
  if (!cost.timed.empty())
    text += fmt::format(" (fitted to batches of {} to {}, error {:.0f} %)",
                        cost.timed.front().batch, cost.timed.back().batch, 100 * cost.fit_error);
  text += fmt::format(
      "\nfixed     {:.0f} % of a step on one node, {:.0f} % where the batch is spread over all "
      "workers\n",
      100 * cost.fixed_share, 100 * cost.fixed_share_spread);
  if (cost.least_sample)
    text +=
        "caution   a sample costs too little to be measured here: times in which computing matters "
        "are bounds,\n          not estimates; time the job itself by `tutti train` before you "
        "spend money on it\n";
  return text;
}

size_t name_width(const std::vector<AdvisedChoice>& choices) {
  size_t width = 8;
  for (const AdvisedChoice& choice : choices) width = std::max(width, choice.name.size());
  return width;
}

std::string place_of(const AdvisedChoice& c) {
  if (c.is_judged())
    return *c.place_first == *c.place_last ? fmt::format("{}", *c.place_first)
                                           : fmt::format("{}-{}", *c.place_first, *c.place_last);
  return c.time_s && c.fits ? "?" : "-";
}

// Beyond ten times nobody reads per cent.
std::string behind_of(const AdvisedChoice& c) {
  if (!c.behind) return "";
  if (*c.behind >= 9) return fmt::format("{:.3g} times", 1 + *c.behind);
  // What rounds to nothing has no sign.
  const double percent = std::abs(100 * *c.behind) < 0.5 ? 0 : 100 * *c.behind;
  return fmt::format("{:+.0f} % +-{:.0f}", percent, 100 * c.behind_error.value_or(0));
}

std::string energy_of(const AdvisedChoice& c) {
  if (!c.joules) return "-";
  return *c.joules < 1000 ? fmt::format("{:.3g} J", *c.joules)
                          : fmt::format("{:.4g} kJ", *c.joules / 1000);
}

std::string time_of_row(const AdvisedChoice& c) {
  if (!c.time_s) return "not reached";
  if (!c.assumed.empty()) return "about " + in_seconds(*c.time_s);
  const double error = c.error.value_or(0);
  if (!is_lopsided(error)) return fmt::format("{} +-{:.0f} %", in_seconds(*c.time_s), 100 * error);
  return fmt::format("{} +{:.0f} -{:.0f} %", in_seconds(*c.time_s), 100 * error,
                     100 * (1 - interval_around(1, error).least));
}

std::string seeds_of(const AdvisedChoice& c) {
  return c.runs ? fmt::format("{} of {}", c.runs_reached.value_or(0), *c.runs) : "-";
}

std::string row_of(const AdvisedChoice& c, size_t width, bool first) {
  return fmt::format("{:<6} {:<{}} {:>7} {:>21} {:>7} {:>14} {:>8} {:>8} {:>11} {:>6}\n",
                     place_of(c), c.name, width, c.workers, time_of_row(c), seeds_of(c),
                     first ? "" : behind_of(c), in_seconds(c.step_s), energy_of(c),
                     c.cost ? fmt::format("{:.2g} {}", *c.cost, c.currency) : "-",
                     c.steps_to_target ? fmt::format("{:.0f}", *c.steps_to_target) : "-");
}

std::string table(const std::vector<AdvisedChoice>& choices) {
  if (choices.empty()) return "";
  const size_t width = name_width(choices);
  std::string text =
      fmt::format("\n{:<6} {:<{}} {:>7} {:>21} {:>7} {:>14} {:>8} {:>8} {:>11} {:>6}\n", "place",
                  "strategy", width, "workers", "time to target", "reached", "to the first",
                  "a step", "energy", "cost", "steps");
  for (const AdvisedChoice& choice : choices)
    text += row_of(choice, width, &choice == &choices.front());
  const auto any = [&](const auto& is) { return std::any_of(choices.begin(), choices.end(), is); };
  if (any([](const auto& c) { return c.is_judged() && c.place_first != c.place_last; }))
    text +=
        "Places are those that a strategy may have: it is surely behind all before them, and "
        "before all behind them.\n";
  if (any([](const auto& c) { return c.misses_some(); }))
    text += "reached: with how many of its seeds; who misses some comes behind all that do not.\n";
  if (any([](const auto& c) { return !c.assumed.empty(); }))
    text +=
        "? has no place: its learning curve was not computed, and its time assumes another one.\n";
  return text;
}

// One line for each thing that is said, with all of whom it is said.
using Said = std::vector<std::pair<std::string, std::string>>;
void say(Said& said, const std::string& what, const std::string& of) {
  const auto same =
      std::find_if(said.begin(), said.end(), [&](const auto& e) { return e.first == what; });
  if (same == said.end())
    said.emplace_back(what, of);
  else
    same->second += ", " + of;
}

std::string plans(const std::vector<AdvisedChoice>& choices) {
  std::string text;
  const size_t width = name_width(choices);
  for (const AdvisedChoice& c : choices)
    if (!c.plan.empty()) text += fmt::format("  {:<{}} {}\n", c.name, width, c.plan);
  return text.empty() ? "" : "\nPlans\n" + text;
}

// Who is left out has one reason for that, whatever its time goes into.
std::string why(const Advice& a, const AdviceTextOptions& options) {
  std::string text;
  Said left_out, refused;
  const size_t width = name_width(a.choices);
  for (const AdvisedChoice& c : a.choices) {
    if (!c.left_out.empty()) {
      say(left_out, c.left_out,
          c.time_s ? fmt::format("{} ({})", c.name, in_seconds(*c.time_s)) : c.name);
      continue;
    }
    for (size_t i = 0; i < c.reasons.size(); ++i)
      text += fmt::format("  {:<{}} {}\n", i == 0 ? c.name : "", width, c.reasons[i]);
  }
  if (!text.empty()) text = "\nWhy\n" + text;
  if (!left_out.empty()) text += "\nNot learned\n";
  for (const auto& [reason, names] : left_out) text += fmt::format("  {}: {}\n", reason, names);
  if (a.refused.empty()) return text;
  text += options.verbose ? "\nNot possible here\n"
                          : "\nNot possible here (--verbose says all of it)\n";
  if (!options.verbose) return text + refusal_lines(a.refused, options.columns);
  for (const Refusal& each : a.refused) say(refused, each.reason, each.name);
  for (const auto& [reason, names] : refused) text += fmt::format("  {}: {}\n", names, reason);
  return text;
}

std::string names_in(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string nodes_text(const Advice& a) {
  std::string text;
  for (const TriedNodes& each : a.tried_nodes) {
    if (a.choices.empty() || each.name != a.choices.front().name) continue;
    const double percent = std::abs(100 * each.change);
    const std::string change =
        percent < 0.5 ? "as long"
                      : fmt::format("{:.0f} % {}", percent, each.change > 0 ? "longer" : "shorter");
    text += fmt::format("{} {} {}{}",
                        text.empty() ? fmt::format("  nodes        {} takes", each.name) : ",",
                        each.where, change, each.taken ? " (taken)" : "");
  }
  return text.empty() ? "" : text + "\n";
}

std::string changes(const Advice& a) {
  std::string text = nodes_text(a) + what_if_text(a);
  if (a.memory.contains("text"))
    text += fmt::format("  memory       {}\n", a.memory["text"].get<std::string>());
  return text.empty() ? "" : "\nWhat to change\n" + text;
}

// Where the steps of each choice come from: one line for all that learned in the same way.
std::string learning_text(const std::vector<AdvisedChoice>& choices) {
  Said said;
  for (const AdvisedChoice& choice : choices)
    if (!choice.learning.empty() && choice.left_out.empty())
      say(said, choice.learning, choice.name);
  if (said.empty()) return "";
  std::string text = "  Steps to the target come from\n";
  for (const auto& [method, names] : said) text += fmt::format("    {}: {}\n", method, names);
  return text;
}

// How well advice did where what it said was tried.
std::string measured_proof() {
  const AdviceValidation& v = kAdviceValidation;
  return fmt::format(
      "  Tried on a real network of 4 hosts ({}, `tutti bench advise`): times to the target off by "
      "{:.0f} % on average over\n  {} trainings, the order right in {} of {} pairs that differ by "
      "more than 10 %, the first choice at most {:.0f} % slower\n  than the fastest.\n",
      v.date, 100 * v.time_error, v.trainings, v.pairs_in_order, v.pairs, 100 * v.worst_regret);
}

std::string how(const Advice& a) {
  std::string text =
      "\nHow this was found\n  Times are those of each strategy's real messages on a simulated "
      "network.\n";
  std::string shared = fmt::format(
      "{:.0f} % of what is sent (simulated against measured "
      "networks: {})",
      100 * a.simulation_error.relative, a.simulation_error.source);
  if (!a.model_cost.timed.empty())
    shared = fmt::format("{:.0f} % of what is computed (the fit of the model's cost) and ",
                         100 * a.model_cost.fit_error) +
             shared;
  text += fmt::format(
      "  All times share an error of {}.\n  It moves them together. What decides their order are "
      "the differences over the same seeds.\n",
      shared);
  text += measured_proof();
  text += learning_text(a.choices);
  if (!a.learned_before.empty())
    text += fmt::format("  Some of it was learned before and kept in {}; --no-cache learns anew.\n",
                        a.learned_before);
  return text;
}

std::string left_undone(const Advice& a) {
  std::string text;
  if (!a.not_simulated.empty())
    text += fmt::format("not simulated: {}\n", names_in(a.not_simulated));
  if (!a.not_asked.empty()) text += fmt::format("not asked: {}\n", names_in(a.not_asked));
  if (a.status == AdviceStatus::kInterrupted)
    text = "Interrupted: this is the answer so far.\n" + text;
  else if (a.status == AdviceStatus::kBudget)
    text = "The budget is used: a longer --budget refines this.\n" + text;
  return text.empty() ? "" : "\n" + text;
}

}  // namespace

std::string advice_text(const Advice& a, const AdviceTextOptions& options) {
  std::string text = heading(a) + passes(a.model_cost) + table(a.choices) + plans(a.choices) +
                     why(a, options) + changes(a) + how(a) + left_undone(a);
  if (!options.written.empty()) text += "\n" + options.written + "\n";
  return text + "\n" + a.sentence + "\n";
}

}  // namespace tutti
