// Compiles a function twice, plainly and with AVX2, and picks what the machine has when it is
// loaded. Neither version contracts a * b + c or reorders sums, so both give the same bits.
#pragma once

// A sanitizer's runtime is not ready yet when the loader makes the choice.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TUTTI_VECTORISED __attribute__((target_clones("avx2", "default")))
#else
#define TUTTI_VECTORISED
#endif

// What a vectorised function calls has to become part of it.
#define TUTTI_INLINE inline __attribute__((always_inline))
