# The passes over logits are written so that they become vector code. Without -fno-trapping-math the compiler may not
# turn exp_f32's early return into a select; it changes no value, only which floating-point flags are raised.
set_source_files_properties("${CMAKE_SOURCE_DIR}/src/engine/row_math.cpp" PROPERTIES
  COMPILE_OPTIONS "-O3;-fno-trapping-math")
