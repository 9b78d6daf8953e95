// Reads series.csv of a run: rows of step, time_s, loss, rate, samples.
#pragma once

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "jobs/run_folder.h"

namespace tutti::testing_support {

inline std::vector<std::vector<double>> read_series(const std::string& path) {
  std::istringstream lines(read_file(path));
  std::string line;
  std::getline(lines, line);
  std::vector<std::vector<double>> rows;
  while (std::getline(lines, line)) {
    std::istringstream fields(line);
    rows.emplace_back();
    for (std::string field; std::getline(fields, field, ',');)
      rows.back().push_back(std::strtod(field.c_str(), nullptr));
  }
  return rows;
}

}  // namespace tutti::testing_support
