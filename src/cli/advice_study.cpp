#include "cli/advice_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cli/today.h"

namespace tutti {
namespace {

using nlohmann::json;

constexpr double kWorthOrdering = 0.1;  // a measured difference above this must be predicted

double average(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double largest(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

json value_or_null(const std::optional<double>& value) { return value ? json(*value) : json(); }

json row_of(const AdvisedTraining& t) {
  return {{"strategy", t.name},
          {"predicted_s", t.predicted_s},
          {"measured_s", value_or_null(t.measured_s)},
          {"predicted_step_s", t.predicted_step_s},
          {"measured_step_s", value_or_null(t.measured_step_s)},
          {"error", t.error},
          {"seeds", t.seeds},
          {"reached", t.reached},
          {"first_step_s", t.first_step_s},
          {"bytes_per_s", t.bytes_per_s},
          {"left_out", t.left_out}};
}

}  // namespace

double Order::tau() const {
  return pairs == 0 ? 1 : static_cast<double>(2 * right - pairs) / static_cast<double>(pairs);
}

Order order_of(const std::vector<AdvisedTraining>& trainings) {
  Order order;
  for (const AdvisedTraining& a : trainings)
    for (const AdvisedTraining& b : trainings) {
      if (!a.counts() || !b.counts()) continue;
      if (*a.measured_s * (1 + kWorthOrdering) >= *b.measured_s) continue;
      ++order.pairs;
      order.right += a.predicted_s < b.predicted_s;
    }
  return order;
}

std::optional<double> regret_of(const std::vector<AdvisedTraining>& trainings) {
  const AdvisedTraining *chosen = nullptr, *fastest = nullptr;
  for (const AdvisedTraining& t : trainings) {
    if (!t.counts()) continue;
    if (!chosen || t.predicted_s < chosen->predicted_s) chosen = &t;
    if (!fastest || *t.measured_s < *fastest->measured_s) fastest = &t;
  }
  if (!chosen) return std::nullopt;
  return *chosen->measured_s / *fastest->measured_s - 1;
}

void AdviceStudy::add(const std::string& task, double bits_per_s, const json& conditions,
                      const std::vector<AdvisedTraining>& trainings) {
  json rows = json::array();
  for (const AdvisedTraining& t : trainings) {
    rows.push_back(row_of(t));
    if (!t.counts()) {
      ++left_out_;
      continue;
    }
    step_errors_.push_back(std::abs(t.predicted_step_s / *t.measured_step_s - 1));
    time_errors_.push_back(std::abs(t.predicted_s / *t.measured_s - 1));
    within_ += time_errors_.back() <= t.error;
  }
  const Order order = order_of(trainings);
  pairs_ += order.pairs;
  right_ += order.right;
  const std::optional<double> regret = regret_of(trainings);
  if (regret) regrets_.push_back(*regret);
  first_right_ += regret && *regret == 0;
  questions_.push_back({{"task", task},
                        {"bits_per_s", bits_per_s},
                        {"conditions", conditions},
                        {"pairs", order.pairs},
                        {"pairs_in_order", order.right},
                        {"regret", value_or_null(regret)},
                        {"strategies", rows}});
}

json AdviceStudy::summary(bool quiet) const {
  const Order order{.pairs = pairs_, .right = right_};
  if (!quiet)
    fmt::print(
        "\n{} trainings of strategies: time of a step off by {:.1f} % on average (worst {:.1f} %), "
        "time to the target\nby {:.1f} % (worst {:.1f} %); {} of them within their interval of "
        "90 %; {} left out\norder right in {} of {} pairs that differ by more than 10 % (tau "
        "{:.3f}); the first choice was the fastest\nin {} of {} questions, and took at most "
        "{:.1f} % longer ({:.1f} % on average)\n",
        step_errors_.size(), 100 * average(step_errors_), 100 * largest(step_errors_),
        100 * average(time_errors_), 100 * largest(time_errors_), within_, left_out_, right_,
        pairs_, order.tau(), first_right_, regrets_.size(), 100 * largest(regrets_),
        100 * average(regrets_));
  return {{"date", date_of_today()},
          {"trainings", step_errors_.size()},
          {"step_error_mean", average(step_errors_)},
          {"step_error_worst", largest(step_errors_)},
          {"time_error_mean", average(time_errors_)},
          {"time_error_worst", largest(time_errors_)},
          {"within_interval", within_},
          {"left_out", left_out_},
          {"pairs", pairs_},
          {"pairs_in_order", right_},
          {"tau", order.tau()},
          {"first_right", first_right_},
          {"question_count", questions_.size()},
          {"regret_mean", average(regrets_)},
          {"regret_worst", largest(regrets_)},
          {"questions", questions_}};
}

}  // namespace tutti
