#include "cli/here_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/bench.h"
#include "cli/today.h"

namespace tutti {
namespace {

using nlohmann::json;

constexpr double kTold = 0.1;  // a measured difference above this must be predicted

}  // namespace

void HereStudy::add(const std::string& task, int64_t steps_of_first,
                    const std::vector<HereCase>& cases) {
  json rows = json::array();
  for (const HereCase& c : cases) {
    const double predicted_s = median(c.predicted_s), measured_s = median(c.measured_s);
    // Within a round: the machine changes its speed from one to the next.
    std::vector<double> ratios;
    for (size_t i = 0; i < c.measured_s.size(); ++i)
      ratios.push_back(c.predicted_s[i] / c.measured_s[i]);
    const double error = median(ratios) - 1;
    errors_.push_back(std::abs(error));
    rows.push_back({{"strategy", c.strategy},
                    {"predicted_s", predicted_s},
                    {"measured_s", measured_s},
                    {"error", error},
                    {"predicted_by_round_s", c.predicted_s},
                    {"measured_by_round_s", c.measured_s}});
  }
  for (const json& a : rows)
    for (const json& b : rows) {
      const auto of = [](const json& row, const char* key) { return row[key].get<double>(); };
      if (of(a, "measured_s") * (1 + kTold) >= of(b, "measured_s")) continue;
      ++pairs_;
      if (of(a, "predicted_s") < of(b, "predicted_s")) continue;
      wrong_.push_back({{"task", task}, {"faster", a["strategy"]}, {"slower", b["strategy"]}});
    }
  tasks_.push_back({{"task", task}, {"steps_of_first", steps_of_first}, {"cases", rows}});
}

void HereStudy::leave_out(const std::string& task, const std::string& why) {
  left_out_.push_back({{"task", task}, {"why", why}});
}

json HereStudy::summary(bool quiet) const {
  double mean = 0, worst = 0;
  for (const double error : errors_) {
    mean += error / static_cast<double>(errors_.size());
    worst = std::max(worst, error);
  }
  const int in_order = pairs_ - static_cast<int>(wrong_.size());
  if (!quiet) {
    fmt::print("\n{:<20} {:<8} {:>13} {:>13} {:>8}\n", "task", "", "predicted us", "measured us",
               "error");
    for (const json& task : tasks_)
      for (const json& row : task["cases"])
        fmt::print("{:<20} {:<8} {:>13.4g} {:>13.4g} {:>6.1f} %\n", task["task"].get<std::string>(),
                   row["strategy"].get<std::string>(), row["predicted_s"].get<double>() * 1e6,
                   row["measured_s"].get<double>() * 1e6, row["error"].get<double>() * 100);
    for (const json& task : left_out_)
      fmt::print("{:<20} left out: {}\n", task["task"].get<std::string>(),
                 task["why"].get<std::string>());
    for (const json& pair : wrong_)
      fmt::print("{:<20} wrong order: {} is faster than {}\n", pair["task"].get<std::string>(),
                 pair["faster"].get<std::string>(), pair["slower"].get<std::string>());
    fmt::print(
        "\ntime per step: mean absolute error {:.1f} %, worst {:.1f} %; order right in {} of {} "
        "pairs that differ by more than 10 %\n",
        mean * 100, worst * 100, in_order, pairs_);
  }
  return {{"date", date_of_today()}, {"mean_absolute_error", mean}, {"worst_error", worst},
          {"pairs", pairs_},         {"pairs_in_order", in_order},  {"out_of_order", wrong_},
          {"tasks", tasks_},         {"left_out", left_out_}};
}

}  // namespace tutti
