// What travels between the server and the workers that act for clients, besides parameters and
// updates.
//
// A worker reports, the server orders: one worker has one order at a time. Both are fixed blocks,
// checked before anything is done with them; parameters and updates follow as messages of their
// own, whose sizes both sides know from the model. Everything is little endian, as on every machine
// this runs on.
#pragma once

#include <cstdint>
#include <string>

#include "fabric/tag.h"
#include "strategies/evaluation_share.h"

namespace tutti::federated_averaging {

inline constexpr uint32_t kMagic = 0x31444654;  // "TFD1"

struct Order {
  enum Kind : uint32_t {
    kTrain = 1,  // as `client`; parameters follow
    kEvaluate,   // `task`; parameters follow
    kFinish,     // the final parameters follow
    kDiverged,   // some client's loss is not a number any more
    kRefused,    // the last report made no sense
  };
  uint32_t magic = kMagic;
  uint32_t kind = kTrain;
  uint64_t sequence = 0;  // of this order to this worker, where a report is expected
  uint64_t elements = 0;  // of the parameters that follow
  int64_t round = 0;      // train
  int64_t client = 0;
  int64_t steps_before = 0;  // that this client has taken in earlier rounds
  double rate = 0;           // train: learning rate
  EvaluationTask task;
};

struct Report {
  enum Kind : uint32_t {
    kReady = 1,  // has just started
    kTrained,    // the client's update follows
    kDropped,    // the client does not answer
    kEvaluated,  // `share`
    kDiverged,   // its loss is not a number any more
    kGoodbye,    // it has the final parameters
  };
  uint32_t magic = kMagic;
  uint32_t kind = kReady;
  uint64_t sequence = 0;  // of the order
  int64_t round = 0, client = 0;
  int64_t steps = 0;    // trained: that the client took
  int64_t samples = 0;  // that they used
  double loss = 0;      // mean over them
  EvaluationShare share;
};

// What a server can tell a sensible report by: the order that it answers.
std::string fault_of(const Report& report, size_t bytes, const Order& order);
// The same for an order that may bring `elements` parameters.
std::string fault_of(const Order& order, size_t bytes, uint64_t sequence, uint64_t elements,
                     uint64_t clients);

enum class ControlPart : uint64_t { kOrder = 1, kReport = 2 };
inline Tag order_tag() { return {Purpose::kControl, 0, ControlPart::kOrder}; }
inline Tag report_tag() { return {Purpose::kControl, 0, ControlPart::kReport}; }
// The parts are the parameters, and for SCAFFOLD what corrects the client's gradients.
inline Tag parameters_tag(uint64_t sequence, size_t part) {
  return {Purpose::kParameters, Tag::wrapped(sequence), part};
}
// The parts are the client's difference, and for SCAFFOLD its new control variate.
inline Tag update_tag(uint64_t sequence, size_t part) {
  return {Purpose::kGradient, Tag::wrapped(sequence), part};
}

}  // namespace tutti::federated_averaging
