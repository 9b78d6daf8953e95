#include "fabric/node.h"

namespace tutti {

Handle::~Handle() {
  if (endpoint_) endpoint_->cancel(*this);
}

}  // namespace tutti
