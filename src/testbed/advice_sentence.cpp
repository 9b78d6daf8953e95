// The advice in one sentence.
#include <fmt/format.h>

#include <algorithm>

#include "testbed/advice.h"
#include "testbed/advice_wording.h"

namespace tutti {
namespace {

constexpr size_t kMostNames = 3;

// "a", "a and b", "a, b, c and 4 others".
std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  const size_t shown = names.size() > kMostNames + 1 ? kMostNames : names.size();
  for (size_t i = 0; i < shown; ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  if (shown < names.size()) text += fmt::format(" and {} others", names.size() - shown);
  return text;
}

std::string time_of(const AdvisedChoice& choice) {
  return in_seconds(*choice.time_s) + interval_of(*choice.time_s, choice.error.value_or(0));
}

// With what was planned for it.
std::string who_and_where(const AdvisedChoice& choice) {
  return fmt::format("{} {}{}", choice.name, choice.where,
                     choice.plan.empty() ? "" : " (" + choice.plan + ")");
}

bool is_borrowed(const AdvisedChoice& choice) {
  return choice.time_s && choice.fits && !choice.assumed.empty();
}

// Its own difference to the first choice says so: a place may also overlap because somebody between
// the two is tied with both.
bool is_as_good(const AdvisedChoice& choice) {
  return choice.is_judged() && *choice.place_first == 1 &&
         choice.behind.value_or(0) <= choice.behind_error.value_or(0);
}

std::string missed_of(const AdvisedChoice& choice) {
  return fmt::format("missed the target with {} of {} seeds", *choice.runs - *choice.runs_reached,
                     *choice.runs);
}

// Those that are faster where they get there, or the first choice itself.
std::string who_misses(const Advice& advice, const AdvisedChoice& best) {
  std::string text = best.misses_some() ? "; it " + missed_of(best) : "";
  for (const AdvisedChoice& choice : advice.choices)
    if (&choice != &best && choice.is_judged() && choice.misses_some() && !best.misses_some() &&
        *choice.time_s < *best.time_s)
      text += fmt::format("; {} would take {}, but {}", choice.name, in_seconds(*choice.time_s),
                          missed_of(choice));
  return text;
}

// Those that could come first, if they learned like the one whose curve they have.
std::string unknown_rivals(const Advice& advice, double best_s) {
  std::vector<std::string> names;
  for (const AdvisedChoice& choice : advice.choices)
    if (is_borrowed(choice) && choice.left_out.empty() && *choice.time_s < best_s)
      names.push_back(choice.name);
  if (names.empty()) return "";
  return fmt::format("; how fast {} {} is not known yet", list_of(names),
                     names.size() == 1 ? "learns" : "learn");
}

// Whether its learning is not known and may matter.
bool is_unlearned(const AdvisedChoice& choice) {
  return choice.fits && !choice.assumed.empty() && choice.left_out.empty();
}

// Those that the answer is not about, because the budget did not last for them.
std::string left_by_budget(const Advice& advice) {
  const auto unlearned = static_cast<size_t>(
      std::count_if(advice.choices.begin(), advice.choices.end(), is_unlearned));
  const size_t left = advice.not_simulated.size() + unlearned;
  if (advice.status != AdviceStatus::kBudget || left == 0) return "";
  const size_t all = advice.not_simulated.size() + advice.choices.size();
  return fmt::format("; that is of {} of {} strategies: the budget did not last for the others",
                     all - left, all);
}

std::string nothing_to_use(const Advice& advice) {
  const AdvisedTask& task = advice.task;
  const auto fits = [](const AdvisedChoice& choice) { return choice.fits; };
  if (advice.choices.empty()) return "Nothing is known yet.";
  if (std::none_of(advice.choices.begin(), advice.choices.end(), fits))
    return "No strategy fits the memory of the nodes: use nodes with more memory or a smaller "
           "model.";
  return fmt::format(
      "No strategy reached {} {:.4g}: raise task.epochs, lower task.target, or find another "
      "optimizer.lr first.",
      task.metric, task.target);
}

}  // namespace

std::string sentence_of(const Advice& advice) {
  const auto& choices = advice.choices;
  if (choices.empty()) return nothing_to_use(advice);
  const AdvisedChoice& best = choices.front();
  const auto missed = [](const AdvisedChoice& c) { return !c.time_s; };
  if (is_borrowed(best) && std::none_of(choices.begin(), choices.end(), missed))
    return fmt::format("Use {} {}: {}, if {}.", best.name, best.where, time_of(best), best.assumed);
  if (!best.is_judged()) return nothing_to_use(advice);
  std::vector<std::string> as_good;
  for (const AdvisedChoice& choice : choices)
    if (&choice != &best && is_as_good(choice)) as_good.push_back(choice.name);
  std::string text = fmt::format("Use {}: {}", who_and_where(best), time_of(best));
  if (!as_good.empty())
    text += fmt::format("; {} {} as good within the error", list_of(as_good),
                        as_good.size() == 1 ? "is" : "are");
  return text + who_misses(advice, best) + unknown_rivals(advice, *best.time_s) +
         left_by_budget(advice) + ".";
}

}  // namespace tutti
