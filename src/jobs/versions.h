// What a result was obtained with: versions of the libraries, and the machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/described.h"

namespace tutti {

struct Versions {
  std::string tutti, libtorch, simgrid, ucx, compiler;
  std::optional<int64_t> fmt;
};
void visit(RecordVisitor& visitor, Versions& versions);

struct Machine {
  std::string cpu;
  std::optional<int64_t> hardware_threads, memory_bytes;
  std::string kernel;
};
void visit(RecordVisitor& visitor, Machine& machine);

Versions library_versions();    // of what this program was built with
Machine machine_description();  // of what it runs on

}  // namespace tutti
