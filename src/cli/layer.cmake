target_compile_definitions(kvasir_cli PRIVATE KVASIR_VERSION="${PROJECT_VERSION}")
