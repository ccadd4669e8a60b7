# kiln_unity_build(TARGET [REGEX…]) compiles the target's files of one folder together, as one file that includes them
# (CMake's unity build): most of the time of a file goes into headers, LLVM's above all. Files whose path below the
# target's folder matches a regular expression are one group, whatever their folders.
#
# The whole compiler takes a third of the time so, and one edited file takes two to three times as long: who works on
# one file for hours may configure with -DKILN_UNITY_BUILD=OFF. Rejected: a precompiled header of LLVM. It saves 15 % on
# top of this, and takes as much to make as it saves.
#
# Names in anonymous namespaces of one group must differ.
option(KILN_UNITY_BUILD "Compile the files of a folder together" ON)

function(kiln_unity_build TARGET)
  if(NOT KILN_UNITY_BUILD)
    return()
  endif()
  set_target_properties(${TARGET} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${TARGET} SOURCES)
  foreach(source IN LISTS sources)
    if(NOT source MATCHES "\\.cpp$" OR IS_ABSOLUTE "${source}")
      continue()
    endif()
    get_filename_component(group "${source}" DIRECTORY)
    foreach(regex IN LISTS ARGN)
      if(source MATCHES "${regex}")
        set(group "${regex}")
        break()
      endif()
    endforeach()
    string(MAKE_C_IDENTIFIER "${group}" group)
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${group}")
  endforeach()
endfunction()
