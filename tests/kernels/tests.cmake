# Included by tests/CMakeLists.txt for test_kernels.
target_sources(test_kernels PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/kernels/support.cpp")
target_link_libraries(test_kernels PRIVATE kvasir_artifact)   # its dequantize() is the definition that packing must keep

# The AVX-512 kernels again, every intrinsic emulated by SIMDe, so that a machine without AVX-512 tests them too. SIMDe's
# headers are not held to our warnings; the native build of the same files is.
find_path(KVASIR_SIMDE simde/x86/avx512.h)
file(GLOB avx512_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/kernels/simd/avx512*.cpp")
if(KVASIR_SIMDE AND avx512_sources)
  add_library(kvasir_kernels_emulated STATIC ${avx512_sources})
  target_compile_definitions(kvasir_kernels_emulated PRIVATE KVASIR_EMULATE_AVX512)
  target_include_directories(kvasir_kernels_emulated SYSTEM PRIVATE "${KVASIR_SIMDE}")
  target_compile_options(kvasir_kernels_emulated PRIVATE -mavx2 -mfma -mf16c -O0 -g0 -w)   # -O1 takes three minutes to save seconds
  target_link_libraries(kvasir_kernels_emulated PRIVATE kvasir_kernels kvasir_options)
  target_link_libraries(test_kernels PRIVATE kvasir_kernels_emulated)
  target_compile_definitions(test_kernels PRIVATE KVASIR_HAS_EMULATED_AVX512)
endif()

# Sanitizers keep functions out of line that a normal build inlines.
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND AND NOT KVASIR_SANITIZE)
  add_test(NAME kernels.no_shared_symbols
           COMMAND Python3::Interpreter "${CMAKE_CURRENT_SOURCE_DIR}/kernels/no_shared_symbols_test.py" "${CMAKE_NM}" $<TARGET_FILE:kvasir_kernels>)
endif()
