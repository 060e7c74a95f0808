// std::fma is one instruction on most machines and a library's call on the baseline this program is built for, with the
// same bits. A function marked so is compiled for both and chosen when the program starts: the twin stays plain code and
// is some times faster where it can be.
#pragma once

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define KVASIR_FMA_CLONES __attribute__((target_clones("fma", "default")))
#else
#define KVASIR_FMA_CLONES
#endif
