# kvasir_public: the library for others. Who links it sees include/ alone; the layers behind come along at link time.
# include/ is the bottom row of the layer table: its headers include the standard library and each other (scripts/check-layers).
add_library(kvasir_public INTERFACE)
target_include_directories(kvasir_public INTERFACE "${CMAKE_SOURCE_DIR}/include")
target_link_libraries(kvasir_public INTERFACE $<LINK_ONLY:kvasir_plan>)
install(DIRECTORY "${CMAKE_SOURCE_DIR}/include/kvasir" TYPE INCLUDE)
