// Views of typed spans as bytes and back, and uninitialised buffers.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace tutti {

template <class T>
std::span<const std::byte> bytes_of(std::span<const T> values) {
  return std::as_bytes(values);
}
template <class T>
std::span<std::byte> writable_bytes_of(std::span<T> values) {
  return std::as_writable_bytes(values);
}

// Reinterprets bytes that are known to hold values of type T (suitably aligned).
template <class T>
std::span<T> values_in(std::span<std::byte> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

// Memory that is not written until somebody writes it: a cost-only run of a thousand nodes
// allocates gigabytes of buffers and never touches them.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t size) : data_(new T[size]), size_(size) {}
  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  size_t size() const { return size_; }
  std::span<T> span() { return {data_.get(), size_}; }
  std::span<const T> span() const { return {data_.get(), size_}; }

 private:
  std::unique_ptr<T[]> data_;
  size_t size_ = 0;
};

}  // namespace tutti
