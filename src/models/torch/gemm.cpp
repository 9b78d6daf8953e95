#include "models/torch/gemm.h"

#include "core/error.h"

// From oneDNN's C interface, which LibTorch is linked with; Debian keeps the header in a package of
// its own. Returns 0 when it is done. On the thin matrices of small batches it is up to 1.4 times
// as fast as OpenBLAS, and it shares LibTorch's threads.
extern "C" int dnnl_sgemm(char turn_a, char turn_b, int64_t m, int64_t n, int64_t k, float alpha,
                          const float* a, int64_t lda, const float* b, int64_t ldb, float beta,
                          float* c, int64_t ldc);

namespace tutti {

void multiply(int64_t m, int64_t n, int64_t k, Turn turn_a, const float* a, Turn turn_b,
              const float* b, float* c, bool add) {
  const bool at = turn_a == Turn::kYes, bt = turn_b == Turn::kYes;
  const int status = dnnl_sgemm(at ? 'T' : 'N', bt ? 'T' : 'N', m, n, k, 1, a, at ? m : k, b,
                                bt ? k : n, add ? 1 : 0, c, n);
  TUTTI_CHECK(status == 0);
}

}  // namespace tutti
