#include "fabric/tag.h"

#include <fmt/format.h>

#include <stdexcept>

namespace tutti {

void Tag::does_not_fit(uint64_t value, uint64_t values) {
  throw std::logic_error(
      fmt::format("internal error: a message's tag has no part {}, only 0 to {}; please report it",
                  value, values - 1));
}

std::string Tag::describe() const {
  const char* name = "message";
  switch (purpose()) {
    case Purpose::kUser:
      name = "message";
      break;
    case Purpose::kGradient:
      name = "gradient";
      break;
    case Purpose::kEvaluation:
      name = "evaluation";
      break;
    case Purpose::kParameters:
      name = "parameters";
      break;
    case Purpose::kControl:
      name = "control";
      break;
    case Purpose::kActivation:
      name = "activation";
      break;
    case Purpose::kSlope:
      name = "gradient by an activation";
      break;
    case Purpose::kFabric:
      name = "fabric";
      break;
  }
  return fmt::format("{}, step {}, part {}", name, step(), part());
}

}  // namespace tutti
