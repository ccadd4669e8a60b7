# What `cmake --install BUILD --component cpp --prefix PREFIX` installs: libraries, headers, find_package(kiln) and
# pkg-config. The Python package has a component of its own.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(KILN_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/kiln)

install(TARGETS kiln EXPORT kiln-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT cpp)
install(TARGETS kiln_torch LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT cpp)
# libkiln.so opens it, from its own folder.
install(TARGETS kiln_compiler LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT cpp)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/kiln DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT cpp
        PATTERN mlx.h EXCLUDE)
install(EXPORT kiln-targets NAMESPACE kiln:: DESTINATION ${KILN_CMAKE_DIR} COMPONENT cpp)

set(KILN_MLX_VERSION "")
if(TARGET kiln_mlx)
  set(KILN_MLX_VERSION ${MLX_VERSION})
  install(TARGETS kiln_mlx EXPORT kiln-mlx-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT cpp)
  install(FILES ${PROJECT_SOURCE_DIR}/include/kiln/mlx.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kiln COMPONENT cpp)
  install(EXPORT kiln-mlx-targets NAMESPACE kiln:: DESTINATION ${KILN_CMAKE_DIR} COMPONENT cpp)
endif()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/kiln-config.cmake.in ${PROJECT_BINARY_DIR}/kiln-config.cmake
                              INSTALL_DESTINATION ${KILN_CMAKE_DIR} NO_SET_AND_CHECK_MACRO
                              NO_CHECK_REQUIRED_COMPONENTS_MACRO)
# Nothing promises yet that a program built for one version is right with another: the libraries' names have all of it.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/kiln-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/kiln-config.cmake ${PROJECT_BINARY_DIR}/kiln-config-version.cmake
        DESTINATION ${KILN_CMAKE_DIR} COMPONENT cpp)

# From the folder of kiln.pc, wherever the prefix is moved to.
file(RELATIVE_PATH KILN_PREFIX_FROM_PC /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(${PROJECT_SOURCE_DIR}/cmake/kiln.pc.in ${PROJECT_BINARY_DIR}/kiln.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/kiln.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT cpp)
