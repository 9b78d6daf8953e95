// Models whose parameters are rows by key, of which a batch touches few: its features, and the last
// row, which is the bias of all.
//
// They are still a Model, with all rows in one flat buffer, so that every strategy can train them.
// A strategy that knows better moves the touched rows alone, and may have the model hold no others:
// then there can be more keys than any memory has room for.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "models/model.h"

namespace tutti {

class SparseModel : public Model {
 public:
  // As gradient(), but on these rows alone, which must be all that the batch touches: no other
  // parameter is read, and no other gradient written.
  virtual double sparse_gradient(const Batch& batch, std::span<const uint64_t> keys,
                                 float scale) = 0;

  // From now on its parameters() and gradients() are the rows of these keys, which ascend and of
  // which the last is the bias, in memory of its own and with any values. Batches may touch no
  // others.
  virtual void hold(std::span<const uint64_t> keys) = 0;
  // Nothing: it has all rows.
  virtual std::span<const uint64_t> held() const = 0;
};

// Up to so many parameters a model is kept and moved as a whole where that is simpler.
inline constexpr size_t kMostFlat = size_t{1} << 22;

// The keys of the rows that the batch touches, ascending and each once. Needs no arithmetic, so
// that simulations of costs move the same rows.
void touched_rows(const Architecture& architecture, const Batch& batch,
                  std::vector<uint64_t>& keys);

// How a row starts: a function of seed and key, whoever makes it in which order.
void initial_row(const Architecture& architecture, uint64_t seed, uint64_t key,
                 std::span<float> row);

// For architectures with row_width > 0; needs no LibTorch.
extern const ModelMaker kSparseModels;

}  // namespace tutti
