# The target `mlx` of the wheel in the environment's Python. MLX_FOUND is false where there is none.
execute_process(COMMAND ${Python_EXECUTABLE} -m mlx --cmake-dir OUTPUT_VARIABLE MLX_ROOT
                OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE mlx_missing ERROR_QUIET)
set(MLX_FOUND FALSE)
if(mlx_missing EQUAL 0)
  find_package(MLX CONFIG REQUIRED)
endif()
