#include "fabric/node.h"

#include <fmt/format.h>

namespace tutti {

Handle::~Handle() {
  if (endpoint_) endpoint_->cancel(*this);
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
