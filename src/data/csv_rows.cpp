#include "data/csv_rows.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "core/error.h"

namespace tutti {

CsvRows::CsvRows(std::string path, std::vector<uint8_t> content)
    : path_(std::move(path)), content_(std::move(content)) {
  rewind();
}

void CsvRows::rewind() {
  const bool has_byte_order_mark =
      content_.size() >= 3 && content_[0] == 0xEF && content_[1] == 0xBB && content_[2] == 0xBF;
  position_ = has_byte_order_mark ? 3 : 0;
  next_line_ = 1;
}

bool CsvRows::next(std::vector<std::string>& fields) {
  fields.clear();
  while (position_ < content_.size()) {
    line_ = next_line_;
    bool is_blank = true;
    for (;;) {
      fields.emplace_back();
      if (position_ < content_.size() && content_[position_] == '"') {
        is_blank = false;
        read_quoted(fields.back());
      } else {
        read_plain(fields.back());
      }
      if (position_ == content_.size() || content_[position_] != ',') break;
      ++position_;
    }
    if (position_ < content_.size()) {  // at a line feed
      ++position_;
      ++next_line_;
    }
    if (fields.size() > 1 || !is_blank || !fields[0].empty()) return true;
    fields.clear();
  }
  return false;
}

// Stops at the comma or line feed after the field. A carriage return before the latter is dropped.
void CsvRows::read_plain(std::string& field) {
  while (position_ < content_.size() && content_[position_] != ',' && content_[position_] != '\n')
    field.push_back(static_cast<char>(content_[position_++]));
  const bool ends_line = position_ == content_.size() || content_[position_] == '\n';
  if (ends_line && field.ends_with('\r')) field.pop_back();
}

void CsvRows::read_quoted(std::string& field) {
  const size_t opened = next_line_;
  ++position_;
  for (;; ++position_) {
    if (position_ == content_.size())
      throw DataError(fmt::format("{}, line {}: a field in quotes is not closed", path_, opened));
    const uint8_t byte = content_[position_];
    if (byte == '"') {
      if (position_ + 1 == content_.size() || content_[position_ + 1] != '"') break;
      ++position_;
    }
    if (byte == '\n') ++next_line_;
    field.push_back(static_cast<char>(byte));
  }
  ++position_;
  std::string rest;
  read_plain(rest);
  if (!rest.empty())
    throw DataError(
        fmt::format("{}, line {}: {} after a closing quote; write \"\" for a quote "
                    "inside a field",
                    path_, next_line_, in_quotes(rest)));
}

bool has_sklearn_header(CsvRows& rows) {
  std::vector<std::string> first, row;
  rows.rewind();
  rows.next(first);
  rows.next(row);
  const auto columns = static_cast<double>(row.size());
  rows.rewind();
  if (first.size() < 3 || number_in(first[2])) return false;
  const auto count = number_in(first[0]), features = number_in(first[1]);
  if (!count || !features || *features + 1 != columns) return false;
  double found = -1;  // not the header
  while (rows.next(row)) ++found;
  rows.rewind();
  return *count == found;
}

std::optional<double> number_in(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return std::nullopt;
  text = text.substr(first, text.find_last_not_of(" \t") - first + 1);
  if (text.size() > 1 && text.front() == '+' && text[1] != '-') text.remove_prefix(1);
  double value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || rest != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

std::string in_quotes(std::string_view text) {
  constexpr size_t kMost = 24;
  std::string out = "'";
  for (const char c : text.substr(0, kMost)) out.push_back(c >= 0x20 && c < 0x7f ? c : '?');
  return out + (text.size() > kMost ? "...'" : "'");
}

}  // namespace tutti
