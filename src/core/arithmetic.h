// The one place where arithmetic is done or left out. Where only costs count (cluster.cost_only)
// buffers are reserved but never read or written, so whatever computes, copies or adds goes through
// here and asks nobody. What it costs is charged beside it, in both cases alike.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>

namespace tutti {

class Arithmetic {
 public:
  explicit Arithmetic(bool done = true) : done_(done) {}

  // For what has no result unless something was computed: a quality, a file of parameters.
  bool is_done() const { return done_; }

  template <class Body>
  void perform(Body&& body) const {
    if (done_) body();
  }
  // What `body` computes, or `otherwise`.
  template <class T, class Body>
  T value_of(Body&& body, T otherwise) const {
    return done_ ? static_cast<T>(body()) : otherwise;
  }

  // The type of the elements follows from what is written.
  template <class T>
  void copy(std::type_identity_t<std::span<const T>> from, std::span<T> to) const {
    if (done_) std::copy(from.begin(), from.end(), to.begin());
  }
  template <class T>
  void fill(std::span<T> values, const std::type_identity_t<T>& value) const {
    if (done_) std::fill(values.begin(), values.end(), value);
  }
  template <class T>
  void add(std::span<T> into, std::type_identity_t<std::span<const T>> more) const {
    if (!done_) return;
    for (size_t i = 0; i < more.size(); ++i) into[i] = into[i] + more[i];
  }

 private:
  bool done_;
};

}  // namespace tutti
