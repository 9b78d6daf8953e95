// An object's state as bytes, and back: a class lists its members once, for both ways.
//
//   void Dealer::archive(Archive& archive) { archive(position_, returned_, left_); }
//
// Equal objects give equal bytes as long as structs without such a function have no padding.
#pragma once

#include <cstddef>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/error.h"

namespace tutti {

class Archive {
 public:
  Archive() = default;  // for writing
  explicit Archive(std::span<const std::byte> bytes) : reading_(true), left_(bytes) {}

  bool reading() const { return reading_; }
  std::vector<std::byte> take() { return std::move(bytes_); }  // what was written
  bool exhausted() const { return left_.empty(); }             // all was read

  template <class... T>
  void operator()(T&... values) {
    (one(values), ...);
  }

 private:
  template <class T>
  void one(T& value) {
    if constexpr (requires { value.archive(*this); }) {
      value.archive(*this);
    } else {
      static_assert(std::is_trivially_copyable_v<T>);
      raw(&value, sizeof(T));
    }
  }
  void one(std::string& text) { list(text); }
  void one(std::vector<bool>& bits) {
    std::vector<char> values(bits.begin(), bits.end());
    list(values);
    bits.assign(values.begin(), values.end());
  }
  template <class T>
  void one(std::vector<T>& values) {
    list(values);
  }
  template <class T>
  void one(std::deque<T>& values) {
    list(values);
  }
  template <class T>
  void one(std::optional<T>& value) {
    bool there = value.has_value();
    one(there);
    if (reading_) value = there ? std::optional<T>(T{}) : std::nullopt;
    if (there) one(*value);
  }
  template <class K, class V>
  void one(std::map<K, V>& map) {
    std::vector<std::pair<K, V>> pairs(map.begin(), map.end());
    uint64_t count = size_of(pairs.size());
    pairs.resize(count);
    for (auto& [key, value] : pairs) (*this)(key, value);
    if (reading_) map = {pairs.begin(), pairs.end()};
  }

  template <class List>
  void list(List& values) {
    const uint64_t count = size_of(values.size());
    if (reading_) values.resize(count);
    for (auto& value : values) one(value);
  }
  uint64_t size_of(uint64_t count) {
    one(count);
    // Nothing takes less than a byte: a size that cannot be meant does not allocate anything.
    if (reading_ && count > left_.size()) fail();
    return count;
  }
  void raw(void* data, size_t size) {
    if (reading_) {
      if (left_.size() < size) fail();
      std::memcpy(data, left_.data(), size);
      left_ = left_.subspan(size);
    } else {
      const auto* const begin = static_cast<const std::byte*>(data);
      bytes_.insert(bytes_.end(), begin, begin + size);
    }
  }
  [[noreturn]] static void fail() { throw DataError("the state of an object ends too early"); }

  bool reading_ = false;
  std::span<const std::byte> left_;
  std::vector<std::byte> bytes_;
};

}  // namespace tutti
