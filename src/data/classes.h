// Classes that a file names by their texts, numbered in an order that does not depend on the rows.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "data/table.h"

namespace tutti {

class ClassTexts {
 public:
  void add(const std::string& text);  // the class of the next sample
  // In numeric order when all texts are numbers, else in that of their bytes.
  Answers answers() const;
  // Numbers the classes as `names` does, even if some do not occur. Throws DataError for a class
  // that `names` lacks.
  Answers answers_among(const std::vector<std::string>& names, const std::string& path) const;

 private:
  std::map<std::string, int32_t> seen_;  // in order of appearance
  std::vector<int32_t> labels_;
};

}  // namespace tutti
