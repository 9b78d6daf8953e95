// A worker acts for one client after the other, as the server orders, and measures quality.
#pragma once

#include "core/bytes.h"
#include "strategies/federated_averaging/client_training.h"
#include "strategies/federated_averaging/messages.h"
#include "strategies/federated_averaging/sampling.h"

namespace tutti::federated_averaging {

class Worker {
 public:
  Worker(Context& context, const Config& config);
  void run();

 private:
  Order next_order();
  void receive_parameters(std::span<float> parameters, std::span<float> correction);
  void train(const Order& order);
  void evaluate(const Order& order);
  void report(const Report& report);
  void send_update(const ClientTraining::Result& result, double rate);

  Context& context_;
  Node& node_;
  Rank server_;
  ClientSplit split_;
  Sampling sampling_;
  ClientTraining training_;
  bool scaffold_;
  uint64_t sequence_ = 0;  // orders so far that want a report
  Buffer<float> start_;    // the server's parameters
  Buffer<float> difference_;
  Buffer<float> correction_, control_;  // SCAFFOLD
  double started_s_;
  int64_t clients_ = 0;  // that it has trained for, one in each round
};

}  // namespace tutti::federated_averaging
