# A cache near its limit for as long as one likes; the store's plan says how a geometry cuts the arena.
target_sources(test_cache PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/cache/churn.cpp")
target_link_libraries(test_cache PRIVATE kvasir_store)
