// Ratings: `user item rating` on each line, by commas, semicolons, tabs, spaces or "::", the forms
// in which MovieLens has come over the years; what follows (a time) and a first line of names are
// skipped. A sample is the pair, as a sparse row with a one for its user and a one for its item.
#include "data/ratings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <unordered_map>

#include "core/error.h"
#include "data/common_keys.h"
#include "data/csv_rows.h"
#include "data/prediction.h"
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

// Numbers names in the order of their appearance, separately for users and items.
class Names {
 public:
  uint32_t number_of(std::string_view name) {
    const auto [entry, is_new] =
        numbers_.try_emplace(std::string(name), static_cast<uint32_t>(numbers_.size()));
    if (is_new) order_.push_back(&entry->first);
    return entry->second;
  }
  size_t size() const { return numbers_.size(); }
  void append_to(std::vector<std::string>& columns, const std::string& what) const {
    for (const std::string* name : order_) columns.push_back(what + *name);
  }

 private:
  std::unordered_map<std::string, uint32_t> numbers_;
  std::vector<const std::string*> order_;  // pointers to keys of a map stay valid
};

constexpr const char* kUser = "user ";
constexpr const char* kItem = "item ";

struct Rating {
  std::string_view user, item;
  std::optional<double> value;
};

// Calls visit(rating, lines) for each line except a header of column names.
template <class Visit>
void for_each_rating(const std::string& path, bool may_lack_value, Visit visit) {
  TextLines lines(path);
  for (std::string_view line; lines.next(line);) {
    std::array<std::string_view, 3> fields;
    for (std::string_view& field : fields) field = take_field(line);
    if (fields[0].empty()) continue;
    const auto rating = number_in(fields[2]);
    const bool lacks = may_lack_value && fields[2].empty() && !fields[1].empty();
    if (!rating && !lacks && lines.line() == 1) continue;  // a header
    if (!rating && !lacks)
      throw DataError(fmt::format("{}a rating is `user item rating`, and {} is not a number",
                                  lines.place(), in_quotes(fields[2])));
    visit(Rating{fields[0], fields[1], rating}, lines);
  }
}

void add_pair(uint64_t user, uint64_t item, SparseRows& rows) {
  rows.columns.insert(rows.columns.end(), {user, item});
  rows.values.insert(rows.values.end(), {1.0F, 1.0F});
  rows.begins.push_back(rows.columns.size());
}

}  // namespace

void RatingsData::visit(Visitor& v) { visit_path(v, path); }

Source RatingsData::read(uint64_t) const {
  Names users, items;
  SparseRows rows;
  Answers answers;
  for_each_rating(path, false, [&](const Rating& rating, const TextLines&) {
    add_pair(users.number_of(rating.user), items.number_of(rating.item), rows);
    answers.targets.push_back(static_cast<float>(*rating.value));
  });
  if (answers.targets.empty()) throw DataError(fmt::format("{}: there are no ratings", path));
  for (size_t i = 1; i < rows.columns.size(); i += 2) rows.columns[i] += users.size();
  const size_t count = answers.targets.size();
  std::vector<std::string> columns;
  users.append_to(columns, kUser);
  items.append_to(columns, kItem);
  const auto width = static_cast<int64_t>(columns.size());
  return {make_sparse_table(width, std::move(rows), std::move(answers), std::move(columns)), count};
}

// With the users and items of the training data, which are its columns. The targets are 0 when no
// line has a rating.
PredictionData RatingsData::read_like(const DataDescription& trained_on, const std::string& file,
                                      const std::string&) const {
  const std::vector<std::string>& columns = trained_on.columns;
  std::unordered_map<std::string_view, uint64_t> numbers;
  for (const std::string& name : columns) numbers.emplace(name, numbers.size());
  SparseRows rows;
  Answers answers;
  size_t with_value = 0;
  for_each_rating(file, true, [&](const Rating& rating, const TextLines& lines) {
    const auto number_of = [&](const std::string& name) {
      const auto found = numbers.find(name);
      if (found != numbers.end()) return found->second;
      throw DataError(fmt::format("{}{} is not in the ratings that the model was trained on",
                                  lines.place(), in_quotes(name)));
    };
    add_pair(number_of(kUser + std::string(rating.user)),
             number_of(kItem + std::string(rating.item)), rows);
    answers.targets.push_back(static_cast<float>(rating.value.value_or(0)));
    if (rating.value) ++with_value;
  });
  if (answers.targets.empty()) throw DataError(fmt::format("{}: there are no ratings", file));
  if (with_value != 0 && with_value != answers.targets.size())
    throw DataError(fmt::format("{}: {} of {} lines have no rating; give one in each line, or none",
                                file, answers.targets.size() - with_value, answers.targets.size()));
  return {make_sparse_table(static_cast<int64_t>(columns.size()), std::move(rows),
                            std::move(answers), columns),
          with_value > 0};
}

}  // namespace tutti
