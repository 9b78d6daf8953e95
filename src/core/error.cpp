#include "core/error.h"

namespace tutti {

void check_failed(const char* condition, const char* file, int line) {
  throw std::logic_error(std::string("internal error: ") + condition + " is false at " + file +
                         ":" + std::to_string(line) + "; please report it");
}

}  // namespace tutti
