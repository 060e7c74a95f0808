# Kernels are optimised in every build type (less under sanitizers, whose checks take -O3 minutes a file), and each SIMD
# file is compiled for its own class: nothing outside src/kernels/simd may be, so that a machine without the class never
# meets its instructions.
if(KVASIR_SANITIZE)
  set(KVASIR_KERNEL_OPTIMISATION -O1)
else()
  set(KVASIR_KERNEL_OPTIMISATION -O3)
endif()
target_compile_options(kvasir_kernels PRIVATE ${KVASIR_KERNEL_OPTIMISATION} $<$<CXX_COMPILER_ID:GNU>:-fno-tree-reassoc>)
set(KVASIR_AVX2_FLAGS -mavx2 -mfma -mf16c)
# The intrinsics headers of GCC 12 use an undefined register on purpose and are warned about it.
set(KVASIR_AVX512_FLAGS ${KVASIR_AVX2_FLAGS} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -Wno-uninitialized "$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>")
file(GLOB avx2_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/kernels/simd/avx2*.cpp")
file(GLOB avx512_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/kernels/simd/avx512*.cpp")
set_source_files_properties(${avx2_sources} TARGET_DIRECTORY kvasir_kernels PROPERTIES COMPILE_OPTIONS "${KVASIR_AVX2_FLAGS}")
set_source_files_properties(${avx512_sources} TARGET_DIRECTORY kvasir_kernels PROPERTIES COMPILE_OPTIONS "${KVASIR_AVX512_FLAGS}")
