// What every pull of a worker says, as far as it depends on what the coordinator said before.
#pragma once

#include <algorithm>

#include "strategies/parameter_server/link.h"

namespace tutti::parameter_server {

class PullTerms {
 public:
  // `collects`: a server answers when the step is complete, and not before. `by_layers`: the
  // parameters are wanted as a forward pass needs them.
  PullTerms(bool collects, bool by_layers, int64_t bound)
      : collects_(collects), by_layers_(by_layers), bound_(bound) {}

  bool collects() const { return collects_; }
  bool by_layers() const { return by_layers_; }
  int64_t bound() const { return std::min(bound_, kMostBound); }
  void want_headers_alone() { always_ = Request::kHeaderOnly; }  // parameters are asked for by key

  void hear(const Reply& reply) {
    bound_ = reply.bound;
    forgiven_ = std::max(forgiven_, reply.forgiven);
  }
  void begin() { began_ = true; }  // the first parameters are in use

  Request request(const Link& link, uint32_t flags) const {
    Request request;
    request.flags = Request::kPull | always_ | flags;
    if (by_layers_ && !(flags & Request::kFinal)) request.flags |= Request::kLayers;
    request.bound = bound();
    request.forgiven = forgiven_;
    request.wanted = collects_ && began_ ? link.version() + 1 : 0;
    return request;
  }

 private:
  bool collects_, by_layers_;
  uint32_t always_ = 0;
  int64_t bound_;
  int64_t forgiven_ = 0;
  bool began_ = false;
};

}  // namespace tutti::parameter_server
