// `new`, so that memory that cannot be had is an error with a message. mimalloc's own ends the
// program there: it is C and cannot throw, and its library hides where it looks for a new_handler.
// Like mimalloc, never together with a sanitizer, which has its own.
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

// Short enough to be copied into a string without memory.
class OutOfMemory : public std::bad_alloc {
 public:
  const char* what() const noexcept override { return "out of memory"; }
};

void* allocated(void* memory) {
  if (!memory) throw OutOfMemory();
  return memory;
}

void* aligned(std::size_t size, std::align_val_t alignment) {
  void* memory = nullptr;
  if (posix_memalign(&memory, static_cast<std::size_t>(alignment), size) != 0) memory = nullptr;
  return allocated(memory);
}

}  // namespace

// malloc is mimalloc's, whose delete takes back what these give.
void* operator new(std::size_t size) { return allocated(std::malloc(size)); }
void* operator new[](std::size_t size) { return allocated(std::malloc(size)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return aligned(size, alignment);
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return aligned(size, alignment);
}
