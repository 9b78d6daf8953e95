#include "strategies/federated_averaging/messages.h"

#include <fmt/format.h>

#include <cmath>
#include <type_traits>

namespace tutti::federated_averaging {

static_assert(std::is_trivially_copyable_v<Order> && std::is_trivially_copyable_v<Report>);

namespace {

bool answers(uint32_t report, uint32_t order) {
  switch (report) {
    case Report::kTrained:
    case Report::kDropped:
    case Report::kDiverged:
      return order == Order::kTrain;
    case Report::kEvaluated:
      return order == Order::kEvaluate;
    case Report::kGoodbye:
      return order == Order::kFinish;
    default:
      return false;
  }
}

}  // namespace

std::string fault_of(const Report& report, size_t bytes, const Order& order) {
  if (bytes != sizeof(Report)) return fmt::format("{} bytes instead of {}", bytes, sizeof(Report));
  if (report.magic != kMagic) return "another protocol";
  if (!answers(report.kind, order.kind)) return "an answer to nothing that was asked";
  if (report.sequence != order.sequence) return "an answer to another order";
  if (report.share.begin > report.share.end) return "no such share of an evaluation";
  if (order.kind != Order::kTrain) return "";
  if (report.round != order.round || report.client != order.client)
    return fmt::format("an update of client {} instead of {}", report.client, order.client);
  if (report.kind != Report::kTrained) return "";
  if (report.steps < 1 || report.samples < 1) return "an update after no step";
  return std::isfinite(report.loss) ? "" : "a loss that is not a number";
}

std::string fault_of(const Order& order, size_t bytes, uint64_t sequence, uint64_t elements,
                     uint64_t clients) {
  if (bytes != sizeof(Order)) return fmt::format("{} bytes instead of {}", bytes, sizeof(Order));
  if (order.magic != kMagic) return "another protocol";
  if (order.kind < Order::kTrain || order.kind > Order::kRefused) return "an unknown kind";
  if (order.elements != 0 && order.elements != elements) return "another number of parameters";
  if (order.elements != 0 && order.sequence != sequence) return "an order out of turn";
  if (order.task.begin > order.task.end) return "no such share of an evaluation";
  if (order.kind != Order::kTrain) return "";
  if (order.client < 0 || static_cast<uint64_t>(order.client) >= clients) return "no such client";
  if (order.steps_before < 0 || order.round < 0) return "numbers out of range";
  return std::isfinite(order.rate) ? "" : "a rate that is not a number";
}

}  // namespace tutti::federated_averaging
