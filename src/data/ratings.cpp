// Ratings: `user item rating` on each line, by commas, semicolons, tabs, spaces or "::", the forms
// in which MovieLens has come over the years; what follows (a time) and a first line of names are
// skipped. A sample is the pair, as a sparse row with a one for its user and a one for its item.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>

#include "core/error.h"
#include "data/csv_rows.h"
#include "data/readers.h"
#include "data/sparse_table.h"
#include "data/text_lines.h"

namespace tutti {
namespace {

bool separates(char c) {
  return c == ',' || c == ';' || c == ':' || c == '\t' || c == ' ' || c == '\r' || c == '"';
}

std::string_view take_field(std::string_view& text) {
  while (!text.empty() && separates(text.front())) text.remove_prefix(1);
  const auto end =
      static_cast<size_t>(std::find_if(text.begin(), text.end(), separates) - text.begin());
  const std::string_view field = text.substr(0, end);
  text.remove_prefix(end);
  return field;
}

// Numbers names in the order of their appearance.
class Names {
 public:
  uint32_t number_of(std::string_view name) {
    return numbers_.try_emplace(std::string(name), static_cast<uint32_t>(numbers_.size()))
        .first->second;
  }
  size_t size() const { return numbers_.size(); }

 private:
  std::unordered_map<std::string, uint32_t> numbers_;
};

}  // namespace

Source read_ratings(const DataConfig& config) {
  TextLines lines(config.path);
  Names users, items;
  SparseRows rows;
  Answers answers;
  for (std::string_view line; lines.next(line);) {
    std::array<std::string_view, 3> fields;
    for (std::string_view& field : fields) field = take_field(line);
    if (fields[0].empty()) continue;
    const auto rating = number_in(fields[2]);
    if (!rating && lines.line() == 1) continue;  // the names of the columns
    if (!rating)
      throw DataError(fmt::format("{}a rating is `user item rating`, and {} is not a number",
                                  lines.place(), in_quotes(fields[2])));
    rows.columns.push_back(users.number_of(fields[0]));
    rows.columns.push_back(items.number_of(fields[1]));
    rows.values.insert(rows.values.end(), {1.0F, 1.0F});
    rows.begins.push_back(rows.columns.size());
    answers.targets.push_back(static_cast<float>(*rating));
  }
  if (answers.targets.empty())
    throw DataError(fmt::format("{}: there are no ratings", config.path));
  for (size_t i = 1; i < rows.columns.size(); i += 2) rows.columns[i] += users.size();
  const size_t count = answers.targets.size();
  const auto width = static_cast<int64_t>(users.size() + items.size());
  return {make_sparse_table(width, std::move(rows), std::move(answers)), count};
}

}  // namespace tutti
