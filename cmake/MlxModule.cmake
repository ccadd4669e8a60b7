# The Python module `_mlx` for one version of MLX, or for several with the same binary interface: KILN_MLX_SERVES is
# FIRST or FIRST-LAST and stands in the file's name, by which kiln/_libraries.py chooses one. It needs nanobind's functions,
# the folder of the package (PACKAGE_DIR) and what MlxObjects.cmake makes.
#
# MLX's arrays are known only to modules of its nanobind domain, and nanobind tells those of Python's stable interface from
# others. MLX's wheels are of the others.
cmake_path(SET python_sources ${KILN_ROOT}/python/src)
cmake_path(RELATIVE_PATH python_sources)
nanobind_add_module(_mlx NB_STATIC NOMINSIZE NB_DOMAIN mlx
  ${python_sources}/dlpack_input.cpp
  ${python_sources}/exceptions.cpp
  ${python_sources}/mlx_module.cpp
  ${python_sources}/number_input.cpp
  ${python_sources}/print_source.cpp
  ${python_sources}/python_object.cpp
)
target_include_directories(_mlx PRIVATE ${python_sources} ${KILN_ROOT}/src)
target_link_libraries(_mlx PRIVATE kiln_mlx_objects)
set_target_properties(_mlx PROPERTIES OUTPUT_NAME _mlx-${KILN_MLX_SERVES}
                                      INSTALL_RPATH "$ORIGIN:$ORIGIN/../mlx/lib")
kiln_count_lines(_mlx)
kiln_unity_build(_mlx)
install(TARGETS _mlx LIBRARY DESTINATION ${PACKAGE_DIR} COMPONENT python)
