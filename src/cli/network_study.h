// What `tutti bench network` has found: measured times, two predictions of each, and how far they
// were off.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tutti {

struct NetworkCase {
  std::string topology;
  size_t bytes = 0;
  int repetitions = 1;
  double predicted_s = 0;
  double incremental_s = 0;  // predicted by the solver of our own
  double traffic_bytes = 0;  // of all nodes together
  double measured_s = 0;
  std::string left_out;  // why
};

class NetworkStudy {
 public:
  // Cases between so many hosts whose links carry `bits_per_s`: measured, or left out.
  void add_measured(const std::vector<NetworkCase>& cases, int nodes, double bits_per_s,
                    double one_way_s);
  void add_left_out(const NetworkCase& left_out, int nodes, double bits_per_s);
  // The record of it, with the same in words on standard output unless `quiet`.
  nlohmann::json summary(bool quiet) const;

 private:
  void add_order(const std::vector<NetworkCase>& cases, int nodes, double bits_per_s);

  nlohmann::json cases_ = nlohmann::json::array(), left_out_ = nlohmann::json::array();
  std::vector<double> errors_;
  std::vector<double> incremental_errors_;  // of the solver of our own
  // Pairs of topologies whose measured times differ enough to matter, and those among them that the
  // prediction puts in the wrong order.
  int pairs_ = 0;
  nlohmann::json wrong_ = nlohmann::json::array();
};

}  // namespace tutti
