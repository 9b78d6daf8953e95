#include "testbed/table_layout.h"

#include <algorithm>

#include "core/printable.h"
#include "core/quality.h"
#include "jobs/run_status.h"

namespace tutti {
namespace {

size_t width_of(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string trimmed(std::string text) {
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

// Rows that ended early have less of everything: that is no merit.
std::optional<double> merit(const TableColumn& column, const ComparedStrategy& row) {
  if (!column.value || !ended_well(row.status)) return std::nullopt;
  return column.value(row);
}

}  // namespace

TableLayout::TableLayout(std::vector<TableColumn> columns, const TableRows& rows,
                         const TableOptions& options)
    : columns_(std::move(columns)), options_(options) {
  for (const TableColumn& column : columns_) {
    Extreme extreme;
    for (const ComparedStrategy* row : rows)
      if (const auto value = merit(column, *row))
        if (extreme.rows++ == 0 ||
            is_better(*value, extreme.value, column.best == TableColumn::Best::kMost))
          extreme.value = *value;
    best_.push_back(extreme);
  }
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t width = columns_[i].title.size();
    for (const ComparedStrategy* row : rows)
      width = std::max(width, width_of(cell(i, *row)) + (!options.bold && is_best(i, *row)));
    widths_.push_back(i == 0 ? std::min(width, std::max<size_t>(24, options.columns / 4)) : width);
  }
  if (total_width() > options.columns) gap_ = 1;
  while (total_width() > options.columns && columns_.size() > 2) drop_least_important();
}

bool TableLayout::shows(const std::string& title) const {
  return std::any_of(columns_.begin(), columns_.end(),
                     [&](const TableColumn& column) { return column.title == title; });
}

std::string TableLayout::head() const {
  std::string line;
  for (size_t i = 0; i < columns_.size(); ++i) line += padded(i, columns_[i].title, false);
  return trimmed(line) + "\n";
}

std::string TableLayout::line(const ComparedStrategy& row) const {
  const std::string name = cell(0, row);
  const bool apart = width_of(name) > widths_[0];
  std::string text = padded(0, apart ? "" : name, false);
  for (size_t i = 1; i < columns_.size(); ++i) text += padded(i, cell(i, row), is_best(i, row));
  text = (apart ? name + "\n" : "") + trimmed(text);
  const bool red = options_.bold && !ended_well(row.status);
  return red ? "\033[31m" + text + "\033[0m\n" : text + "\n";
}

bool TableLayout::is_best(size_t i, const ComparedStrategy& row) const {
  const auto value = merit(columns_[i], row);
  return value && best_[i].rows > 1 && *value == best_[i].value;  // alone one is not the best
}

std::string TableLayout::cell(size_t i, const ComparedStrategy& row) const {
  return printable(columns_[i].text(row));
}

size_t TableLayout::total_width() const {
  size_t width = 0;
  for (const size_t w : widths_) width += w + gap_;
  return width - gap_;
}

void TableLayout::drop_least_important() {
  const auto least = std::min_element(
      columns_.begin(), columns_.end(),
      [](const TableColumn& a, const TableColumn& b) { return a.importance < b.importance; });
  const auto index = least - columns_.begin();
  columns_.erase(least);
  widths_.erase(widths_.begin() + index);
  best_.erase(best_.begin() + index);
}

// The first and the last column to the left, figures to the right.
std::string TableLayout::padded(size_t i, std::string text, bool best) const {
  if (best && !options_.bold) text += "*";
  const std::string space(widths_[i] - std::min(widths_[i], width_of(text)), ' ');
  if (best && options_.bold) text = "\033[1m" + text + "\033[0m";
  const bool last = i + 1 == columns_.size();
  return (i == 0 || last ? text + space : space + text) + std::string(last ? 0 : gap_, ' ');
}

std::string wrapped(const std::string& raw, size_t columns) {
  const std::string text = printable(raw);
  std::string result, line;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!line.empty() && line.size() + 1 + word.size() > columns) {
      result += line + "\n";
      line = "  " + word;
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
    at = end + 1;
  }
  return result + line + "\n";
}

}  // namespace tutti
