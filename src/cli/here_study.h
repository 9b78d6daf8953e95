// What `tutti bench here` found: predicted and measured times per step, and whether the order of
// strategies is right wherever the measured times differ by more than 10 %.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tutti {

struct HereCase {
  std::string strategy;
  std::vector<double> predicted_s, measured_s;  // of a step, one for each round
};

class HereStudy {
 public:
  void add(const std::string& task, int64_t steps_of_first, const std::vector<HereCase>& cases);
  void leave_out(const std::string& task, const std::string& why);
  // All of it as JSON. Prints the table unless `quiet`.
  nlohmann::json summary(bool quiet) const;

 private:
  nlohmann::json tasks_ = nlohmann::json::array(), left_out_ = nlohmann::json::array(),
                 wrong_ = nlohmann::json::array();
  std::vector<double> errors_;
  int pairs_ = 0;
};

}  // namespace tutti
