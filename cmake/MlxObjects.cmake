# The target `kiln_mlx_objects`, what is compiled against MLX's headers: for programs in C++ and for the Python module. It
# needs the targets `kiln` and `mlx`.
cmake_path(SET adapters ${KILN_ROOT}/src/adapters)
cmake_path(RELATIVE_PATH adapters)  # kiln_unity_build groups files by these paths
add_library(kiln_mlx_objects OBJECT ${adapters}/mlx_cuda.cpp ${adapters}/mlx_primitive.cpp ${adapters}/mlx_stream.cpp)
target_include_directories(kiln_mlx_objects PUBLIC ${KILN_ROOT}/src)
target_link_libraries(kiln_mlx_objects PUBLIC kiln mlx)
kiln_count_lines(kiln_mlx_objects)
kiln_unity_build(kiln_mlx_objects)
