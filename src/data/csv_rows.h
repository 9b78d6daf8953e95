// Rows of a CSV file (RFC 4180: commas, fields in double quotes, "" for a quote inside them).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

class CsvRows {
 public:
  CsvRows(std::string path, std::vector<uint8_t> content);

  // The next row that is not blank; false at the end. Throws DataError naming the line.
  bool next(std::vector<std::string>& fields);
  size_t line() const { return line_; }  // on which the last row began, from 1
  void rewind();

 private:
  void read_quoted(std::string& field);
  void read_plain(std::string& field);
  std::string path_;
  std::vector<uint8_t> content_;
  size_t position_ = 0;
  size_t next_line_ = 1;
  size_t line_ = 0;
};

// scikit-learn's own files start with the numbers of rows and features and the names of the
// classes: "150,4,setosa,versicolor,virginica". All of it must be true, since a row of data can
// look alike. Leaves `rows` at the front.
bool has_sklearn_header(CsvRows& rows);
// A finite number, spaces around it allowed; nothing when the text is anything else.
std::optional<double> number_in(std::string_view text);
// The text as it may stand in a message: short, and without control characters.
std::string in_quotes(std::string_view text);

}  // namespace tutti
