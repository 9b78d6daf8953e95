#include "data/classes.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "data/csv_rows.h"

namespace tutti {

void ClassTexts::add(const std::string& text) {
  const auto next = static_cast<int32_t>(seen_.size());
  labels_.push_back(seen_.try_emplace(text, next).first->second);
}

Answers ClassTexts::answers() const {
  std::vector<std::pair<std::string, int32_t>> order(seen_.begin(), seen_.end());
  const bool is_numeric = std::all_of(order.begin(), order.end(),
                                      [](const auto& entry) { return number_in(entry.first); });
  if (is_numeric)
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
      return *number_in(a.first) < *number_in(b.first);
    });
  Answers answers;
  std::vector<int32_t> rank(order.size());
  for (const auto& [name, number] : order) {
    rank[static_cast<size_t>(number)] = static_cast<int32_t>(answers.names.size());
    answers.names.push_back(name);
  }
  answers.labels = labels_;
  for (int32_t& label : answers.labels) label = rank[static_cast<size_t>(label)];
  answers.classes = static_cast<int64_t>(answers.names.size());
  return answers;
}

Answers ClassTexts::answers_among(const std::vector<std::string>& names,
                                  const std::string& path) const {
  std::vector<int32_t> number(seen_.size());
  for (const auto& [name, seen] : seen_) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
      throw DataError(fmt::format("{}: {} is not a class that the model was trained on", path,
                                  in_quotes(name)));
    number[static_cast<size_t>(seen)] = static_cast<int32_t>(found - names.begin());
  }
  Answers answers;
  answers.classes = static_cast<int64_t>(names.size());
  answers.names = names;
  answers.labels = labels_;
  for (int32_t& label : answers.labels) label = number[static_cast<size_t>(label)];
  return answers;
}

}  // namespace tutti
