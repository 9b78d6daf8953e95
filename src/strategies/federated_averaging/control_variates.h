// SCAFFOLD's control variates: c of the server and c_i of every client that took part.
//
// They live at the server, so that any worker can act for any client; what travels is what would
// travel to a real one, a vector more each way. A client that never took part has none: zero.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/arithmetic.h"
#include "core/bytes.h"

namespace tutti::federated_averaging {

class ControlVariates {
 public:
  ControlVariates(size_t size, Arithmetic arithmetic);

  // c - c_i, what a client adds to its gradients.
  void correction(int64_t client, std::span<float> out) const;
  // Sets the client's new variate. c is the mean over all clients, in which this one has the weight
  // `share`. c changes only when the round is over, so that all clients of a round see the same.
  void update(int64_t client, std::span<const float> control, double share);
  // Adds to c the changes of all variates, each weighted with its share.
  void close_round();

  std::span<const double> server() const { return c_; }

 private:
  Arithmetic arithmetic_;
  std::vector<double> c_, change_;
  std::map<int64_t, std::vector<float>> of_client_;
};

}  // namespace tutti::federated_averaging
