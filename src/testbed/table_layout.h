// How a table fits a terminal: as many columns as there is room for, the best values marked. Names
// are never cut: one that is too long for its column has a line of its own.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "testbed/comparison.h"
#include "testbed/table.h"

namespace tutti {

using TableRows = std::vector<const ComparedStrategy*>;

struct TableColumn {
  enum class Best { kNone, kLeast, kMost };

  std::string title;
  int importance;  // the least important are left out first
  Best best;
  std::function<std::string(const ComparedStrategy&)> text;
  std::function<std::optional<double>(const ComparedStrategy&)> value;  // what is compared
};

class TableLayout {
 public:
  // The rows were obtained alike: they have one best.
  TableLayout(std::vector<TableColumn> columns, const TableRows& rows, const TableOptions& options);

  bool shows(const std::string& title) const;
  std::string head() const;
  std::string line(const ComparedStrategy& row) const;

 private:
  struct Extreme {
    double value = 0;
    size_t rows = 0;
  };

  bool is_best(size_t i, const ComparedStrategy& row) const;
  std::string cell(size_t i, const ComparedStrategy& row) const;
  size_t total_width() const;
  void drop_least_important();
  std::string padded(size_t i, std::string text, bool best) const;

  std::vector<TableColumn> columns_;
  TableOptions options_;
  std::vector<Extreme> best_;  // of each column
  std::vector<size_t> widths_;
  size_t gap_ = 2;  // between columns
};

// Breaks a text into lines of at most `columns`, those after the first indented.
std::string wrapped(const std::string& raw, size_t columns);

}  // namespace tutti
